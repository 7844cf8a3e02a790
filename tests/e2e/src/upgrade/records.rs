//! Journals that processes of two versions wrote, as programs of both versions read them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{FIRST, SECOND};
use crate::federation::Federation;

/// Names of the journals, one for each place of a process.
pub(super) const SLOTS: [&str; 2] = ["a", "b"];

/// Returns the directory of a journal, in a folder that is created.
pub(super) fn directory(logs: &Path, slot: &str) -> anyhow::Result<PathBuf> {
    let folder = logs.join("journals");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder.join(slot))
}

/// The journals of a scenario.
pub(super) struct Journals {
    directories: Vec<String>,
}

/// A record that a program listed.
struct Listed {
    id: String,
    process: String,
    subject: String,
    decision: String,
}

impl Journals {
    pub(super) fn of(logs: &Path) -> anyhow::Result<Self> {
        let directory = |slot| anyhow::Ok(directory(logs, slot)?.display().to_string());
        let directories = SLOTS.into_iter().map(directory).collect::<Result<_, _>>()?;
        Ok(Self { directories })
    }

    fn arguments(&self) -> Vec<&str> {
        let each = self.directories.iter();
        each.flat_map(|directory| ["--journal", directory.as_str()]).collect()
    }

    /// Checks that the current version lists, explains and replays the records of both, and finds the decision of each
    /// annotation. `ids` has the key of an object, if it has one, and an id of its annotation.
    pub(super) fn check_current(
        &self,
        federation: &Federation<'_>,
        ids: &[(Option<String>, String)],
    ) -> anyhow::Result<()> {
        let (code, text) =
            federation.bulkhead_with_code(&[&["history", "-o", "json"], &self.arguments()[..]].concat())?;
        ensure!(code == Some(0), "history: {text}");
        let records = listed(&text)?;
        let by_current = records.iter().filter(|record| !record.process.is_empty()).count();
        println!(
            "      {} records in the journals, {by_current} of them of the current version",
            records.len()
        );
        handed_over(&records)?;
        resolved(&records, ids)?;
        for (_, id) in sample(ids) {
            let explain = [&["explain", id.as_str(), "-o", "json"], &self.arguments()[..]].concat();
            let (code, text) = federation.bulkhead_with_code(&explain)?;
            ensure!(code == Some(0), "explain {id}: {text}");
        }
        let (code, text) = federation.bulkhead_with_code(&[&["replay", "--all"], &self.arguments()[..]].concat())?;
        println!("      replay: {code:?}: {}", text.lines().last().unwrap_or_default());
        ensure!(is_read(code), "replay: {text}");
        Ok(())
    }

    /// Checks that the previous version, which is the federation's, reads each journal or refuses it with a reason.
    pub(super) fn check_previous(&self, federation: &Federation<'_>) -> anyhow::Result<()> {
        for journal in &self.directories {
            for command in [&["history"][..], &["explain", "member1"], &["replay", "--all"]] {
                let (code, text) =
                    federation.bulkhead_with_code(&[command, &["--journal", journal.as_str()]].concat())?;
                let last = text.lines().last().unwrap_or_default();
                println!("      previous {}: {code:?}: {last}", command.join(" "));
                ensure!(is_read(code), "previous {}: {text}", command.join(" "));
            }
        }
        Ok(())
    }
}

/// Returns true if a program read all records. A replay ends with 1 if a rule or a message differs between the versions.
fn is_read(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 1))
}

fn listed(text: &str) -> anyhow::Result<Vec<Listed>> {
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

/// Checks that each group was evicted by one version, and its tasks were ended by the other one.
fn handed_over(records: &[Listed]) -> anyhow::Result<()> {
    for (group, evicted_by_current) in [(FIRST, false), (SECOND, true)] {
        for number in group {
            let subject = format!("default/app-{number}-deployment");
            for (decision, by_current) in [("Evicted", evicted_by_current), ("Released", !evicted_by_current)] {
                let found: Vec<_> = records
                    .iter()
                    .filter(|record| record.subject == subject && record.decision == decision)
                    .collect();
                let fits = |record: &&Listed| record.process.is_empty() != by_current;
                ensure!(
                    found.iter().any(fits),
                    "{subject} was not {decision} by the {} version, but by {:?}",
                    if by_current { "current" } else { "previous" },
                    found.iter().map(|record| &record.id).collect::<Vec<_>>()
                );
            }
        }
    }
    Ok(())
}

/// Checks that each annotation names a record, of a binding or Cluster a record about it.
fn resolved(records: &[Listed], ids: &[(Option<String>, String)]) -> anyhow::Result<()> {
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in records {
        subjects.entry(&record.id).or_default().insert(&record.subject);
    }
    let is_resolved = |(key, id): &&(Option<String>, String)| {
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
fn sample(ids: &[(Option<String>, String)]) -> Vec<&(Option<String>, String)> {
    let mut processes: BTreeMap<String, usize> = BTreeMap::new();
    let keeps = |(_, id): &&(Option<String>, String)| {
        let process = id.rsplit_once('-').map(|(process, _)| process).unwrap_or_default();
        let count = processes.entry(process.to_owned()).or_default();
        *count += 1;
        *count <= 4
    };
    ids.iter().filter(keeps).collect()
}
