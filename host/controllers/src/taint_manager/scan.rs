//! Scan of a cluster: its bindings that have to leave are queued with their priorities, and those that stay are noted.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{self, Due, due};
use bulkhead_core::decide::eviction::{BrakeState, Priority, Waiting};
use bulkhead_core::model::Cluster;
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::Action;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use kube::ResourceExt;

use super::ordering::Ordering;
use super::{Cause, Eviction, RESCAN, TaintManager, evictable, millis, stays};
use crate::binding_kind::Binding;

impl TaintManager {
    /// Queues every binding that has to leave the cluster, with a delay if it tolerates the taint for a time, and
    /// requests another scan. Drops the queued evictions of a cluster without such taints.
    pub(super) async fn scan(&self, name: &str) -> Action {
        let cluster = self.clusters.get(name);
        let is_gone = cluster.is_none();
        let mut stays = BTreeMap::new();
        if let Some(cluster) = cluster.as_deref().filter(|cluster| stays::may_stay_on(cluster)) {
            let order = Ordering::new(&self.deps);
            self.enqueue::<bulkhead_api::ResourceBinding>(cluster, &order, &mut stays)
                .await;
            self.enqueue::<bulkhead_api::ClusterResourceBinding>(cluster, &order, &mut stays)
                .await;
        }
        self.note_stays(name, stays);
        let is_tainted = |cluster: &Arc<Cluster>| cluster.spec.taints.iter().any(|taint| self.options.evicts(taint));
        let action = if cluster.as_ref().is_some_and(is_tainted) {
            self.announce_queue(name, &[]);
            self.note_brake(name);
            self.changed.notify_one();
            Action::After(RESCAN)
        } else {
            let dropped = self.queue().drop_cluster(name);
            self.announce_unneeded(&dropped);
            self.announce_queue(name, &dropped);
            self.braked.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
            self.deps.metrics.brake(name, BrakeState::Open);
            Action::Wait
        };
        self.count(name);
        if is_gone {
            self.counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .forget(&self.deps.metrics, name);
            self.deps.metrics.forget_cluster(name);
        }
        action
    }

    /// Queues the bindings of one kind, and collects those that stay although a taint concerns them.
    async fn enqueue<B: Binding>(
        &self,
        cluster: &Cluster,
        order: &Ordering,
        stays: &mut BTreeMap<Eviction, Attribution>,
    ) {
        for binding in B::store(&self.deps.stores).by_index(&cluster.name) {
            let (wall, now) = (self.deps.clock.now(), self.now());
            let eviction = Eviction {
                cluster: cluster.name.clone(),
                binding: Key::of(&*binding),
                cause: Cause::Taint,
            };
            let delay = match due(evictable(&*binding), cluster, self.options, wall) {
                Ok(Due::Never) => {
                    let attribution = taint_based::stays(evictable(&*binding), cluster, self.options, wall);
                    stays.extend(attribution.map(|attribution| (eviction, attribution)));
                    continue;
                }
                Ok(Due::In { remaining_ms }) => millis(remaining_ms),
                // An invalid binding is reported, and retried, when it is taken out of the queue.
                Ok(Due::Now(_)) | Err(_) => Duration::ZERO,
            };
            let waiting = Waiting {
                cluster: cluster.name.clone(),
                priority: self.priority(&*binding, &cluster.name, order).await,
                not_before: now.saturating_add(delay),
            };
            self.queue().put(eviction, waiting, now);
        }
    }

    /// Returns the priority of an eviction: the score of plugins, then a label on the binding or on its template, or
    /// else the value of the priority class that the binding carries. A label that is not a number is ignored.
    pub(super) async fn priority<B: Binding>(&self, binding: &B, cluster: &str, order: &Ordering) -> Priority {
        let spec = binding.spec();
        let labelled = |labels: &BTreeMap<String, String>| labels.get(keys::EVICTION_PRIORITY)?.parse().ok();
        let template = || {
            let kind = ObjectKind::new(&spec.resource.api_version, &spec.resource.kind);
            let key = Key::new(&spec.resource.namespace, &spec.resource.name);
            labelled(&self.deps.templates.get(&kind, &key)?.labels())
        };
        let class = labelled(binding.labels())
            .or_else(template)
            .unwrap_or_else(|| spec.schedule_priority());
        Priority {
            score: order.score(&self.deps, binding, cluster).await,
            class,
        }
    }
}
