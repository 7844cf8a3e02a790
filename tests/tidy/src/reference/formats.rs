//! The pages about file formats name every field and every value, and no field that does not exist.

use std::collections::BTreeSet;

use super::items::items;
use super::{quoted, read};

const SCENARIO_PAGE: &str = "docs/src/reference/scenario.md";
const PLUGINS_PAGE: &str = "docs/src/reference/plugins-yaml.md";
const SCENARIO: &str = "host/app/src/scenario/mod.rs";
const FAULTS: &str = "host/app/src/scenario/faults.rs";
const MANIFEST: &str = "host/plugin/src/manifest.rs";
const BUDGET: &str = "host/plugin/src/budget.rs";
const SOURCE: &str = "host/plugin/src/source.rs";

/// Section of a page that describes types.
struct Section {
    page: &'static str,
    heading: &'static str,
    /// File with the types.
    file: &'static str,
    types: &'static [&'static str],
    /// True if each row of its tables is about a field or value.
    is_list: bool,
}

const SECTIONS: [Section; 9] = [
    Section {
        page: SCENARIO_PAGE,
        heading: "Fields",
        file: SCENARIO,
        types: &["pub struct Scenario", "pub enum UnknownKinds", "pub struct CustomKind"],
        is_list: true,
    },
    Section {
        page: SCENARIO_PAGE,
        heading: "Clusters",
        file: SCENARIO,
        types: &[
            "pub struct ClusterSpec",
            "pub struct Capacity",
            "pub struct FailureModeSpec",
            "pub enum WorkloadFailure",
        ],
        is_list: true,
    },
    Section {
        page: SCENARIO_PAGE,
        heading: "Manifests",
        file: SCENARIO,
        types: &["pub struct GeneratedManifest", "pub struct InlineManifest"],
        is_list: false,
    },
    Section {
        page: SCENARIO_PAGE,
        heading: "Events",
        file: SCENARIO,
        types: &["pub struct EventSpec", "pub struct DrainSpec", "pub struct ObjectSpec", "pub enum ClusterState"],
        is_list: true,
    },
    Section {
        page: SCENARIO_PAGE,
        heading: "Faults",
        file: FAULTS,
        types: &["pub struct FaultSpec", "pub enum FaultKind"],
        is_list: true,
    },
    Section {
        page: SCENARIO_PAGE,
        heading: "Expectations",
        file: SCENARIO,
        types: &[
            "pub struct Expectation",
            "pub struct CountOn",
            "pub struct EventExpectation",
            "pub struct DecisionExpectation",
        ],
        is_list: false,
    },
    Section {
        page: PLUGINS_PAGE,
        heading: "Fields of a plugin",
        file: MANIFEST,
        types: &["pub struct PluginManifest", "pub struct ObjectKind"],
        is_list: true,
    },
    Section {
        page: PLUGINS_PAGE,
        heading: "Functions of a script",
        file: SOURCE,
        types: &["pub enum EntryPoint"],
        is_list: false,
    },
    Section { page: PLUGINS_PAGE, heading: "Budget", file: BUDGET, types: &["pub struct Budget"], is_list: true },
];

fn is_separator(letter: char) -> bool {
    !letter.is_alphanumeric() && letter != '-'
}

/// Returns the words of a text that stand in backticks.
fn words(text: &str) -> BTreeSet<String> {
    let quoted = quoted(text);
    let words = quoted.iter().flat_map(|text| text.split(is_separator));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the text of a section.
fn text<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("there is no {heading}"));
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

#[test]
fn the_page_of_each_file_format_names_every_field_and_every_value() {
    let mut problems = Vec::new();
    for Section { page, heading, file, types, is_list } in SECTIONS {
        let (source, document) = (read(file), read(page));
        let known: BTreeSet<_> = types.iter().flat_map(|head| items(&source, head)).map(|item| item.name).collect();
        let section = text(&document, heading);
        let named = words(section);
        problems.extend(known.difference(&named).map(|name| format!("{page}: {heading} does not name {name}")));
        let rows = section.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" |").next());
        let rows: BTreeSet<_> = rows.flat_map(words).collect();
        if is_list {
            problems.extend(rows.difference(&known).map(|name| format!("{page}: {heading} has a row for {name}")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
