//! Decisions that led to the state of one binding.

use std::collections::BTreeSet;
use std::fmt::Write;

use bulkhead_core::journal::{Decision, Record};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use crate::render::{duration, schedule};

/// Returns the decisions about a binding and about every cluster that it was placed on, in order.
pub(super) fn chain<'a>(records: &'a [Record], binding: &str) -> Vec<&'a Record> {
    let about = |record: &Record| record.entry.subject.key() == binding && record.entry.subject.kind != "Cluster";
    let clusters: BTreeSet<_> = records
        .iter()
        .filter(|record| about(record))
        .filter_map(|record| record.entry.cluster.clone())
        .collect();
    let concerns = |record: &&Record| {
        let of_cluster = record.entry.subject.kind == "Cluster" && clusters.contains(&record.entry.subject.name);
        about(record) || of_cluster
    };
    records.iter().filter(concerns).collect()
}

/// Formats the decisions as text, one paragraph each.
pub(super) fn text(chain: &[&Record], binding: &str, start: Time) -> String {
    let mut out = format!("DECISIONS ABOUT {binding}\n");
    for record in chain {
        let entry = &record.entry;
        let at = entry.at.millis_since(start);
        let at = if at < 0 {
            format!("-{}", duration(-at))
        } else {
            duration(at)
        };
        let on = entry
            .cluster
            .as_ref()
            .map(|cluster| format!(" on {cluster}"))
            .unwrap_or_default();
        let effect = if entry.effect.is_empty() {
            String::new()
        } else {
            format!(": {}", entry.effect)
        };
        let _ = writeln!(out, "\n  {at:>9}  #{} {:?}{on}{effect}", record.id, entry.decision);
        let _ = writeln!(out, "             because {}", entry.attribution.reason);
        let by = entry.attribution.policy.as_ref().map_or_else(String::new, |policy| {
            let policy = format!("{policy}, version {}", policy.version);
            format!("policy {policy}; ")
        });
        let inputs: Vec<_> = entry
            .inputs
            .iter()
            .map(|input| format!("{}@{}", input.subject, input.resource_version))
            .collect();
        let from = if inputs.is_empty() {
            String::new()
        } else {
            format!("; from {}", inputs.join(", "))
        };
        let _ = writeln!(out, "             {by}{}{from}", entry.controller);
        if let Some(explanation) = &entry.explanation {
            out.push_str(&schedule(explanation));
        }
    }
    out
}

/// Returns the decisions as JSON.
pub(super) fn data(chain: &[&Record], binding: &str) -> Value {
    let decided = chain.iter().any(|record| record.entry.decision == Decision::Scheduled);
    json!({ "binding": binding, "scheduled": decided, "decisions": chain })
}
