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
use bulkhead_runtime::controller::{self, AFTER_CONFLICT, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::object_lock::ObjectLock;
use kube::ResourceExt;
use serde_json::json;

use super::{Eviction, NAME, RESCAN, TaintManager, evictable, millis};
use crate::binding_kind::Binding;
use crate::decision_log::Record;
use crate::decision_recorder::{DecisionInputs, evicted_binding};
use crate::scheduler::{self, Precondition};
use crate::subjects::{about, input, subject, template_of};

/// Interval until the taint of a deleted drain is looked at again.
const DRAIN_RECHECK: Duration = Duration::from_secs(1);
/// Interval until a cluster is looked at again that answers although its status is not ready.
const ANSWERS_RECHECK: Duration = Duration::from_secs(5);

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
        let deps = &self.deps;
        let Some(binding) = B::store(&deps.stores).get(&eviction.binding) else {
            return Judged::Unneeded;
        };
        let (cluster, clusters) = (self.clusters.get(&eviction.cluster), self.clusters.all());
        let pauses: Vec<_> = deps
            .stores
            .eviction_pauses
            .list()
            .iter()
            .map(|pause| pause.to_model())
            .collect();
        let (pre_check, now) = (deps.flags.eviction_pre_check, deps.clock.now());
        let recorder = deps.log.without_policies();
        let priority = self.queue().priority(eviction);
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
                    priority,
                },
                clusters,
                plan: plan::evict(&judgement),
            })
        };
        match &judgement {
            Ok(Judgement::Unneeded) => Judged::Unneeded,
            Ok(Judgement::Later { remaining_ms }) => Judged::Later(millis(*remaining_ms)),
            Ok(Judgement::Wait {
                attribution,
                again_after_ms,
            }) => {
                let after = again_after_ms.map_or(RESCAN, |after_ms| millis(after_ms).max(Duration::from_millis(1)));
                Judged::Wait {
                    attribution: attribution.clone(),
                    after,
                    decision_record: decision_record(),
                }
            }
            Ok(Judgement::Evict { task, .. })
                if task.reason == REASON_DRAINED && !self.clusters.has_drain(&eviction.cluster) =>
            {
                Judged::Later(DRAIN_RECHECK)
            }
            // Its taint outlives the failure until its status is written.
            Ok(Judgement::Evict { task, .. })
                if task.reason != REASON_DRAINED
                    && cluster
                        .as_deref()
                        .is_some_and(|cluster| deps.contacts.answers_unready(cluster)) =>
            {
                Judged::Later(ANSWERS_RECHECK)
            }
            Ok(Judgement::Evict {
                spec,
                task,
                attribution,
            }) => {
                // The slot is for now. Behind a write that hangs, the eviction would take place in the slots of
                // others.
                let Some(lock) = B::store(&deps.stores).try_lock_object(&eviction.binding) else {
                    return Judged::Later(AFTER_CONFLICT);
                };
                let (replicas, purge_mode) = (task.replicas.unwrap_or(0), task.purge_mode.unwrap_or_default());
                let effect = format!("{replicas} replicas to be placed elsewhere, purge mode {purge_mode:?}");
                // Workloads do not return to a drained cluster.
                let returns = self.failback.is_on() && attribution.reason.code == REASON_TAINT_UNTOLERATED;
                let home = returns.then(|| Home::remember(binding.annotations(), binding.spec(), now));
                let (spec, attribution) = (BindingSpec::clone(spec), attribution.clone());
                let planned = PlannedEviction {
                    spec,
                    attribution,
                    effect,
                    home,
                    decision_record: decision_record(),
                };
                let (manager, cluster) = (Arc::clone(self), eviction.cluster.clone());
                Judged::Evict(Box::pin(async move {
                    manager.write(lock, &*binding, &cluster, planned).await
                }))
            }
            Err(error) => Judged::Undecided(Error::Undecided(error.to_string())),
        }
    }

    /// Records and writes an eviction. The write fails if anything but the status changed since the binding was read.
    pub(super) async fn write<B: Binding>(
        &self,
        lock: ObjectLock,
        binding: &B,
        cluster: &str,
        planned: PlannedEviction,
    ) -> Result<(), Error> {
        let deps = &self.deps;
        let PlannedEviction {
            spec,
            attribution,
            effect,
            home,
            decision_record,
        } = planned;
        let record = Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::Evicted,
            attribution,
            effect,
            inputs: vec![input(binding)],
        };
        let record = deps.log.record_decided(record, decision_record.as_ref(), None);
        let home = home.map(|home| (HOME, json!(json!(home).to_string())));
        let eviction = scheduler::Eviction {
            spec: Some(&spec),
            annotations: home.into_iter().collect(),
            records: vec![record.clone()],
            precondition: Precondition::Locked(lock, cluster.to_owned()),
            operation: format!("evicting {} {} from {cluster}", B::kind(&()), binding.name_any()),
        };
        let emit = |error: Option<&kube::Error>| {
            if error.is_none_or(controller::is_conflict) {
                return;
            }
            let message = format!("Evict from cluster {cluster} failed.");
            for about in [about(binding), template_of(binding)] {
                let reason = "EvictWorkloadFromClusterFailed";
                deps.log.events_of(std::slice::from_ref(&record)).emit(
                    NAME,
                    about,
                    EventType::Warning,
                    reason,
                    message.clone(),
                );
            }
        };
        deps.evictions.write(binding, eviction, emit).await
    }
}
