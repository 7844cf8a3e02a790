//! Propagation of dependencies to the clusters of their workload (Karmada: `pkg/dependenciesdistributor`).
//!
//! The binding of a workload whose policy sets `propagateDeps` is independent. The interpreters return the
//! dependencies of its template. Each of these objects gets an attached binding, which holds the clusters of the
//! independent one in `spec.requiredBy`, and a label that leads back. Several workloads may need one object, and it
//! may be claimed by a policy of its own.
//!
//! Start reading at [`reconcile`]; `attach` writes attached bindings, and
//! [`decide::dependencies`](bulkhead_core::decide::dependencies) holds the rules.
//!
//! Deliberate differences from Karmada: a dependency stays beside an old copy that is still kept; an attached binding
//! that is no longer needed is deleted if no policy claims it, instead of staying empty; and if the feature gate is
//! switched off, its earlier results are cleaned up.

mod attach;

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_api::ResourceBinding;
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::decide::dependencies;
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic::{self, KeptObject};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::api::ListParams;
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::binding_kind::{self, Binding, Bindings};
use crate::binding_owner::Owner;
use crate::decision_log::DecisionLog;
use crate::dependency_index::{need, references};
use crate::flags::{FeatureGate, Flags};
use crate::interpreter::Interpreters;
use crate::stores::Stores;
use crate::subjects::{about, subject};
use crate::templates::{self, Templates};

const NAME: &str = "dependencies-distributor";
const WORKERS: usize = 5;

/// Needed objects, by the key of their attached binding and their UID: two objects can derive the same key.
type Needed = BTreeMap<(Key, Option<String>), (ObjectKind, Arc<KeptObject>)>;

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) interpreters: Interpreters,
    pub(crate) log: DecisionLog,
    pub(crate) stores: Arc<Stores>,
    pub(crate) templates: Templates,
}

/// Runs the distributor until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let changed = Arc::clone(&queue);
    let _bindings = deps.stores.bindings.subscribe(move |change| {
        if matters(change) {
            changed.add(Key::of(change.object()));
        }
    });
    let (changed, stores) = (Arc::clone(&queue), Arc::clone(&deps.stores));
    let _objects = deps.templates.cache.subscribe(move |origin, change| {
        for (kind, object) in versions(&origin.kind, change) {
            for binding in stores
                .bindings
                .by_index(&need(kind, &object.namespace().unwrap_or_default()))
            {
                if references(&binding)
                    .iter()
                    .any(|reference| refers_to(reference, kind, object))
                {
                    changed.add(Key::of(&*binding));
                }
            }
        }
    });
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), key)
    };
    deps.interpreters.wait_for_cache_sync().await;
    controller::run(
        queue,
        WORKERS,
        reconcile,
        deps.failures.counter(NAME, binding_kind::named),
    )
    .await;
}

fn refers_to(reference: &DependentObjectReference, kind: &ObjectKind, object: &KeptObject) -> bool {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    dependencies::refers_to(
        reference,
        (&kind.api_version, &kind.kind),
        (&namespace, &name),
        &object.labels(),
    )
}

fn is_marked(binding: &ResourceBinding) -> bool {
    binding
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == keys::DEPENDENCIES_FINALIZER)
}

/// True if a binding distributes dependencies, or did and has to clean up.
fn matters(change: &Change<'_, ResourceBinding>) -> bool {
    let concerns = |binding: &ResourceBinding| binding.spec.propagate_deps || is_marked(binding);
    match change {
        Change::Added(binding) => concerns(binding),
        Change::Updated { old, new } => change.is_generation_change() && (concerns(old) || concerns(new)),
        // A binding is deleted only after its cleanup.
        Change::Deleted(_) => false,
    }
}

/// Returns the versions of an object that a binding may need; none if only its status changed.
fn versions<'a>(kind: &'a ObjectKind, change: &'a Change<'_, KeptObject>) -> Vec<(&'a ObjectKind, &'a KeptObject)> {
    let objects: Vec<&KeptObject> = match change {
        Change::Added(object) | Change::Deleted(object) => vec![object],
        Change::Updated { old, new } if dynamic::is_template_change(change) => vec![old, new],
        Change::Updated { .. } => Vec::new(),
    };
    objects.into_iter().map(|object| (kind, object)).collect()
}

async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    let Some(binding) = deps.stores.bindings.get(&key) else {
        return Ok(Action::Wait);
    };
    let on = deps.flags.gate(FeatureGate::PropagateDeps) && binding.spec.propagate_deps;
    if !on || binding.metadata.deletion_timestamp.is_some() {
        return release(&deps, &binding).await;
    }
    if binding.spec.clusters.is_empty() && !is_marked(&binding) {
        return Ok(Action::Wait);
    }
    let Some(references) = interpreted(&deps, &binding).await? else {
        return Ok(Action::Wait);
    };
    let binding = record(&deps, &binding, &references).await?;
    let synced = sync(&deps, &binding, &references).await;
    let (events, about) = (&deps.log.events, about(&*binding));
    match &synced {
        Ok(0) => {}
        Ok(_) => {
            let message = "Sync schedule results to dependencies succeed.";
            events.emit_recovery(NAME, about, "SyncScheduleResultToDependenciesSucceed", message);
        }
        Err(error) => {
            let reason = "SyncScheduleResultToDependenciesFailed";
            events.emit(NAME, about, EventType::Warning, reason, error.describe());
        }
    }
    synced.map(|_| Action::Wait)
}

/// Returns the dependencies of the template from the interpreters; `None` if no interpreter knows them, or if there
/// is no template.
async fn interpreted(
    deps: &Dependencies,
    binding: &ResourceBinding,
) -> Result<Option<Vec<DependentObjectReference>>, Error> {
    let resource = &binding.spec.resource;
    let kind = ObjectKind::new(&resource.api_version, &resource.kind);
    let template = deps
        .templates
        .read(&kind, &Key::new(&resource.namespace, &resource.name))
        .await?;
    let Some(template) = template else { return Ok(None) };
    let object = Arc::new(template.to_value(&kind)?);
    match deps
        .interpreters
        .interpret(NAME, &subject(binding), Operation::Dependencies { object: &object })
        .await
    {
        Ok(Some(Interpretation::Dependencies(references))) => Ok(Some(references)),
        Ok(_) => Ok(None),
        Err(fault) => {
            let message = format!("dependencies of {resource}: {}", fault.reason());
            deps.log.events.emit(
                NAME,
                about(binding),
                EventType::Warning,
                "GetDependenciesFailed",
                message.clone(),
            );
            Err(Error::Undecided(message))
        }
    }
}

/// Records the dependencies of a binding and adds the finalizer for their cleanup. Returns the updated binding.
async fn record(
    deps: &Dependencies,
    binding: &Arc<ResourceBinding>,
    references: &[DependentObjectReference],
) -> Result<Arc<ResourceBinding>, Error> {
    let text = serde_json::to_string(references).unwrap_or_default();
    if is_marked(binding) && binding.annotations().get(keys::DEPENDENCIES) == Some(&text) {
        return Ok(Arc::clone(binding));
    }
    let mut finalizers = binding.finalizers().to_vec();
    if !is_marked(binding) {
        finalizers.push(keys::DEPENDENCIES_FINALIZER.to_owned());
    }
    let patch = json!({"metadata": {"finalizers": finalizers, "annotations": {keys::DEPENDENCIES: text}}});
    let recorded = ResourceBinding::writer(&deps.bindings, binding)
        .patch_if_unchanged(binding, patch)
        .await;
    let operation = format!("recording the dependencies of ResourceBinding {}", Key::of(&**binding));
    recorded.map_err(Error::api(operation))
}

/// Attaches the needed objects and detaches the others. Returns the number of bindings that were written. An object
/// that cannot be read, attached or detached does not stop the others; the first error is returned.
async fn sync(
    deps: &Dependencies,
    binding: &ResourceBinding,
    references: &[DependentObjectReference],
) -> Result<usize, Error> {
    let (mut needed, mut error) = (Needed::new(), None);
    for reference in references {
        match objects(deps, reference).await {
            Ok(found) => needed.extend(found.into_iter().map(|(kind, object)| {
                let name = names::binding_name(&kind.kind, &object.name_any());
                (
                    (Key::new(binding.namespace().unwrap_or_default(), name), object.uid()),
                    (kind, object),
                )
            })),
            Err(failed) => drop(error.get_or_insert(failed)),
        }
    }
    // A workload is not its own dependency.
    needed.retain(|(key, _), _| *key != Key::of(binding));
    let mut written = 0;
    // An object that could not be read may be needed, so nothing is detached after such an error.
    if error.is_none() {
        let attached = attached_to(deps, binding);
        let unneeded = attached
            .into_iter()
            .filter(|attached| !is_needed(&needed, attached))
            .collect();
        (written, error) = detach(deps, binding, unneeded).await;
    }
    for ((key, _), (kind, object)) in &needed {
        match attach::ensure(deps, binding, key, (kind, object)).await {
            Ok(wrote) => written += usize::from(wrote),
            Err(failed) => drop(error.get_or_insert(failed)),
        }
    }
    error.map_or(Ok(written), Err)
}

/// True if an attached binding belongs to a needed object.
fn is_needed(needed: &Needed, attached: &ResourceBinding) -> bool {
    let of_its_name = needed.iter().filter(|((key, _), _)| *key == Key::of(attached));
    of_its_name.into_iter().any(|(_, (kind, object))| {
        !matches!(
            Owner::of(attached, &templates::reference(kind, object)),
            Owner::Other(_)
        )
    })
}

/// Returns the objects that a reference names or selects. A missing one is skipped; its creation triggers another
/// reconcile.
async fn objects(
    deps: &Dependencies,
    reference: &DependentObjectReference,
) -> Result<Vec<(ObjectKind, Arc<KeptObject>)>, Error> {
    let kind = ObjectKind::new(&reference.api_version, &reference.kind);
    deps.templates.ensure(&kind).await?;
    if !reference.name.is_empty() {
        let found = deps
            .templates
            .read(&kind, &Key::new(&reference.namespace, &reference.name))
            .await?;
        return Ok(found.into_iter().map(|object| (kind.clone(), object)).collect());
    }
    let store = deps.templates.store(&kind).filter(|store| store.has_synced());
    let all = if let Some(store) = store {
        store.list_namespace(&reference.namespace)
    } else {
        let api = deps.templates.api(&kind, &reference.namespace).await?;
        let listed = api
            .list(&ListParams::default())
            .await
            .map_err(Error::api(format!("listing {kind}")))?;
        listed.items.into_iter().map(Arc::new).collect()
    };
    let selected = all.into_iter().filter(|object| refers_to(reference, &kind, object));
    Ok(selected.map(|object| (kind.clone(), object)).collect())
}

/// Returns the bindings of objects that a binding is known to need.
fn attached_to(deps: &Dependencies, binding: &ResourceBinding) -> Vec<Arc<ResourceBinding>> {
    let label = names::depended_by_label(&binding.namespace().unwrap_or_default(), &binding.name_any());
    deps.stores.bindings.by_index(&label)
}

/// Detaches a binding from attached ones, each independent of the others. Returns the number of those that were
/// written, and the first error.
async fn detach(
    deps: &Dependencies,
    binding: &ResourceBinding,
    attached: Vec<Arc<ResourceBinding>>,
) -> (usize, Option<Error>) {
    let (mut written, mut error) = (0, None);
    for attached in attached {
        match attach::remove(deps, binding, &attached).await {
            Ok(()) => written += 1,
            Err(failed) => drop(error.get_or_insert(failed)),
        }
    }
    (written, error)
}

/// Detaches a binding from all its dependencies and removes its finalizer.
async fn release(deps: &Dependencies, binding: &Arc<ResourceBinding>) -> Result<Action, Error> {
    // The finalizer stays until every dependency is detached.
    if let (_, Some(error)) = detach(deps, binding, attached_to(deps, binding)).await {
        return Err(error);
    }
    if is_marked(binding) {
        let others = binding
            .finalizers()
            .iter()
            .filter(|finalizer| *finalizer != keys::DEPENDENCIES_FINALIZER);
        let patch = json!({"metadata": {"finalizers": others.collect::<Vec<_>>()}});
        let released = ResourceBinding::writer(&deps.bindings, binding)
            .patch_if_unchanged(binding, patch)
            .await;
        match released {
            Err(error) if controller::is_not_found(&error) => {}
            released => {
                released.map_err(Error::api(format!("releasing ResourceBinding {}", Key::of(&**binding))))?;
            }
        }
    }
    Ok(Action::Wait)
}

#[cfg(test)]
mod tests;
