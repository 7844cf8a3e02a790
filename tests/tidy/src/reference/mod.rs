//! Reference pages: parts that are generated from the source, and pages that must name everything that the source has.
//!
//! Doc comments and literals are not part of the program, so these tests read its source.

#[path = "../../../reference/golden.rs"]
mod golden;
mod items;
mod modes;
mod reasons;
mod stored;
mod wit;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::deploy::series::{Metric, metrics};

/// Sections of the page about metrics, with the prefixes of their names. The first match decides.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("evictions", &["evict_", "eviction_", "bulkhead_eviction_"]),
    ("clusters", &["cluster_"]),
    ("scheduler", &["karmada_scheduler_"]),
    ("plugins", &["bulkhead_plugin_"]),
    ("process", &["bulkhead_", "process_"]),
];

fn read(name: &str) -> String {
    fs::read_to_string(super::root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the text of the Rust files below a folder, without comments and tests.
fn code(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "tests", "benches"].contains(&name.as_str()) {
            code(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests.rs", "testing.rs"].contains(&name.as_str())
        {
            *text += &without_tests(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the lines of a source file before its module of tests, without lines of comments.
fn without_tests(source: &str) -> String {
    let program = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the words between backticks in a text.
fn quoted(text: &str) -> BTreeSet<String> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

fn section_of(metric: &Metric) -> Option<&'static str> {
    let matching = SECTIONS
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(|prefix| metric.name.starts_with(prefix)));
    matching.map(|(section, _)| *section)
}

fn row(metric: &Metric) -> Vec<String> {
    let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = if labels.is_empty() {
        "–".to_owned()
    } else {
        labels.join(", ")
    };
    vec![
        format!("`{}`", metric.name),
        metric.kind.clone(),
        labels,
        golden::prose(metric.help.trim_end_matches('.')),
    ]
}

#[test]
fn the_page_of_metrics_is_generated_from_their_registration() {
    let metrics = metrics();
    assert!(metrics.len() > 30, "only {} metrics were found", metrics.len());
    let homeless: Vec<_> = metrics.iter().filter(|metric| section_of(metric).is_none()).collect();
    assert!(
        homeless.is_empty(),
        "no section has {:?}",
        homeless.iter().map(|metric| &metric.name).collect::<Vec<_>>()
    );
    let parts = SECTIONS.iter().map(|(section, _)| {
        let rows = metrics.iter().filter(|metric| section_of(metric) == Some(*section));
        let rows: Vec<_> = rows.map(row).collect();
        (*section, golden::table(&["metric", "type", "labels", "meaning"], &rows))
    });
    golden::check("metrics.md", &parts.collect::<Vec<_>>());
}

#[test]
fn generated_prose_is_one_line_and_no_markup() {
    assert_eq!(golden::prose("a <b>\n  `<c|d>`  e|f"), "a &lt;b> `<c\\|d>` e\\|f");
    assert_eq!(
        golden::table(&["a"], &[vec!["b".to_owned()]]),
        "| a |\n| --- |\n| b |\n"
    );
}
