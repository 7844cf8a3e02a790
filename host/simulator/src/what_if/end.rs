//! State at the end of a rehearsal: replicas, and the workloads that stay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_api::AnyBinding;
use bulkhead_controllers::flags::{FeatureGate, Flags};
use bulkhead_controllers::{Components, Stores};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{self, Evictable};
use bulkhead_core::decide::eviction::{JudgeSnapshot, Judgement, judge};
use bulkhead_core::model::{self, BindingSpec};
use bulkhead_core::time::Time;

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

/// Returns the clusters, in order of name.
pub(super) fn clusters(stores: &Stores) -> Vec<model::Cluster> {
    stores
        .clusters
        .list()
        .iter()
        .map(|cluster| cluster.to_model())
        .collect()
}

/// Returns the bindings of both kinds, in order of key.
pub(super) fn bindings(stores: &Stores) -> Vec<model::Binding> {
    let of_namespaces = stores.bindings.list();
    let of_clusters = stores.cluster_bindings.list();
    let mut bindings: Vec<_> = of_namespaces.iter().map(|binding| binding.to_model()).collect();
    bindings.extend(of_clusters.iter().map(|binding| binding.to_model()));
    bindings.sort_by_cached_key(model::Binding::key);
    bindings
}

/// Returns the replicas of each cluster that has any.
pub(super) fn replicas<'a>(specs: impl Iterator<Item = &'a BindingSpec>) -> BTreeMap<String, i64> {
    let mut replicas = BTreeMap::new();
    for target in specs.flat_map(|spec| &spec.clusters) {
        *replicas.entry(target.name.clone()).or_default() += i64::from(target.replicas);
    }
    replicas
}

/// Returns the bindings without a cluster that no scheduler places, by key.
pub(super) fn unmanaged(stores: &Stores) -> BTreeSet<String> {
    fn of<B: AnyBinding>(bindings: Vec<Arc<B>>) -> impl Iterator<Item = String> {
        let found = bindings
            .into_iter()
            .filter(|binding| binding.spec().clusters.is_empty() && !binding.is_managed());
        found.map(|binding| binding.to_model().key())
    }
    of(stores.bindings.list())
        .chain(of(stores.cluster_bindings.list()))
        .collect()
}

/// Returns the workloads that are still on a cluster that they have to leave.
pub(super) fn remaining(components: &Components) -> Remaining {
    let (stores, flags, now) = (&components.stores, &*components.flags, components.clock.now());
    let clusters = clusters(stores);
    let pauses = stores.eviction_pauses.list();
    let pauses: Vec<_> = pauses.iter().map(|pause| pause.to_model()).collect();
    let mut remaining = Remaining::default();
    for binding in &bindings(stores) {
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
