//! Text format of a scrape.
//!
//! The encoder writes `OpenMetrics`, which Prometheus asks for. Tools that do not, such as `promtool check metrics`
//! and `curl`, get the older text format of Prometheus: there the description of a counter has the name of its
//! series, with `_total`, and no line ends the text.

use std::fmt::Write as _;

use http::HeaderMap;
use http::header::ACCEPT;

/// Text format of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `OpenMetrics` 1.0.0.
    OpenMetrics,
    /// Text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Format {
    /// Returns the format that a client accepts: `OpenMetrics` only if it names that.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepted.any(|value| value.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Returns the media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts a scrape from `OpenMetrics`.
    pub(crate) fn convert(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Prometheus => to_prometheus(&text),
        }
    }
}

fn to_prometheus(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let mut converted = String::with_capacity(text.len());
    while let Some(line) = lines.next() {
        if line == "# EOF" {
            break;
        }
        // The help text of a family stands before its type.
        let described = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        let counter = described.filter(|(name, _)| {
            let type_ = lines.peek().and_then(|next| next.strip_prefix("# TYPE "));
            type_.and_then(|rest| rest.split_once(' ')) == Some((name, "counter"))
        });
        if let Some((name, help)) = counter {
            lines.next();
            let _ = writeln!(converted, "# HELP {name}_total {help}\n# TYPE {name}_total counter");
        } else {
            converted += line;
            converted.push('\n');
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_client_gets_open_metrics_only_if_it_accepts_them() {
        let check = |accept: Option<&'static str>, expected: Format| {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Format::accepted(&headers), expected, "{accept:?}");
        };
        let of_prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        check(Some(of_prometheus), Format::OpenMetrics);
        check(Some("text/plain"), Format::Prometheus);
        check(Some("*/*"), Format::Prometheus);
        check(None, Format::Prometheus);
    }

    #[test]
    fn the_description_of_a_counter_has_the_name_of_its_series() {
        let open_metrics = "\
# HELP done Things done.
# TYPE done counter
done_total{what=\"# HELP\"} 1
# HELP depth Depth.
# TYPE depth gauge
depth 2
# EOF
";
        let prometheus = "\
# HELP done_total Things done.
# TYPE done_total counter
done_total{what=\"# HELP\"} 1
# HELP depth Depth.
# TYPE depth gauge
depth 2
";
        let convert = |format: Format| format.convert(open_metrics.to_owned());
        assert_eq!(convert(Format::Prometheus), prometheus);
        assert_eq!(convert(Format::OpenMetrics), open_metrics);
    }
}
