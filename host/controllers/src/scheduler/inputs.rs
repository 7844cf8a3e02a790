//! Inputs of a decision besides its binding.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_api::{AnyBinding, Cluster, ResourceBinding};
use bulkhead_core::call::{CallKind, Peer};
use bulkhead_core::decide::schedule::capacity::{AssumedWorkload, Assumptions};
use bulkhead_core::decide::schedule::{IN_TREE_WORKLOAD_AFFINITY, SchedulerOptions, enabled_plugins};
use bulkhead_core::model::{self, TargetCluster};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::store::{Change, Subscription};
use kube::ResourceExt;

use super::Dependencies;
use crate::flags::{FeatureGate, Flags};

/// Returns the scheduler's settings.
pub(super) fn options(flags: &Flags) -> SchedulerOptions {
    SchedulerOptions {
        multiple_pod_templates: flags.gate(FeatureGate::MultiplePodTemplatesScheduling),
        resource_models: flags.gate(FeatureGate::CustomizedClusterResourceModeling),
        overcommit_protection: flags.gate(FeatureGate::SchedulingOvercommitProtection),
        empty_workload_propagation: flags.enable_empty_workload_propagation,
        evicts_standing: flags.gate(FeatureGate::GracefulEviction),
        spares_lost: true,
    }
}

/// Returns the policies in force, without the filters and scores that flags disable.
pub(super) fn policies(deps: &Dependencies) -> PolicySet {
    let policies = deps.decider.policies();
    let schedules = |policy: &dyn Policy| {
        policy
            .capabilities()
            .iter()
            .any(|capability| matches!(capability.kind, CallKind::Filter | CallKind::Score))
    };
    let gated = |name: &str| IN_TREE_WORKLOAD_AFFINITY.contains(&name);
    let affinity = deps.flags.gate(FeatureGate::WorkloadAffinity);
    let names = policies
        .iter()
        .filter(|policy| schedules(*policy))
        .map(|policy| policy.id().name.as_str());
    let known: Vec<_> = names.filter(|name| affinity || !gated(name)).collect();
    let enabled = enabled_plugins(&deps.flags.plugins, &known);
    policies.filtered(|policy| !schedules(policy) || enabled.contains(&policy.id().name))
}

/// State that the scheduler keeps between decisions.
#[derive(Default)]
pub(super) struct SchedulerCache {
    clusters: Mutex<Clusters>,
    /// Written results that the watch may not have delivered yet, with their version.
    assigning: Mutex<BTreeMap<Key, (u64, Vec<String>)>>,
    assumptions: Mutex<Assumptions>,
}

/// Clusters as decisions see them: converted once per change, put in columns before the next decision.
#[derive(Default)]
struct Clusters {
    models: BTreeMap<String, Arc<model::Cluster>>,
    snapshot: Arc<ClusterSnapshot>,
    changed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SchedulerCache {
    /// Follows clusters and bindings until the subscriptions are dropped.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        deps: &Dependencies,
    ) -> (Subscription<Cluster>, Subscription<ResourceBinding>) {
        let (of_clusters, of_bindings) = (Arc::clone(self), Arc::clone(self));
        let protects_room = deps.flags.gate(FeatureGate::SchedulingOvercommitProtection);
        let clock = deps.clock.clone();
        let clusters = deps
            .stores
            .clusters
            .subscribe(move |change| of_clusters.note_cluster(change));
        let bindings = deps
            .stores
            .bindings
            .subscribe(move |change| of_bindings.note_binding(change, protects_room, clock.now()));
        (clusters, bindings)
    }

    fn note_cluster(&self, change: &Change<'_, Cluster>) {
        if let Change::Updated { old, new } = change
            && old.status.resource_summary != new.status.resource_summary
        {
            lock(&self.assumptions).summarized(&new.name_any());
        }
        let mut clusters = lock(&self.clusters);
        clusters.changed = true;
        match change {
            Change::Deleted(cluster) => drop(clusters.models.remove(&cluster.name_any())),
            Change::Added(_) | Change::Updated { .. } => {
                clusters
                    .models
                    .insert(change.object().name_any(), Arc::new(change.object().to_model()));
            }
        }
    }

    fn note_binding(&self, change: &Change<'_, ResourceBinding>, protects_room: bool, now: Time) {
        let binding = change.object();
        let (key, seen) = (Key::of(binding), version(binding));
        let mut assigning = lock(&self.assigning);
        if matches!(change, Change::Deleted(_)) || assigning.get(&key).is_some_and(|(written, _)| *written <= seen) {
            assigning.remove(&key);
        }
        drop(assigning);
        let mut assumptions = lock(&self.assumptions);
        match change {
            Change::Deleted(_) => assumptions.forget(&key.to_string()),
            Change::Updated { old, new } => {
                let (before, reports) = (&old.status.aggregated_status, &new.status.aggregated_status);
                assumptions.settle(&key.to_string(), before, reports, now);
            }
            Change::Added(binding) if protects_room => assumptions.recall(&binding.to_model(), now),
            Change::Added(_) => {}
        }
    }

    /// Returns the current clusters.
    pub(super) fn clusters(&self) -> Arc<ClusterSnapshot> {
        let mut clusters = lock(&self.clusters);
        if clusters.changed {
            clusters.snapshot = Arc::new(clusters.snapshot.update(clusters.models.values().cloned()));
            clusters.changed = false;
        }
        Arc::clone(&clusters.snapshot)
    }

    /// Returns the other bindings of the same workload affinity groups; none while the feature gate is off.
    pub(super) fn peers(&self, deps: &Dependencies, binding: &model::Binding) -> Vec<Peer> {
        let (group, anti_group) = (binding.spec.affinity_group(), binding.spec.anti_affinity_group());
        let Some(namespace) = &binding.namespace else {
            return Vec::new();
        };
        if !deps.flags.gate(FeatureGate::WorkloadAffinity) || (group.is_empty() && anti_group.is_empty()) {
            return Vec::new();
        }
        let assigning = lock(&self.assigning);
        let peer = |other: &Arc<ResourceBinding>| {
            let spec = &other.spec;
            let shares = |ours: &str, theirs: &str| !ours.is_empty() && ours == theirs;
            if other.name_any() == binding.name
                || !(shares(group, spec.affinity_group()) || shares(anti_group, spec.anti_affinity_group()))
            {
                return None;
            }
            let newer = assigning
                .get(&Key::of(&**other))
                .filter(|(written, _)| *written > version(&**other));
            let known = || spec.clusters.iter().map(|target| target.name.clone()).collect();
            Some(Peer {
                binding: other.name_any(),
                affinity_group: spec.affinity_group().to_owned(),
                anti_affinity_group: spec.anti_affinity_group().to_owned(),
                clusters: newer.map_or_else(known, |(_, clusters)| clusters.clone()),
            })
        };
        deps.stores
            .bindings
            .list_namespace(namespace)
            .iter()
            .filter_map(peer)
            .collect()
    }

    /// Returns recently placed workloads, by cluster.
    pub(super) fn assumed(&self, options: &SchedulerOptions, now: Time) -> BTreeMap<String, Vec<AssumedWorkload>> {
        if !options.overcommit_protection {
            return BTreeMap::new();
        }
        let mut assumptions = lock(&self.assumptions);
        assumptions.expire(now);
        assumptions.by_cluster(now)
    }

    /// Remembers a result that was just written.
    pub(super) fn note_written<B: AnyBinding>(&self, written: &B, targets: &[TargetCluster], flags: &Flags, now: Time) {
        if flags.gate(FeatureGate::WorkloadAffinity) && written.namespace().is_some() {
            let clusters = targets.iter().map(|target| target.name.clone()).collect();
            lock(&self.assigning).insert(Key::of(written), (version(written), clusters));
        }
        if flags.gate(FeatureGate::SchedulingOvercommitProtection) {
            lock(&self.assumptions).assume(&written.to_model(), targets, now);
        }
    }
}

/// Returns the resource version as a number. Versions of one kind on one API server can be compared.
fn version<K: ResourceExt>(object: &K) -> u64 {
    object
        .resource_version()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}
