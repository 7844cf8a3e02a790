//! Release of old copies (Karmada: `pkg/controllers/gracefuleviction`).

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_core::call::CallKind;
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::graceful_eviction::{
    self, FAILED_TEMPLATES, GracefulEvictionPlan, GracefulEvictionSnapshot, UnconfirmedTargets,
};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, plan};
use bulkhead_core::policy::PolicySet;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Action, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;

use crate::binding_kind::{self, Binding, Bindings, Reconcile};
use crate::contact::Reported;
use crate::decision_log::{DecisionLog, Record, RecordedDecision};
use crate::decision_recorder::DecisionInputs;
use crate::evaluate::Decider;
use crate::eviction_trace::{self, steps};
use crate::flags::Flags;
use crate::pending_status::PendingStatus;
use crate::scheduler::{annotation, patch_of_ended_tasks};
use crate::stores::Stores;
use crate::subjects::{input, subject, subjects_of_step};

const NAME: &str = "graceful-eviction-controller";
const WORKERS: usize = 5;

struct GracefulEviction {
    deps: Dependencies,
    /// Reason why each task was last held, so that only changes are recorded.
    held: Mutex<BTreeMap<(Key, String), Hold>>,
}

/// Hold on a task.
struct Hold {
    attribution: Attribution,
    /// Target clusters on which nothing was known to run.
    dead: BTreeSet<String>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) decider: Decider,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) log: DecisionLog,
    pub(crate) pending_status: Arc<PendingStatus>,
    pub(crate) reported: Reported,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    fn has_tasks<B: Binding>(change: &Change<'_, B>) -> bool {
        let has = |binding: &B| !binding.spec().graceful_eviction_tasks.is_empty();
        match change {
            Change::Updated { old, new } => has(old) || has(new),
            Change::Added(binding) | Change::Deleted(binding) => has(binding),
        }
    }
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let _bindings = binding_kind::subscribe(&deps.stores, &queue, has_tasks, has_tasks);
    let seen = Arc::clone(&queue);
    let _pending_status = deps.pending_status.subscribe(move |key| seen.add(key.clone()));
    let controller = Arc::new(GracefulEviction {
        deps: deps.clone(),
        held: Mutex::default(),
    });
    // A recovered cluster may take back a workload that found no other place, or confirm a replacement.
    let (recovered, holding) = (Arc::clone(&queue), Arc::clone(&controller));
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        let name = change.object().name_any();
        let held = holding.held.lock().unwrap_or_else(PoisonError::into_inner);
        let concerned = held
            .iter()
            .filter(|((_, source), hold)| *source == name || hold.dead.contains(&name));
        concerned.for_each(|((key, _), _)| recovered.add(key.clone()));
    });
    // Another eviction check may decide differently.
    let (again, waiting) = (Arc::clone(&queue), Arc::clone(&controller));
    let _checks = deps.decider.registry.subscribe(move || {
        let held = waiting.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.keys().for_each(|(key, _)| again.add(key.clone()));
    });
    let observer = deps.failures.counter(NAME, binding_kind::named);
    binding_kind::run(queue, WORKERS, controller, observer).await;
}

impl Reconcile for GracefulEviction {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let binding = B::latest(&deps.bindings, &key).filter(|binding| {
            binding.meta().deletion_timestamp.is_none() && !binding.spec().graceful_eviction_tasks.is_empty()
        });
        let Some(binding) = binding else {
            self.forget_all_but(&key, |_| false);
            return Ok(Action::Wait);
        };
        for task in &binding.spec().graceful_eviction_tasks {
            eviction_trace::mark(steps::UNDER_WAY, &*binding, task);
        }
        let model = Arc::new(binding.to_model());
        self.forget_all_but(&key, |cluster| {
            model
                .spec
                .graceful_eviction_tasks
                .iter()
                .any(|task| task.from_cluster == cluster)
        });
        let sources = model.spec.graceful_eviction_tasks.iter();
        let sources: Vec<_> = sources
            .filter_map(|task| deps.stores.cluster(&task.from_cluster))
            .map(|cluster| cluster.to_model())
            .collect();
        let sources = Arc::new(sources);
        let options = deps.flags.graceful_eviction_options();
        let now = deps.clock.now();
        let mut unconfirmed = Arc::new(deps.reported.unconfirmed(&model));
        let decide = |unconfirmed: &Arc<UnconfirmedTargets>| {
            let (binding, sources, unconfirmed) = (Arc::clone(&model), Arc::clone(&sources), Arc::clone(unconfirmed));
            let decide = move |policies: &PolicySet| {
                let (binding, sources, unconfirmed) = (&binding, &sources, &unconfirmed);
                graceful_eviction::decide(
                    GracefulEvictionSnapshot {
                        binding,
                        sources,
                        unconfirmed,
                        options,
                        now,
                    },
                    policies,
                )
            };
            deps.decider
                .decide(NAME, deps.decider.policies(), &[CallKind::EvictionCheck], decide)
        };
        let (mut recorder, mut plan) = decide(&unconfirmed).await;
        if plan.rests_on_targets {
            let found = deps.reported.confirm(&model, &unconfirmed).await;
            if !found.is_empty() {
                Arc::make_mut(&mut unconfirmed).extend(found);
                (recorder, plan) = decide(&unconfirmed).await;
            }
        }
        let dead = unconfirmed
            .iter()
            .filter(|(_, reason)| reason.is_dead())
            .map(|(name, _)| name.clone());
        let dead: BTreeSet<_> = dead.collect();
        let decision_inputs = || DecisionInputs {
            trigger: "the binding, one of its clusters or an eviction check changed, or a deadline passed",
            now,
            input: DecisionInput::GracefulEviction {
                binding: model,
                options,
                unconfirmed: Arc::unwrap_or_clone(unconfirmed),
            },
            clusters: sources.iter().cloned().map(Arc::new).collect(),
            plan: plan::graceful_eviction(&plan),
        };
        let records = self.record(&key, &*binding, &plan, &dead, || recorder.finish(decision_inputs));
        if let Some(tasks) = &plan.tasks {
            let mut patch = patch_of_ended_tasks(tasks, plan.clusters.as_deref());
            if let Some(versions) = &plan.failed_templates {
                patch["metadata"]["annotations"][FAILED_TEMPLATES] = annotation(versions);
            }
            deps.log.sign(&mut patch, &records);
            let operation = Error::api(format!("writing the eviction tasks of {} {key}", B::kind(&())));
            let writer = B::writer(&deps.bindings, &binding);
            let patched = async { writer.patch_if_unchanged(&binding, patch).await.map_err(operation) };
            let written = deps.log.apply(&records, patched).await?;
            eviction_trace::began(&*binding, &written);
            let released = plan.released.iter().map(|(task, _)| (steps::RELEASED, task));
            let called_off = plan.called_off.iter().map(|(task, _)| (steps::CALLED_OFF, task));
            for (step, task) in released.chain(called_off) {
                eviction_trace::mark(step, &*binding, task);
            }
        }
        self.emit(&*binding, &plan, &records);
        let after = plan.again_after_ms.and_then(|ms| u64::try_from(ms).ok());
        Ok(after.map_or(Action::Wait, |ms| Action::After(Duration::from_millis(ms))))
    }
}

impl GracefulEviction {
    /// Forgets the holds of a binding's tasks that no longer exist, regardless of how they ended.
    fn forget_all_but(&self, key: &Key, stays: impl Fn(&str) -> bool) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_binding = held
            .range((key.clone(), String::new())..)
            .take_while(|((other, _), _)| other == key);
        let over: Vec<_> = of_binding
            .map(|(task, _)| task.clone())
            .filter(|(_, cluster)| !stays(cluster))
            .collect();
        for task in over {
            held.remove(&task);
        }
    }

    /// Emits events for released and cancelled tasks. Karmada has no event for a cancelled one.
    fn emit<B: Binding>(&self, binding: &B, plan: &GracefulEvictionPlan, records: &[RecordedDecision]) {
        let events = self.deps.log.events_of(records);
        let released = plan.released.iter().map(|(task, _)| {
            (
                "EvictWorkloadFromClusterSucceed",
                format!("Evict from cluster {} succeed.", task.from_cluster),
            )
        });
        let called_off = plan.called_off.iter().map(|(task, attribution)| {
            let message = format!(
                "Workload stays on cluster {}: {}.",
                task.from_cluster, attribution.reason.message
            );
            ("EvictWorkloadFromClusterCalledOff", message)
        });
        for (reason, message) in released.chain(called_off) {
            for about in subjects_of_step(binding, &self.deps.flags) {
                events.emit(NAME, about, EventType::Normal, reason, message.clone());
            }
        }
    }

    /// Records releases, and holds with a new reason. Returns the records that depend on a write.
    fn record<B: Binding>(
        &self,
        key: &Key,
        binding: &B,
        plan: &GracefulEvictionPlan,
        dead: &BTreeSet<String>,
        decision_record: impl FnOnce() -> Option<Arc<DecisionRecord>>,
    ) -> Vec<RecordedDecision> {
        let decision_record = LazyCell::new(decision_record);
        let record = |cluster: &str, decision, attribution: &Attribution, effect: &str| {
            let record = Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(cluster.to_owned()),
                decision,
                attribution: attribution.clone(),
                effect: effect.to_owned(),
                inputs: vec![input(binding)],
            };
            self.deps.log.record_decided(record, decision_record.as_ref(), None)
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = false;
        for (task, attribution) in &plan.held {
            let hold = Hold {
                attribution: attribution.clone(),
                dead: dead.clone(),
            };
            let known = held.insert((key.clone(), task.from_cluster.clone()), hold);
            // Messages contain numbers that change all the time; a new reason, policy or dead target counts as a
            // change.
            let same = |hold: &Hold| {
                let (known, reason) = (&hold.attribution, &attribution.reason);
                known.reason.code == reason.code && known.policy == attribution.policy && hold.dead == *dead
            };
            if !known.as_ref().is_some_and(same) {
                changed = true;
                record(&task.from_cluster, Decision::Held, attribution, "the old copy stays");
            }
        }
        if changed {
            self.deps
                .log
                .record_diagnostics(NAME, &subject(binding), None, &plan.diagnostics);
        }
        let released = plan
            .released
            .iter()
            .map(|ended| (ended, Decision::Released, "the old copy may go"));
        let called_off = plan
            .called_off
            .iter()
            .map(|ended| (ended, Decision::CalledOff, "the old copy stays"));
        let ended = released
            .chain(called_off)
            .map(|((task, attribution), decision, effect)| {
                held.remove(&(key.clone(), task.from_cluster.clone()));
                record(&task.from_cluster, decision, attribution, effect)
            });
        ended.collect()
    }
}

#[cfg(test)]
mod tests;
