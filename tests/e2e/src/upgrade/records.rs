//! Journals that processes of two versions wrote, as programs of both versions read them.

use std::path::Path;

use anyhow::ensure;

use super::{FIRST, SECOND};
use crate::annotations::{Annotation, Listed, listed, resolved, sample};
use crate::federation::Federation;
use crate::pair;

/// The journals of a scenario.
pub(super) struct Journals {
    directories: Vec<String>,
}

impl Journals {
    pub(super) fn of(logs: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            directories: pair::directories(logs)?,
        })
    }

    fn arguments(&self) -> Vec<&str> {
        let each = self.directories.iter();
        each.flat_map(|directory| ["--journal", directory.as_str()]).collect()
    }

    /// Checks that the current version lists, explains and replays the records of both, and finds the decision of each
    /// annotation. `ids` has the key of an object, if it has one, and an id of its annotation.
    pub(super) fn check_current(&self, federation: &Federation<'_>, ids: &[Annotation]) -> anyhow::Result<()> {
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
