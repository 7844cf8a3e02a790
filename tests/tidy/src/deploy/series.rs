//! Time series that the program exports, read from its source: names as Prometheus sees them, with their labels.

use std::collections::{BTreeMap, BTreeSet};

use super::text;

const METRICS: &str = "host/controllers/src/metrics.rs";
const ENDPOINT: &str = "host/app/src/run/metrics.rs";

/// Series names with their own labels, including the series of histogram buckets.
pub(super) type Series = BTreeMap<String, BTreeSet<String>>;

/// Returns every series. Panics on a registration in an unsupported form.
pub(super) fn exported() -> Series {
    let mut all = registered(&text(METRICS));
    all.extend(written_by_hand(&text(ENDPOINT)));
    all
}

/// Returns the fields of a struct with their types, as written in the source.
fn fields(source: &str, structure: &str) -> BTreeMap<String, String> {
    let body = source.split_once(&format!("struct {structure} {{")).map(|(_, rest)| rest).unwrap_or_default();
    let body = body.split_once("\n}").map(|(body, _)| body).unwrap_or_default();
    let field = |line: &str| {
        let line = line.trim().trim_end_matches(',').trim_start_matches("pub(crate) ");
        let (name, type_) = line.split_once(": ")?;
        (!line.starts_with("//")).then(|| (name.to_owned(), type_.to_owned()))
    };
    body.lines().filter_map(field).collect()
}

/// Returns the source without its test module.
fn program(source: &str) -> &str {
    source.split("#[cfg(test)]").next().unwrap_or_default()
}

fn registered(source: &str) -> Series {
    let source = program(source);
    let types = fields(source, "Metrics");
    let mut all = Series::new();
    let calls = source.split("registry.register(").skip(1).chain(source.split(" gauge(").skip(1));
    for call in calls {
        let call = call.split_once(");").map_or(call, |(call, _)| call);
        // The registration inside a helper names no metric.
        let Some(name) = call.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next()) else { continue };
        let field = call.rsplit_once("self.").and_then(|(_, rest)| rest.split_once(".clone()")).map(|(field, _)| field);
        let type_ = field.and_then(|field| types.get(field));
        let type_ = type_.unwrap_or_else(|| panic!("{METRICS}: what is the type of {name}?"));
        let labels = type_.strip_prefix("Family<").and_then(|rest| rest.split_once(',')).map(|(labels, _)| labels);
        let labels: BTreeSet<_> = labels.map(|labels| fields(source, labels).into_keys().collect()).unwrap_or_default();
        if type_.contains("Histogram") {
            all.insert(format!("{name}_sum"), labels.clone());
            all.insert(format!("{name}_count"), labels.clone());
            let le = labels.into_iter().chain(["le".to_owned()]);
            all.insert(format!("{name}_bucket"), le.collect());
        } else if type_.contains("Counter") {
            all.insert(format!("{name}_total"), labels);
        } else {
            all.insert(name.to_owned(), labels);
        }
    }
    all
}

/// Parses lines of the text format: `family(text, "name", …)` and then `name{{label={:?}}} {}` or `name {}`.
fn written_by_hand(source: &str) -> Series {
    let source = program(source);
    let mut all = Series::new();
    for call in source.split("family(text, \"").skip(1) {
        let name = call.split('"').next().unwrap_or_default();
        let quoted = format!("\"{name}");
        let sample = source.split(&quoted).skip(2).map(|rest| rest.split('"').next().unwrap_or_default());
        let sample = sample.last().unwrap_or_else(|| panic!("{ENDPOINT}: there is no sample of {name}"));
        let (suffix, labels) = match sample.split_once("{{") {
            Some((suffix, labels)) => (suffix, labels.split_once("}}").map_or(labels, |(labels, _)| labels)),
            None => (sample.split(' ').next().unwrap_or_default(), ""),
        };
        let labels = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        all.insert(format!("{name}{suffix}"), labels.collect());
    }
    all
}

#[test]
fn series_are_found_in_the_source() {
    let source = r#"
pub(crate) struct QueueLabels {
    /// Which.
    pub(crate) name: &'static str,
}
pub struct Metrics {
    registry: Registry,
    pub(crate) depth: Family<QueueLabels, Gauge>,
    pub(crate) took: Family<QueueLabels, Histogram>,
    pub(crate) done: Counter,
}
        gauge("queue_depth", "Depth", self.depth.clone());
        registry.register(
            "took_seconds",
            "How long",
            self.took.clone(),
        );
        registry.register("done", "Done", self.done.clone());
"#;
    let name = |series: &Series| series.iter().map(|(name, labels)| format!("{name}{labels:?}")).collect::<Vec<_>>();
    let expected = [
        "done_total{}",
        r#"queue_depth{"name"}"#,
        r#"took_seconds_bucket{"le", "name"}"#,
        r#"took_seconds_count{"name"}"#,
        r#"took_seconds_sum{"name"}"#,
    ];
    assert_eq!(name(&registered(source)), expected);
    let source = r#"
        let _ = family(text, "calls", "Calls.", "counter");
            let _ = writeln!(text, "calls_total{{plugin={:?},kind={kind:?}}} {}", name, count);
        let _ = family(text, "known", "Known.", "gauge");
        let _ = writeln!(text, "known {}\n# EOF", known);
"#;
    assert_eq!(name(&written_by_hand(source)), [r#"calls_total{"kind", "plugin"}"#, "known{}"]);
}
