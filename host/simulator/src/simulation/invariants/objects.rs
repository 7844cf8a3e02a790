//! Invariants of the control plane's objects, checked change by change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bulkhead_controllers::flags::{FeatureGate, GoDuration};
use bulkhead_core::decide::eviction::taint_based::applied_placement;
use bulkhead_core::decide::reasons::{
    PRODUCER_SCHEDULER, PRODUCER_TAINT_MANAGER, REASON_APPLICATION_FAILURE, REASON_TAINT_UNTOLERATED,
};
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask, PurgeMode, ReplicaSchedulingType, TargetCluster};
use bulkhead_core::names::keys;

use super::Inspector;
use super::churn::Departures;
use super::deadlines::EvictionDeadlines;
use super::hub::{Hub, Step, work_name};
use super::selects;
use super::templates::TemplateDelays;
use crate::simulation::federation::{Federation, PRODUCER_PERSON};
use crate::simulation::observe::Observer;

/// Time for which an earlier event can still have consequences: caches lag and writes are retried.
const LATE: Duration = Duration::from_mins(1);

/// Time after a failure of a cluster in which it can still cause evictions: its taint is removed some time after the
/// recovery, and evictions are queued.
const RECENTLY: Duration = Duration::from_mins(2);

/// Observed objects and the invariants derived from them.
pub(in crate::simulation) struct Observed {
    pub(super) inspector: Inspector,
    pub(super) hub: Hub,
    pub(super) deadlines: EvictionDeadlines,
    /// True if the scheduler counts the replicas that it placed lately.
    pub(super) protects_room: bool,
    departures: Departures,
    templates: TemplateDelays,
    /// Configured evictions per second.
    rate: f64,
    /// Duration of a failure after which a cluster is considered not ready.
    failure_threshold: Duration,
    /// Time at which a copy was last not held, by binding and cluster.
    unheld: BTreeMap<(String, String), GoDuration>,
    /// Deleted bindings, by key.
    deleted: BTreeMap<String, Arc<Binding>>,
    /// Time of the last change of a binding's placement or replicas.
    replanned: BTreeMap<String, GoDuration>,
    /// Clusters that joined after the start.
    joined: BTreeSet<String>,
    /// Time since which a cluster is ready in its status, if it was not before.
    ready_since: BTreeMap<String, GoDuration>,
    /// Taints added by others, as cluster and `key:effect`.
    foreign: BTreeSet<(String, String)>,
    /// Clusters whose taints a person replaced since the last look.
    taints_replaced: BTreeSet<String>,
    /// Clusters with a change in the current look. A compaction can hide the change of a person until the next one.
    clusters_seen: BTreeSet<String>,
    /// Time windows of the taint manager's evictions: after the first time and not after the second, in
    /// milliseconds.
    evictions_ms: Vec<(u64, u64)>,
    last_look: GoDuration,
    reported: BTreeSet<&'static str>,
}

/// Returns the taints of a cluster that were not added by a policy or these controllers.
fn foreign_taints(cluster: &Cluster) -> BTreeSet<(String, String)> {
    let ours = |key: &str| [keys::NOT_READY_TAINT, keys::UNREACHABLE_TAINT, keys::DRAIN_TAINT].contains(&key);
    let foreign = cluster
        .spec
        .taints
        .iter()
        .filter(|taint| cluster.taint_owner(taint).is_none() && !ours(&taint.key));
    foreign.map(|taint| (cluster.name.clone(), taint.identity())).collect()
}

/// Returns true if the copy on a cluster has to stay: the cluster is a target, or a task holds the copy.
fn holds(binding: &Binding, cluster: &str) -> bool {
    let held =
        |task: &GracefulEvictionTask| task.purge_mode != Some(PurgeMode::Directly) && task.from_cluster == cluster;
    binding.spec.targets(cluster) || binding.spec.graceful_eviction_tasks.iter().any(held)
}

impl Observed {
    /// Starts observing a federation whose clusters have joined; `None` if the required kinds are not served.
    pub(in crate::simulation) fn new(
        federation: &Federation,
        inspector: Inspector,
        has_slow_plugins: bool,
    ) -> Option<Self> {
        let hub = Hub::new(federation.hub())?;
        inspector.with(|ledger| ledger.truth.follow(federation, has_slow_plugins));
        let flags = &federation.context().flags;
        let foreign = hub
            .clusters
            .values()
            .flat_map(|cluster| foreign_taints(cluster))
            .collect();
        Some(Self {
            inspector,
            hub,
            deadlines: EvictionDeadlines::new(flags),
            protects_room: flags.gate(FeatureGate::SchedulingOvercommitProtection),
            departures: Departures::default(),
            templates: TemplateDelays::default(),
            rate: flags.resource_eviction_rate,
            failure_threshold: flags
                .cluster_failure_threshold
                .0
                .min(flags.cluster_monitor_grace_period.0),
            unheld: BTreeMap::new(),
            deleted: BTreeMap::new(),
            replanned: BTreeMap::new(),
            joined: BTreeSet::new(),
            ready_since: BTreeMap::new(),
            foreign,
            taints_replaced: BTreeSet::new(),
            clusters_seen: BTreeSet::new(),
            evictions_ms: Vec::new(),
            last_look: GoDuration::default(),
            reported: BTreeSet::new(),
        })
    }

    /// Records a disturbance of the controllers, during which their speed is not checked.
    pub(in crate::simulation) fn disturbed(&mut self, until: GoDuration) {
        self.deadlines.disturbed(GoDuration(until.0 + LATE));
    }

    /// Records that a person replaced the taints of a cluster, including those that others added.
    pub(in crate::simulation) fn taints_replaced(&mut self, cluster: String) {
        self.taints_replaced.insert(cluster);
    }

    /// Records a period in which the control plane or its clients cannot observe the member clusters.
    pub(in crate::simulation) fn record_hidden_members(&self, lasts: GoDuration) {
        self.inspector
            .with(|ledger| ledger.truth.record_hidden_members(lasts.0));
    }

    /// Records the state of the member clusters before the next injection.
    pub(in crate::simulation) fn sample(&self, federation: &Federation) {
        self.inspector.with(|ledger| ledger.truth.sample(federation));
    }

    /// Records a violation, once per invariant.
    fn found(&mut self, invariant: &'static str, at: GoDuration, seen: String) {
        if self.reported.insert(invariant) {
            self.inspector.found(invariant, at, seen);
        }
    }

    /// Checks everything that changed since the previous call.
    pub(in crate::simulation) fn look(&mut self, federation: &Federation, observer: &Observer, at: GoDuration) {
        self.sample(federation);
        let steps = self.hub.drain();
        if steps.is_none() {
            self.departures.forget();
            self.templates.forget();
        }
        for step in steps.unwrap_or_default() {
            match step {
                Step::Binding {
                    before: Some(before),
                    after: None,
                } => {
                    self.deleted.insert(before.key(), before);
                }
                Step::Binding {
                    before,
                    after: Some(after),
                } => {
                    // Another program may delete an object and create it again with the same spec.
                    let is_copy = |deleted: &Arc<Binding>| {
                        !after.spec.graceful_eviction_tasks.is_empty()
                            && deleted.spec.resource.uid == after.spec.resource.uid
                    };
                    let before = before.or_else(|| self.deleted.remove(&after.key()).filter(is_copy));
                    self.binding(before.as_deref(), &after, observer, at);
                }
                Step::Binding {
                    before: None,
                    after: None,
                } => {}
                Step::Cluster { before, after } => self.cluster(before.as_deref(), after.as_deref(), at),
                Step::WorkGoes { name, cluster } => {
                    self.departures.withdrawn(&name, &cluster);
                    self.check_removed_work(&name, &cluster, at);
                }
            }
        }
        let seen = std::mem::take(&mut self.clusters_seen);
        self.taints_replaced.retain(|cluster| !seen.contains(cluster));
        self.rates(at);
        for (invariant, seen) in self.deadlines.look(&self.hub, federation, at) {
            self.found(invariant, at, seen);
        }
        if self.deadlines.is_disturbed(at) {
            self.templates.restart();
        } else if let Some(seen) = self.templates.look(&self.hub, federation, at) {
            self.found("L1", at, seen);
        }
        if let Some(writes) = federation
            .report_only()
            .map(|process| process.writes())
            .filter(|writes| *writes > 0)
        {
            self.found("S5", at, format!("a process that only reports sent {writes} writes"));
        }
        self.last_look = at;
    }

    fn binding(&mut self, before: Option<&Binding>, after: &Binding, observer: &Observer, at: GoDuration) {
        let key = after.key();
        let empty = Binding::default();
        let before = before.unwrap_or(&empty);
        let (old, new) = (&before.spec, &after.spec);
        let starts = old.resource.uid.is_empty() || (old.replicas == 0 && new.replicas > 0);
        if starts || old.placement != new.placement || new.replicas < old.replicas {
            self.replanned.insert(key.clone(), at);
        }
        if old.resource.uid != new.resource.uid && self.hub.exists(&old.resource) {
            let seen = format!(
                "{key} is taken from {}, which still exists, for {}",
                old.resource, new.resource
            );
            self.found("S6", at, seen);
        }
        for task in new
            .graceful_eviction_tasks
            .iter()
            .filter(|task| !old.is_evicting(&task.from_cluster))
        {
            if task.producer != PRODUCER_PERSON {
                self.task(after, task, observer, at);
            }
        }
        for task in old
            .graceful_eviction_tasks
            .iter()
            .filter(|task| !new.is_evicting(&task.from_cluster))
        {
            let cluster = &task.from_cluster;
            if !self.inspector.with(|ledger| ledger.recorded.has_end(&key, cluster)) {
                self.found("S1", at, format!("the task of {key} for {cluster} is lost"));
            }
        }
        if let Some(cluster) = self.departures.changed(before, after, &self.hub.clusters) {
            self.found(
                "S1",
                at,
                format!("{key} leaves {cluster} again, and its copy there was never withdrawn"),
            );
        }
        self.templates.changed(before, after);
        self.targets(before, after, at);
        let clusters = self.hub.clusters.keys().cloned().collect::<Vec<_>>();
        for cluster in clusters.into_iter().filter(|cluster| !holds(after, cluster)) {
            self.unheld.insert((key.clone(), cluster), at);
        }
    }

    /// Checks a new eviction task.
    fn task(&mut self, binding: &Binding, task: &GracefulEvictionTask, observer: &Observer, at: GoDuration) {
        let (key, cluster) = (binding.key(), &task.from_cluster);
        self.deadlines.evicted(&key, cluster);
        self.inspector.with(|ledger| ledger.truth.task_begins(&key, cluster));
        if !self
            .inspector
            .with(|ledger| ledger.recorded.has_eviction(&key, cluster))
        {
            self.found("S7", at, format!("{key} leaves {cluster}, and no record says so"));
        }
        if task.producer == PRODUCER_TAINT_MANAGER {
            self.evictions_ms.push((millis(self.last_look), millis(at)));
        }
        if task.reason == REASON_TAINT_UNTOLERATED && !self.failed_long_enough(cluster, at) {
            let seen = format!("{key} leaves {cluster}, which failed for less than cluster-failure-threshold");
            self.found("L3", at, seen);
        }
        if task.producer == PRODUCER_SCHEDULER && self.has_to_stay(binding, cluster, at) {
            let seen = format!("{key} leaves {cluster}, which its placement selects and which exists");
            self.found("S1", at, seen);
        }
        if task.reason == REASON_APPLICATION_FAILURE {
            let resource = &binding.spec.resource;
            let workload = format!("{} {}/{}", resource.kind, resource.namespace, resource.name);
            let well_for = observer
                .fully_ready_since(cluster, &workload)
                .map(|since| at.0.saturating_sub(since.0));
            // The last report of a cluster that cannot be reached is all that is known of it.
            let is_known = self
                .inspector
                .with(|ledger| ledger.truth.is_reachable_for(cluster, LATE));
            if is_known && well_for.is_some_and(|well_for| well_for > LATE) {
                self.found(
                    "S4",
                    at,
                    format!("{key} leaves {cluster} as failed, and all of it is ready there"),
                );
            }
        }
    }

    /// Returns true if the scheduler has no reason to give up a copy: its placement is unchanged, selects the cluster,
    /// and wants a copy on every cluster that it selects.
    fn has_to_stay(&self, binding: &Binding, cluster: &str, at: GoDuration) -> bool {
        let placement = binding.spec.placement.clone().unwrap_or_default();
        let wants_all = placement.cluster_affinities.is_none()
            && placement.spread_constraints.is_empty()
            && placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated;
        let is_selected = |cluster: &Cluster| !cluster.is_terminating() && selects(&placement, cluster);
        let stays = self
            .hub
            .clusters
            .get(cluster)
            .is_some_and(|cluster| is_selected(cluster));
        wants_all && stays && !self.is_replanned(&binding.key(), at)
    }

    /// Returns true if a policy or a person changed the placement or removed replicas lately.
    fn is_replanned(&self, key: &str, at: GoDuration) -> bool {
        self.replanned
            .get(key)
            .is_some_and(|moment| at.0.saturating_sub(moment.0) <= LATE)
    }

    /// Returns true if a cluster failed for the configured threshold. Also true if the failure cannot be judged:
    /// with taints by people or by policies on other conditions, for a cluster that has just joined, and in the window
    /// after which a policy removes its taint from a ready cluster.
    fn failed_long_enough(&self, cluster: &str, at: GoDuration) -> bool {
        let others = |(of, taint): &(String, String)| of == cluster && taint.ends_with("NoExecute");
        let joined = self.joined.contains(cluster);
        let window = self.hub.removal_window();
        let in_window = |since: &GoDuration| !window.is_zero() && at.0.saturating_sub(since.0) <= window + LATE;
        let lasts = self.ready_since.get(cluster).is_some_and(in_window);
        let judged = !joined && !lasts && self.hub.only_readiness_taints() && !self.foreign.iter().any(others);
        let (threshold, lately) = (self.failure_threshold, RECENTLY);
        !judged
            || self
                .inspector
                .with(|ledger| ledger.truth.failed_for(cluster, threshold, lately))
    }

    /// Checks that a target is removed only by an eviction, or because a policy or a person changed the placement.
    fn targets(&mut self, before: &Binding, after: &Binding, at: GoDuration) {
        let key = after.key();
        // A reduction takes effect when the placement can be written, however long that takes.
        let replanned = self.is_replanned(&key, at) || has_surplus(before);
        let placed_anew = applied_placement(before).as_ref() != before.spec.placement.as_ref();
        if replanned || placed_anew || after.deletion_timestamp.is_some() {
            return;
        }
        let has_copy = |target: &&TargetCluster| target.replicas > 0 || !before.spec.is_workload();
        for target in before.spec.clusters.iter().filter(has_copy) {
            let (spec, name) = (&after.spec, &target.name);
            let gone = self
                .hub
                .clusters
                .get(name)
                .is_none_or(|cluster| cluster.is_terminating());
            if !spec.targets(name) && !spec.is_evicting(name) && !before.spec.is_evicting(name) && !gone {
                self.found("S1", at, format!("{key} is taken off {name} without an eviction"));
            }
        }
    }

    /// Checks that a removed copy was not held, and that its template still has a binding. A Work that exists again
    /// by now was recreated by a person.
    fn check_removed_work(&mut self, name: &str, cluster: &str, at: GoDuration) {
        let works = self.hub.works.get(name);
        if works.and_then(|works| works.get(cluster)) == Some(&false) {
            return;
        }
        let Some(binding) = self.hub.bindings.values().find(|binding| work_name(binding) == name) else {
            if let Some(template) = self.hub.template_of(name).cloned() {
                self.found(
                    "S1",
                    at,
                    format!("the copy of {template} on {cluster} is taken away, and nothing says why"),
                );
            }
            return;
        };
        let key = (binding.key(), cluster.to_owned());
        let lately = self
            .unheld
            .get(&key)
            .is_some_and(|moment| at.0.saturating_sub(moment.0) <= LATE);
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
        if before.is_none() {
            self.joined.insert(after.name.clone());
        }
        if after.is_ready() && !before.is_some_and(Cluster::is_ready) {
            self.ready_since.insert(after.name.clone(), at);
        }
        self.clusters_seen.insert(after.name.clone());
        let existing = foreign_taints(after);
        if self.taints_replaced.contains(&after.name) {
            self.foreign.retain(|(cluster, _)| *cluster != after.name);
        }
        let lost: Vec<_> = self
            .foreign
            .iter()
            .filter(|known| known.0 == after.name && !existing.contains(*known))
            .cloned()
            .collect();
        for (cluster, taint) in lost {
            self.found("S6", at, format!("{cluster} lost the taint {taint}, which is not ours"));
            self.foreign.remove(&(cluster, taint));
        }
        self.foreign.extend(existing);
    }

    /// Checks that each window contains at most the permitted number of evictions, plus one. The window is the
    /// longest time that may have passed between the evictions, given the sampling times.
    fn rates(&mut self, at: GoDuration) {
        if self.rate <= 0.0 || self.reported.contains("S2") {
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

/// True if divided replicas are more than the binding wants.
fn has_surplus(binding: &Binding) -> bool {
    let placement = binding.spec.placement.as_ref();
    let assigned = binding.spec.clusters.iter().map(|target| i64::from(target.replicas));
    placement.is_some_and(|placement| placement.replica_scheduling_type() == ReplicaSchedulingType::Divided)
        && assigned.sum::<i64>() > i64::from(binding.spec.replicas)
}

fn millis(at: GoDuration) -> u64 {
    u64::try_from(at.0.as_millis()).unwrap_or(u64::MAX)
}
