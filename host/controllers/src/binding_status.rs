//! Status of Works → aggregated status of their binding, and status of the template
//! (Karmada: `rb_status_controller.go`, `pkg/util/helper/workstatus.go`).

use std::sync::Arc;

use bulkhead_api::work::APPLIED;
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::decide::{dispatch, report};
use bulkhead_core::model::{AggregatedStatusItem, BindingStatus, Condition, set_condition};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Action, Error, is_not_found};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::binding_kind::{self, Binding, Bindings, Reconcile};
use crate::interpreter::Interpreters;
use crate::status_batcher::{StatusBatcher, StatusChange};
use crate::stores::Stores;
use crate::subjects::subject;
use crate::templates::Templates;
use crate::works::{binding_of, cluster_of};

const NAME: &str = "binding-status-controller";
const WORKERS: usize = 5;

struct BindingStatusController {
    deps: Dependencies,
    batcher: StatusBatcher,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) interpreters: Interpreters,
    pub(crate) stores: Arc<Stores>,
    pub(crate) templates: Templates,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    // The placement determines the Works that should exist, so a changed spec matters too.
    let _bindings = binding_kind::subscribe(
        &deps.stores,
        &queue,
        |change| change.is_generation_change(),
        |change| change.is_generation_change(),
    );
    let works = Arc::clone(&queue);
    let _works = deps.stores.works.subscribe(move |change| {
        let matters = match change {
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Updated { old, new } => {
                old.status != new.status || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            }
        };
        if matters {
            works.add(binding_of(change.object()));
        }
    });
    let controller = Arc::new(BindingStatusController {
        deps: deps.clone(),
        batcher: StatusBatcher::default(),
    });
    deps.interpreters.wait_for_cache_sync().await;
    let observer = deps.failures.counter(NAME, binding_kind::named);
    binding_kind::run(queue, WORKERS, controller, observer).await;
}

impl Reconcile for BindingStatusController {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(binding) = B::store(&deps.stores).get(&key) else {
            return Ok(Action::Wait);
        };
        let Some(id) = binding
            .permanent_id()
            .filter(|_| binding.meta().deletion_timestamp.is_none())
        else {
            return Ok(Action::Wait);
        };
        let works = deps.stores.works.by_index(id);
        // Bindings of dependencies are never scheduled, and one that was created again has lost its status.
        let is_new = binding.status().last_scheduled_time.is_none() && binding.status().aggregated_status.is_empty();
        if is_new && works.is_empty() {
            return Ok(Action::Wait);
        }
        let live = works.iter().filter(|work| work.metadata.deletion_timestamp.is_none());
        let reports = live.map(|work| report::WorkReport {
            cluster: cluster_of(work),
            applied: Condition::find(&work.status.conditions, APPLIED).cloned(),
            manifest: work
                .status
                .manifest_statuses
                .first()
                .map(|m| (m.status.clone(), m.health)),
        });
        let items = report::aggregate(reports);
        let kept = dispatch::decide(binding.spec()).kept;
        let fully_applied = report::fully_applied(&items, kept.iter().map(String::as_str), deps.clock.now());
        let differs = |status: &BindingStatus| {
            status.aggregated_status != items || set_condition(&mut status.conditions.clone(), fully_applied.clone())
        };
        let change = |binding: &mut B| {
            let status = binding.status_mut();
            let changed = differs(status);
            if changed {
                set_condition(&mut status.conditions, fully_applied.clone());
                status.aggregated_status.clone_from(&items);
            }
            changed
        };
        let is_leaving = items.iter().any(|item| !kept.contains(&item.cluster_name));
        let status_change = match StatusChange::of(report::health_changes(&binding.status().aggregated_status, &items))
        {
            Some(StatusChange::Progress) if is_leaving => Some(StatusChange::Deleting),
            status_change => status_change,
        };
        if let Some(status_change) = status_change
            && differs(binding.status())
            && let Some(wait) = self.batcher.wait(&key, status_change)
        {
            return Ok(Action::After(wait));
        }
        B::write_status(&deps.bindings, &binding, change).await?;
        self.batcher.done(&key);
        self.write_template(&*binding, &items).await?;
        Ok(Action::Wait)
    }
}

impl BindingStatusController {
    /// Merges the members' statuses into the template, if an interpreter can do that for this kind.
    async fn write_template<B: Binding>(&self, binding: &B, items: &[AggregatedStatusItem]) -> Result<(), Error> {
        let deps = &self.deps;
        let resource = &binding.spec().resource;
        let kind = ObjectKind::new(&resource.api_version, &resource.kind);
        let key = Key::new(&resource.namespace, &resource.name);
        let Some(template) = deps.templates.get(&kind, &key) else {
            return Ok(());
        };
        let object = Arc::new(template.to_value(&kind)?);
        let aggregated = deps
            .interpreters
            .interpret(
                NAME,
                &subject(binding),
                Operation::AggregateStatus { object: &object, items },
            )
            .await
            .map_err(|fault| Error::Undecided(format!("status of {resource}: {}", fault.reason())))?;
        let Some(Interpretation::Object(aggregated)) = aggregated else {
            return Ok(());
        };
        if aggregated.get("status") == object.get("status") {
            return Ok(());
        }
        // An interpreter may have been slow, and the patch would apply to any object of this name.
        let current = deps.templates.get(&kind, &key);
        if current.is_none_or(|current| current.metadata.uid != template.metadata.uid) {
            return Ok(());
        }
        let api = deps.templates.api(&kind, &key.namespace).await?;
        // A merge patch only adds, so removed fields have to be named.
        let mut status = json!({});
        for field in object
            .get("status")
            .and_then(|status| status.as_object())
            .into_iter()
            .flat_map(|s| s.keys())
        {
            status[field.as_str()] = json!(null);
        }
        for (field, value) in aggregated
            .get("status")
            .and_then(|status| status.as_object())
            .into_iter()
            .flatten()
        {
            status[field.as_str()] = value.clone();
        }
        let patch = Patch::Merge(json!({ "status": status }));
        match api.patch_status(&key.name, &PatchParams::default(), &patch).await {
            Err(error) if !is_not_found(&error) => Err(Error::api(format!("writing the status of {resource}"))(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_api::{ResourceBinding, Work};
    use bulkhead_core::model::Health;
    use bulkhead_core::names::keys;
    use kube::Api;
    use kube::api::PostParams;
    use kube::runtime::watcher;
    use serde_json::Value;

    use super::*;
    use crate::testing::{components, hub_of_works, member};

    fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    /// A binding that was created again lacks `lastScheduledTime`, and its Works exist already.
    #[tokio::test(start_paused = true)]
    async fn a_binding_without_a_scheduled_time_gets_the_status_of_its_works() {
        let hub = hub_of_works(1);
        let (components, _events) = components(hub.client(), member().client());
        let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
        let works: Api<Work> = Api::namespaced(hub.client(), "karmada-es-m1");
        let (all_bindings, all_works) = (
            Arc::clone(&components.stores.bindings),
            Arc::clone(&components.stores.works),
        );
        tokio::spawn(all_bindings.run_informer(Api::all(hub.client()), watcher::Config::default()));
        tokio::spawn(all_works.run_informer(Api::all(hub.client()), watcher::Config::default()));
        let labels = json!({keys::RESOURCE_BINDING_ID: "id"});
        let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
        let binding: ResourceBinding = from(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "web-deployment", "labels": labels},
            "spec": {"resource": resource, "replicas": 1, "clusters": [{"name": "m1", "replicas": 1}]},
        }));
        bindings.create(&PostParams::default(), &binding).await.unwrap();
        // The informers deliver the changes.
        let delivered = || tokio::time::sleep(std::time::Duration::from_secs(1));
        delivered().await;
        let controller = BindingStatusController {
            deps: components.binding_status(),
            batcher: StatusBatcher::default(),
        };
        let reconciled = || async {
            controller
                .reconcile::<ResourceBinding>(Key::new("default", "web-deployment"))
                .await
                .unwrap();
            bindings.get("web-deployment").await.unwrap().status
        };
        let status = reconciled().await;
        assert!(
            status.aggregated_status.is_empty() && status.conditions.is_empty(),
            "it has no Work yet: {status:?}"
        );
        let work: Work = from(json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": {"name": "web", "labels": labels}, "spec": {"workload": {"manifests": []}},
        }));
        works.create(&PostParams::default(), &work).await.unwrap();
        let identifier = json!({
            "ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "",
            "namespace": "default", "name": "web",
        });
        let applied = json!({
            "type": APPLIED, "status": "True", "reason": "AppliedSuccessful", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let report =
            json!({"conditions": [applied], "manifestStatuses": [{"identifier": identifier, "health": "Healthy"}]});
        works
            .patch_status("web", &PatchParams::default(), &Patch::Merge(json!({"status": report})))
            .await
            .unwrap();
        delivered().await;
        let status = reconciled().await;
        let reported: Vec<_> = status
            .aggregated_status
            .iter()
            .map(|item| (&*item.cluster_name, item.health))
            .collect();
        assert_eq!(reported, [("m1", Some(Health::Healthy))]);
        assert_eq!(status.last_scheduled_time, None);
    }
}
