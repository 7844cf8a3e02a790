//! One eviction: the check that it is still needed and allowed, and its write.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{REASON_DRAINED, REASON_TAINT_UNTOLERATED};
use bulkhead_core::decide::eviction::{self, JudgeSnapshot, Judgement};
use bulkhead_core::decide::failback::{HOME, Home};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, plan};
use bulkhead_core::model::BindingSpec;
use bulkhead_core::mutation::{self, Mutation};
use bulkhead_core::time::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Eviction, NAME, RESCAN, TaintManager, evictable, millis};
use crate::binding_kind::Binding;
use crate::context::{Record, about, input, subject};
use crate::controller::{self, AFTER_CONFLICT, Error};
use crate::decision_recorder::{DecisionInputs, evicted_binding};
use crate::events::EventType;
use crate::graceful_eviction::template_of;
use crate::object_lock::ObjectLock;

/// Interval until the taint of a deleted drain is looked at again.
const DRAIN_RECHECK: Duration = Duration::from_secs(1);

type Write = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Verdict on an item of the queue.
pub(super) enum Judged {
    /// Not needed any more: the binding or the taint is gone, or the taint is tolerated now.
    Unneeded,
    /// Not due yet; to be checked after this time, for example because the taint is tolerated until then.
    Later(Duration),
    /// Needed, but not allowed or not possible.
    Wait {
        /// Reason.
        attribution: Attribution,
        /// Time until the next check.
        after: Duration,
        /// Inputs of the decision, if the journal keeps them.
        decision_record: Option<Arc<DecisionRecord>>,
    },
    /// The decision could not be made.
    Undecided(Error),
    /// Needed and allowed; this future writes it.
    Evict(Write),
}

/// Changes to be written.
pub(super) struct PlannedEviction {
    pub(super) spec: BindingSpec,
    pub(super) attribution: Attribution,
    /// Effect as text for people.
    pub(super) effect: String,
    /// Home to which the workload is to return; absent if it never returns.
    pub(super) home: Option<Home>,
    /// Inputs of the decision, if the journal keeps them.
    pub(super) decision_record: Option<Arc<DecisionRecord>>,
}

impl TaintManager {
    /// Decides from current data, not from the data of the moment when the item was queued.
    pub(super) fn judge<B: Binding>(self: &Arc<Self>, eviction: &Eviction) -> Judged {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&eviction.binding) else { return Judged::Unneeded };
        let (cluster, clusters) = (self.clusters.get(&eviction.cluster), self.clusters.all());
        let pauses: Vec<_> = context.stores.eviction_pauses.list().iter().map(|pause| pause.to_model()).collect();
        let (pre_check, now) = (context.flags.eviction_pre_check, context.clock.now());
        let recorder = context.without_policies();
        let judgement = eviction::judge(JudgeSnapshot {
            binding: evictable(&*binding),
            cluster: cluster.as_deref(),
            clusters: &clusters,
            options: self.options,
            pre_check,
            pauses: &pauses,
            now,
        });
        let decision_record = || {
            recorder.finish(|| DecisionInputs {
                trigger: "the eviction reached the head of the queue",
                now,
                input: DecisionInput::Evict {
                    binding: evicted_binding(binding.to_model()),
                    cluster: eviction.cluster.clone(),
                    options: self.options,
                    pre_check,
                    pauses,
                    limits: self.clusters.limits(&eviction.cluster),
                },
                clusters,
                plan: plan::evict(&judgement),
            })
        };
        match &judgement {
            Ok(Judgement::Unneeded) => Judged::Unneeded,
            Ok(Judgement::Later { remaining_ms }) => Judged::Later(millis(*remaining_ms)),
            Ok(Judgement::Wait { attribution, again_after_ms }) => {
                let after = again_after_ms.map_or(RESCAN, |after_ms| millis(after_ms).max(Duration::from_millis(1)));
                Judged::Wait { attribution: attribution.clone(), after, decision_record: decision_record() }
            }
            Ok(Judgement::Evict { task, .. })
                if task.reason == REASON_DRAINED && !self.clusters.has_drain(&eviction.cluster) =>
            {
                Judged::Later(DRAIN_RECHECK)
            }
            Ok(Judgement::Evict { spec, task, attribution }) => {
                // The slot is for now. Behind a write that hangs, the eviction would take place in the slots of
                // others.
                let Some(lock) = B::store(&context.stores).try_lock_object(&eviction.binding) else {
                    return Judged::Later(AFTER_CONFLICT);
                };
                let (replicas, purge_mode) = (task.replicas.unwrap_or(0), task.purge_mode.unwrap_or_default());
                let effect = format!("{replicas} replicas to be placed elsewhere, purge mode {purge_mode:?}");
                // Workloads do not return to a drained cluster.
                let returns = self.failback.is_on() && attribution.reason.code == REASON_TAINT_UNTOLERATED;
                let home = returns.then(|| Home::remember(binding.annotations(), binding.spec(), now));
                let (spec, attribution) = (BindingSpec::clone(spec), attribution.clone());
                let planned = PlannedEviction { spec, attribution, effect, home, decision_record: decision_record() };
                let (manager, cluster) = (Arc::clone(self), eviction.cluster.clone());
                Judged::Evict(Box::pin(async move { manager.write(lock, &*binding, &cluster, planned).await }))
            }
            Err(error) => Judged::Undecided(Error::Undecided(error.to_string())),
        }
    }

    /// Writes targets and eviction tasks in one patch, with the new placement if this process computes it. The write
    /// fails if anything but the status changed since the binding was read: a lost update would bring a copy back, or
    /// lose a task (Karmada issues 7290 and 7302).
    pub(super) async fn write<B: Binding>(
        &self,
        lock: ObjectLock,
        binding: &B,
        cluster: &str,
        planned: PlannedEviction,
    ) -> Result<(), Error> {
        let context = &self.context;
        let PlannedEviction { spec, attribution, effect, home, decision_record } = planned;
        let record = Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::Evicted,
            attribution,
            effect,
            inputs: vec![input(binding)],
        };
        let unrecorded = mutation::on(Mutation::EvictionUnrecorded);
        let record = if unrecorded { 0 } else { context.record_decided(record, decision_record.as_ref(), None) };
        // A merge patch does not change an absent list, so an empty one is null.
        let clusters = if spec.clusters.is_empty() { json!(null) } else { json!(spec.clusters) };
        let mut patch = json!({"spec": {"clusters": clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks}});
        if spec.reschedule_triggered_at != binding.spec().reschedule_triggered_at {
            patch["spec"]["rescheduleTriggeredAt"] = json!(spec.reschedule_triggered_at);
        }
        if let Some(home) = home {
            patch["metadata"]["annotations"][HOME] = json!(json!(home).to_string());
        }
        let mut records = vec![record];
        let inline = context.scheduler.add_placement(binding, &spec, &mut patch, &mut records).await;
        stamp(&mut patch, cluster, context.clock.now());
        context.sign(&mut patch, &records);
        let written = B::writer(context, binding).patch_locked(lock, binding, patch).await;
        if let Err(error) = &written
            && !controller::is_conflict(error)
        {
            let message = format!("Evict from cluster {cluster} failed.");
            for about in [about(binding), template_of(binding)] {
                let reason = "EvictWorkloadFromClusterFailed";
                context.events_of(&[record]).emit(NAME, about, EventType::Warning, reason, message.clone());
            }
        }
        let operation = Error::api(format!("evicting {} {} from {cluster}", B::kind(&()), binding.name_any()));
        let written = context.settle(&records, written.map_err(operation));
        if let Some(inline) = inline {
            Box::pin(inline.written(written.as_ref())).await;
        }
        written.map(drop)
    }
}

/// Sets the creation time of the task for a cluster to the time of the write. The placement may have waited for slow
/// plugins, and the grace period does not include that.
fn stamp(patch: &mut Value, cluster: &str, now: Time) {
    let tasks = patch.pointer_mut("/spec/gracefulEvictionTasks").and_then(Value::as_array_mut);
    let task = tasks.into_iter().flatten().find(|task| task["fromCluster"] == cluster);
    if let Some(task) = task {
        task["creationTimestamp"] = json!(now.truncated());
    }
}
