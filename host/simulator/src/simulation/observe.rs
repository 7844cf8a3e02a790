//! Periodic observation of the workloads in member clusters.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_apiserver::{ChangeType, Subscription};
use bulkhead_controllers::flags::GoDuration;
use serde_json::Value;

use super::federation::Federation;
use super::member::WORKLOAD_KINDS;
use crate::report::{EntrySource, TimelineEntry, Tone};

/// Observer of the workloads of every member cluster.
pub(super) struct Observer {
    clusters: BTreeMap<String, Followed>,
    entries: Vec<TimelineEntry>,
}

struct Followed {
    changes: Subscription,
    /// Ready and desired replicas, by `Kind namespace/name`.
    workloads: BTreeMap<String, (i64, i64)>,
    /// Workloads with replicas of an older template.
    updating: BTreeSet<String>,
    /// Time since which all replicas of a workload are ready and updated.
    full_since: BTreeMap<String, GoDuration>,
    /// Ready replicas of all workloads over time.
    ready: Vec<(i64, i64)>,
}

impl Observer {
    /// Starts observing. Existing objects are ignored until they change.
    pub(super) fn new(federation: &Federation) -> Self {
        let follow = |(name, cluster): (&str, &bulkhead_emulator::MemberCluster)| {
            let kinds: Vec<_> = WORKLOAD_KINDS
                .iter()
                .filter_map(|(api_version, kind)| cluster.server().kind_id(api_version, kind))
                .collect();
            let changes = cluster.server().store().subscribe(&kinds);
            let (workloads, updating, full_since) = Default::default();
            (
                name.to_owned(),
                Followed {
                    changes,
                    workloads,
                    updating,
                    full_since,
                    ready: vec![(0, 0)],
                },
            )
        };
        Self {
            clusters: federation.member_clusters().map(follow).collect(),
            entries: Vec::new(),
        }
    }

    /// Processes the changes since the previous sample.
    pub(super) fn sample(&mut self, at: GoDuration) {
        let at_ms = i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX);
        for (cluster, followed) in &mut self.clusters {
            // A sample covers at most one second of changes, which is far below the size of the event history.
            let Ok(changes) = followed.changes.drain() else {
                continue;
            };
            let (before, updating) = (followed.workloads.clone(), followed.updating.clone());
            for change in changes {
                let object = change.object.value();
                let key = workload_key(object);
                followed.updating.remove(&key);
                if change.change_type == ChangeType::Deleted {
                    followed.workloads.remove(&key);
                } else {
                    if is_updating(object) {
                        followed.updating.insert(key.clone());
                    }
                    followed.workloads.insert(key, replicas(object));
                }
            }
            if before == followed.workloads && updating == followed.updating {
                continue;
            }
            let is_full = |key: &String| is_full(followed.workloads.get(key)) && !followed.updating.contains(key);
            followed.full_since.retain(|key, _| is_full(key));
            for key in followed.workloads.keys().filter(|key| is_full(key)) {
                followed.full_since.entry(key.clone()).or_insert(at);
            }
            let total = followed.workloads.values().map(|(ready, _)| ready).sum();
            if followed.ready.last().is_none_or(|(_, last)| *last != total) {
                followed.ready.push((at_ms, total));
            }
            self.entries
                .extend(workload_changes(at_ms, cluster, &before, &followed.workloads));
        }
    }

    /// Returns the time since which all replicas of a workload (`Kind namespace/name`) on a cluster are ready and
    /// updated; `None` if they are not.
    pub(super) fn fully_ready_since(&self, cluster: &str, workload: &str) -> Option<GoDuration> {
        self.clusters.get(cluster)?.full_since.get(workload).copied()
    }

    /// Returns the ready replicas of all workloads of a cluster over time.
    pub(super) fn ready_replicas(&self, cluster: &str) -> Vec<(i64, i64)> {
        self.clusters
            .get(cluster)
            .map(|followed| followed.ready.clone())
            .unwrap_or_default()
    }

    /// Returns and clears the collected timeline entries.
    pub(super) fn take_entries(&mut self) -> Vec<TimelineEntry> {
        std::mem::take(&mut self.entries)
    }
}

type Workloads = BTreeMap<String, (i64, i64)>;

/// Returns true if the status does not show all replicas as updated to the current template.
fn is_updating(object: &Value) -> bool {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let is_behind = number("/status/observedGeneration") < number("/metadata/generation");
    is_behind || number("/status/updatedReplicas").is_some_and(|updated| Some(updated) < number("/spec/replicas"))
}

fn is_full(replicas: Option<&(i64, i64)>) -> bool {
    replicas.is_some_and(|(ready, desired)| ready == desired && *desired > 0)
}

/// Builds a timeline entry for each workload that becomes fully ready, stops being so, or disappears.
fn workload_changes(at_ms: i64, cluster: &str, before: &Workloads, after: &Workloads) -> Vec<TimelineEntry> {
    let full = is_full;
    let mut entries = Vec::new();
    for (workload, replicas) in after {
        let (was_full, was) = (full(before.get(workload)), before.get(workload));
        let (ready, desired) = *replicas;
        if full(Some(replicas)) && was != Some(replicas) {
            let what = format!("{ready} of {desired} ready");
            entries.push(entry(at_ms, cluster, workload, Tone::Good, what));
        } else if was_full && ready < desired && was.is_some_and(|(was_ready, _)| ready < *was_ready) {
            let what = format!("{ready} of {desired} ready");
            entries.push(entry(at_ms, cluster, workload, Tone::Bad, what));
        }
    }
    for workload in before.keys().filter(|workload| !after.contains_key(*workload)) {
        entries.push(entry(at_ms, cluster, workload, Tone::Neutral, "gone".to_owned()));
    }
    entries
}

fn entry(at_ms: i64, cluster: &str, workload: &str, tone: Tone, what: String) -> TimelineEntry {
    TimelineEntry {
        at_ms,
        source: EntrySource::Observed,
        tone,
        cluster: Some(cluster.to_owned()),
        object: Some(workload.to_owned()),
        what,
        effect: String::new(),
        reason: String::new(),
        why: String::new(),
        plugin: None,
        controller: None,
        count: 1,
    }
}

fn workload_key(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// Returns the ready and desired replicas.
fn replicas(object: &Value) -> (i64, i64) {
    let number = |pointer: &str, default| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default);
    (number("/status/readyReplicas", 0), number("/spec/replicas", 1))
}
