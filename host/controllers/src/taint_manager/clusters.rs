//! Clusters as the taint manager sees them: their models, the brake, the rates of drains.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use bulkhead_api::{Cluster, ClusterDrain};
use bulkhead_core::decide::eviction::{Brake, BrakeSettings, BrakeState, Limit, Rate};
use bulkhead_core::journal::Limits;
use bulkhead_core::model;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;

/// Clusters, kept in step with the stores, so that a decision reads them without parsing anything.
pub(super) struct Clusters {
    settings: BrakeSettings,
    rate_per_cluster: Option<f64>,
    cache: RwLock<ClusterCache>,
}

struct ClusterCache {
    clusters: BTreeMap<String, Arc<model::Cluster>>,
    brake: Brake,
    /// Rates of drains by name of the drain: cluster and evictions per second.
    drains: BTreeMap<String, (String, Option<f64>)>,
}

impl Clusters {
    pub(super) fn new(settings: BrakeSettings, rate_per_cluster: Option<f64>) -> Self {
        let (clusters, drains) = (BTreeMap::new(), BTreeMap::new());
        let cache = ClusterCache {
            clusters,
            brake: Brake::assess([], settings),
            drains,
        };
        Self {
            settings,
            rate_per_cluster,
            cache: RwLock::new(cache),
        }
    }

    fn read<T>(&self, read: impl FnOnce(&ClusterCache) -> T) -> T {
        read(&self.cache.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn apply(&self, change: &Change<'_, Cluster>) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let name = change.object().name_any();
        if matches!(change, Change::Deleted(_)) {
            cache.clusters.remove(&name);
        } else {
            cache.clusters.insert(name, Arc::new(change.object().to_model()));
        }
        cache.brake = Brake::assess(cache.clusters.values().map(AsRef::as_ref), self.settings);
    }

    pub(super) fn apply_drain(&self, change: &Change<'_, ClusterDrain>) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let (name, spec) = (change.object().name_any(), &change.object().spec);
        cache.drains.remove(&name);
        if !matches!(change, Change::Deleted(_)) {
            cache
                .drains
                .insert(name, (spec.cluster_name.clone(), spec.evictions_per_second));
        }
    }

    /// Returns true if a `ClusterDrain` names the cluster. The taint of a deleted drain stays for a moment, and must not
    /// evict: a drain that was suspended evicts nothing at its end.
    pub(super) fn has_drain(&self, cluster: &str) -> bool {
        self.read(|cache| cache.drains.values().any(|(drained, _)| drained == cluster))
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<model::Cluster>> {
        self.read(|cache| cache.clusters.get(name).cloned())
    }

    pub(super) fn all(&self) -> Vec<Arc<model::Cluster>> {
        self.read(|cache| cache.clusters.values().cloned().collect())
    }

    pub(super) fn faulty(&self) -> usize {
        self.read(|cache| cache.brake.faulty())
    }

    pub(super) fn faulty_share(&self) -> f64 {
        self.read(|cache| cache.brake.faulty_share())
    }

    /// Returns the effect of the brake on evictions from a cluster, and the reason; `None` if the cluster is gone.
    pub(super) fn brake(&self, name: &str) -> Option<(BrakeState, String)> {
        self.read(|cache| {
            let group = cache.brake.group_of(cache.clusters.get(name)?);
            Some((cache.brake.state(&group), cache.brake.describe(&group)))
        })
    }

    /// Returns the rates that an eviction from a cluster must respect. A deleted cluster has nothing to evict from.
    pub(super) fn limit(&self, name: &str) -> Limit {
        self.read(|cache| {
            let group = cache
                .clusters
                .get(name)
                .map(|cluster| cache.brake.group_of(cluster))
                .unwrap_or_default();
            let braked = cache.brake.state(&group) != BrakeState::Open;
            let drains = cache
                .drains
                .values()
                .filter(|(cluster, _)| cluster == name)
                .filter_map(|(_, rate)| *rate);
            let cluster = drains.chain(self.rate_per_cluster).map(Rate::per_second);
            let slowest = cluster.reduce(|slowest, rate| if rate < slowest { rate } else { slowest });
            let rate = cache.brake.rate(&group);
            Limit {
                global: self.settings.rate,
                group: braked.then_some((group, rate)),
                cluster: slowest,
            }
        })
    }
}

impl Clusters {
    /// Returns the rates with the description of the brake, for the journal.
    pub(super) fn limits(&self, name: &str) -> Limits {
        let Limit { global, group, cluster } = self.limit(name);
        Limits {
            per_second: global.as_f64(),
            group_per_second: group.map(|(_, rate)| rate.as_f64()),
            cluster_per_second: cluster.map(Rate::as_f64),
            brake: self
                .brake(name)
                .map_or_else(String::new, |(state, message)| format!("{}: {message}", state.code())),
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::decide::eviction::BrakeBy;
    use serde_json::json;

    use super::*;

    fn clusters(per_cluster: Option<f64>, ready: &[bool]) -> Clusters {
        let settings = BrakeSettings {
            rate: Rate::per_second(0.5),
            secondary_rate: Rate::per_second(0.1),
            unhealthy_threshold: 0.55,
            large_number: 2,
            by: BrakeBy::Federation,
        };
        let clusters = Clusters::new(settings, per_cluster);
        for (index, ready) in ready.iter().enumerate() {
            let status = if *ready { "True" } else { "False" };
            let cluster: Cluster = serde_json::from_value(json!({
                "metadata": {"name": format!("m{index}")}, "spec": {"syncMode": "Push"},
                "status": {"conditions": [{"type": "Ready", "status": status}]},
            }))
            .unwrap();
            clusters.apply(&Change::Added(&Arc::new(cluster)));
        }
        clusters
    }

    fn drain(name: &str, cluster: &str, rate: Option<f64>) -> Arc<ClusterDrain> {
        let spec = model::ClusterDrainSpec {
            cluster_name: cluster.to_owned(),
            evictions_per_second: rate,
        };
        Arc::new(ClusterDrain::new(name, spec))
    }

    #[test]
    fn the_slowest_of_all_rates_for_a_cluster_counts() {
        let rate = |clusters: &Clusters| clusters.limit("m0").cluster.map(Rate::as_f64);
        let known = clusters(None, &[true, true]);
        assert_eq!(rate(&known), None);
        known.apply_drain(&Change::Added(&drain("d", "m0", Some(0.2))));
        known.apply_drain(&Change::Added(&drain("e", "m0", Some(0.1))));
        known.apply_drain(&Change::Added(&drain("f", "m1", Some(0.0))));
        known.apply_drain(&Change::Added(&drain("g", "m0", None)));
        assert_eq!(rate(&known), Some(0.1));
        known.apply_drain(&Change::Deleted(&drain("e", "m0", Some(0.1))));
        assert_eq!(rate(&known), Some(0.2));
        let known = clusters(Some(0.05), &[true, true]);
        known.apply_drain(&Change::Added(&drain("d", "m0", Some(0.2))));
        assert_eq!(rate(&known), Some(0.05));
    }

    #[test]
    fn a_cluster_is_drained_while_an_object_says_so() {
        let known = clusters(None, &[true, true]);
        known.apply_drain(&Change::Added(&drain("d", "m0", Some(0.0))));
        known.apply_drain(&Change::Added(&drain("e", "m0", None)));
        assert_eq!((known.has_drain("m0"), known.has_drain("m1")), (true, false));
        known.apply_drain(&Change::Deleted(&drain("d", "m0", Some(0.0))));
        assert!(known.has_drain("m0"));
        let (old, new) = (drain("e", "m0", None), drain("e", "m1", None));
        known.apply_drain(&Change::Updated { old: &old, new: &new });
        assert_eq!(
            (known.has_drain("m0"), known.has_drain("m1")),
            (false, true),
            "the drain names another cluster"
        );
    }

    #[test]
    fn a_braked_group_has_a_rate_of_its_own() {
        let group = |ready: &[bool]| clusters(None, ready).limit("m0").group.map(|(_, rate)| rate.as_f64());
        assert_eq!(group(&[false, true, true]), None);
        assert_eq!(group(&[false, false, true]), Some(0.1));
        assert_eq!(group(&[false, false, false]), Some(0.0));
    }
}
