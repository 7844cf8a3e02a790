//! Binding → Works (Karmada: `pkg/controllers/binding`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::Work;
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::Because;
use bulkhead_core::decide::dispatch;
use bulkhead_core::journal::Decision;
use bulkhead_core::names::{self, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::binding_kind::{self, Binding, Reconcile};
use crate::context::{Context, Record, about, input, subject};
use crate::controller::{self, Action, Error, is_not_found};
use crate::dynamic;
use crate::events::EventType;
use crate::flags::FeatureGate;
use crate::kinds::ObjectKind;
use crate::queue::WorkQueue;
use crate::render::{self, Source};
use crate::store::{Change, Key};

const NAME: &str = "binding-controller";
const WORKERS: usize = 5;
/// How long to wait for Works that must be gone first (Karmada: `requeueIntervalForDirectlyPurge`).
const DIRECT_PURGE_RECHECK: Duration = Duration::from_secs(5);

struct BindingController(Context);

/// Runs the controller, for ever.
pub(crate) async fn run(context: Context) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let _bindings = binding_kind::subscribe(
        &context,
        &queue,
        |change| change.is_generation_change(),
        |change| change.is_generation_change(),
    );
    // A Work that turns up late may be an orphan already, and one that vanished may still be needed.
    let owners = Arc::clone(&queue);
    let _works = context.stores.works.subscribe(move |change| {
        if let Change::Added(work) | Change::Deleted(work) = change {
            owners.add(binding_of(work));
        }
    });
    let controller = Arc::new(BindingController(context.clone()));
    let reconcile = move |key| {
        let controller = Arc::clone(&controller);
        async move { binding_kind::dispatch(&*controller, key).await }
    };
    context.interpreters_known().await;
    controller::run(queue, WORKERS, reconcile, context.failed(NAME)).await;
}

/// The binding that a Work says it belongs to.
pub(crate) fn binding_of(work: &Work) -> Key {
    let annotation = |key| work.annotations().get(key).cloned();
    match annotation(keys::RESOURCE_BINDING_NAME) {
        Some(name) => Key::new(annotation(keys::RESOURCE_BINDING_NAMESPACE).unwrap_or_default(), name),
        None => Key::new("", annotation(keys::CLUSTER_RESOURCE_BINDING_NAME).unwrap_or_default()),
    }
}

/// The cluster that a Work is for.
pub(crate) fn cluster_of(work: &Work) -> String {
    let namespace = work.namespace().unwrap_or_default();
    names::cluster_of_execution_namespace(&namespace).unwrap_or_default().to_owned()
}

impl Reconcile for BindingController {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let context = &self.0;
        let Some(binding) = B::store(&context.stores).get(&key) else { return Ok(Action::Wait) };
        // An empty id would select other bindings' Works, so nothing happens without one.
        let Some(id) = binding.permanent_id().map(str::to_owned) else {
            return Err(Error::NotYet(format!("{} {key} has no label {}", B::kind(&()), B::ID_LABEL)));
        };
        let works = context.stores.works.by_index(&id);
        if binding.meta().deletion_timestamp.is_some() {
            // One that was just made may not be known yet, and nothing would ever delete it.
            let works = self.works::<B>(&id).await?;
            self.withdraw(&*binding, &works, "the binding is being deleted").await?;
            return self.release(&*binding).await;
        }
        let dispatch = dispatch::decide(binding.spec());
        let orphans: Vec<_> = works.iter().filter(|work| !dispatch.kept.contains(&cluster_of(work))).cloned().collect();
        if orphans.iter().any(|work| work.metadata.deletion_timestamp.is_none()) {
            self.is_current(&*binding).await?;
        }
        self.withdraw(&*binding, &orphans, "no target and no eviction task holds it any more").await?;
        if works.iter().any(|work| dispatch.purged_first.contains(&cluster_of(work))) {
            return Ok(Action::After(DIRECT_PURGE_RECHECK));
        }
        let Some(template) = self.template(&*binding).await? else { return Ok(Action::Wait) };
        let mut first_error = None;
        let mut written = 0;
        let none = BTreeMap::new();
        let injects = context.flags.gate(FeatureGate::StatefulFailoverInjection);
        let preserved_labels = if injects { &dispatch.preserved_labels } else { &none };
        let source = Source { binding: &*binding, permanent_id: &id, template: &template, preserved_labels };
        for target in &dispatch.rendered {
            match self.ensure_work(&source, target).await {
                Ok(wrote) => written += usize::from(wrote),
                // One cluster must not stop the others.
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        if let Some(error) = first_error {
            // Who lost a race looks again at once.
            if !error.is_conflict() {
                let message = format!("Failed to sync work: {}", error.describe());
                context.events.emit(NAME, about(&*binding), EventType::Warning, "SyncWorkFailed", message);
            }
            return Err(error);
        }
        if written > 0 {
            let message = format!("Sync work of {}({key}) successful.", B::kind(&()));
            context.events.emit(NAME, about(&*binding), EventType::Normal, "SyncWorkSucceed", message);
        }
        Ok(Action::Wait)
    }
}

impl BindingController {
    /// Whether what is known of a binding still holds: a watch that is behind must not cost a workload its place.
    async fn is_current<B: Binding>(&self, binding: &B) -> Result<(), Error> {
        let (name, kind) = (binding.name_any(), B::kind(&()));
        let api = B::api(self.0.hub.clone(), &binding.namespace().unwrap_or_default());
        let live = api.get_metadata_opt(&name).await.map_err(Error::api(format!("reading {kind} {name}")))?;
        let version = |meta: &ObjectMeta| (meta.uid.clone(), meta.generation);
        if live.is_some_and(|live| version(&live.metadata) != version(binding.meta())) {
            return Err(Error::NotYet(format!("{kind} {name} is newer than what is known of it")));
        }
        Ok(())
    }

    /// The Works of a binding, as the API server has them.
    async fn works<B: Binding>(&self, id: &str) -> Result<Vec<Arc<Work>>, Error> {
        let api: Api<Work> = Api::all(self.0.hub.clone());
        let found = api.list(&ListParams::default().labels(&format!("{}={id}", B::ID_LABEL))).await;
        let found = found.map_err(Error::api(format!("listing the Works of {id}")))?;
        Ok(found.items.into_iter().map(Arc::new).collect())
    }

    async fn withdraw<B: Binding>(&self, binding: &B, works: &[Arc<Work>], why: &str) -> Result<(), Error> {
        let context = &self.0;
        for work in works.iter().filter(|work| work.metadata.deletion_timestamp.is_none()) {
            let cluster = cluster_of(work);
            let record = context.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(cluster.clone()),
                decision: Decision::Withdrawn,
                because: Because::rule("Orphaned", why),
                effect: format!("Work {} is deleted", Key::of(&**work)),
                inputs: vec![input(binding), input(&**work)],
            });
            let api: Api<Work> = Api::namespaced(context.hub.clone(), &work.namespace().unwrap_or_default());
            let deleted = api.delete(&work.name_any(), &DeleteParams::background()).await;
            let deleted = match deleted {
                Err(error) if !is_not_found(&error) => {
                    let message = format!("Failed to delete the Work of cluster {cluster}: {error}");
                    context.events.emit(NAME, about(binding), EventType::Warning, "CleanupWorkFailed", message);
                    Err(Error::api(format!("deleting Work {}", Key::of(&**work)))(error))
                }
                _ => Ok(()),
            };
            context.settle(&[record], deleted)?;
        }
        Ok(())
    }

    async fn release<B: Binding>(&self, binding: &B) -> Result<Action, Error> {
        let finalizers: Vec<_> = binding.finalizers().iter().filter(|f| *f != B::FINALIZER).cloned().collect();
        if finalizers.len() == binding.finalizers().len() {
            return Ok(Action::Wait);
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        match B::writer(&self.0, binding).patch_despite_status(binding, patch).await {
            Err(error) if !is_not_found(&error) => {
                Err(Error::api(format!("releasing {} {}", B::kind(&()), binding.name_any()))(error))
            }
            _ => Ok(Action::Wait),
        }
    }

    async fn template<B: Binding>(&self, binding: &B) -> Result<Option<Arc<Value>>, Error> {
        let resource = &binding.spec().resource;
        let kind = ObjectKind::new(&resource.api_version, &resource.kind);
        let template = dynamic::hub_object(&self.0, &kind, &Key::new(&resource.namespace, &resource.name)).await?;
        Ok(template.map(|template| Arc::new(dynamic::to_value(&kind, &template))))
    }

    /// The template with the cluster's replicas in it, if somebody can write them in.
    async fn revised<B: Binding>(
        &self,
        binding: &B,
        template: &Arc<Value>,
        target: &bulkhead_core::model::TargetCluster,
    ) -> Result<Value, Error> {
        if !binding.spec().is_workload() {
            return Ok(Value::clone(template));
        }
        let revise = Operation::Revise { object: template, replicas: target.replicas.into() };
        match self.0.interpret(NAME, &subject(binding), revise).await {
            Ok(Some(Interpretation::Object(revised))) => Ok(revised),
            Ok(_) => Ok(Value::clone(template)),
            Err(fault) => Err(Error::Undecided(format!("replicas of {}: {}", binding.spec().resource, fault.reason()))),
        }
    }

    /// Creates or updates the Work of one target cluster. Returns whether there was anything to write.
    async fn ensure_work<B: Binding>(
        &self,
        source: &Source<'_, B>,
        target: &bulkhead_core::model::TargetCluster,
    ) -> Result<bool, Error> {
        let context = &self.0;
        let binding = source.binding;
        let resource = &binding.spec().resource;
        let namespace = names::execution_namespace(&target.name);
        let name = names::work_name(&resource.kind, &resource.name, &resource.namespace);
        let existing = context.stores.works.get(&Key::new(&namespace, &name));
        if existing.as_ref().is_some_and(|work| work.metadata.deletion_timestamp.is_some()) {
            return Err(Error::NotYet(format!("Work {namespace}/{name} is being deleted")));
        }
        let manifest = self.revised(binding, source.template, target).await?;
        let desired = render::work(source, manifest, target, existing.as_deref())
            .map_err(|error| Error::Undecided(format!("rendering {resource}: {error}")))?;
        if existing.as_deref() == Some(&desired) {
            return Ok(false);
        }
        let mut records = Vec::new();
        if existing.is_none() {
            records.push(context.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(target.name.clone()),
                decision: Decision::Dispatched,
                because: Because::rule("Target", "the cluster is in the scheduling result"),
                effect: format!("Work {name} with {} replicas", target.replicas),
                inputs: vec![input(binding)],
            }));
        }
        let operation = Error::api(format!("writing Work {namespace}/{name}"));
        let writer = context.work_writer(&namespace);
        let written = match existing {
            None => writer.api.create(&PostParams::default(), &desired).await,
            Some(existing) => writer.replace(&existing, desired).await,
        };
        context.settle(&records, written.map_err(operation))?;
        Ok(true)
    }
}
