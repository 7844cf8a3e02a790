//! States of the member clusters over time, from the snapshots of decisions and the records about clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::journal::{Decision, Entry};
use bulkhead_core::model::{ConditionStatus, SyncMode};
use bulkhead_core::time::Time;
use bulkhead_journal::{ClusterOutline, DecisionOutline};

/// State of a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterState {
    /// False once a decision saw the federation without the cluster.
    pub is_member: bool,
    /// Status of the Ready condition: `True`, `False` or `Unknown`.
    pub ready: String,
    /// Reason of the Ready condition.
    pub reason: String,
    /// Time from which on the condition has this status, if known.
    pub since: Option<Time>,
    /// Taints, in order.
    pub taints: Vec<String>,
    /// `Push` or `Pull`; empty if unknown.
    pub sync_mode: &'static str,
    /// Region; empty without one.
    pub region: String,
}

impl ClusterState {
    /// Returns true if the cluster is ready.
    pub fn is_ready(&self) -> bool {
        self.ready == "True"
    }
}

/// Member clusters, by name.
#[derive(Default)]
pub struct Clusters {
    tracks: BTreeMap<String, Track>,
    /// Clusters of the last decision that read all of them.
    fleet: Option<Arc<[Arc<ClusterOutline>]>>,
    /// True if a change was added after a later one.
    is_unsorted: bool,
}

/// Changes of one cluster.
#[derive(Default)]
struct Track {
    /// Version that was seen last.
    seen: Option<Arc<ClusterOutline>>,
    /// Each state with the time from which on it applies, in milliseconds.
    changes: Vec<(i64, Arc<ClusterState>)>,
}

impl Track {
    fn is_member(&self) -> bool {
        self.changes.last().is_some_and(|(_, state)| state.is_member)
    }

    fn state(&self) -> ClusterState {
        self.changes
            .last()
            .map(|(_, state)| ClusterState::clone(state))
            .unwrap_or_default()
    }

    fn set(&mut self, order_ms: i64, state: ClusterState) -> bool {
        match self.changes.last() {
            Some((_, last)) if **last == state => false,
            last => {
                let is_late = last.is_some_and(|(at, _)| *at > order_ms);
                self.changes.push((order_ms, Arc::new(state)));
                is_late
            }
        }
    }
}

impl Clusters {
    /// Takes the clusters of a decision, as it read them.
    pub(super) fn observe(&mut self, order_ms: i64, decision: &DecisionOutline) {
        let is_known = |fleet: &Arc<[Arc<ClusterOutline>]>| Arc::ptr_eq(fleet, &decision.clusters);
        if self.fleet.as_ref().is_some_and(is_known) {
            return;
        }
        for cluster in decision.clusters.iter() {
            let track = self.tracks.entry(cluster.name.clone()).or_default();
            if track.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, cluster)) && track.is_member() {
                continue;
            }
            track.seen = Some(Arc::clone(cluster));
            self.is_unsorted |= track.set(order_ms, state_of(cluster));
        }
        // A placement reads all clusters.
        if decision.is_placement && !decision.clusters.is_empty() {
            self.fleet = Some(Arc::clone(&decision.clusters));
            self.remove_others(order_ms, decision);
        }
    }

    fn remove_others(&mut self, order_ms: i64, decision: &DecisionOutline) {
        for (name, track) in &mut self.tracks {
            let found = decision.clusters.binary_search_by(|cluster| cluster.name.cmp(name));
            if found.is_err() {
                let state = track.state();
                self.is_unsorted |= track.set(
                    order_ms,
                    ClusterState {
                        is_member: false,
                        ..state
                    },
                );
            }
        }
    }

    /// Takes the effect of a record about a cluster.
    pub(super) fn apply(&mut self, order_ms: i64, entry: &Entry) {
        let is_change = matches!(
            entry.decision,
            Decision::ReadyChanged | Decision::Tainted | Decision::Untainted
        );
        if !is_change || entry.subject.kind != "Cluster" {
            return;
        }
        let track = self.tracks.entry(entry.subject.name.clone()).or_default();
        let mut state = ClusterState {
            is_member: true,
            ..track.state()
        };
        match entry.decision {
            Decision::ReadyChanged => {
                state.ready.clone_from(&entry.effect);
                state.reason.clone_from(&entry.attribution.reason.code);
                state.since = Some(entry.at.truncated());
            }
            Decision::Tainted if !state.taints.contains(&entry.effect) => state.taints.push(entry.effect.clone()),
            Decision::Untainted => state.taints.retain(|taint| *taint != entry.effect),
            _ => {}
        }
        state.taints.sort_unstable();
        self.is_unsorted |= track.set(order_ms, state);
    }

    /// Puts the changes in order, after records of several processes were added.
    pub(super) fn finish(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            for track in self.tracks.values_mut() {
                track.changes.sort_by_key(|(at, _)| *at);
            }
        }
    }

    /// Returns the members at a time with their states, in order of name. Without a time, the last ones.
    pub fn at(&self, time: Option<Time>) -> impl Iterator<Item = (&str, &ClusterState)> {
        let until_ms = time.map_or(i64::MAX, Time::as_millis);
        self.tracks.iter().filter_map(move |(name, track)| {
            let mut earlier = track.changes.iter().rev().skip_while(|(at, _)| *at > until_ms);
            let (_, state) = earlier.next()?;
            state.is_member.then_some((name.as_str(), &**state))
        })
    }
}

fn state_of(cluster: &ClusterOutline) -> ClusterState {
    let ready = cluster.ready.as_ref();
    let mut taints: Vec<_> = cluster.taints.iter().map(ToString::to_string).collect();
    taints.sort_unstable();
    ClusterState {
        is_member: true,
        ready: ready
            .map_or(ConditionStatus::Unknown, |ready| ready.status)
            .as_str()
            .to_owned(),
        reason: ready.map(|ready| ready.reason.clone()).unwrap_or_default(),
        since: ready.and_then(|ready| ready.last_transition_time),
        taints,
        sync_mode: match cluster.sync_mode {
            SyncMode::Push => "Push",
            SyncMode::Pull => "Pull",
        },
        region: cluster.region.clone(),
    }
}
