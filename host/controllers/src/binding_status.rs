//! Status of Works → aggregated status of their binding, and status of the template
//! (Karmada: `rb_status_controller.go`, `pkg/util/helper/workstatus.go`).

use std::sync::Arc;

use bulkhead_api::work::APPLIED;
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::decide::{dispatch, report};
use bulkhead_core::model::{AggregatedStatusItem, Condition, set_condition};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::binding::{binding_of, cluster_of};
use crate::binding_kind::{self, Binding, Reconcile};
use crate::context::{Context, HUB, subject};
use crate::controller::{self, Action, Error, is_not_found};
use crate::dynamic;
use crate::kinds::ObjectKind;
use crate::pace::{Detail, Pace};
use crate::queue::WorkQueue;
use crate::store::{Change, Key};

const NAME: &str = "binding-status-controller";
const WORKERS: usize = 5;

struct BindingStatus {
    context: Context,
    pace: Pace,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(context: Context) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    // The placement determines the Works that should exist, so a changed spec matters too.
    let _bindings = binding_kind::subscribe(
        &context,
        &queue,
        |change| change.is_generation_change(),
        |change| change.is_generation_change(),
    );
    let works = Arc::clone(&queue);
    let _works = context.stores.works.subscribe(move |change| {
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
    let controller = Arc::new(BindingStatus { context: context.clone(), pace: Pace::default() });
    let reconcile = move |key| {
        let controller = Arc::clone(&controller);
        async move { binding_kind::dispatch(&*controller, key).await }
    };
    context.interpreters_known().await;
    controller::run(queue, WORKERS, reconcile, context.failed(NAME)).await;
}

impl Reconcile for BindingStatus {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&key) else { return Ok(Action::Wait) };
        let Some(id) = binding.permanent_id().filter(|_| binding.meta().deletion_timestamp.is_none()) else {
            return Ok(Action::Wait);
        };
        let works = context.stores.works.by_index(id);
        // Bindings of dependencies are never scheduled, and one that was created again has lost its status.
        let is_new = binding.status().last_scheduled_time.is_none() && binding.status().aggregated_status.is_empty();
        if is_new && works.is_empty() {
            return Ok(Action::Wait);
        }
        let live = works.iter().filter(|work| work.metadata.deletion_timestamp.is_none());
        let reports: Vec<_> = live
            .map(|work| report::WorkReport {
                cluster: cluster_of(work),
                applied: Condition::find(&work.status.conditions, APPLIED).cloned(),
                manifest: work.status.manifest_statuses.first().map(|m| (m.status.clone(), m.health)),
            })
            .collect();
        let items = report::aggregate(&reports);
        let kept = dispatch::decide(binding.spec()).kept;
        let fully_applied = report::fully_applied(&items, kept.iter().map(String::as_str), context.clock.now());
        let change = |binding: &mut B| {
            let status = binding.status_mut();
            let changed = set_condition(&mut status.conditions, fully_applied.clone());
            let changed = changed || status.aggregated_status != items;
            status.aggregated_status.clone_from(&items);
            changed
        };
        let is_leaving = items.iter().any(|item| !kept.contains(&item.cluster_name));
        let detail = match Detail::of(report::health_changes(&binding.status().aggregated_status, &items)) {
            Some(Detail::Progress) if is_leaving => Some(Detail::Leaving),
            detail => detail,
        };
        if let Some(detail) = detail
            && change(&mut B::clone(&binding))
            && let Some(wait) = self.pace.wait(&key, detail)
        {
            return Ok(Action::After(wait));
        }
        B::write_status(context, &binding, change).await?;
        self.pace.done(&key);
        self.write_template(&*binding, &items).await?;
        Ok(Action::Wait)
    }
}

impl BindingStatus {
    /// Merges the members' statuses into the template, if an interpreter can do that for this kind.
    async fn write_template<B: Binding>(&self, binding: &B, items: &[AggregatedStatusItem]) -> Result<(), Error> {
        let context = &self.context;
        let resource = &binding.spec().resource;
        let kind = ObjectKind::new(&resource.api_version, &resource.kind);
        let key = Key::new(&resource.namespace, &resource.name);
        let Some(template) = context.templates.get(HUB, &kind, &key) else { return Ok(()) };
        let object = Arc::new(dynamic::to_value(&kind, &template));
        let aggregated = context
            .interpret(NAME, &subject(binding), Operation::AggregateStatus { object: &object, items })
            .await
            .map_err(|fault| Error::Undecided(format!("status of {resource}: {}", fault.reason())))?;
        let Some(Interpretation::Object(aggregated)) = aggregated else { return Ok(()) };
        if aggregated.get("status") == object.get("status") {
            return Ok(());
        }
        // An interpreter may have been slow, and the patch would apply to any object of this name.
        let current = context.templates.get(HUB, &kind, &key);
        if current.is_none_or(|current| current.metadata.uid != template.metadata.uid) {
            return Ok(());
        }
        let api = context.kinds.resolve(&kind).await?.api(context.hub.clone(), &key.namespace);
        // A merge patch only adds, so removed fields have to be named.
        let mut status = json!({});
        for field in object.get("status").and_then(|status| status.as_object()).into_iter().flat_map(|s| s.keys()) {
            status[field.as_str()] = json!(null);
        }
        for (field, value) in aggregated.get("status").and_then(|status| status.as_object()).into_iter().flatten() {
            status[field.as_str()] = value.clone();
        }
        let patch = Patch::Merge(json!({ "status": status }));
        match api.patch_status(&key.name, &PatchParams::default(), &patch).await {
            Err(error) if !is_not_found(&error) => Err(Error::api(format!("writing the status of {resource}"))(error)),
            _ => Ok(()),
        }
    }
}
