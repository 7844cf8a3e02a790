//! Effects of a decision: record, result, status, events, and the time of the next attempt.

use std::sync::Arc;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::schedule::{Conclusion, Outcome, Retry, ScheduleEvent, SchedulePlan, Trigger, WriteError};
use bulkhead_core::journal::{Decision, DecisionRecord};
use bulkhead_core::model::{Condition, TargetCluster};
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::events::{EventType, Events};
use kube::ResourceExt;

use super::decide::Recorded;
use super::eviction_write::{NewPlacement, patch};
use super::{Dependencies, NAME, Scheduler, WriteBudget};
use crate::binding_kind::Binding;
use crate::decision_log::{Record, RecordedDecision};
use crate::flags::Flags;
use crate::pending_status::SchedulerFields;
use crate::subjects::{about, input, subject, subjects_of_step, template_of};

/// Records that the scheduler has processed this generation, which needs no scheduling.
pub(super) fn note_processed<B: Binding>(scheduler: &Scheduler, binding: &B) {
    let generation = binding.meta().generation.unwrap_or_default();
    if binding.status().scheduler_observed_generation != generation {
        scheduler.note(
            binding,
            SchedulerFields {
                generation,
                scheduled: None,
            },
        );
    }
}

/// Carries out a decision.
pub(super) async fn apply<B: Binding>(scheduler: &Scheduler, binding: &B, recorded: &Recorded) -> Result<Retry, Error> {
    let Recorded { plan, records, .. } = recorded;
    let written = match plan.targets() {
        None => Ok(binding.clone()),
        Some(targets) => {
            match scheduler
                .deps
                .log
                .apply(records, write_spec(scheduler, binding, targets, recorded))
                .await
            {
                Ok(written) => Ok(written),
                Err(error) => Err(refusal(&error).ok_or(error)?),
            }
        }
    };
    conclude(scheduler, binding, recorded, written.as_ref(), Some(&scheduler.budget)).await
}

/// Writes status and events after a decision about `binding` was written or rejected. Further writes wait for the
/// budget, if there is one.
pub(super) async fn conclude<B: Binding>(
    scheduler: &Scheduler,
    binding: &B,
    recorded: &Recorded,
    written: Result<&B, &WriteError>,
    budget: Option<&WriteBudget>,
) -> Result<Retry, Error> {
    let (deps, Recorded { plan, records, .. }) = (&scheduler.deps, recorded);
    let model = binding.to_model();
    let conclusion = plan.conclude(&model, written.map(|_| ()));
    let now = deps.clock.now();
    if let (Outcome::Place(targets), Ok(written)) = (&plan.outcome, written) {
        scheduler.cache.note_written(written, targets, &deps.flags, now);
    }
    let written = written.unwrap_or(binding);
    let is_new = is_new_result(binding, &conclusion) || !records.is_empty();
    let mut status = written.status().clone();
    if conclusion.apply(&mut status, model.generation, now) {
        if let Some(fields) = SchedulerFields::between(written.status(), &status) {
            scheduler.note(binding, fields);
        } else {
            if let Some(budget) = budget {
                budget.take().await;
            }
            let changed = |binding: &mut B| conclusion.apply(binding.status_mut(), model.generation, now);
            B::write_status(&deps.bindings, written, changed).await?;
        }
    }
    if is_new {
        let events = deps.log.events_of(records);
        // A step of a failover has one event: the groups before the chosen one are in the journal.
        let is_step = is_leaving(binding) && deps.flags.failover_records;
        let is_placed = conclusion.events.iter().any(|event| event.succeeded);
        for event in &conclusion.events {
            if event.succeeded || !is_step || !is_placed {
                emit(&events, &deps.flags, binding, event);
            }
        }
    }
    match conclusion.verdict.retry {
        Retry::Backoff => Err(Error::Undecided(conclusion.verdict.message)),
        retry => Ok(retry),
    }
}

/// Records a decision before it is carried out, unless it was recorded before.
pub(super) fn record<B: Binding>(
    deps: &Dependencies,
    binding: &B,
    plan: &SchedulePlan,
    trigger: Trigger,
    decision_record: impl FnOnce() -> Option<Arc<DecisionRecord>>,
) -> Vec<RecordedDecision> {
    let conclusion = &plan.conclude(&binding.to_model(), Ok(()));
    let (decision, attribution, effect) = match &plan.outcome {
        Outcome::Nothing => return Vec::new(),
        Outcome::Place(targets) if binding.spec().clusters == *targets => return Vec::new(),
        Outcome::Place(targets) => (
            Decision::Scheduled,
            Attribution::rule("Success", reasons(binding, plan, trigger)),
            describe(targets),
        ),
        Outcome::Clear(_) | Outcome::Keep(_) if !is_new_result(binding, conclusion) => return Vec::new(),
        Outcome::Clear(_) | Outcome::Keep(_) => {
            let attribution = Attribution::rule(conclusion.verdict.reason, &conclusion.verdict.message);
            (Decision::NotScheduled, attribution, String::new())
        }
    };
    let record = |cluster, decision, attribution, effect| Record {
        controller: NAME,
        subject: subject(binding),
        cluster,
        decision,
        attribution,
        effect,
        inputs: vec![input(binding)],
    };
    let decision_record = decision_record();
    let explanation = plan.explanation.clone().map(Arc::new);
    let scheduled = deps.log.record_decided(
        record(None, decision, attribution, effect),
        decision_record.as_ref(),
        explanation,
    );
    let displaced = plan.displaced.iter().map(|task| {
        let attribution = Attribution::rule(
            &task.reason,
            format!("the scheduler chose other clusters: {}", trigger.describe()),
        );
        let effect = format!(
            "{} replicas stay until those elsewhere are healthy",
            task.replicas.unwrap_or(0)
        );
        let leaves = record(Some(task.from_cluster.clone()), Decision::Evicted, attribution, effect);
        deps.log.record_decided(leaves, decision_record.as_ref(), None)
    });
    std::iter::once(scheduled).chain(displaced).collect()
}

/// Returns the reasons for the result in one line: the trigger, the groups that could not be used, and the clusters
/// that were rejected.
fn reasons<B: Binding>(binding: &B, plan: &SchedulePlan, trigger: Trigger) -> String {
    let mut reasons = vec![trigger.describe().to_owned()];
    let terms = binding
        .spec()
        .placement
        .as_ref()
        .and_then(|placement| placement.cluster_affinities.as_deref());
    for failed in &plan.failed_terms {
        let name = terms
            .and_then(|terms| terms.get(failed.index))
            .map_or("", |term| term.affinity_name.as_str());
        reasons.push(format!("group {name} cannot be used: {}", failed.error));
    }
    if let Some(name) = &plan.affinity_name {
        reasons.push(format!("group {name} was chosen"));
    } else {
        let rejected = plan.rejections.summary();
        reasons.extend((!rejected.is_empty()).then(|| format!("not {rejected}")));
    }
    reasons.join("; ")
}

/// True if the reason or the message of the condition will change.
fn is_new_result<B: Binding>(binding: &B, conclusion: &Conclusion) -> bool {
    let verdict = &conclusion.verdict;
    Condition::find(&binding.status().conditions, "Scheduled")
        .is_none_or(|existing| (existing.reason.as_str(), &existing.message) != (verdict.reason, &verdict.message))
}

/// Emits an event about the binding and one about its resource, as Karmada does. A placement during an eviction is a
/// step of the failover.
pub(super) fn emit<B: Binding>(events: &Events, flags: &Flags, binding: &B, event: &ScheduleEvent) {
    let type_ = if event.succeeded {
        EventType::Normal
    } else {
        EventType::Warning
    };
    let subjects = if event.succeeded && is_leaving(binding) {
        subjects_of_step(binding, flags)
    } else {
        vec![about(binding), template_of(binding)]
    };
    for about in subjects {
        events.emit(NAME, about, type_, event.reason(), event.message.clone());
    }
}

fn is_leaving<B: Binding>(binding: &B) -> bool {
    !binding.spec().graceful_eviction_tasks.is_empty()
}

/// Returns the rejection of the API server; `None` after a conflict or without a response.
fn refusal(error: &Error) -> Option<WriteError> {
    let Error::Api { source, .. } = error else { return None };
    match &**source {
        kube::Error::Api(_) if error.is_conflict() => None,
        kube::Error::Api(status) => Some(WriteError {
            message: status.message.clone(),
            quota_exceeded: status.code == 403 && status.reason == "QuotaExceeded",
        }),
        _ => None,
    }
}

/// Writes result and applied placement together. Unlike in Karmada, the write fails if anything but the status of the
/// binding has changed: a decision made from an old binding must not undo an eviction.
async fn write_spec<B: Binding>(
    scheduler: &Scheduler,
    binding: &B,
    targets: &[TargetCluster],
    recorded: &Recorded,
) -> Result<B, Error> {
    let operation = format!("scheduling {} {}", B::kind(&()), binding.name_any());
    let placement = placement_text(binding).map_err(|error| Error::Undecided(format!("{operation}: {error}")))?;
    if binding.spec().clusters == targets && binding.annotations().get(keys::APPLIED_PLACEMENT) == Some(&placement) {
        return Ok(binding.clone());
    }
    let displaced = &*recorded.plan.displaced;
    let mut patch = patch(
        binding.spec(),
        None,
        Some(&NewPlacement {
            targets,
            applied: &placement,
            displaced,
        }),
    );
    scheduler.deps.log.sign(&mut patch, &recorded.records);
    scheduler.budget.take().await;
    let patched = B::writer(&scheduler.deps.bindings, binding)
        .patch_despite_status(binding, patch)
        .await;
    patched.map_err(Error::api(operation))
}

/// Returns the placement in the form of the annotation that holds the last applied one.
pub(super) fn placement_text<B: Binding>(binding: &B) -> Result<String, serde_json::Error> {
    serde_json::to_string(&binding.spec().placement)
}

/// Formats targets as `member1:1, member2:2`.
fn describe(targets: &[TargetCluster]) -> String {
    if targets.is_empty() {
        return "nowhere".to_owned();
    }
    targets
        .iter()
        .map(|target| format!("{}:{}", target.name, target.replicas))
        .collect::<Vec<_>>()
        .join(", ")
}
