//! Objects in the member → status and health of their Work (Karmada: `work_status_controller.go`).
//!
//! When a cluster goes down, its Works are not updated: the last health, often Healthy, stays. As in Karmada, a lost
//! cluster therefore never looks like a failed application.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::work::{APPLIED, ManifestStatus, ResourceIdentifier};
use bulkhead_api::{Cluster, Work};
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::{Attribution, Diagnostics};
use bulkhead_core::decide::ownership::{Ownership, OwnershipMetadata};
use bulkhead_core::journal::{Decision, DecisionRecord};
use bulkhead_core::model::{Condition, ConditionStatus, Health};
use bulkhead_core::names;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic;
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
use crate::works::{binding_subject, cluster_of, identify, work_of};
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
    if deps.scope == Scope::Push {
        deps.contacts.expect_reports();
    }
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
            Change::Added(cluster) => is_ready(cluster),
            Change::Updated { old, new } => !is_ready(old) && is_ready(new),
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

fn is_ready(cluster: &Cluster) -> bool {
    Condition::find(&cluster.status.conditions, "Ready").is_some_and(|c| c.status == ConditionStatus::True)
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
    let is_placed = is_applied(&work) && work.metadata.deletion_timestamp.is_none();
    let Some(manifest) = work.spec.workload.manifests.first().filter(|_| is_placed) else {
        return Ok(Action::Wait);
    };
    let manifest = manifest.value();
    let (kind, object) = identify(&manifest);
    let Some(found) = deps.member_objects.get(&cluster, &kind, &object) else {
        return Ok(Action::After(OWNER_RECHECK));
    };
    deps.contacts.seen(&key, &found.metadata);
    if !is_ready(&known) {
        return Ok(Action::Wait);
    }
    let observed = Arc::new(dynamic::to_value(&kind, &found));
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
mod tests {
    use bulkhead_core::combine::PolicyFault;
    use bulkhead_core::names::keys;
    use bulkhead_core::policy::{Fault, FaultKind, PolicyId};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::{Patch, PatchParams, PostParams};
    use kube::runtime::watcher;
    use serde_json::json;

    use super::*;
    use crate::testing::{components, hub_of_works, member};

    #[test]
    fn a_fault_is_recorded_once_while_it_lasts() {
        let memory = Memory::default();
        let check = |work: &str, messages: &[&str], expected: &[&str]| {
            let fault = |message: &&str| {
                let fault = Fault::new(FaultKind::Trap, *message);
                PolicyFault {
                    policy: PolicyId::builtin("script"),
                    fault,
                }
            };
            let diagnostics = Diagnostics {
                faults: messages.iter().map(fault).collect(),
                ..Diagnostics::default()
            };
            let new = memory
                .without_recorded(&Key::new("karmada-es-m1", work), diagnostics)
                .faults;
            let new: Vec<_> = new.iter().map(|fault| fault.fault.message.as_str()).collect();
            assert_eq!(new, expected, "{work} {messages:?}");
        };
        check("web", &["no status"], &["no status"]);
        check("web", &["no status"], &[]);
        check("db", &["no status"], &["no status"]);
        check("web", &["no status", "no replicas"], &["no replicas"]);
        check("web", &["no status"], &[]);
        check("web", &[], &[]);
        check("web", &["no status"], &["no status"]);
        memory.forget(&Key::new("karmada-es-m1", "web"));
        check("web", &["no status"], &["no status"]);
    }

    fn condition(type_: &str) -> Value {
        let at = "2026-01-01T00:00:00Z";
        json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at})
    }

    /// Two control planes place an object of the same name in one member, which both call `m1`.
    #[tokio::test(start_paused = true)]
    async fn the_health_of_an_object_of_another_control_plane_is_not_reported() {
        let (hub, member) = (hub_of_works(1).client(), member().client());
        let (components, _events) = components(hub.clone(), member.clone());
        let (all_clusters, all_works) = (
            Arc::clone(&components.stores.clusters),
            Arc::clone(&components.stores.works),
        );
        tokio::spawn(all_clusters.run_informer(Api::all(hub.clone()), watcher::Config::default()));
        tokio::spawn(all_works.run_informer(Api::all(hub.clone()), watcher::Config::default()));
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"},
        });
        let clusters = Api::<Cluster>::all(hub.clone());
        clusters
            .create(&PostParams::default(), &serde_json::from_value(cluster).unwrap())
            .await
            .unwrap();
        let status = |status: Value| Patch::Merge(json!({ "status": status }));
        let ready = status(json!({"conditions": [condition("Ready")]}));
        clusters
            .patch_status("m1", &PatchParams::default(), &ready)
            .await
            .unwrap();

        let object = |work_id: &str, work: &str, template_uid: &str| {
            let annotations = json!({
                keys::WORK_NAMESPACE: "karmada-es-m1", keys::WORK_NAME: work, keys::TEMPLATE_UID: template_uid,
            });
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "settings", "namespace": "default", "annotations": annotations,
                    "labels": {keys::MANAGED: "true", keys::WORK_ID: work_id},
                },
            })
        };
        let works: Api<Work> = Api::namespaced(hub.clone(), "karmada-es-m1");
        for (name, id) in [("settings", "ours"), ("earlier", "earlier")] {
            let work = json!({
                "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
                "metadata": {"name": name, "labels": {keys::WORK_ID: id}},
                "spec": {"workload": {"manifests": [object(id, name, "template")]}},
            });
            works
                .create(&PostParams::default(), &serde_json::from_value(work).unwrap())
                .await
                .unwrap();
        }
        let applied = status(json!({"conditions": [condition(APPLIED)]}));
        works
            .patch_status("settings", &PatchParams::default(), &applied)
            .await
            .unwrap();
        let objects: Api<ConfigMap> = Api::namespaced(member.clone(), "default");
        let place = async |object: Value| {
            let object = serde_json::from_value(object).unwrap();
            objects.create(&PostParams::default(), &object).await.unwrap();
        };
        place(object("ours", "settings", "template")).await;
        let kind = ObjectKind::new("v1", "ConfigMap");
        components
            .member_objects
            .ensure("m1", &kind, &components.kinds, || Ok(member.clone()))
            .await
            .unwrap();

        let (memory, key) = (Arc::<Memory>::default(), Key::new("karmada-es-m1", "settings"));
        let reported = async || {
            // The informers deliver the changes, and a loss is written one second later.
            let mut action = Action::Wait;
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(2)).await;
                action = reconcile(components.work_status(), Arc::clone(&memory), key.clone())
                    .await
                    .unwrap();
            }
            (
                works.get("settings").await.unwrap().status.manifest_statuses[0].health,
                action,
            )
        };
        let rechecked = Action::After(OWNER_RECHECK);
        assert_eq!(reported().await, (Some(Health::Healthy), Action::Wait));
        objects.delete("settings", &Default::default()).await.unwrap();
        assert_eq!(
            reported().await,
            (Some(Health::Healthy), rechecked),
            "the object may return under another owner"
        );
        place(object("theirs", "settings", "another")).await;
        assert_eq!(reported().await, (Some(Health::Unknown), rechecked));
        // The object of another Work of the same template is taken over when that Work is gone, without a change of
        // the object.
        objects.delete("settings", &Default::default()).await.unwrap();
        place(object("earlier", "earlier", "template")).await;
        assert_eq!(reported().await, (Some(Health::Unknown), rechecked));
        works.delete("earlier", &Default::default()).await.unwrap();
        assert_eq!(reported().await, (Some(Health::Healthy), Action::Wait));
    }
}
