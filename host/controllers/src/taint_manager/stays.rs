//! Bindings that stay on a tainted cluster without end: each one is recorded once, with the reason.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based;
use bulkhead_core::model::{Cluster, Taint, TaintEffect};
use bulkhead_runtime::key::Key;

use super::{Cause, Eviction, TaintManager, evictable};
use crate::binding_kind::Binding;

impl TaintManager {
    /// Records the bindings that stay on a cluster for a new reason. Forgets those that do not stay any more.
    pub(super) fn note_stays(&self, name: &str, cluster: Option<&Cluster>) {
        let mut found = BTreeMap::new();
        let evicts = |taint: &Taint| matches!(taint.effect, TaintEffect::NoExecute | TaintEffect::PreferNoExecute);
        if let Some(cluster) = cluster.filter(|cluster| cluster.spec.taints.iter().any(evicts)) {
            self.find_stays::<bulkhead_api::ResourceBinding>(cluster, &mut found);
            self.find_stays::<bulkhead_api::ClusterResourceBinding>(cluster, &mut found);
        }
        let mut known = self.stays.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|eviction, _| eviction.cluster != name || found.contains_key(eviction));
        found.retain(|eviction, attribution: &mut Attribution| {
            let code = attribution.reason.code.clone();
            known.insert(eviction.clone(), code.clone()) != Some(code)
        });
        drop(known);
        for (eviction, attribution) in found {
            self.record_wait(&eviction, attribution, None);
        }
    }

    fn find_stays<B: Binding>(&self, cluster: &Cluster, found: &mut BTreeMap<Eviction, Attribution>) {
        let now = self.deps.clock.now();
        for binding in B::store(&self.deps.stores).by_index(&cluster.name) {
            if let Some(attribution) = taint_based::stays(evictable(&*binding), cluster, self.options, now) {
                let (cluster, binding) = (cluster.name.clone(), Key::of(&*binding));
                found.insert(
                    Eviction {
                        cluster,
                        binding,
                        cause: Cause::Taint,
                    },
                    attribution,
                );
            }
        }
    }
}
