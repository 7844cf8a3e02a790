//! Evictions, from the queue to the write: each is checked again when its slot opens.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::{self, Finished, JudgeSnapshot, Judgement, Next};
use bulkhead_core::decide::failback::{HOME, Home};
use bulkhead_core::decide::reasons::{REASON_DRAINED, REASON_TAINT_UNTOLERATED};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, plan};
use bulkhead_core::model::BindingSpec;
use bulkhead_runtime::controller::{self, AFTER_CONFLICT, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::object_lock::ObjectLock;
use kube::ResourceExt;
use serde_json::json;
use tracing::Instrument as _;

use super::writing::{Attempt, Writing};
use super::{Cause, Eviction, NAME, RESCAN, TaintManager, evictable, millis};
use crate::binding_kind::Binding;
use crate::decision_log::Record;
use crate::decision_recorder::{DecisionInputs, evicted_binding};
use crate::eviction_trace;
use crate::metrics::Ending;
use crate::scheduler::{self, Precondition};
use crate::subjects::{about, input, subject, template_of};

/// Interval until the taint of a deleted drain is looked at again.
const DRAIN_RECHECK: Duration = Duration::from_secs(1);
/// Interval until a cluster is looked at again that answers although its status is not ready, or loses its taints.
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
    /// Takes each eviction out of the queue when its slot opens, until the future is dropped.
    pub(super) async fn pump(self: &Arc<Self>) {
        let mut writing = Writing::default();
        loop {
            let now = self.now();
            let next = if writing.has_room() {
                self.queue().next(now, |cluster| self.clusters.limit(cluster))
            } else {
                Next::Idle
            };
            let wake_at = match next {
                Next::Take(eviction) => {
                    self.take(eviction, now, &mut writing);
                    // A long queue must not starve other tasks.
                    tokio::task::yield_now().await;
                    continue;
                }
                Next::WaitUntil(at) => Some(self.start + at),
                Next::Idle => None,
            };
            let alarm = async {
                match wake_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(attempt) = writing.next() => self.finish(attempt),
                () = self.changed.notified() => {}
                () = alarm => {}
            }
        }
    }

    /// Decides about an eviction whose slot is open, and starts its write if it is still needed.
    fn take(self: &Arc<Self>, eviction: Eviction, now: Duration, writing: &mut Writing) {
        let span = eviction.span();
        let _entered = span.enter();
        let judged = match (eviction.cause, eviction.binding.namespace.is_empty()) {
            (Cause::Taint, true) => self.judge::<bulkhead_api::ClusterResourceBinding>(&eviction),
            (Cause::Taint, false) => self.judge::<bulkhead_api::ResourceBinding>(&eviction),
            (Cause::Failback, true) => self.judge_return::<bulkhead_api::ClusterResourceBinding>(&eviction),
            (Cause::Failback, false) => self.judge_return::<bulkhead_api::ResourceBinding>(&eviction),
        };
        match judged {
            Judged::Wait { .. } => {}
            Judged::Unneeded => self.announce_unneeded([&eviction]),
            _ => {
                let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
                waits.remove(&eviction);
            }
        }
        let finished = match judged {
            Judged::Unneeded => Finished::Done,
            Judged::Later(after) => Finished::Later(after),
            Judged::Wait {
                attribution,
                after,
                decision_record,
            } => {
                self.note_wait(&eviction, attribution, decision_record.as_ref());
                Finished::Later(after)
            }
            Judged::Undecided(error) => {
                self.deps.failures.count(NAME, &error);
                Finished::Failed
            }
            Judged::Evict(write) => {
                self.mark_left_queue(&eviction, now);
                let slot = self
                    .queue()
                    .charge(&eviction.cluster, &self.clusters.limit(&eviction.cluster), now);
                let written = write.instrument(span.clone());
                let span = span.clone();
                writing.add(async move {
                    Attempt {
                        result: written.await,
                        eviction,
                        slot,
                        since: now,
                        span,
                    }
                });
                return;
            }
        };
        self.end(&eviction, finished, now);
    }

    /// Marks that an eviction left the queue, with the taint that causes it.
    fn mark_left_queue(&self, eviction: &Eviction, now: Duration) {
        let waited = self.queue().waited(eviction, now).unwrap_or_default();
        let cluster = self.deps.stores.cluster(&eviction.cluster);
        let taints = cluster.iter().flat_map(|cluster| &cluster.spec.taints);
        let taint = taints.into_iter().find(|taint| self.options.evicts(taint));
        let taint = taint.filter(|_| eviction.cause == Cause::Taint);
        eviction_trace::left_queue(&eviction.cluster, waited, cluster.as_deref(), taint);
    }

    /// Ends the processing of an eviction. After the last one of a cluster its metrics show an empty queue, without
    /// waiting for the next scan.
    pub(super) fn end(&self, eviction: &Eviction, finished: Finished, now: Duration) {
        let is_last = {
            let mut queue = self.queue();
            queue.finish(eviction, finished, now);
            !queue.items().any(|(_, from)| *from == eviction.cluster)
        };
        if is_last {
            self.count(&eviction.cluster);
        }
    }

    fn finish(&self, attempt: Attempt) {
        let Attempt {
            eviction,
            slot,
            since,
            result,
            span,
        } = attempt;
        let _entered = span.enter();
        let now = self.now();
        let waited = self.queue().waited(&eviction, now).unwrap_or_default();
        if result.as_ref().is_err_and(Error::is_refusal) {
            self.queue().release(&slot);
        } else {
            // The binding may have left as late as now, and not when its slot opened. Without a response too.
            self.queue()
                .settle(&slot, &eviction.cluster, &self.clusters.limit(&eviction.cluster), now);
        }
        let finished = match &result {
            Ok(()) => Finished::Done,
            Err(error) if error.is_withheld() => {
                self.deps.failures.count(NAME, error);
                Finished::Done
            }
            Err(error) => {
                if eviction.cause == Cause::Failback {
                    self.failback.return_failed(&eviction.binding);
                }
                self.deps.failures.count(NAME, error);
                // Conflicts too: the first retries come within milliseconds, the later ones back off.
                Finished::Failed
            }
        };
        self.end(&eviction, finished, now);
        if result.is_ok() {
            self.queue().resume(now);
        }
        let ending = Ending::of(&result);
        self.deps
            .metrics
            .processed(eviction.queue_name(), now.saturating_sub(since), ending);
        // A withheld attempt does not affect the success rate.
        if ending == Ending::Withheld {
            return;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.attempted(
            &self.deps.metrics,
            &eviction.cluster,
            result.is_ok().then_some(waited),
            now,
        );
    }

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
            // Its taint outlives the failure until its status is written, or until the store shows that it is removed.
            Ok(Judgement::Evict { task, .. })
                if task.reason != REASON_DRAINED
                    && cluster.as_deref().is_some_and(|cluster| {
                        deps.contacts.answers_unready(cluster) || deps.contacts.loses_taints(&cluster.name)
                    }) =>
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
