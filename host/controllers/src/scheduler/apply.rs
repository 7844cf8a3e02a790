//! Effects of a recorded decision: result, status, events, and the time of the next attempt.

use std::sync::Arc;

use bulkhead_core::decide::schedule::{Outcome, Retry, ScheduleEvent, WriteError};
use bulkhead_core::model::TargetCluster;
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::events::{EventType, Events};
use kube::ResourceExt;

use super::patch::{NewPlacement, patch};
use super::recorded::{Recorded, is_new_result};
use super::{NAME, Scheduler, WriteBudget};
use crate::binding_kind::Binding;
use crate::flags::Flags;
use crate::pending_status::SchedulerFields;
use crate::subjects::{about, subjects_of_step, template_of};

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
        None => Ok(None),
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
    let written = written.as_ref().map(|written| written.as_deref().unwrap_or(binding));
    conclude(scheduler, binding, recorded, written, Some(&scheduler.budget)).await
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
/// binding has changed: a decision made from an old binding must not undo an eviction. Returns `None` if the binding has
/// both already.
async fn write_spec<B: Binding>(
    scheduler: &Scheduler,
    binding: &B,
    targets: &[TargetCluster],
    recorded: &Recorded,
) -> Result<Option<Arc<B>>, Error> {
    let operation = format!("scheduling {} {}", B::kind(&()), binding.name_any());
    let placement = placement_text(binding).map_err(|error| Error::Undecided(format!("{operation}: {error}")))?;
    if binding.spec().clusters == targets && binding.annotations().get(keys::APPLIED_PLACEMENT) == Some(&placement) {
        return Ok(None);
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
    patched.map(Some).map_err(Error::api(operation))
}

/// Returns the placement in the form of the annotation that holds the last applied one.
pub(super) fn placement_text<B: Binding>(binding: &B) -> Result<String, serde_json::Error> {
    serde_json::to_string(&binding.spec().placement)
}
