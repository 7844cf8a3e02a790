//! One eviction: is it still needed, may it happen, and the write that makes it happen.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::combine::Because;
use bulkhead_core::decide::evict::REASON_TAINT_UNTOLERATED;
use bulkhead_core::decide::eviction::{self, JudgeSnapshot, Judgement};
use bulkhead_core::decide::failback::{HOME, Home};
use bulkhead_core::journal::{Case, Decision, Question, plan};
use bulkhead_core::model::BindingSpec;
use bulkhead_core::mutation::{self, Mutation};
use kube::ResourceExt;
use serde_json::json;

use super::{Eviction, NAME, RESCAN, TaintManager, evictable, millis};
use crate::binding_kind::Binding;
use crate::context::{Record, about, input, subject};
use crate::controller::{self, AFTER_CONFLICT, Error};
use crate::deliberation::{Basis, evicted_binding};
use crate::events::EventType;
use crate::graceful_eviction::template_of;
use crate::turn::Turn;

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
        /// What it was decided from.
        case: Option<Arc<Case>>,
    },
    /// It cannot be decided.
    Undecided(Error),
    /// It leaves, once this is written.
    Evict(Write),
}

/// What is to be written.
pub(super) struct Planned {
    pub(super) spec: BindingSpec,
    pub(super) because: Because,
    /// What follows, for people.
    pub(super) effect: String,
    /// Where the workload is to come back to one day; absent where nothing ever does.
    pub(super) home: Option<Home>,
    /// What it was decided from.
    pub(super) case: Option<Arc<Case>>,
}

impl TaintManager {
    /// Decides from what is known now, not from what was known when the item was put into the queue.
    pub(super) fn judge<B: Binding>(self: &Arc<Self>, eviction: &Eviction) -> Judged {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&eviction.binding) else { return Judged::Unneeded };
        let (cluster, clusters) = (self.clusters.get(&eviction.cluster), self.clusters.all());
        let pauses: Vec<_> = context.stores.eviction_pauses.list().iter().map(|pause| pause.to_model()).collect();
        let (pre_check, now) = (context.flags.eviction_pre_check, context.clock.now());
        let asking = context.asking_nobody();
        let judgement = eviction::judge(JudgeSnapshot {
            binding: evictable(&*binding),
            cluster: cluster.as_deref(),
            clusters: &clusters,
            options: self.options,
            pre_check,
            pauses: &pauses,
            now,
        });
        let case = || {
            asking.case(|| Basis {
                trigger: "its turn came in the queue of evictions",
                now,
                question: Question::Evict {
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
            Ok(Judgement::Wait { because, again_after_ms }) => {
                let after = again_after_ms.map_or(RESCAN, |after_ms| millis(after_ms).max(Duration::from_millis(1)));
                Judged::Wait { because: because.clone(), after, case: case() }
            }
            Ok(Judgement::Evict { spec, task, because }) => {
                // Its slot is now. Behind a write that hangs it would go when the slots are others'.
                let Some(turn) = B::store(&context.stores).try_turn(&eviction.binding) else {
                    return Judged::Later(AFTER_CONFLICT);
                };
                let (replicas, purge_mode) = (task.replicas.unwrap_or(0), task.purge_mode.unwrap_or_default());
                let effect = format!("{replicas} replicas to be placed elsewhere, purge mode {purge_mode:?}");
                // A cluster that a person empties is left for good.
                let returns = self.failback.is_on() && because.reason.code == REASON_TAINT_UNTOLERATED;
                let home = returns.then(|| Home::remember(binding.annotations(), binding.spec(), now));
                let (spec, because) = (BindingSpec::clone(spec), because.clone());
                let planned = Planned { spec, because, effect, home, case: case() };
                let (manager, cluster) = (Arc::clone(self), eviction.cluster.clone());
                Judged::Evict(Box::pin(async move { manager.write(turn, &*binding, &cluster, planned).await }))
            }
            Err(error) => Judged::Undecided(Error::Undecided(error.to_string())),
        }
    }

    /// Writes both lists at once, and where it goes if this process says so, on condition that nobody wrote them since
    /// the binding was read: a lost update would bring a copy back, or lose a task (Karmada issues 7290 and 7302).
    pub(super) async fn write<B: Binding>(
        &self,
        turn: Turn,
        binding: &B,
        cluster: &str,
        planned: Planned,
    ) -> Result<(), Error> {
        let context = &self.context;
        let Planned { spec, because, effect, home, case } = planned;
        let record = Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::Evicted,
            because,
            effect,
            inputs: vec![input(binding)],
        };
        let unrecorded = mutation::on(Mutation::EvictionUnrecorded);
        let record = if unrecorded { 0 } else { context.record_decided(record, case.as_ref(), None) };
        // A merge patch leaves a list that is absent as it was, so an empty one is null.
        let clusters = if spec.clusters.is_empty() { json!(null) } else { json!(spec.clusters) };
        let mut patch = json!({"spec": {"clusters": clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks}});
        if spec.reschedule_triggered_at != binding.spec().reschedule_triggered_at {
            patch["spec"]["rescheduleTriggeredAt"] = json!(spec.reschedule_triggered_at);
        }
        if let Some(home) = home {
            patch["metadata"]["annotations"][HOME] = json!(json!(home).to_string());
        }
        let mut records = vec![record];
        let ahead = context.scheduler.put_place(binding, &spec, &mut patch, &mut records).await;
        context.sign(&mut patch, &records);
        let written = B::writer(context, binding).patch_in_turn(turn, binding, patch).await;
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
        if let Some(ahead) = ahead {
            Box::pin(ahead.written(written.as_ref())).await;
        }
        written.map(drop)
    }
}
