//! End of a policy: its marks are removed from templates and bindings, and then its finalizer (Karmada:
//! `pkg/detector/detector.go:handlePolicyDeletion`).
//!
//! Bindings stay, and so do their workloads, until another policy claims the template or the template is deleted. A
//! template that another policy selects is claimed by that one, because the removal of the marks is a change of the
//! template. Karmada's webhook adds the finalizer. Policies without it are only known to be gone after their deletion;
//! [`unclaim`] removes their marks.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use bulkhead_api::policy::PropagationSpec;
use bulkhead_api::{ClusterPropagationPolicy, ClusterResourceBinding, PropagationPolicy, ResourceBinding};
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::controller::{Action, Error, is_not_found};
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::key::{Key, ObjectName};
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::store::Store;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Dependencies;
use super::claim::Claim;
use super::marks::{self, Marks};
use crate::binding_kind::{self, Binding};
use crate::stores::Stores;
use crate::writers::writer;

/// Kind of policy that claims templates.
pub(super) trait Policy:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Finalizer that Karmada's webhook adds.
    const FINALIZER: &'static str;
    /// Marks of the claims.
    const MARKS: Marks;

    /// Returns the desired state.
    fn spec(&self) -> &PropagationSpec;

    /// Returns the store of this kind.
    fn store(stores: &Stores) -> &Arc<Store<Self>>;

    /// Returns the API for policies of one namespace; the namespace is ignored for cluster scope.
    fn api(client: Client, namespace: &str) -> Api<Self>;
}

impl Policy for PropagationPolicy {
    const FINALIZER: &'static str = keys::PROPAGATION_POLICY_FINALIZER;
    const MARKS: Marks = marks::NAMESPACED;

    fn spec(&self) -> &PropagationSpec {
        &self.spec
    }

    fn store(stores: &Stores) -> &Arc<Store<Self>> {
        &stores.policies
    }

    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }
}

impl Policy for ClusterPropagationPolicy {
    const FINALIZER: &'static str = keys::CLUSTER_PROPAGATION_POLICY_FINALIZER;
    const MARKS: Marks = marks::CLUSTER_WIDE;

    fn spec(&self) -> &PropagationSpec {
        &self.spec
    }

    fn store(stores: &Stores) -> &Arc<Store<Self>> {
        &stores.cluster_policies
    }

    fn api(client: Client, _namespace: &str) -> Api<Self> {
        Api::all(client)
    }
}

/// Releases a policy that is being deleted. A key without a namespace is a ClusterPropagationPolicy.
pub(super) async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    if key.namespace.is_empty() {
        release::<ClusterPropagationPolicy>(&deps, &key).await
    } else {
        release::<PropagationPolicy>(&deps, &key).await
    }
}

/// Returns the name of a policy, with its kind.
pub(super) fn named(key: &Key) -> ObjectName<'_> {
    key.named(if key.namespace.is_empty() {
        "ClusterPropagationPolicy"
    } else {
        "PropagationPolicy"
    })
}

/// True if the policy of a claim exists and is not being deleted.
pub(super) fn is_in_force(stores: &Stores, claim: &Claim) -> bool {
    fn check<P: Policy>(stores: &Stores, claim: &Claim) -> bool {
        let policy = P::store(stores).get(&claim.policy);
        policy.is_some_and(|policy| policy.meta().deletion_timestamp.is_none() && has(&*policy, &claim.permanent_id))
    }
    if claim.policy.namespace.is_empty() {
        check::<ClusterPropagationPolicy>(stores, claim)
    } else {
        check::<PropagationPolicy>(stores, claim)
    }
}

/// True if a policy has this permanent ID.
fn has<P: Policy>(policy: &P, id: &str) -> bool {
    policy.labels().get(P::MARKS.id).is_some_and(|own| own == id)
}

async fn release<P: Policy>(deps: &Dependencies, key: &Key) -> Result<Action, Error> {
    let store = P::store(&deps.stores);
    let is_deleted = |policy: &Arc<P>| policy.meta().deletion_timestamp.is_some();
    let Some(policy) = store.get(key).filter(is_deleted) else {
        return Ok(Action::Wait);
    };
    // An empty ID would select the objects of other policies.
    if let Some(id) = policy.labels().get(P::MARKS.id).filter(|id| !id.is_empty()) {
        unclaim_all(deps, &*policy, id).await?;
    }
    let mut finalizers = policy.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != P::FINALIZER);
    if finalizers.len() == policy.finalizers().len() {
        return Ok(Action::Wait);
    }
    let patch = json!({"metadata": {"finalizers": finalizers}});
    let writer = writer(store, P::api(deps.hub.clone(), &key.namespace));
    match writer.patch_despite_status(&policy, patch).await {
        Err(error) if !is_not_found(&error) => Err(Error::api(format!("releasing {} {key}", P::kind(&())))(error)),
        _ => Ok(Action::Wait),
    }
}

/// Removes the marks of a policy from every object that carries its permanent ID. Bindings come last: they name the
/// kinds of templates that the policy selected before it was edited.
async fn unclaim_all<P: Policy>(deps: &Dependencies, policy: &P, id: &str) -> Result<(), Error> {
    let namespace = policy.namespace().unwrap_or_default();
    let selector = format!("{}={id}", P::MARKS.id);
    let (bindings, cluster_bindings) = if namespace.is_empty() {
        let bindings = listed(Api::<ResourceBinding>::all(deps.hub.clone()), &selector).await?;
        let cluster_bindings = listed(Api::<ClusterResourceBinding>::all(deps.hub.clone()), &selector).await?;
        (bindings, cluster_bindings)
    } else {
        let api = Api::<ResourceBinding>::namespaced(deps.hub.clone(), &namespace);
        (listed(api, &selector).await?, Vec::new())
    };
    let selectors = &policy.spec().resource_selectors;
    let selected = selectors
        .iter()
        .map(|selector| ObjectKind::new(&selector.api_version, &selector.kind));
    let kinds: BTreeSet<_> = selected
        .chain(bindings.iter().map(kind_of))
        .chain(cluster_bindings.iter().map(kind_of))
        .collect();
    let mut first_error = None;
    for kind in &kinds {
        // An error of one object must not stop the others.
        unclaim_templates(deps, &P::MARKS, (kind, &namespace), &selector, &mut first_error).await?;
    }
    if let Some(error) = first_error {
        return Err(error);
    }
    for binding in &bindings {
        unclaim_binding(deps, &P::MARKS, binding, &mut first_error).await;
    }
    for binding in &cluster_bindings {
        unclaim_binding(deps, &P::MARKS, binding, &mut first_error).await;
    }
    first_error.map_or(Ok(()), Err)
}

async fn listed<B: Binding>(api: Api<B>, selector: &str) -> Result<Vec<B>, Error> {
    let found = api.list(&ListParams::default().labels(selector)).await;
    let operation = format!("listing the {} with {selector}", B::plural(&()));
    Ok(found.map_err(Error::api(operation))?.items)
}

fn kind_of<B: Binding>(binding: &B) -> ObjectKind {
    let resource = &binding.spec().resource;
    ObjectKind::new(&resource.api_version, &resource.kind)
}

/// Removes the marks of a policy from its templates of one kind. With a namespace, only those in it can have marks.
async fn unclaim_templates(
    deps: &Dependencies,
    marks: &Marks,
    (kind, namespace): (&ObjectKind, &str),
    selector: &str,
    first_error: &mut Option<Error>,
) -> Result<(), Error> {
    let known = match deps.templates.kinds.resolve(kind).await {
        Ok(known) => known,
        // The definition of the kind was deleted, and its objects with it.
        Err(error) if error.is_kind_unknown() => return Ok(()),
        Err(error) => return Err(error),
    };
    let api: Api<KeptObject> = match (namespace, known.namespaced) {
        ("", _) => Api::all_with(deps.hub.clone(), &known.resource),
        (_, true) => known.api(deps.hub.clone(), namespace),
        (_, false) => return Ok(()),
    };
    let found = match api.list_metadata(&ListParams::default().labels(selector)).await {
        Ok(found) => found.items,
        // The kind is known from an earlier look-up, and its definition was deleted since.
        Err(error) if is_not_found(&error) => return Ok(()),
        Err(error) => {
            return Err(Error::api(format!("listing the objects of {kind} with {selector}"))(
                error,
            ));
        }
    };
    for template in found {
        if let Err(error) = unclaim_template(deps, kind, &template.metadata, marks).await {
            first_error.get_or_insert(error);
        }
    }
    Ok(())
}

/// Removes the marks of policies that are gone from a template that no policy selects, and from its binding. A policy
/// that is being deleted removes its marks itself.
pub(super) async fn unclaim(deps: &Dependencies, kind: &ObjectKind, template: &KeptObject) -> Result<Action, Error> {
    let labels = template.labels();
    for (marks, is_gone) in [
        (
            PropagationPolicy::MARKS,
            is_gone::<PropagationPolicy> as fn(&Stores, &str) -> bool,
        ),
        (ClusterPropagationPolicy::MARKS, is_gone::<ClusterPropagationPolicy>),
    ] {
        let Some(id) = labels.get(marks.id).filter(|id| is_gone(&deps.stores, id)) else {
            continue;
        };
        // Afterwards the template has no marks, and would not lead to its binding.
        let binding = Key::new(
            template.namespace().unwrap_or_default(),
            names::binding_name(&kind.kind, &template.name_any()),
        );
        if binding.namespace.is_empty() {
            unclaim_binding_at::<ClusterResourceBinding>(deps, &marks, &binding, id).await?;
        } else {
            unclaim_binding_at::<ResourceBinding>(deps, &marks, &binding, id).await?;
        }
        match unclaim_template(deps, kind, &template.metadata, &marks).await {
            // The newer version triggers another reconcile.
            Err(error) if error.is_conflict() => return Ok(Action::Wait),
            unclaimed => unclaimed?,
        }
    }
    Ok(Action::Wait)
}

fn is_gone<P: Policy>(stores: &Stores, id: &str) -> bool {
    !P::store(stores).list().iter().any(|policy| has(&**policy, id))
}

async fn unclaim_binding_at<B: Binding>(deps: &Dependencies, marks: &Marks, key: &Key, id: &str) -> Result<(), Error> {
    let binding = match B::store(&deps.stores).get(key) {
        Some(binding) => Some(binding),
        // The watch may be late, and the template would not be reconciled again.
        None => B::api(deps.hub.clone(), &key.namespace)
            .get_opt(&key.name)
            .await
            .map_err(Error::api(format!("reading {}", binding_kind::named(key))))?
            .map(Arc::new),
    };
    let mut error = None;
    if let Some(binding) = binding.filter(|binding| binding.labels().get(marks.id).is_some_and(|own| own == id)) {
        unclaim_binding(deps, marks, &*binding, &mut error).await;
    }
    error.map_or(Ok(()), Err)
}

async fn unclaim_binding<B: Binding>(deps: &Dependencies, marks: &Marks, binding: &B, first_error: &mut Option<Error>) {
    let key = Key::of(binding);
    let writer = writer(B::store(&deps.stores), B::api(deps.hub.clone(), &key.namespace));
    let patch = json!({"metadata": marks.removal()});
    match writer.patch_despite_status(binding, patch).await {
        Err(error) if !is_not_found(&error) => {
            let operation = format!("unclaiming {}", binding_kind::named(&key));
            first_error.get_or_insert_with(|| Error::api(operation)(error));
        }
        _ => {}
    }
}

/// Removes marks from a template, unless it was written meanwhile: another policy may have claimed it.
async fn unclaim_template(
    deps: &Dependencies,
    kind: &ObjectKind,
    template: &ObjectMeta,
    marks: &Marks,
) -> Result<(), Error> {
    let namespace = template.namespace.as_deref().unwrap_or_default();
    let name = template.name.as_deref().unwrap_or_default();
    let mut metadata = marks.removal();
    metadata["resourceVersion"] = json!(template.resource_version);
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let api = deps.templates.api(kind, namespace).await?;
    match api.patch(name, &PatchParams::default(), &patch).await {
        Err(error) if !is_not_found(&error) => Err(Error::api(format!("unclaiming {} {namespace}/{name}", kind.kind))(
            error,
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
