//! Log of a server: its arguments, and the subscriber that writes it to standard error.
//!
//! Only the program installs the subscriber, once. All other code emits spans and events of `tracing`.

mod limiter;
mod repeats;

use std::fmt;
use std::io::stderr;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use tracing::Dispatch;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt as lines, registry};

pub(crate) use self::limiter::Limiter;
use self::repeats::WithoutRepeats;
use crate::traces::Traces;
use crate::{help, now};

/// Default filter. kube's own lines repeat the failures that Bulkhead logs with the object and the decision.
const DEFAULT_FILTER: &str = "warn,bulkhead=info,kube_client=off";

/// Arguments of the log.
#[derive(Args, Clone, Debug)]
pub struct LogArguments {
    /// Format of the log on standard error: `text` for people, or `json` with one object per line.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = help::LOG,
          env = help::LOG_FORMAT_VARIABLE, hide_env_values = true)]
    log_format: LogFormat,

    /// Filter of the log, in the syntax of RUST_LOG: levels, targets with levels, and spans with levels, such as
    /// `info,bulkhead::plugin=debug` or `[reconcile{controller=scheduler}]=debug`.
    #[arg(long, default_value = DEFAULT_FILTER, value_name = "FILTER", help_heading = help::LOG,
          env = help::LOG_FILTER_VARIABLE, hide_env_values = true)]
    log_filter: LogFilter,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line per event, for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Filter in the syntax of RUST_LOG.
#[derive(Clone, Debug)]
struct LogFilter(String);

impl LogFilter {
    fn layer(&self) -> EnvFilter {
        EnvFilter::builder().parse_lossy(&self.0)
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = EnvFilter::builder().parse(text);
        parsed.map(|_| Self(text.to_owned())).map_err(|error| error.to_string())
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Timestamps of log lines: UTC, with milliseconds.
struct Timestamp;

impl FormatTime for Timestamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{}", now().strftime("%FT%T%.3fZ"))
    }
}

impl LogArguments {
    /// Returns the subscriber of the process. It writes to standard error, with colours on terminals, and collects
    /// the spans of `traces`, which the filter of the log does not apply to.
    pub fn dispatch(&self, traces: Option<&Traces>) -> Dispatch {
        let has_colours = anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never;
        self.dispatch_to(stderr, has_colours, traces)
    }

    pub(crate) fn dispatch_to<W>(&self, writer: W, has_colours: bool, traces: Option<&Traces>) -> Dispatch
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let lines = lines::layer()
            .with_writer(writer)
            .with_ansi(has_colours)
            .with_timer(Timestamp);
        let layer = match self.log_format {
            LogFormat::Text => lines.map_event_format(WithoutRepeats::text).boxed(),
            LogFormat::Json => {
                let lines = lines.json().flatten_event(true).with_current_span(false);
                lines.map_event_format(WithoutRepeats::json).boxed()
            }
        };
        match traces {
            None => Dispatch::new(registry().with(layer).with(self.log_filter.layer())),
            Some(traces) => {
                let lines = layer.with_filter(self.log_filter.layer());
                Dispatch::new(registry().with(lines).with(traces.layer()))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
