//! Bindings on a tainted cluster: those that have to leave, with their priorities, and those that stay.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{self, Due, due};
use bulkhead_core::decide::eviction::{Priority, Waiting};
use bulkhead_core::model::Cluster;
use bulkhead_core::names::keys;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use kube::ResourceExt;

use super::ordering::Ordering;
use super::{Cause, Eviction, TaintManager, evictable, millis};
use crate::binding_kind::Binding;

impl TaintManager {
    /// Queues the bindings of one kind, and collects those that stay although a taint concerns them.
    pub(super) async fn enqueue<B: Binding>(
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
