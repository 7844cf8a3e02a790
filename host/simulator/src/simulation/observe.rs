//! Periodic observation of the workloads in member clusters.

use std::collections::BTreeMap;

use bulkhead_apiserver::json::field;
use bulkhead_apiserver::{ChangeType, Content, Subscription};
use bulkhead_controllers::flags::GoDuration;
use serde_json::Value;

use super::federation::Federation;
use super::member::{WORKLOAD_KINDS, ready_replicas_of, workload_key};
use crate::report::{EntrySource, TimelineEntry, Tone};

/// Observer of the workloads of every member cluster.
pub(super) struct Observer {
    clusters: BTreeMap<String, Followed>,
    entries: Vec<TimelineEntry>,
}

struct Followed {
    changes: Subscription,
    workloads: Workloads,
    /// Time since which all replicas of a workload are ready and updated.
    full_since: BTreeMap<String, GoDuration>,
    /// Ready replicas of all workloads over time.
    ready: Vec<(i64, i64)>,
}

/// Workloads of a cluster, by `Kind namespace/name`.
type Workloads = BTreeMap<String, Workload>;

#[derive(Clone, PartialEq, Eq)]
struct Workload {
    replicas: Replicas,
    /// True while there are replicas of an older template.
    is_updating: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Replicas {
    ready: i64,
    desired: i64,
}

impl Replicas {
    /// True if all replicas are ready.
    fn is_full(self) -> bool {
        self.ready == self.desired && self.desired > 0
    }
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
            let followed = Followed {
                changes,
                workloads: Workloads::new(),
                full_since: BTreeMap::new(),
                ready: vec![(0, 0)],
            };
            (name.to_owned(), followed)
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
            if changes.is_empty() {
                continue;
            }
            let before = followed.workloads.clone();
            for change in changes {
                let object = change.object.content();
                let key = workload_key(object);
                if change.change_type() == ChangeType::Deleted {
                    followed.workloads.remove(&key);
                } else {
                    followed.workloads.insert(key, workload(object));
                }
            }
            if before == followed.workloads {
                continue;
            }
            let is_complete = |workload: &Workload| workload.replicas.is_full() && !workload.is_updating;
            let complete = followed.workloads.iter().filter(|(_, workload)| is_complete(workload));
            let since = |key: &String| followed.full_since.get(key).copied().unwrap_or(at);
            followed.full_since = complete.map(|(key, _)| (key.clone(), since(key))).collect();
            let total = followed
                .workloads
                .values()
                .map(|workload| workload.replicas.ready)
                .sum();
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

/// True if the status does not show all replicas as updated to the current template.
fn is_updating(object: &Content) -> bool {
    let number = |path: &str| field(object, path).and_then(Value::as_i64);
    let is_behind = number("/status/observedGeneration") < number("/metadata/generation");
    is_behind || number("/status/updatedReplicas").is_some_and(|updated| Some(updated) < number("/spec/replicas"))
}

/// Builds a timeline entry for each workload that becomes fully ready, stops being so, or disappears.
fn workload_changes(at_ms: i64, cluster: &str, before: &Workloads, after: &Workloads) -> Vec<TimelineEntry> {
    let mut entries = Vec::new();
    for (key, workload) in after {
        let (was, now) = (before.get(key).map(|before| before.replicas), workload.replicas);
        let tone = if now.is_full() && was != Some(now) {
            Tone::Good
        } else if was.is_some_and(|was| was.is_full() && now.ready < was.ready.min(now.desired)) {
            Tone::Bad
        } else {
            continue;
        };
        let what = format!("{} of {} ready", now.ready, now.desired);
        entries.push(entry(at_ms, cluster, key, tone, what));
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        entries.push(entry(at_ms, cluster, key, Tone::Neutral, "gone".to_owned()));
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

fn workload(object: &Content) -> Workload {
    let replicas = Replicas {
        ready: ready_replicas_of(object),
        desired: object["spec"]["replicas"].as_i64().unwrap_or(1),
    };
    Workload {
        replicas,
        is_updating: is_updating(object),
    }
}
