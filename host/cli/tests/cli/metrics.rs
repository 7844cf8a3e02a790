//! Metrics of a running process: the scrape, its lint, and the reference page.

mod lint;
mod scrape;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use self::lint::{KARMADAS_NAMES, problems};
use self::scrape::{Family, Scrape};
use crate::embedded::{FAILOVER, Program, folder, has_kubectl, root};

/// Metrics of the page that the run of the test has no samples of, with the reason. A metric that appears has to leave
/// this list.
const NOT_IN_THE_RUN: &[(&str, &str)] = &[
    (
        "bulkhead_certificate_end_timestamp_seconds",
        "the embedded control plane has no certificate that ends",
    ),
    ("bulkhead_trace_spans_total", "traces are off without a receiver"),
    (
        "bulkhead_leader",
        "the embedded control plane has one process, which needs no election",
    ),
];

/// A plugin that holds each eviction.
const HOLD: &str = "function EvictionCheck(binding, task, observed, now)\n\
                    return { verdict = \"hold\", reason = \"Wait\", message = \"for the test\" }\nend\n";

/// Lints a scrape with promtool, if `$PROMTOOL` names it.
fn by_promtool(text: &str) {
    let Some(promtool) = std::env::var_os("PROMTOOL") else {
        return;
    };
    let mut command = Command::new(promtool);
    command
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let problems = String::from_utf8_lossy(&output.stderr);
    let is_excused = |problem: &&str| KARMADAS_NAMES.iter().any(|name| problem.starts_with(name));
    let others: Vec<_> = problems.lines().filter(|problem| !is_excused(problem)).collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
    // Names that end in _total are reported, so it read the scrape.
    assert!(problems.contains(KARMADAS_NAMES[1]), "{problems}");
}

/// Metric as the reference page describes it: type, labels, meaning.
type Described = (String, BTreeSet<String>, String);

/// Returns the metrics of the reference page.
fn page(root: &Path) -> BTreeMap<String, Described> {
    let text = std::fs::read_to_string(root.join("docs/src/reference/metrics.md")).unwrap();
    let generated = text.split("<!-- generated: ").skip(1);
    let rows = generated.flat_map(|part| part.split("<!-- end -->").next().unwrap().lines());
    let described = rows.filter_map(|line| {
        let line = line.replace("\\|", "|");
        let cells: Vec<_> = line.trim_matches(['|', ' ']).splitn(4, " | ").collect();
        let [name, type_, labels, meaning] = cells[..] else {
            return None;
        };
        let name = name.strip_prefix('`')?.strip_suffix('`')?.to_owned();
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((name, (type_.to_owned(), labels, meaning.to_owned())))
    });
    described.collect()
}

/// Returns the labels of a family, without those of the buckets of a histogram.
fn labels(family: &Family) -> BTreeSet<String> {
    let labels = family.samples.iter().flat_map(|sample| sample.labels.keys());
    labels
        .filter(|label| family.type_ != "histogram" || *label != "le")
        .cloned()
        .collect()
}

#[test]
fn every_metric_of_a_scrape_is_on_the_reference_page_and_the_reverse() {
    if !has_kubectl("every_metric_of_a_scrape_is_on_the_reference_page_and_the_reverse") {
        return;
    }
    let folder = folder("metrics");
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("hold.lua"), HOLD).unwrap();
    let directory = plugins.display().to_string();
    let arguments = [FAILOVER, &["--plugin-directory", &directory]].concat();
    let mut embedded = Program::start(&folder, &arguments);
    embedded.apply_example(&["taint-policy.yaml", "policy.yaml", "nginx.yaml"]);
    let text = |embedded: &Program| embedded.scrape("text/plain").unwrap_or_default();
    embedded.until("the binding is scheduled", |embedded| {
        text(embedded).contains("karmada_scheduler_schedule_attempts_total{result=\"scheduled\"")
    });
    let lost = "simulation.bulkhead.dev/state=unreachable";
    embedded.kubectl_output(&["annotate", "cluster", "member1", lost]);
    embedded.until("the plugin holds the eviction", |embedded| {
        let held = "bulkhead_plugin_holds_total{plugin=\"hold\",kind=\"eviction-check\"} ";
        let text = text(embedded);
        text.lines()
            .any(|line| line.strip_prefix(held).is_some_and(|count| count != "0"))
    });

    let text = text(&embedded);
    assert!(!text.contains("# EOF"), "{text}");
    let scrape = Scrape::parse(&text).unwrap();
    let lint = problems(&scrape);
    assert!(lint.is_empty(), "{}\n{text}", lint.join("\n"));

    by_promtool(&text);

    let page = page(root());
    assert!(page.len() > 50, "{page:?}");
    let mut differences = Vec::new();
    for (name, family) in &scrape.0 {
        let Some((type_, described, meaning)) = page.get(name) else {
            differences.push(format!("the page has no {name}"));
            continue;
        };
        let found = labels(family);
        if *type_ != family.type_ || *meaning != family.help.trim_end_matches('.') {
            differences.push(format!(
                "{name}: the page has {type_}: {meaning}; the scrape {} {}",
                family.type_, family.help
            ));
        }
        if !family.samples.is_empty() && found != *described {
            differences.push(format!(
                "{name}: the page has the labels {described:?}, the scrape {found:?}"
            ));
        }
    }
    let excused: BTreeMap<_, _> = NOT_IN_THE_RUN.iter().copied().collect();
    for name in page.keys() {
        let is_there = scrape.0.get(name).is_some_and(|family| !family.samples.is_empty());
        match (is_there, excused.get(name.as_str())) {
            (false, None) => differences.push(format!("the scrape has no sample of {name}")),
            (true, Some(reason)) => differences.push(format!("{name} is in the scrape, although {reason}")),
            _ => {}
        }
    }
    assert!(differences.is_empty(), "{}\n{text}", differences.join("\n"));

    let open_metrics = embedded.scrape("application/openmetrics-text; version=1.0.0").unwrap();
    assert!(open_metrics.ends_with("# EOF\n"), "{open_metrics}");
    assert_eq!(embedded.stop(), Some(0));
}
