//! Attached bindings: the bindings of objects that workloads depend on.

use std::sync::Arc;

use bulkhead_api::{AnyBinding, ResourceBinding};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::dependencies::{self, Snapshot, Strategies};
use bulkhead_core::journal::{Decision, Subject};
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::controller::{Error, is_not_found};
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};

use super::{Dependencies, NAME};
use crate::binding_owner::{self, Owner};
use crate::decision_log::Record;
use crate::subjects::{about, input, subject};
use crate::templates;

/// Ensures that an object has a binding with a snapshot of the `independent` binding that needs it. Returns true if
/// there was anything to write.
pub(super) async fn ensure(
    deps: &Dependencies,
    independent: &ResourceBinding,
    key: &Key,
    (kind, object): (&ObjectKind, &Arc<KeptObject>),
) -> Result<bool, Error> {
    let id = independent.permanent_id();
    let id = id.ok_or_else(|| {
        Error::NotYet(format!(
            "ResourceBinding {} has no label {}",
            Key::of(independent),
            ResourceBinding::ID_LABEL
        ))
    })?;
    let existing = deps.stores.bindings.get(key);
    if let Some(existing) = &existing {
        usable(existing, kind, object)?;
    }
    let mut desired = existing.as_deref().cloned().unwrap_or_else(|| fresh(key, kind, object));
    let (namespace, name) = (independent.namespace().unwrap_or_default(), independent.name_any());
    desired
        .labels_mut()
        .insert(names::depended_by_label(&namespace, &name), id.to_owned());
    let clusters = dependencies::clusters(&independent.spec);
    dependencies::attach(
        &mut desired.spec,
        &Snapshot {
            namespace,
            name,
            clusters,
        },
    );
    desired.spec.resource = templates::reference(kind, object);
    let disagreements = settle_strategies(deps, &mut desired, Some(independent));
    if existing.as_deref() == Some(&desired) {
        return Ok(false);
    }
    write(deps, independent, existing.as_deref(), &desired).await?;
    if !disagreements.is_empty() {
        let message = format!("Dependency policy conflict detected: {disagreements}.");
        deps.log.events.emit(
            NAME,
            about(&desired),
            EventType::Warning,
            "DependencyPolicyConflict",
            message,
        );
    }
    Ok(true)
}

/// Removes `independent` from an attached binding. One that is no longer needed is deleted, unless it has another
/// owner.
pub(super) async fn remove(
    deps: &Dependencies,
    independent: &ResourceBinding,
    attached: &ResourceBinding,
) -> Result<(), Error> {
    if attached.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let mut desired = attached.clone();
    let (namespace, name) = (independent.namespace().unwrap_or_default(), independent.name_any());
    desired
        .labels_mut()
        .remove(&names::depended_by_label(&namespace, &name));
    dependencies::detach(&mut desired.spec, &namespace, &name);
    if desired.spec.required_by.is_empty() && is_ours(&desired) {
        return delete(deps, independent, attached).await;
    }
    settle_strategies(deps, &mut desired, None);
    match write(deps, independent, Some(attached), &desired).await {
        Err(Error::Api { source, .. }) if is_not_found(&source) => Ok(()),
        written => written,
    }
}

/// True if a binding exists for dependants only: no policy claims its object, and no other manager made it.
fn is_ours(binding: &ResourceBinding) -> bool {
    let claims = [
        keys::PROPAGATION_POLICY_ID,
        keys::CLUSTER_PROPAGATION_POLICY_ID,
        keys::BINDING_MANAGED_BY,
    ];
    binding.spec.placement.is_none() && !claims.iter().any(|label| binding.labels().contains_key(*label))
}

/// Returns an error unless the existing binding belongs to this very object.
fn usable(existing: &ResourceBinding, kind: &ObjectKind, object: &KeptObject) -> Result<(), Error> {
    let key = Key::of(existing);
    if existing.metadata.deletion_timestamp.is_some() {
        return Err(Error::NotYet(format!("ResourceBinding {key} is still being deleted")));
    }
    match Owner::of(existing, &templates::reference(kind, object)) {
        Owner::Same => Ok(()),
        // Issue 6034: the binding of an earlier object is deleted with that object, and a new one is created then.
        Owner::Earlier => Err(Error::NotYet(format!(
            "ResourceBinding {key} belongs to an earlier object of the same name"
        ))),
        Owner::Other(owner) => {
            let wanted = binding_owner::described(&templates::reference(kind, object));
            Err(Error::Undecided(format!(
                "ResourceBinding {key} belongs to {owner}, not to {wanted}"
            )))
        }
    }
}

fn fresh(key: &Key, kind: &ObjectKind, object: &KeptObject) -> ResourceBinding {
    let owner = OwnerReference {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    // An owner in another namespace would count as gone, and its binding would be deleted.
    let reachable = object.namespace().is_none_or(|namespace| namespace == key.namespace);
    ResourceBinding {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            finalizers: Some(vec![ResourceBinding::FINALIZER.to_owned()]),
            owner_references: reachable.then(|| vec![owner]),
            ..ObjectMeta::default()
        },
        ..ResourceBinding::default()
    }
}

/// Sets the strategies that hold for all dependants, unless a policy sets them. Returns the disagreements. `newer` is
/// a dependant that may be newer than its cached version.
fn settle_strategies(deps: &Dependencies, attached: &mut ResourceBinding, newer: Option<&ResourceBinding>) -> String {
    if attached.spec.placement.is_some() {
        return String::new();
    }
    let keys = dependencies::dependants(&attached.spec)
        .into_iter()
        .map(|(namespace, name)| Key::new(namespace, name));
    let known: Vec<_> = keys.filter_map(|key| deps.stores.bindings.get(&key)).collect();
    let newest = known.iter().map(|binding| {
        newer
            .filter(|newer| Key::of(*newer) == Key::of(&**binding))
            .unwrap_or(binding)
    });
    let strategies = Strategies::of(newest.map(|binding| &binding.spec));
    strategies.apply(&mut attached.spec);
    strategies.disagreements()
}

async fn write(
    deps: &Dependencies,
    independent: &ResourceBinding,
    existing: Option<&ResourceBinding>,
    desired: &ResourceBinding,
) -> Result<(), Error> {
    let key = Key::of(desired);
    let record = deps.log.record(Record {
        controller: NAME,
        subject: Subject::new(&ResourceBinding::kind(&()), &key.namespace, &key.name),
        cluster: None,
        decision: Decision::Bound,
        attribution: Attribution::rule("Dependency", format!("{} depends on it", independent.spec.resource)),
        effect: effect(desired),
        inputs: std::iter::once(independent).chain(existing).map(input).collect(),
    });
    let api: Api<ResourceBinding> = Api::namespaced(deps.hub.clone(), &key.namespace);
    let written = async {
        let written = match existing {
            None => api.create(&PostParams::default(), desired).await,
            Some(_) => api.replace(&key.name, &PostParams::default(), desired).await,
        };
        written
            .map(drop)
            .map_err(Error::api(format!("writing ResourceBinding {key}")))
    };
    deps.log.apply(&[record], written).await
}

/// Describes the resulting placement of the object.
fn effect(binding: &ResourceBinding) -> String {
    let clusters = bulkhead_core::decide::dispatch::decide(&binding.spec).kept;
    let clusters: Vec<_> = clusters.iter().map(String::as_str).collect();
    format!(
        "{} goes to {}",
        binding.spec.resource,
        if clusters.is_empty() {
            "no cluster".to_owned()
        } else {
            clusters.join(", ")
        }
    )
}

async fn delete(deps: &Dependencies, independent: &ResourceBinding, attached: &ResourceBinding) -> Result<(), Error> {
    let key = Key::of(attached);
    let record = deps.log.record(Record {
        controller: NAME,
        subject: subject(attached),
        cluster: None,
        decision: Decision::Unbound,
        attribution: Attribution::rule(
            "NotDependedOn",
            format!("{} was the last to depend on it", independent.spec.resource),
        ),
        effect: format!("ResourceBinding {key} is deleted"),
        inputs: vec![input(independent), input(attached)],
    });
    // A dependant that is added at this moment writes to the binding, which then stays.
    let preconditions = Preconditions {
        resource_version: attached.resource_version(),
        uid: attached.uid(),
    };
    let parameters = DeleteParams::background().preconditions(preconditions);
    let api: Api<ResourceBinding> = Api::namespaced(deps.hub.clone(), &key.namespace);
    let deleted = async {
        match api.delete(&key.name, &parameters).await {
            Err(error) if is_not_found(&error) => Ok(()),
            deleted => deleted
                .map(drop)
                .map_err(Error::api(format!("deleting ResourceBinding {key}"))),
        }
    };
    deps.log.apply(&[record], deleted).await
}
