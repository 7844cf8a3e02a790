//! One eviction: is it still needed, may it happen, and the write that makes it happen.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::combine::Because;
use bulkhead_core::decide::evict::{self, EvictPlan};
use bulkhead_core::decide::eviction::{PauseScope, Paused, has_target, paused};
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{BindingSpec, GracefulEvictionTask};
use kube::ResourceExt;
use serde_json::json;

use super::{Eviction, NAME, RESCAN, TaintManager, evictable, millis};
use crate::binding_kind::Binding;
use crate::context::{Record, about, input, subject};
use crate::controller::{self, Error};
use crate::events::EventType;
use crate::graceful_eviction::template_of;
use crate::write::patch_if_unchanged;

type Write = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// What is to be done about an item of the queue.
pub(super) enum Judged {
    /// Nothing, for good: the binding or the taint is gone, or the taint is tolerated now.
    Unneeded,
    /// Nothing yet: it is tolerated for a time.
    Later(Duration),
    /// It should leave and may not, or cannot.
    Wait {
        /// Why.
        because: Because,
        /// When to look again.
        after: Duration,
    },
    /// It cannot be decided.
    Undecided(Error),
    /// It leaves, once this is written.
    Evict(Write),
}

/// What a plan says, besides the new spec.
struct Planned {
    spec: BindingSpec,
    task: GracefulEvictionTask,
    because: Because,
}

impl TaintManager {
    /// Decides from what is known now, not from what was known when the item was put into the queue.
    pub(super) fn judge<B: Binding>(self: &Arc<Self>, eviction: &Eviction) -> Judged {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&eviction.binding) else { return Judged::Unneeded };
        let (cluster, now) = (self.clusters.get(&eviction.cluster), context.clock.now());
        let planned = match evict::decide(evictable(&*binding), cluster.as_deref(), self.options, now) {
            Ok(EvictPlan::Keep) => return Judged::Unneeded,
            Ok(EvictPlan::KeepFor { remaining_ms }) => return Judged::Later(millis(remaining_ms)),
            Ok(EvictPlan::Evict { spec, task, because }) => Planned { spec: *spec, task: *task, because },
            Err(error) => return Judged::Undecided(Error::Undecided(error.to_string())),
        };
        if let Some(paused) = self.paused(&eviction.cluster, binding.spec()) {
            let again = paused.until.map_or(RESCAN, |until| millis(until.millis_since(now)));
            return Judged::Wait { because: paused.because(), after: again.max(Duration::from_millis(1)) };
        }
        let Some(placement) = evict::placement_in(binding.annotations()) else {
            let resource = binding.spec().resource.to_string();
            return Judged::Undecided(Error::Undecided(evict::NoAppliedPlacement { resource }.to_string()));
        };
        let check = context.flags.eviction_pre_check;
        if !has_target(check, binding.spec(), &placement, &eviction.cluster, &self.clusters.all()) {
            let message = "no other cluster could run it, so leaving would only take it away";
            return Judged::Wait { because: Because::rule("NoTargetCluster", message), after: RESCAN };
        }
        let (manager, cluster) = (Arc::clone(self), eviction.cluster.clone());
        Judged::Evict(Box::pin(async move { manager.write(&*binding, &cluster, planned).await }))
    }

    fn paused(&self, cluster: &str, spec: &BindingSpec) -> Option<Paused> {
        let pauses: Vec<_> = self.context.stores.eviction_pauses.list().iter().map(|pause| pause.to_model()).collect();
        paused(&pauses, PauseScope { cluster, workload: &spec.resource }, self.context.clock.now())
    }

    /// Writes both lists at once, on condition that nobody wrote the binding since it was read: a lost update would
    /// bring a copy back, or lose a task (Karmada issues 7290 and 7302).
    async fn write<B: Binding>(&self, binding: &B, cluster: &str, planned: Planned) -> Result<(), Error> {
        let context = &self.context;
        let Planned { spec, task, because } = planned;
        let purge_mode = task.purge_mode.unwrap_or_default();
        let replicas = task.replicas.unwrap_or(0);
        let record = context.record(Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::Evicted,
            because,
            effect: format!("{replicas} replicas to be placed elsewhere, purge mode {purge_mode:?}"),
            inputs: vec![input(binding)],
        });
        // A merge patch leaves a list that is absent as it was, so an empty one is null.
        let clusters = if spec.clusters.is_empty() { json!(null) } else { json!(spec.clusters) };
        let patch = json!({"spec": {"clusters": clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks}});
        let api = B::api(context.hub.clone(), &binding.namespace().unwrap_or_default());
        let written = patch_if_unchanged(&api, binding, patch).await;
        if let Err(error) = &written
            && !controller::is_conflict(error)
        {
            let message = format!("Evict from cluster {cluster} failed.");
            for about in [about(binding), template_of(binding)] {
                let reason = "EvictWorkloadFromClusterFailed";
                context.events.emit(NAME, about, EventType::Warning, reason, message.clone());
            }
        }
        let operation = Error::api(format!("evicting {} {} from {cluster}", B::kind(&()), binding.name_any()));
        context.settle(&[record], written.map(drop).map_err(operation))
    }
}
