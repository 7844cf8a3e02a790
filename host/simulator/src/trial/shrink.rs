//! Minimization of failing trials.
//!
//! Removes parts of the scenario, as many as possible at a time at first, and leaves them out if the same check still
//! finds a violation: disruptions, events by people, plugins, objects, member clusters, settings, fields.

use serde_json::Value;

use super::draft::Draft;
use super::{Failed, Failure, TrialOptions, attempt, failure_file};
use crate::report::Violation;

/// Maximum number of runs for one minimization.
const ATTEMPTS_MAX: usize = 300;

/// Minimizes a failure and writes the result to a file, if the options enable it.
pub(super) fn failure(options: &TrialOptions, (seed, draft, violations): Failed) -> anyhow::Result<Failure> {
    let before = parts(&draft);
    if !options.shrinks {
        return Ok(Failure {
            seed,
            violations,
            parts: (before, before),
            file: None,
        });
    }
    let broken = violations.first().map(Check::of).unwrap_or_default();
    let mut search = Search {
        options,
        broken,
        least: draft,
        violations,
        attempts: 0,
    };
    // A difference between two runs of a seed (S8) cannot be attributed to single parts.
    if search.broken.invariant != "S8" {
        loop {
            let size = parts(&search.least);
            for group in Group::ALL {
                search.without(group);
            }
            if parts(&search.least) == size || search.attempts >= ATTEMPTS_MAX {
                break;
            }
        }
    }
    let Search { least, violations, .. } = search;
    let file = failure_file(&options.base, seed);
    least.write(&file)?;
    Ok(Failure {
        seed,
        violations,
        parts: (before, parts(&least)),
        file: Some(file),
    })
}

/// Check that found a violation. Several checks guard one invariant, and a scenario that is too small for its workloads
/// violates it for another reason.
#[derive(Default, PartialEq)]
struct Check {
    invariant: &'static str,
    /// Words of the message, without names and numbers.
    words: Vec<String>,
}

impl Check {
    fn of(violation: &Violation) -> Self {
        let words = violation
            .seen
            .split_whitespace()
            .map(|word| word.trim_matches([',', '.', ':', ';']));
        let plain = words.filter(|word| word.chars().all(char::is_alphabetic));
        Self {
            invariant: violation.invariant,
            words: plain.map(str::to_owned).collect(),
        }
    }
}

/// Kind of removable part.
#[derive(Clone, Copy)]
enum Group {
    Disruptions,
    /// Scenario's own events.
    Events,
    Plugins,
    /// Inline objects of the scenario.
    Objects,
    Clusters,
    Flags,
    /// Optional fields of clusters and policies.
    Fields,
}

impl Group {
    const ALL: [Self; 7] = [
        Self::Disruptions,
        Self::Events,
        Self::Plugins,
        Self::Objects,
        Self::Clusters,
        Self::Flags,
        Self::Fields,
    ];

    fn count(self, draft: &Draft) -> usize {
        let list = |pointer: &str| {
            draft
                .scenario
                .pointer(pointer)
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        match self {
            Self::Disruptions => draft.disruptions.len(),
            Self::Events => draft.events().len(),
            Self::Plugins => list("/plugins"),
            Self::Objects => list("/manifests/0/objects"),
            // An entry that stands for several member clusters counts as one part.
            Self::Clusters => list("/clusters"),
            Self::Flags => draft
                .scenario
                .get("flags")
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len),
            Self::Fields => fields(&draft.scenario).len(),
        }
    }

    /// Returns the draft without a range of these parts; `None` if the result would be meaningless.
    fn left_out(self, draft: &Draft, from: usize, count: usize) -> Option<Draft> {
        let mut draft = draft.clone();
        let range = from..(from + count).min(self.count(&draft));
        let list = match self {
            Self::Disruptions => {
                draft.disruptions.drain(range);
                return Some(draft);
            }
            Self::Flags => {
                let flags = draft.scenario.get_mut("flags")?.as_object_mut()?;
                let names: Vec<_> = flags.keys().skip(range.start).take(range.len()).cloned().collect();
                flags.retain(|name, _| !names.contains(name));
                return Some(draft);
            }
            Self::Fields => {
                for pointer in fields(&draft.scenario).into_iter().skip(range.start).take(range.len()) {
                    let (parent, field) = pointer.rsplit_once('/')?;
                    draft.scenario.pointer_mut(parent)?.as_object_mut()?.remove(field);
                }
                return Some(draft);
            }
            Self::Events => "/events",
            Self::Plugins => "/plugins",
            Self::Objects => "/manifests/0/objects",
            Self::Clusters => "/clusters",
        };
        let gone: Vec<Value> = draft.scenario.pointer_mut(list)?.as_array_mut()?.drain(range).collect();
        // The tenant of a plugin leaves with it.
        if let (Self::Plugins, Some(tenants)) = (self, draft.scenario.get_mut("tenants").and_then(Value::as_object_mut))
        {
            tenants.retain(|name, _| !gone.iter().any(|plugin| plugin["name"] == **name));
        }
        if matches!(self, Self::Events) && gone.iter().any(|event| reverts_any(event, draft.events())) {
            return None;
        }
        // Events that refer to a removed cluster or object are removed as well.
        let name = match self {
            Self::Clusters => "/name",
            Self::Objects => "/metadata/name",
            _ => return Some(draft),
        };
        let is_policy = |object: &Value| {
            object["apiVersion"]
                .as_str()
                .is_some_and(|version| version.starts_with("policy."))
        };
        let named = gone
            .iter()
            .filter(|object| !is_policy(object))
            .filter_map(|object| object.pointer(name)?.as_str());
        let names: Vec<_> = named.collect();
        if !names.is_empty() {
            let names_it = |event: &Value| names.iter().any(|name| mentions(event, name));
            draft
                .disruptions
                .iter_mut()
                .for_each(|disruption| disruption.events.retain(|event| !names_it(event)));
            draft.disruptions.retain(|disruption| !disruption.events.is_empty());
            if let Some(events) = draft.scenario.get_mut("events").and_then(Value::as_array_mut) {
                events.retain(|event| !names_it(event));
            }
        }
        Some(draft)
    }
}

/// Returns true if an event reverts another one. Without it the scenario could never recover, which is not a
/// failure.
fn reverts_any(event: &Value, others: &[Value]) -> bool {
    let undrained = |other: &Value| !other["drain"].is_null() && other["drain"]["cluster"] == event["undrain"];
    let deleted = |other: &Value| mentions(&other["apply"], event["delete"]["name"].as_str().unwrap_or("\0"));
    others.iter().any(|other| undrained(other) || deleted(other))
}

/// Returns true if a value contains the text as a string.
fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(members) => members.values().any(|item| mentions(item, text)),
        _ => false,
    }
}

/// Returns the optional fields that are set, as JSON pointers.
fn fields(scenario: &Value) -> Vec<String> {
    const OF_CLUSTERS: [&str; 6] = [
        "region",
        "provider",
        "labels",
        "syncMode",
        "replicaReadyJitter",
        "capacity",
    ];
    const OF_POLICIES: [&str; 7] = [
        "placement/clusterTolerations",
        "placement/spreadConstraints",
        "placement/replicaScheduling",
        "placement/clusterAffinity",
        "failover/application",
        "failover/cluster/gracePeriodSeconds",
        "failover",
    ];
    let clusters = (0..).zip(scenario["clusters"].as_array().into_iter().flatten());
    let of_clusters = clusters.flat_map(|(index, _)| OF_CLUSTERS.map(|field| format!("/clusters/{index}/{field}")));
    let objects = scenario.pointer("/manifests/0/objects").and_then(Value::as_array);
    let objects = (0..).zip(objects.into_iter().flatten());
    let of_objects =
        objects.flat_map(|(index, _)| OF_POLICIES.map(|field| format!("/manifests/0/objects/{index}/spec/{field}")));
    let pointers = of_clusters.chain(of_objects).chain(["/witness".to_owned()]);
    pointers.filter(|pointer| scenario.pointer(pointer).is_some()).collect()
}

/// Returns the number of removable parts.
fn parts(draft: &Draft) -> usize {
    Group::ALL.into_iter().map(|group| group.count(draft)).sum()
}

struct Search<'a> {
    options: &'a TrialOptions,
    broken: Check,
    /// Smallest draft in which the check still finds a violation.
    least: Draft,
    violations: Vec<Violation>,
    attempts: usize,
}

impl Search<'_> {
    /// Removes parts of one kind: halves first, then smaller ranges, then single parts.
    fn without(&mut self, group: Group) {
        let mut size = group.count(&self.least).div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < group.count(&self.least) && self.attempts < ATTEMPTS_MAX {
                let smaller = group.left_out(&self.least, from, size);
                if !smaller.is_some_and(|smaller| self.shows(smaller)) {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    /// Runs a draft. Returns true and keeps it if the same check finds a violation. A draft that cannot run has none.
    fn shows(&mut self, draft: Draft) -> bool {
        self.attempts += 1;
        let Ok(outcome) = attempt(&draft, &self.options.engines) else {
            return false;
        };
        let same = outcome
            .violations
            .iter()
            .any(|violation| Check::of(violation) == self.broken);
        if same {
            (self.least, self.violations) = (draft, outcome.violations);
        }
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_known_by_its_invariant_and_the_words_of_its_message() {
        let check = |invariant, seen: &str| {
            Check::of(&Violation {
                invariant,
                at_ms: 0,
                seen: seen.to_owned(),
            })
        };
        let ready = check("L3", "4 of 6 replicas of default/w3-deployment are ready on m2");
        assert!(ready == check("L3", "0 of 12 replicas of default/w1-deployment are ready on m11"));
        assert!(ready != check("L1", "4 of 6 replicas of default/w3-deployment are ready on m2"));
        assert!(
            ready
                != check(
                    "L3",
                    "2 pods of default/w3-deployment wait for room on m2, and m1 has it"
                )
        );
    }
}
