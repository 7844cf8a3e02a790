//! State at the end of a rehearsal: replicas, and the workloads that stay.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, EvictionPause, ResourceBinding};
use bulkhead_apiserver::ApiServer;
use bulkhead_controllers::flags::{FeatureGate, Flags};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{self, Evictable};
use bulkhead_core::decide::eviction::{JudgeSnapshot, Judgement, judge};
use bulkhead_core::model;
use bulkhead_core::time::Time;
use kube::Resource;
use serde::de::DeserializeOwned;

use super::Stay;

/// Workloads on lost clusters.
#[derive(Default)]
pub(super) struct Remaining {
    /// Workloads that stay, in order of binding and cluster, each with the gate that blocks the eviction.
    pub(super) stays: Vec<Stay>,
    /// Number of evictions that are needed and permitted later.
    pub(super) waiting: usize,
    /// True if the passage of time alone permits another eviction.
    pub(super) changes_with_time: bool,
}

/// Returns the objects of a kind, in order of namespace and name.
fn all<K: Resource<DynamicType = ()> + DeserializeOwned>(hub: &ApiServer) -> Vec<K> {
    let Some(kind) = hub.kind_id(&K::api_version(&()), &K::kind(&())) else {
        return Vec::new();
    };
    let objects = hub.store().list(kind, None).into_iter();
    objects
        .filter_map(|object| serde_json::from_value(object.value().as_ref().clone()).ok())
        .collect()
}

/// Returns the clusters, in order of name.
pub(super) fn clusters(hub: &ApiServer) -> Vec<model::Cluster> {
    all::<Cluster>(hub).iter().map(Cluster::to_model).collect()
}

fn bindings(hub: &ApiServer) -> Vec<model::Binding> {
    let mut bindings: Vec<_> = all::<ResourceBinding>(hub).iter().map(AnyBinding::to_model).collect();
    bindings.extend(all::<ClusterResourceBinding>(hub).iter().map(AnyBinding::to_model));
    bindings.sort_by_cached_key(model::Binding::key);
    bindings
}

/// Returns the replicas of each cluster that has any.
pub(super) fn replicas(hub: &ApiServer) -> BTreeMap<String, i64> {
    let mut replicas = BTreeMap::new();
    for target in bindings(hub).iter().flat_map(|binding| &binding.spec.clusters) {
        *replicas.entry(target.name.clone()).or_default() += i64::from(target.replicas);
    }
    replicas
}

/// Returns the bindings without a cluster that no scheduler places, by key.
pub(super) fn unmanaged(hub: &ApiServer) -> BTreeSet<String> {
    fn of<B: AnyBinding>(hub: &ApiServer) -> impl Iterator<Item = String> {
        let bindings = all::<B>(hub).into_iter();
        let found = bindings.filter(|binding| binding.spec().clusters.is_empty() && !binding.is_managed());
        found.map(|binding| binding.to_model().key())
    }
    of::<ResourceBinding>(hub)
        .chain(of::<ClusterResourceBinding>(hub))
        .collect()
}

/// Returns the workloads that are still on a cluster that they have to leave.
pub(super) fn remaining(hub: &ApiServer, flags: &Flags, now: Time) -> Remaining {
    let clusters = clusters(hub);
    let pauses: Vec<_> = all::<EvictionPause>(hub).iter().map(EvictionPause::to_model).collect();
    let mut remaining = Remaining::default();
    for binding in &bindings(hub) {
        let targets = |cluster: &&model::Cluster| binding.spec.targets(&cluster.name);
        for cluster in clusters.iter().filter(targets) {
            let stay = |Attribution { reason, .. }: Attribution| Stay {
                binding: binding.key(),
                cluster: cluster.name.clone(),
                gate: reason.code,
                why: reason.message,
            };
            let judged = judge(JudgeSnapshot {
                binding: Evictable::from(binding),
                cluster: Some(cluster),
                clusters: &clusters,
                options: flags.evict_options(),
                pre_check: flags.eviction_pre_check,
                pauses: &pauses,
                now,
            });
            match judged {
                Ok(Judgement::Unneeded) => remaining
                    .stays
                    .extend(without_end(binding, cluster, flags, now).map(stay)),
                Ok(Judgement::Later { .. }) => {
                    remaining.waiting += 1;
                    remaining.changes_with_time = true;
                }
                Ok(Judgement::Wait {
                    attribution,
                    again_after_ms,
                }) => {
                    remaining.stays.push(stay(attribution));
                    remaining.changes_with_time |= again_after_ms.is_some();
                }
                Ok(Judgement::Evict { .. }) => remaining.waiting += 1,
                Err(error) => {
                    remaining
                        .stays
                        .push(stay(Attribution::rule("NoAppliedPlacement", error.to_string())));
                }
            }
        }
    }
    remaining
}

/// Returns the reason for which a binding stays on a cluster without end, if it would otherwise have to leave.
fn without_end(binding: &model::Binding, cluster: &model::Cluster, flags: &Flags, now: Time) -> Option<Attribution> {
    let is_off = !flags.gate(FeatureGate::Failover) && !cluster.is_ready();
    let off = || {
        let message = "no rule taints a lost cluster while the feature gate Failover is off";
        is_off.then(|| Attribution::rule("EvictionOff", message))
    };
    taint_based::stays(Evictable::from(binding), cluster, flags.evict_options(), now).or_else(off)
}
