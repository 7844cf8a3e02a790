//! Annotations with ids of decisions, and the records that they name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use bulkhead_core::names::keys;
use serde_json::Value;

use crate::federation::Federation;
use crate::storm::Recorder;

/// Key of a binding or Cluster, none for other objects, and an id that its annotation had.
pub(crate) type Annotation = (Option<String>, String);

/// Returns the key of each binding and Cluster with each id of its annotation, and the ids of other objects.
pub(crate) fn annotated(federation: &Federation<'_>, recorder: &Recorder) -> anyhow::Result<Vec<Annotation>> {
    let mut ids: Vec<_> = recorder
        .decisions()
        .into_iter()
        .map(|(key, id)| (Some(key), id))
        .collect();
    ensure!(!ids.is_empty(), "no binding has the id of a decision");
    for kind in ["clusters", "works", "events"] {
        let text = federation.kubectl(&["get", kind, "--all-namespaces", "-o", "json"])?;
        let list: Value = serde_json::from_str(&text)?;
        let items = list["items"].as_array().with_context(|| format!("no list of {kind}"))?;
        for item in items {
            let metadata = &item["metadata"];
            let Some(id) = metadata["annotations"][keys::DECISION].as_str() else {
                continue;
            };
            let name = metadata["name"].as_str().filter(|_| kind == "clusters");
            ids.push((name.map(str::to_owned), id.to_owned()));
        }
    }
    Ok(ids)
}

/// A record that a program listed.
pub(crate) struct Listed {
    pub(crate) id: String,
    /// Process that decided; empty for records without one, of the version before ids had it.
    pub(crate) process: String,
    pub(crate) subject: String,
    pub(crate) decision: String,
}

/// Reads the output of `history -o json`.
///
/// # Errors
///
/// It is no list of records.
pub(crate) fn listed(text: &str) -> anyhow::Result<Vec<Listed>> {
    let list: Value = serde_json::from_str(text).with_context(|| format!("history: {text}"))?;
    let records = list.as_array().context("history is no list")?.iter().map(|item| {
        let record = &item["record"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (number, process) = (record["id"].to_string(), text(&record["process"]));
        let [namespace, name] = ["namespace", "name"].map(|part| text(&record["subject"][part]));
        let subject = if namespace.is_empty() {
            name
        } else {
            format!("{namespace}/{name}")
        };
        let id = if process.is_empty() {
            number
        } else {
            format!("{process}-{number}")
        };
        Listed {
            id,
            process,
            subject,
            decision: text(&record["decision"]),
        }
    });
    Ok(records.collect())
}

/// Checks that each annotation names a record, of a binding or Cluster a record about it.
pub(crate) fn resolved(records: &[Listed], ids: &[Annotation]) -> anyhow::Result<()> {
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in records {
        subjects.entry(&record.id).or_default().insert(&record.subject);
    }
    let is_resolved = |(key, id): &&Annotation| {
        let found = subjects.get(id.as_str());
        found.is_some_and(|subjects| key.as_ref().is_none_or(|key| subjects.contains(key.as_str())))
    };
    let unknown: Vec<_> = ids.iter().filter(|annotation| !is_resolved(annotation)).collect();
    ensure!(
        unknown.is_empty(),
        "{} of {} annotations name no decision: {unknown:?}",
        unknown.len(),
        ids.len()
    );
    println!("      {} annotations name their decisions", ids.len());
    Ok(())
}

/// Returns a few of the ids: the first of each process, and some of the previous version.
pub(crate) fn sample(ids: &[Annotation]) -> Vec<&Annotation> {
    let mut processes: BTreeMap<String, usize> = BTreeMap::new();
    let keeps = |(_, id): &&Annotation| {
        let process = id.rsplit_once('-').map(|(process, _)| process).unwrap_or_default();
        let count = processes.entry(process.to_owned()).or_default();
        *count += 1;
        *count <= 4
    };
    ids.iter().filter(keeps).collect()
}
