//! Bindings that stay on a tainted cluster without end: each one is recorded once, with the reason.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bulkhead_core::combine::Attribution;
use bulkhead_core::model::Cluster;

use super::{Eviction, TaintManager};

/// True if a cluster has a taint that evicts, or would if a switch were on.
pub(super) fn may_stay_on(cluster: &Cluster) -> bool {
    cluster.spec.taints.iter().any(|taint| taint.effect.evicts())
}

impl TaintManager {
    /// Records the bindings that stay on a cluster for a new reason. Forgets those that do not stay any more.
    pub(super) fn note_stays(&self, name: &str, mut found: BTreeMap<Eviction, Attribution>) {
        let mut known = self.stays.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|eviction, _| eviction.cluster != name || found.contains_key(eviction));
        found.retain(|eviction, attribution| {
            let code = attribution.reason.code.clone();
            known.insert(eviction.clone(), code.clone()) != Some(code)
        });
        drop(known);
        for (eviction, attribution) in found {
            self.record_wait(&eviction, attribution, None);
        }
    }
}
