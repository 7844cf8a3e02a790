//! Objects in the member → status and health of their Work (Karmada: `work_status_controller.go`).
//!
//! When a cluster goes down, its Works are not updated: the last health, often Healthy, stays. As in Karmada, a lost
//! cluster therefore never looks like a failed application.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::Work;
use bulkhead_api::work::{APPLIED, ManifestStatus, ResourceIdentifier};
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::{Attribution, Diagnostics};
use bulkhead_core::decide::ownership::{Ownership, OwnershipMetadata};
use bulkhead_core::journal::{Decision, DecisionRecord};
use bulkhead_core::model::{Condition, ConditionStatus, Health};
use bulkhead_core::names;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;
use serde_json::Value;

use self::memory::Memory;
use crate::contact::Contacts;
use crate::decision_log::{DecisionLog, Record};
use crate::evaluate::Decider;
use crate::interpreter::{Interpreters, ObjectHealth, recordable};
use crate::member_owner;
use crate::members::Scope;
use crate::status_batcher::StatusChange;
use crate::stores::Stores;
use crate::subjects::{about, input};
use crate::works::{binding_subject, cluster_of, identify, identity_of, work_of};
use crate::writers::Writers;

const NAME: &str = "work-status-controller";
/// Maximum number of objects of one member that are processed at the same time.
const WORKERS: usize = 5;
/// Delay of the next check of an object whose interpreters did not all answer.
const FAULT_RECHECK: Duration = Duration::from_secs(10);
/// Delay of the next check of an object that is missing or belongs to another Work. Its events name that Work, and its
/// owner also depends on objects of the control plane.
const OWNER_RECHECK: Duration = Duration::from_mins(1);

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) decider: Decider,
    pub(crate) failures: Arc<Failures>,
    pub(crate) interpreters: Interpreters,
    pub(crate) log: DecisionLog,
    pub(crate) member_objects: Arc<DynamicStores>,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
    pub(crate) writers: Writers,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    deps.contacts.expect_reports();
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let objects = Arc::clone(&queue);
    let _objects = deps.member_objects.subscribe(move |_, change| {
        if let Some(key) = work_of(change.object()) {
            objects.add(key);
        }
    });
    let works = Arc::clone(&queue);
    let _works = deps.stores.works.subscribe(move |change| {
        let became_applied = match change {
            Change::Added(work) => is_applied(work),
            Change::Updated { old, new } => !is_applied(old) && is_applied(new),
            Change::Deleted(_) => false,
        };
        if became_applied {
            works.add(Key::of(change.object()));
        }
    });
    // Changes are ignored while their cluster is not ready or not known.
    let (recovered, its_works) = (Arc::clone(&queue), Arc::clone(&deps.stores.works));
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        let became_ready = match change {
            Change::Added(cluster) => cluster.is_ready(),
            Change::Updated { old, new } => !old.is_ready() && new.is_ready(),
            Change::Deleted(_) => false,
        };
        if became_ready {
            let namespace = names::execution_namespace(&change.object().name_any());
            its_works
                .list_namespace(&namespace)
                .iter()
                .for_each(|work| recovered.add(Key::of(&**work)));
        }
    });
    // A new health rule may give another result, so all objects are checked again. Karmada waits for a change.
    let (all, all_works) = (Arc::clone(&queue), Arc::clone(&deps.stores.works));
    let requeue_all = Arc::new(move || {
        for work in all_works.list() {
            all.add(Key::of(&*work));
        }
    });
    let hooks_changed = Arc::clone(&requeue_all);
    let _rules = deps.decider.registry.subscribe(move || requeue_all());
    let _hooks = deps.stores.webhooks.subscribe(move |_| hooks_changed());
    let memory = Arc::<Memory>::default();
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), Arc::clone(&memory), key)
    };
    let of_member = |work: &Key| work.namespace.clone();
    deps.interpreters.wait_for_cache_sync().await;
    controller::run_per_key(
        queue,
        WORKERS,
        of_member,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("Work")),
    )
    .await;
}

fn is_applied(work: &Work) -> bool {
    Condition::find(&work.status.conditions, APPLIED).is_some_and(|c| c.status == ConditionStatus::True)
}

async fn reconcile(deps: Dependencies, memory: Arc<Memory>, key: Key) -> Result<Action, Error> {
    let Some(work) = deps.stores.works.get(&key) else {
        deps.contacts.forget_work(&key);
        memory.forget(&key);
        return Ok(Action::Wait);
    };
    let cluster = cluster_of(&work);
    let Some(known) = deps.stores.cluster(&cluster).filter(|known| deps.scope.serves(known)) else {
        return Ok(Action::Wait);
    };
    let Some(manifest) = work.spec.workload.manifests.first() else {
        return Ok(Action::Wait);
    };
    let manifest = identity_of(manifest)?;
    let (kind, object) = identify(&manifest);
    let is_placed = is_applied(&work) && work.metadata.deletion_timestamp.is_none();
    let found = deps.member_objects.get(&cluster, &kind, &object);
    match &found {
        Some(found) => deps.contacts.seen(&key, &found.metadata),
        None => deps.contacts.forget_work(&key),
    }
    if !is_placed {
        return Ok(Action::Wait);
    }
    let Some(found) = found else {
        return Ok(Action::After(OWNER_RECHECK));
    };
    if !known.is_ready() {
        return Ok(Action::Wait);
    }
    let observed = Arc::new(found.to_value(&kind)?);
    let recorded = member_owner::recorded_on_cached(&found);
    let ownership = member_owner::of(&deps.stores, &work, &manifest, &recorded);
    let ReflectedStatus {
        status,
        health_change,
        diagnostics,
    } = match ownership {
        Ownership::Foreign => foreign(&work, &kind, &object, &recorded),
        Ownership::Ours | Ownership::Unmanaged => reflect_status(&deps, &work, &kind, &object, &observed).await,
    };
    deps.contacts.derived(&key, &found.metadata, status.health);
    let failed = !diagnostics.faults.is_empty();
    let diagnostics = memory.without_recorded(&key, recordable(diagnostics, &observed));
    deps.log
        .record_diagnostics(NAME, &binding_subject(&work), Some(&cluster), &diagnostics);
    let before = work.status.manifest_statuses.first();
    let is_healthy = |status: Option<&ManifestStatus>| status.and_then(|status| status.health) == Some(Health::Healthy);
    if before != Some(&status)
        && let Some(status_change) = StatusChange::of([(is_healthy(before), is_healthy(Some(&status)))])
        && let Some(wait) = memory.batcher.wait(&key, status_change)
    {
        if before.and_then(|before| before.health) == status.health {
            deps.contacts.reported(&key, &found.metadata);
        }
        return Ok(Action::After(wait));
    }
    if let Some((record, decision_record)) = health_change {
        deps.log.record_decided(record, decision_record.as_ref(), None);
    }
    let changed = |work: &mut Work| {
        let changed = work.status.manifest_statuses.first() != Some(&status);
        work.status.manifest_statuses = vec![status.clone()];
        changed
    };
    if deps
        .writers
        .works(&key.namespace)
        .update_status(&work, changed)
        .await?
        .is_none()
    {
        // The Work is gone or was created anew; the present one has no report yet.
        return Ok(Action::After(FAULT_RECHECK));
    }
    deps.contacts.reported(&key, &found.metadata);
    memory.batcher.done(&key);
    // Neither the recovery of an interpreter nor a change of ownership sends an event, and until then the health is
    // unknown.
    Ok(match ownership {
        Ownership::Foreign => Action::After(OWNER_RECHECK),
        Ownership::Ours | Ownership::Unmanaged if failed => Action::After(FAULT_RECHECK),
        Ownership::Ours | Ownership::Unmanaged => Action::Wait,
    })
}

/// Observed status and health of an object.
struct ReflectedStatus {
    status: ManifestStatus,
    /// Record of a health change, to be stored before the change is written.
    health_change: Option<(Record, Option<Arc<DecisionRecord>>)>,
    /// Diagnostics of the interpreters.
    diagnostics: Diagnostics,
}

fn identifier(kind: &ObjectKind, object: &Key) -> ResourceIdentifier {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    ResourceIdentifier {
        ordinal: 0,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.kind.clone(),
        resource: String::new(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// Returns the report of a Work whose object belongs to another Work, for example of another control plane: the health
/// of that object says nothing about this one's copy.
fn foreign(work: &Work, kind: &ObjectKind, object: &Key, owner: &OwnershipMetadata) -> ReflectedStatus {
    let attribution = Attribution::rule("ForeignObject", format!("the object in the cluster belongs to {owner}"));
    let health_change = health_change(work, Health::Unknown, attribution).map(|record| (record, None));
    let (identifier, health) = (identifier(kind, object), Some(Health::Unknown));
    ReflectedStatus {
        status: ManifestStatus {
            identifier,
            status: None,
            health,
        },
        health_change,
        diagnostics: Diagnostics::default(),
    }
}

/// Returns the record of a health that differs from the last report of a Work.
fn health_change(work: &Work, health: Health, attribution: Attribution) -> Option<Record> {
    let before = work.status.manifest_statuses.first().and_then(|before| before.health);
    (before != Some(health)).then(|| Record {
        controller: NAME,
        subject: binding_subject(work),
        cluster: Some(cluster_of(work)),
        decision: Decision::HealthChanged,
        attribution,
        effect: health.as_str().to_owned(),
        inputs: vec![input(work)],
    })
}

async fn reflect_status(
    deps: &Dependencies,
    work: &Work,
    kind: &ObjectKind,
    object: &Key,
    observed: &Arc<Value>,
) -> ReflectedStatus {
    let before = work.status.manifest_statuses.first();
    let ObjectHealth {
        outcome,
        newly_uncovered,
        decision_record,
    } = deps.interpreters.health(NAME, observed).await;
    if newly_uncovered {
        let message = format!(
            "No interpreter covers the health of {} {}.",
            kind.api_version, kind.kind
        );
        deps.log
            .events
            .emit(NAME, about(work), EventType::Normal, "NoHealthInterpreter", message);
    }
    let health_change =
        health_change(work, outcome.health, outcome.attribution).map(|record| (record, decision_record));
    let mut diagnostics = outcome.diagnostics;
    let (reflected, more) = {
        let reflect = Operation::ReflectStatus { object: observed };
        Interpreters::split_outcome(deps.interpreters.interpretation(NAME, reflect).await)
    };
    diagnostics.extend(more);
    let status = match reflected {
        Ok(Some(Interpretation::Status(status))) => status,
        Ok(_) => observed.get("status").cloned(),
        // A script that fails must not make the status look empty.
        Err(()) => before.and_then(|before| before.status.clone()),
    };
    let (identifier, health) = (identifier(kind, object), Some(outcome.health));
    ReflectedStatus {
        status: ManifestStatus {
            identifier,
            status,
            health,
        },
        health_change,
        diagnostics,
    }
}

#[cfg(test)]
mod tests;
