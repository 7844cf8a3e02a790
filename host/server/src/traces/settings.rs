//! Settings from the standard environment variables of OpenTelemetry.
//!
//! As the specification demands, an empty variable counts as unset, and a value that cannot be used is ignored with a
//! warning. Warnings never have the value of a header, which may be a credential.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use opentelemetry_sdk::trace::Sampler;

/// Path of traces below the endpoint of all signals.
const TRACES_PATH: &str = "v1/traces";
/// Endpoint if traces are requested without one.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318/v1/traces";

/// Settings of the exporter.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// URL of the receiver.
    pub(super) endpoint: String,
    /// Time limit of an export.
    pub(super) timeout: Duration,
    /// File with authorities of the receiver, in PEM.
    pub(super) ca_file: Option<PathBuf>,
    /// Sampler of traces.
    pub(super) sampler: Sampler,
    /// Maximum number of spans in the queue.
    pub(super) queue_max: usize,
    /// Maximum number of spans in one request.
    pub(super) batch_max: usize,
    /// Time between two exports.
    pub(super) delay: Duration,
    /// True if the environment names the service.
    pub(super) is_named: bool,
}

/// Reads a variable of the process.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Variables of the environment, with the warnings about them.
struct Variables<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    warnings: &'a mut Vec<String>,
}

impl Settings {
    /// Reads the settings. Returns `None` if traces are off.
    pub(super) fn read(read: &dyn Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> Option<Self> {
        let mut variables = Variables { read, warnings };
        if variables.is_disabled() {
            return None;
        }
        let endpoint = variables.endpoint()?;
        variables.check_protocol()?;
        variables.check_compression()?;
        variables.check_headers();
        let (queue_max, batch_max) = (
            variables.positive("OTEL_BSP_MAX_QUEUE_SIZE", 2048),
            variables.positive("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
        );
        let named = variables.get("OTEL_SERVICE_NAME").is_some()
            || variables
                .get("OTEL_RESOURCE_ATTRIBUTES")
                .is_some_and(|attributes| attributes.split(',').any(|one| one.trim().starts_with("service.name=")));
        Some(Self {
            endpoint,
            timeout: variables.timeout(),
            ca_file: variables.of_signal("CERTIFICATE").map(|(_, path)| PathBuf::from(path)),
            sampler: variables.sampler(),
            queue_max,
            batch_max: batch_max.min(queue_max),
            delay: Duration::from_millis(variables.parsed("OTEL_BSP_SCHEDULE_DELAY", 5000)),
            is_named: named,
        })
    }

    /// Returns the URL of the receiver without user and password.
    pub(super) fn shown_endpoint(&self) -> String {
        let Some((scheme, rest)) = self.endpoint.split_once("://") else {
            return self.endpoint.clone();
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}/{path}")
    }
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let value = (self.read)(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    /// Returns the variable of the exporter for traces, or else the one for all signals, with its name.
    fn of_signal(&self, name: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
            format!("OTEL_EXPORTER_OTLP_{name}"),
        ];
        names
            .into_iter()
            .find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn warn(&mut self, name: &str, problem: impl Display) {
        self.warnings.push(format!("{name}: {problem}"));
    }

    fn is_disabled(&mut self) -> bool {
        const NAME: &str = "OTEL_SDK_DISABLED";
        let Some(value) = self.get(NAME) else { return false };
        if !["true", "false"].contains(&value.to_lowercase().as_str()) {
            self.warn(
                NAME,
                format_args!("{value:?} is neither true nor false; it counts as false"),
            );
        }
        value.eq_ignore_ascii_case("true")
    }

    /// Returns the URL that traces are sent to; `None` if they are not requested, or if it cannot be used.
    fn endpoint(&mut self) -> Option<String> {
        const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
        let exporters = self.get(EXPORTER);
        let mut is_requested = false;
        for exporter in exporters
            .iter()
            .flat_map(|exporters| exporters.split(','))
            .map(str::trim)
        {
            match exporter {
                "otlp" => is_requested = true,
                "none" => return None,
                other => self.warn(
                    EXPORTER,
                    format_args!("there is no exporter {other:?}, only otlp and none"),
                ),
            }
        }
        if exporters.is_some() && !is_requested {
            return None;
        }
        let of_traces = self.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let of_all = self.get("OTEL_EXPORTER_OTLP_ENDPOINT");
        let (name, url) = match (of_traces, of_all) {
            (Some(url), _) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url),
            (None, Some(url)) => (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                format!("{}/{TRACES_PATH}", url.trim_end_matches('/')),
            ),
            (None, None) if is_requested => return Some(DEFAULT_ENDPOINT.to_owned()),
            (None, None) => return None,
        };
        if is_url(&url) {
            return Some(url);
        }
        self.warn(
            name,
            "is not a URL such as http://collector:4318; traces are not exported",
        );
        None
    }

    /// Checks the protocol. Returns `None` if the receiver expects one that the exporter does not speak.
    fn check_protocol(&mut self) -> Option<()> {
        let Some((name, protocol)) = self.of_signal("PROTOCOL") else {
            return Some(());
        };
        match protocol.as_str() {
            "http/protobuf" => Some(()),
            "grpc" | "http/json" => {
                self.warn(
                    &name,
                    format_args!(
                        "{protocol} is not supported; traces are not exported; use http/protobuf, whose port is 4318"
                    ),
                );
                None
            }
            other => {
                self.warn(
                    &name,
                    format_args!("there is no protocol {other:?}; http/protobuf is used"),
                );
                Some(())
            }
        }
    }

    /// Checks the compression. Returns `None` if requests would have to be compressed.
    fn check_compression(&mut self) -> Option<()> {
        let Some((name, compression)) = self.of_signal("COMPRESSION").filter(|(_, value)| value != "none") else {
            return Some(());
        };
        self.warn(
            &name,
            format_args!("{compression} is not supported; traces are not exported; use none"),
        );
        None
    }

    fn check_headers(&mut self) {
        let Some((name, headers)) = self.of_signal("HEADERS") else {
            return;
        };
        let is_pair = |pair: &str| {
            let key = pair.split_once('=').map(|(key, _)| key.trim());
            key.is_some_and(|key| key.parse::<http::HeaderName>().is_ok())
        };
        let malformed = headers.split_terminator(',').filter(|pair| !is_pair(pair)).count();
        if malformed > 0 {
            let problem = format!("{malformed} of its parts are not a header such as name=value; they are ignored");
            self.warn(&name, problem);
        }
    }

    fn timeout(&mut self) -> Duration {
        let default = 10_000;
        let milliseconds = match self.of_signal("TIMEOUT") {
            Some((name, _)) => self.parsed(&name, default),
            None => default,
        };
        Duration::from_millis(milliseconds)
    }

    fn parsed<T: FromStr + Display>(&mut self, name: &str, default: T) -> T {
        let Some(value) = self.get(name) else { return default };
        value.parse().unwrap_or_else(|_| {
            self.warn(name, format_args!("{value:?} is not a whole number; {default} is used"));
            default
        })
    }

    fn positive(&mut self, name: &str, default: usize) -> usize {
        let number = self.parsed(name, default);
        if number == 0 {
            self.warn(name, format_args!("0 is not possible; {default} is used"));
            return default;
        }
        number
    }

    fn sampler(&mut self) -> Sampler {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        let based = |root: Sampler| Sampler::ParentBased(Box::new(root));
        let Some(name) = self.get(NAME) else {
            return based(Sampler::AlwaysOn);
        };
        match name.as_str() {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => Sampler::TraceIdRatioBased(self.ratio()),
            "parentbased_always_on" => based(Sampler::AlwaysOn),
            "parentbased_always_off" => based(Sampler::AlwaysOff),
            "parentbased_traceidratio" => based(Sampler::TraceIdRatioBased(self.ratio())),
            other => {
                self.warn(
                    NAME,
                    format_args!("there is no sampler {other:?}; parentbased_always_on is used"),
                );
                based(Sampler::AlwaysOn)
            }
        }
    }

    fn ratio(&mut self) -> f64 {
        const NAME: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(value) = self.get(NAME) else { return 1.0 };
        match value.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => {
                self.warn(NAME, format_args!("{value:?} is not a number from 0 to 1; 1 is used"));
                1.0
            }
        }
    }
}

fn is_url(text: &str) -> bool {
    text.parse::<Uri>()
        .is_ok_and(|url| url.host().is_some() && matches!(url.scheme_str(), Some("http" | "https")))
}

#[cfg(test)]
mod tests;
