//! Traces of evictions and decisions over OTLP, for `bulkhead run` and `bulkhead agent`.
//!
//! `settings` reads the standard environment variables of OpenTelemetry; without an endpoint nothing is collected or
//! sent. `recorder` collects the spans of each reconcile, `evictions` finds the eviction that a reconcile is part
//! of, and `assembler` makes spans of OpenTelemetry with stable ids of them. `export` sends them from a thread of
//! its own, behind a bounded queue that never waits.

mod assembler;
mod client;
mod evictions;
mod export;
mod ids;
mod recorded;
mod recorder;
mod settings;
mod tree;

use std::sync::Arc;
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use self::assembler::Assembler;
use self::export::Exporter;
pub(crate) use self::export::SpanCounts;
use self::recorder::Recorder;
use self::settings::Settings;

/// Time limit for the export of the last spans when the process ends.
const END: Duration = Duration::from_secs(2);

/// Exporter of the traces of the process. Clones share it.
#[derive(Clone)]
pub struct Traces {
    assembler: Arc<Assembler>,
    exporter: Arc<Exporter>,
}

/// Exporter that the environment asks for, with a warning for each variable that cannot be used.
#[derive(Default)]
pub struct FromEnvironment {
    /// Exporter; `None` if traces are off.
    pub traces: Option<Traces>,
    /// Warnings, for the log.
    pub warnings: Vec<String>,
}

impl Traces {
    /// Creates the exporter that the environment variables of OpenTelemetry ask for. An invalid value causes a
    /// warning and never an error: telemetry must not keep the controllers from starting.
    pub fn from_environment() -> FromEnvironment {
        let mut warnings = Vec::new();
        let settings = Settings::read(&settings::environment, &mut warnings);
        let traces = settings.and_then(|settings| match Self::start(&settings) {
            Ok(traces) => Some(traces),
            Err(error) => {
                warnings.push(format!("traces are not exported: {error}"));
                None
            }
        });
        FromEnvironment { traces, warnings }
    }

    fn start(settings: &Settings) -> Result<Self, String> {
        let exporter = Arc::new(Exporter::start(settings)?);
        let assembler = Arc::new(Assembler::new(settings.sampler.clone(), Arc::clone(&exporter)));
        Ok(Self { assembler, exporter })
    }

    /// Returns the URL that traces are sent to.
    pub fn endpoint(&self) -> &str {
        self.exporter.endpoint()
    }

    /// Returns the layer that collects spans for the exporter, with its own filter.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        Recorder::new(Arc::clone(&self.assembler)).with_filter(filter_fn(recorder::is_recorded))
    }

    /// Returns the counts of spans, for metrics.
    pub(crate) fn counts(&self) -> Arc<SpanCounts> {
        self.exporter.counts()
    }

    /// Sends the spans that wait, for two seconds at most. Called once, when the process ends.
    pub fn end(&self) {
        self.exporter.end(END);
    }
}

#[cfg(test)]
mod tests;
