//! WorkloadRebalancers: requests to schedule workloads again (Karmada: `pkg/controllers/workloadrebalancer`).
//!
//! The request of a binding is `spec.rescheduleTriggeredAt`, the creation time of the WorkloadRebalancer. So a second
//! write of the same request changes nothing, and a later request is not replaced by an earlier one.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::{ClusterResourceBinding, ResourceBinding, WorkloadRebalancer, time};
use bulkhead_core::decide::rebalance::{self, Answer};
use bulkhead_core::model::RebalancedWorkload;
use bulkhead_core::names;
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error, is_not_found};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use kube::Api;
use serde_json::json;

use crate::binding_kind::{self, Binding, Bindings};
use crate::binding_owner::group_kind_name;
use crate::writers::writer;

const NAME: &str = "workload-rebalancer";

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
}

struct Rebalancer {
    deps: Dependencies,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let changed = Arc::clone(&queue);
    let _rebalancers = deps.bindings.stores.rebalancers.subscribe(move |change| {
        if change.is_generation_change() {
            changed.add(Key::of(change.object()));
        }
    });
    let count = deps.failures.counter(NAME, |key: &Key| key.named("WorkloadRebalancer"));
    let rebalancer = Arc::new(Rebalancer { deps });
    let reconcile = move |key| {
        let rebalancer = Arc::clone(&rebalancer);
        async move { rebalancer.reconcile(key).await }
    };
    controller::run(queue, 1, reconcile, count).await;
}

impl Rebalancer {
    async fn reconcile(&self, key: Key) -> Result<Action, Error> {
        let store = &self.deps.bindings.stores.rebalancers;
        let Some(rebalancer) = store.get(&key) else {
            return Ok(Action::Wait);
        };
        let metadata = &rebalancer.metadata;
        let Some(requested) = metadata.creation_timestamp.as_ref().map(time::from_meta) else {
            return Err(Error::NotYet(format!("WorkloadRebalancer {key} has no creation time")));
        };
        if metadata.deletion_timestamp.is_some() {
            return Ok(Action::Wait);
        }
        let (mut observed, mut first_error) = (rebalance::observed(&rebalancer.spec, &rebalancer.status), None);
        for item in observed.iter_mut().filter(|item| item.result.is_none()) {
            let answer = self.request(&item.workload, requested).await.unwrap_or_else(|error| {
                first_error.get_or_insert(error);
                Answer::NotWritten
            });
            rebalance::record(item, answer);
        }
        let now = self.deps.clock.now::<Time>();
        let generation = metadata.generation.unwrap_or_default();
        let status = rebalance::status(&rebalancer.status, observed, generation, now);
        let writer = writer(store, Api::all(self.deps.bindings.hub.clone()));
        let changed = |rebalancer: &mut WorkloadRebalancer| {
            let changed = rebalancer.status != status;
            rebalancer.status = status.clone();
            changed
        };
        writer.update_status(&rebalancer, changed).await?;
        if let Some(error) = first_error {
            return Err(error);
        }
        let Some(expires_at) = rebalance::expires_at(&rebalancer.spec, &status) else {
            return Ok(Action::Wait);
        };
        match u64::try_from(expires_at.millis_since(now)) {
            Ok(left) if left > 0 => Ok(Action::After(Duration::from_millis(left))),
            _ => {
                let deleted = writer.delete(&rebalancer).await;
                deleted.map_err(Error::api(format!("deleting WorkloadRebalancer {key}")))?;
                Ok(Action::Wait)
            }
        }
    }

    async fn request(&self, workload: &RebalancedWorkload, requested: Time) -> Result<Answer, Error> {
        let name = names::binding_name(&workload.kind, &workload.name);
        let key = Key::new(&workload.namespace, &name);
        if workload.namespace.is_empty() {
            self.request_of::<ClusterResourceBinding>(workload, &key, requested)
                .await
        } else {
            self.request_of::<ResourceBinding>(workload, &key, requested).await
        }
    }

    async fn request_of<B: Binding>(
        &self,
        workload: &RebalancedWorkload,
        key: &Key,
        requested: Time,
    ) -> Result<Answer, Error> {
        let operation = || format!("requesting the scheduling of {}", binding_kind::named(key));
        let bindings = &self.deps.bindings;
        let binding = match B::store(&bindings.stores).get(key) {
            Some(binding) => Some(binding),
            // A failure is final, so the cache must not be late.
            None => B::api(bindings.hub.clone(), &key.namespace)
                .get_opt(&key.name)
                .await
                .map_err(Error::api(operation()))?
                .map(Arc::new),
        };
        let Some(binding) = binding.filter(|binding| is_about(&**binding, workload)) else {
            return Ok(Answer::NoBinding);
        };
        if !rebalance::is_newer(requested, binding.spec().reschedule_triggered_at) {
            return Ok(Answer::Requested);
        }
        let patch = json!({"spec": {"rescheduleTriggeredAt": requested}});
        match B::writer(bindings, &binding)
            .patch_despite_status(&binding, patch)
            .await
        {
            Ok(_) => Ok(Answer::Requested),
            Err(error) if is_not_found(&error) => Ok(Answer::NoBinding),
            Err(error) => Err(Error::api(operation())(error)),
        }
    }
}

/// Returns true if a binding is that of a workload. Objects of two groups can derive the same name.
fn is_about<B: Binding>(binding: &B, workload: &RebalancedWorkload) -> bool {
    let resource = &binding.spec().resource;
    let bound = group_kind_name(&resource.api_version, &resource.kind, &resource.name);
    resource.namespace == workload.namespace
        && bound == group_kind_name(&workload.api_version, &workload.kind, &workload.name)
}

#[cfg(test)]
mod tests;
