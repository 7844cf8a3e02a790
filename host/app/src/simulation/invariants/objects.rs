//! What the objects of the control plane must and must not look like, change by change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::decide::evict::{PRODUCER_TAINT_MANAGER, applied_placement};
use bulkhead_core::decide::failover::REASON_APPLICATION_FAILURE;
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask, PurgeMode};
use bulkhead_core::names::keys;

use super::Inspector;
use super::hub::{Hub, Step, work_name};
use super::pace::Pace;
use crate::simulation::federation::Federation;
use crate::simulation::observe::Observer;

/// For how long what happened before may still have consequences: caches are late and writes are repeated.
const LATE: Duration = Duration::from_mins(1);

/// Follows the objects, one look after the other.
pub(in crate::simulation) struct Observed {
    pub(super) inspector: Inspector,
    pub(super) hub: Hub,
    pace: Pace,
    /// Evictions per second.
    rate: f64,
    /// When a copy was not held the last time, by binding and cluster.
    unheld: BTreeMap<(String, String), GoDuration>,
    /// When the placement of a binding, or its replicas, changed the last time.
    replanned: BTreeMap<String, GoDuration>,
    /// Taints that nobody here added, as cluster and `key:effect`.
    foreign: BTreeSet<(String, String)>,
    /// Evictions of the taint manager: each happened after the first moment and not after the second, in milliseconds.
    evictions_ms: Vec<(u64, u64)>,
    last_look: GoDuration,
    told: BTreeSet<&'static str>,
}

/// Taints of a cluster that no policy added.
fn foreign_taints(cluster: &Cluster) -> BTreeSet<(String, String)> {
    let ours = |key: &str| [keys::NOT_READY_TAINT, keys::UNREACHABLE_TAINT, keys::DRAIN_TAINT].contains(&key);
    let foreign = cluster.spec.taints.iter().filter(|taint| cluster.taint_owner(taint).is_none() && !ours(&taint.key));
    foreign.map(|taint| (cluster.name.clone(), taint.identity())).collect()
}

/// Whether the copy on a cluster has to stay: the cluster is a target, or a task holds it.
fn holds(binding: &Binding, cluster: &str) -> bool {
    let held =
        |task: &GracefulEvictionTask| task.purge_mode != Some(PurgeMode::Directly) && task.from_cluster == cluster;
    binding.spec.targets(cluster) || binding.spec.graceful_eviction_tasks.iter().any(held)
}

impl Observed {
    /// Follows a federation whose clusters have joined; none if there is nothing to follow.
    pub(in crate::simulation) fn new(federation: &Federation, inspector: Inspector) -> Option<Self> {
        let hub = Hub::new(federation.hub())?;
        let foreign = hub.clusters.values().flat_map(|cluster| foreign_taints(cluster)).collect();
        Some(Self {
            inspector,
            hub,
            pace: Pace::new(&federation.context().flags),
            rate: federation.context().flags.resource_eviction_rate,
            unheld: BTreeMap::new(),
            replanned: BTreeMap::new(),
            foreign,
            evictions_ms: Vec::new(),
            last_look: GoDuration::default(),
            told: BTreeSet::new(),
        })
    }

    /// Something goes wrong with the controllers until then, so nothing can be said of how fast they are.
    pub(in crate::simulation) fn disturbed(&mut self, until: GoDuration) {
        self.pace.disturbed(GoDuration(until.0 + LATE));
    }

    /// Says that a promise is broken, once for each.
    fn found(&mut self, invariant: &'static str, at: GoDuration, seen: String) {
        if self.told.insert(invariant) {
            self.inspector.found(invariant, at, seen);
        }
    }

    /// Looks at everything that changed since the last time.
    pub(in crate::simulation) fn look(&mut self, federation: &Federation, observer: &Observer, at: GoDuration) {
        for step in self.hub.drain().unwrap_or_default() {
            match step {
                Step::Binding { before, after } => {
                    if let (before, Some(after)) = (before, after) {
                        self.binding(before.as_deref(), &after, observer, at);
                    }
                }
                Step::Cluster { before, after } => self.cluster(before.as_deref(), after.as_deref(), at),
                Step::WorkGoes { name, cluster } => self.work_goes(&name, &cluster, at),
            }
        }
        self.rates(at);
        for (invariant, seen) in self.pace.look(&self.hub, federation, at) {
            self.found(invariant, at, seen);
        }
        if let Some(writes) = federation.witness().map(|witness| witness.writes()).filter(|writes| *writes > 0) {
            self.found("S5", at, format!("a process that only reports sent {writes} writes"));
        }
        self.last_look = at;
    }

    fn binding(&mut self, before: Option<&Binding>, after: &Binding, observer: &Observer, at: GoDuration) {
        let key = after.key();
        let empty = Binding::default();
        let before = before.unwrap_or(&empty);
        let (old, new) = (&before.spec, &after.spec);
        if old.placement != new.placement || new.replicas < old.replicas || old.replicas == 0 {
            self.replanned.insert(key.clone(), at);
        }
        for task in new.graceful_eviction_tasks.iter().filter(|task| !old.is_evicting(&task.from_cluster)) {
            self.task(after, task, observer, at);
        }
        for task in old.graceful_eviction_tasks.iter().filter(|task| !new.is_evicting(&task.from_cluster)) {
            let cluster = &task.from_cluster;
            if !self.inspector.with(|ledger| ledger.recorded.has_end(&key, cluster)) {
                self.found("S1", at, format!("the task of {key} for {cluster} is lost"));
            }
        }
        self.targets(before, after, at);
        let clusters = self.hub.clusters.keys().cloned().collect::<Vec<_>>();
        for cluster in clusters.into_iter().filter(|cluster| !holds(after, cluster)) {
            self.unheld.insert((key.clone(), cluster), at);
        }
    }

    /// A binding leaves a cluster.
    fn task(&mut self, binding: &Binding, task: &GracefulEvictionTask, observer: &Observer, at: GoDuration) {
        let (key, cluster) = (binding.key(), &task.from_cluster);
        self.pace.left(&key, cluster);
        if !self.inspector.with(|ledger| ledger.recorded.has_eviction(&key, cluster)) {
            self.found("S7", at, format!("{key} leaves {cluster}, and no record says so"));
        }
        if task.producer == PRODUCER_TAINT_MANAGER {
            self.evictions_ms.push((millis(self.last_look), millis(at)));
        }
        if task.reason == REASON_APPLICATION_FAILURE {
            let resource = &binding.spec.resource;
            let workload = format!("{} {}/{}", resource.kind, resource.namespace, resource.name);
            let well_for = observer.fully_ready_since(cluster, &workload).map(|since| at.0.saturating_sub(since.0));
            if well_for.is_some_and(|well_for| well_for > LATE) {
                self.found("S4", at, format!("{key} leaves {cluster} as failed, and all of it is ready there"));
            }
        }
    }

    /// A target is left by an eviction, or because somebody wants it elsewhere, and in no other way.
    fn targets(&mut self, before: &Binding, after: &Binding, at: GoDuration) {
        let (key, asked) = (after.key(), |spec: &bulkhead_core::model::BindingSpec| spec.reschedule_triggered_at);
        let replanned = self.replanned.get(&key).is_some_and(|moment| at.0.saturating_sub(moment.0) <= LATE);
        let placed_anew = applied_placement(before).as_ref() != before.spec.placement.as_ref();
        if replanned || placed_anew || asked(&before.spec) != asked(&after.spec) || after.deletion_timestamp.is_some() {
            return;
        }
        for target in before.spec.clusters.iter().filter(|target| target.replicas > 0) {
            let (spec, name) = (&after.spec, &target.name);
            let gone = !self.hub.clusters.contains_key(name);
            if !spec.targets(name) && !spec.is_evicting(name) && !before.spec.is_evicting(name) && !gone {
                self.found("S1", at, format!("{key} is taken off {name} without an eviction"));
            }
        }
    }

    /// A copy that was held all the time must not be taken away.
    fn work_goes(&mut self, name: &str, cluster: &str, at: GoDuration) {
        let Some(binding) = self.hub.bindings.values().find(|binding| work_name(binding) == name) else { return };
        let key = (binding.key(), cluster.to_owned());
        let lately = self.unheld.get(&key).is_some_and(|moment| at.0.saturating_sub(moment.0) <= LATE);
        if holds(binding, cluster) && !lately && binding.deletion_timestamp.is_none() {
            self.found("S1", at, format!("the copy of {} on {cluster} is taken away", key.0));
        }
    }

    fn cluster(&mut self, before: Option<&Cluster>, after: Option<&Cluster>, at: GoDuration) {
        let Some(after) = after else {
            let gone = before.map(|before| before.name.clone()).unwrap_or_default();
            self.foreign.retain(|(cluster, _)| *cluster != gone);
            return;
        };
        let there = foreign_taints(after);
        let lost: Vec<_> =
            self.foreign.iter().filter(|known| known.0 == after.name && !there.contains(known)).cloned().collect();
        for (cluster, taint) in lost {
            self.found("S6", at, format!("{cluster} lost the taint {taint}, which is not ours"));
            self.foreign.remove(&(cluster, taint));
        }
        self.foreign.extend(there);
    }

    /// In any window there are no more than its length allows, and one. Between two evictions there may have been as
    /// much time as the looks around them allow.
    fn rates(&mut self, at: GoDuration) {
        if self.rate <= 0.0 || self.told.contains("S2") {
            return;
        }
        for (first, (start_ms, _)) in self.evictions_ms.iter().enumerate() {
            for (count, (_, end_ms)) in (1..).zip(&self.evictions_ms[first..]) {
                let window_s = (end_ms - start_ms) as f64 / 1000.0;
                if count > (window_s * self.rate).floor() as usize + 1 {
                    let seen = format!("{count} evictions in {window_s} s at {} per second", self.rate);
                    return self.found("S2", at, seen);
                }
            }
        }
    }
}

fn millis(at: GoDuration) -> u64 {
    u64::try_from(at.0.as_millis()).unwrap_or(u64::MAX)
}
