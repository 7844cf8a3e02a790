//! Fields of Karmada's supported releases, compared with the definitions of this crate.
//!
//! `karmada_releases.json` has the fields that the types know, looked up in the definitions of each supported release:
//! those that every release has, and those that some release lacks, with the reason for which nothing is lost. A new
//! field needs a place in it, and a new release a look at its definitions.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::decide::schedule::EVICTION_HISTORY;
use bulkhead_core::model::{AggregatedStatusItem, Health, PurgeMode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::definition::definitions;
use crate::reference;

const FACTS: &str = include_str!("karmada_releases.json");
const PAGE: &str = include_str!("../../../docs/src/explanation/compatibility.md");

/// Kinds with the fields of another one.
const TWINS: [(&str, &str); 3] = [
    ("ClusterPropagationPolicy", "PropagationPolicy"),
    ("ClusterOverridePolicy", "OverridePolicy"),
    ("ClusterResourceBinding", "ResourceBinding"),
];
/// Kinds of people. The controllers write none of their fields.
const READ: [&str; 3] = [
    "PropagationPolicy",
    "ClusterTaintPolicy",
    "ResourceInterpreterCustomization",
];
/// Parts of a binding that are copied from its policy.
const OF_POLICY: [&str; 2] = ["spec.failover", "spec.placement"];
/// Fields of bindings that the controllers write, and that the definitions of this crate leave to the rest.
const UNDECLARED: [&str; 3] = [EVICTION_HISTORY, "schedulePriority", "workloadAffinityGroups"];

/// Content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    /// Tag of each supported release whose definitions were read.
    releases: BTreeMap<String, String>,
    /// Fields of every supported release: names by the path of their parent, by kind.
    everywhere: BTreeMap<String, BTreeMap<String, String>>,
    differences: Vec<Difference>,
    /// Values that every supported release accepts, by field.
    values: BTreeMap<String, String>,
}

/// Field, with all fields below it, that at least one supported release lacks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    kind: String,
    field: String,
    /// First release with the field, or `master`; `None` for fields of proposals.
    since: Option<String>,
    guard: Guard,
}

/// Reason for which nothing is lost when an API server drops a field.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Guard {
    /// The controllers only read the field, and its absence is a default.
    Read,
    /// The controllers neither read nor write the field.
    Unwritten,
    /// The field is written only if the policy has this one, which the same releases lack.
    Policy(String),
    /// The page about compatibility has the consequence.
    Noted,
}

fn facts() -> Facts {
    serde_json::from_str(FACTS).unwrap()
}

/// Returns true if a field is another one, or below it.
fn is_below(field: &str, other: &str) -> bool {
    let rest = field.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the fields of a kind that its types declare.
fn declared(kind: &str) -> BTreeSet<String> {
    let definitions = definitions();
    let definition = definitions
        .iter()
        .find(|definition| definition.spec.names.kind == kind)
        .unwrap_or_else(|| panic!("no kind {kind}"));
    let rows = reference::fields(&reference::schema_of(definition));
    rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
}

/// Returns the fields of a kind that the program reads or writes.
fn known(kind: &str) -> BTreeSet<String> {
    let mut known = declared(kind);
    if kind == "ResourceBinding" {
        known.extend(UNDECLARED.map(|name| format!("spec.{name}")));
    }
    known
}

impl Facts {
    /// Returns the fields of a kind that every supported release has.
    fn everywhere(&self, kind: &str) -> BTreeSet<String> {
        let of_parent = |(parent, names): (&String, &String)| {
            let prefix = if parent.is_empty() {
                String::new()
            } else {
                format!("{parent}.")
            };
            let fields = names.split(' ').map(|name| format!("{prefix}{name}"));
            fields.collect::<Vec<_>>()
        };
        self.everywhere[kind].iter().flat_map(of_parent).collect()
    }

    fn difference(&self, kind: &str, field: &str) -> Option<&Difference> {
        self.differences
            .iter()
            .find(|difference| difference.kind == kind && is_below(field, &difference.field))
    }
}

/// Returns the texts of values.
fn texts<T: Serialize, const N: usize>(values: [T; N]) -> BTreeSet<String> {
    let text = |value: T| serde_json::to_value(value).unwrap().as_str().unwrap().to_owned();
    values.map(text).into()
}

#[test]
fn every_supported_release_has_every_field_or_a_guard() {
    let facts = facts();
    for kind in facts.everywhere.keys() {
        for field in known(kind) {
            let is_copied = kind == "ResourceBinding" && OF_POLICY.iter().any(|part| is_below(&field, part));
            let kind = if is_copied { "PropagationPolicy" } else { kind };
            let is_everywhere = facts.everywhere(kind).contains(&field);
            let is_different = facts.difference(kind, &field).is_some();
            assert!(
                is_everywhere != is_different,
                "look up {field} of {kind} in the definitions of {:?}",
                facts.releases
            );
        }
    }
}

#[test]
fn every_kind_of_karmada_is_compared() {
    let facts = facts();
    for definition in definitions() {
        let kind = definition.spec.names.kind.as_str();
        if definition.spec.group == "bulkhead.dev" || facts.everywhere.contains_key(kind) {
            continue;
        }
        let twin = TWINS.iter().find(|(twin, _)| *twin == kind);
        let (_, other) = twin.unwrap_or_else(|| panic!("{kind} is not compared"));
        assert_eq!(declared(kind), declared(other), "{kind}");
    }
}

#[test]
fn no_entry_is_without_a_field() {
    let facts = facts();
    for kind in facts.everywhere.keys() {
        let (known, listed) = (known(kind), facts.everywhere(kind));
        let surplus: Vec<_> = listed.difference(&known).collect();
        assert!(surplus.is_empty(), "{kind} has no fields {surplus:?}");
    }
    for Difference { kind, field, .. } in &facts.differences {
        assert!(known(kind).contains(field), "{kind} has no field {field}");
    }
}

#[test]
fn a_field_that_a_release_lacks_loses_nothing() {
    let facts = facts();
    for Difference {
        kind,
        field,
        since,
        guard,
    } in &facts.differences
    {
        let is_release = |since: &String| since == "master" || facts.releases.contains_key(since);
        assert!(since.as_ref().is_none_or(is_release), "{field} since {since:?}");
        let name = field.rsplit('.').next().unwrap();
        match guard {
            Guard::Read => assert!(READ.contains(&kind.as_str()), "{kind} is written"),
            Guard::Unwritten => {
                let report = json!({"clusterName": "m1", name: true});
                let kept: AggregatedStatusItem = serde_json::from_value(report).unwrap();
                assert_eq!(serde_json::to_value(kept).unwrap(), json!({"clusterName": "m1"}));
            }
            Guard::Policy(needed) => {
                let needed = facts.difference("PropagationPolicy", needed).unwrap();
                assert_eq!(&needed.since, since, "{field}");
            }
            Guard::Noted => assert!(PAGE.contains(&format!("`{name}`")), "the page lacks {name}"),
        }
    }
}

#[test]
fn the_page_has_the_supported_releases_and_accepted_values_are_written() {
    let facts = facts();
    for (release, tag) in &facts.releases {
        assert!(
            PAGE.contains(&format!("| {release} |")) && PAGE.contains(tag.as_str()),
            "{release} {tag}"
        );
    }
    let accepted = |field: &str| {
        facts.values[field]
            .split(' ')
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let purge_modes = [PurgeMode::Directly, PurgeMode::Gracefully, PurgeMode::Never];
    assert_eq!(texts(purge_modes), accepted("purgeMode"));
    let health = [Health::Healthy, Health::Unhealthy, Health::Unknown];
    assert_eq!(texts(health), accepted("health"));
}
