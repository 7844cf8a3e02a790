//! Time series that the program exports, read from its source: names as Prometheus sees them, with their labels.

use std::collections::{BTreeMap, BTreeSet};

use super::text;

const METRICS: &str = "host/controllers/src/metrics.rs";
const CLUSTERS: &str = "host/controllers/src/metrics/clusters.rs";
const SCHEDULER: &str = "host/controllers/src/metrics/scheduler.rs";
const ENDPOINT: [&str; 2] = ["host/server/src/metrics.rs", "host/server/src/metrics/process.rs"];

const SCHEDULER_PREFIX: &str = "karmada_scheduler_";

/// Series names with their own labels, including the series of histogram buckets.
pub(super) type Series = BTreeMap<String, BTreeSet<String>>;

/// Metric as a scrape describes it.
pub(crate) struct Metric {
    /// Name, with the suffix of a counter and without those of a histogram.
    pub(crate) name: String,
    /// Type: counter, gauge or histogram.
    pub(crate) kind: String,
    pub(crate) labels: BTreeSet<String>,
    pub(crate) help: String,
}

/// Returns every series but those of the scheduler. Panics on a registration in an unsupported form.
pub(super) fn exported() -> Series {
    let mut all = metrics();
    all.retain(|metric| !metric.name.starts_with(SCHEDULER_PREFIX));
    series(&all)
}

/// Returns every metric. Panics on a registration in an unsupported form.
pub(crate) fn metrics() -> Vec<Metric> {
    let mut all = registered(&text(METRICS), "Metrics", "");
    all.extend(registered(&text(CLUSTERS), "ClusterMetrics", ""));
    all.extend(registered(&text(SCHEDULER), "SchedulerMetrics", SCHEDULER_PREFIX));
    all.extend(ENDPOINT.iter().flat_map(|file| collected(&text(file))));
    all
}

/// Returns the fields of a struct with their types, as written in the source.
fn fields(source: &str, structure: &str) -> BTreeMap<String, String> {
    let body = source
        .split_once(&format!("struct {structure} {{"))
        .map(|(_, rest)| rest)
        .unwrap_or_default();
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

/// Returns the text that an expression names: a literal, or a variable with a literal above.
fn literal(expression: &str, above: &str) -> String {
    let expression = expression.trim_start();
    if let Some(rest) = expression.strip_prefix('"') {
        return rest.split('"').next().unwrap_or_default().to_owned();
    }
    let name: String = expression
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let value = above
        .rsplit_once(&format!("let {name} ="))
        .and_then(|(_, rest)| rest.split('"').nth(1));
    value
        .unwrap_or_else(|| panic!("no text above is called {name}"))
        .to_owned()
}

fn registered(source: &str, structure: &str, prefix: &str) -> Vec<Metric> {
    let source = program(source);
    let types = fields(source, structure);
    let mut all = Vec::new();
    for start in ["registry.register(", " gauge("] {
        for (at, _) in source.match_indices(start) {
            let (above, call) = (&source[..at], &source[at + start.len()..]);
            let call = call.split_once(");").map_or(call, |(call, _)| call);
            // The registration inside a helper names no metric.
            let Some(quoted) = call.trim_start().strip_prefix('"') else {
                continue;
            };
            let (name, rest) = quoted.split_once("\",").unwrap_or((quoted, ""));
            let field = call
                .rsplit_once("self.")
                .and_then(|(_, rest)| rest.split_once(".clone()"))
                .map(|(field, _)| field);
            let type_ = field.and_then(|field| types.get(field));
            let type_ = type_.unwrap_or_else(|| panic!("{structure}: what is the type of {name}?"));
            let labels = type_
                .strip_prefix("Family<")
                .and_then(|rest| rest.split_once(','))
                .map(|(labels, _)| labels);
            // Labels that several files use are declared in the first one.
            let declared = |labels: &str| {
                let own = fields(source, labels);
                if own.is_empty() {
                    fields(&text(METRICS), labels)
                } else {
                    own
                }
            };
            let labels = labels
                .map(|labels| declared(labels).into_keys().collect())
                .unwrap_or_default();
            let (kind, suffix) = match type_ {
                type_ if type_.contains("Histogram") => ("histogram", ""),
                type_ if type_.contains("Counter") => ("counter", "_total"),
                _ => ("gauge", ""),
            };
            let (name, help) = (format!("{prefix}{name}{suffix}"), literal(rest, above));
            all.push(Metric {
                name,
                kind: kind.to_owned(),
                labels,
                help,
            });
        }
    }
    all
}

/// Parses families that are collected at a scrape: `Counters::new("name", "help", ["label"])`, and those of `Gauges`.
fn collected(source: &str) -> Vec<Metric> {
    let source = program(source);
    let mut all: Vec<(usize, Metric)> = Vec::new();
    let forms = [
        ("Counters::new(", "counter", "_total"),
        ("Gauges::new(", "gauge", ""),
        ("Histograms::new(", "histogram", ""),
    ];
    for (start, kind, suffix) in forms {
        for (at, _) in source.match_indices(start) {
            let call = &source[at + start.len()..];
            let call = call.split_once(");").map_or(call, |(call, _)| call);
            let mut literals = call.split('"').skip(1).step_by(2).map(str::to_owned);
            let (Some(name), Some(help)) = (literals.next(), literals.next()) else {
                panic!("{start}{call}) has no name and no help text");
            };
            let metric = Metric {
                name: name + suffix,
                kind: kind.to_owned(),
                labels: literals.collect(),
                help,
            };
            all.push((at, metric));
        }
    }
    // The order of the source is that of the page.
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, metric)| metric).collect()
}

/// Returns the time series of metrics.
fn series(metrics: &[Metric]) -> Series {
    let mut all = Series::new();
    for Metric { name, kind, labels, .. } in metrics {
        if kind == "histogram" {
            all.insert(format!("{name}_sum"), labels.clone());
            all.insert(format!("{name}_count"), labels.clone());
            let le = labels.iter().cloned().chain(["le".to_owned()]);
            all.insert(format!("{name}_bucket"), le.collect());
        } else {
            all.insert(name.clone(), labels.clone());
        }
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
        let finished = "Done";
        registry.register("done", finished, self.done.clone());
"#;
    let name = |series: &Series| {
        series
            .iter()
            .map(|(name, labels)| format!("{name}{labels:?}"))
            .collect::<Vec<_>>()
    };
    let expected = [
        "done_total{}",
        r#"queue_depth{"name"}"#,
        r#"took_seconds_bucket{"le", "name"}"#,
        r#"took_seconds_count{"name"}"#,
        r#"took_seconds_sum{"name"}"#,
    ];
    let metrics = registered(source, "Metrics", "");
    assert_eq!(name(&series(&metrics)), expected);
    let described: Vec<_> = metrics
        .iter()
        .map(|metric| (metric.kind.as_str(), metric.help.as_str()))
        .collect();
    assert_eq!(
        described,
        [("histogram", "How long"), ("counter", "Done"), ("gauge", "Depth")]
    );
    let source = r#"
const CALLS: Counters<2> = Counters::new(
    "calls",
    "Calls.",
    ["plugin", "kind"],
);
const KNOWN: Gauges<0> = Gauges::new("known", "Known.", []);
"#;
    let metrics = collected(source);
    assert_eq!(metrics[0].kind, "counter");
    assert_eq!(metrics[1].help, "Known.");
    assert_eq!(name(&series(&metrics)), [r#"calls_total{"kind", "plugin"}"#, "known{}"]);
}
