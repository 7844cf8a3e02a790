//! Override policies: those that select an object, their changes, and the bindings that a change of a policy affects
//! (Karmada: `pkg/util/overridemanager/overridemanager.go`, `pkg/controllers/binding/binding_controller.go`).
//!
//! Karmada evaluates the targets of rules again only when a binding or a policy changes. Here a change of a cluster's
//! labels, provider, region or zones does that too.

use std::sync::Arc;

use bulkhead_api::policy::ResourceSelector;
use bulkhead_api::{Cluster, ClusterOverridePolicy, OverridePolicy, OverrideSpec};
use bulkhead_core::model::{BindingSpec, ObjectReference};
use bulkhead_core::overriding::{self, Failed, Overridden, Policy};
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Subscription};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use crate::selection::{Specificity, Template, specificity};
use crate::stores::Stores;
use crate::works::identify;

/// Error of a manifest whose overrides cannot be applied.
#[derive(Debug)]
pub(crate) enum NotOverridden {
    /// The cluster of the Work is not known.
    UnknownCluster,
    /// A rule cannot be applied.
    Rule(Failed),
}

/// Applies the policies that select a manifest to it, for one cluster: ClusterOverridePolicies, then OverridePolicies
/// of the manifest's namespace. The labels that the former set count for the selectors of the latter, as in Karmada.
pub(crate) fn apply(stores: &Stores, manifest: Value, cluster: &str) -> Result<Overridden, NotOverridden> {
    let (kind, key) = identify(&manifest);
    let cluster_wide = stores.cluster_override_policies.list();
    let namespaced = if key.namespace.is_empty() {
        Vec::new()
    } else {
        stores.override_policies.list_namespace(&key.namespace)
    };
    if cluster_wide.is_empty() && namespaced.is_empty() {
        return Ok(Overridden {
            object: manifest,
            applied: Vec::new(),
        });
    }
    let cluster = stores.cluster(cluster).ok_or(NotOverridden::UnknownCluster)?.to_model();
    let of_cluster = cluster_wide.iter().map(|policy| (&policy.metadata, &policy.spec));
    let selected = select(of_cluster, &Template::of_manifest(&kind, &key, &manifest));
    let Overridden { object, mut applied } =
        overriding::apply(manifest, &cluster, &selected).map_err(NotOverridden::Rule)?;
    let of_namespace = namespaced.iter().map(|policy| (&policy.metadata, &policy.spec));
    let selected = select(of_namespace, &Template::of_manifest(&kind, &key, &object));
    let overridden = overriding::apply(object, &cluster, &selected).map_err(NotOverridden::Rule)?;
    applied.extend(overridden.applied);
    Ok(Overridden {
        object: overridden.object,
        applied,
    })
}

/// Returns the policies that select a template, the least specific first, then by name, so that the most specific one
/// is applied last.
fn select<'a>(
    policies: impl Iterator<Item = (&'a ObjectMeta, &'a OverrideSpec)>,
    template: &Template<'_>,
) -> Vec<Policy<'a>> {
    let mut selected: Vec<_> = policies
        .filter_map(|(meta, spec)| {
            let policy = Policy {
                namespace: meta.namespace.as_deref().unwrap_or_default(),
                name: meta.name.as_deref().unwrap_or_default(),
                rules: spec.rules(),
            };
            Some((specificity_of(&spec.resource_selectors, template)?, policy))
        })
        .collect();
    selected.sort_by(|(one, policy), (other, next)| one.cmp(other).then_with(|| policy.name.cmp(next.name)));
    selected.into_iter().map(|(_, policy)| policy).collect()
}

/// Returns the precision of the narrowest selector that matches; without selectors, everything matches.
fn specificity_of(selectors: &[ResourceSelector], template: &Template<'_>) -> Option<Specificity> {
    if selectors.is_empty() {
        return Some(Specificity::Kind);
    }
    selectors
        .iter()
        .filter_map(|selector| specificity(selector, template))
        .max()
}

/// Subscriptions that enqueue bindings.
pub(crate) struct Subscriptions {
    _policies: Subscription<OverridePolicy>,
    _cluster_policies: Subscription<ClusterOverridePolicy>,
    _clusters: Subscription<Cluster>,
}

/// Enqueues the bindings that a change of a policy, or of a cluster that rules may select, can affect.
pub(crate) fn subscribe(stores: &Arc<Stores>, queue: &Arc<WorkQueue<Key>>) -> Subscriptions {
    let (of_policy, bindings) = (Arc::clone(stores), Arc::clone(queue));
    let policies = stores.override_policies.subscribe(move |change| {
        for spec in specs(change, |policy| &policy.spec) {
            let namespace = change.object().namespace().unwrap_or_default();
            for binding in of_policy.bindings.list_namespace(&namespace) {
                enqueue(&bindings, spec, &binding.spec.resource, || Key::of(&*binding));
            }
        }
    });
    let (of_policy, bindings) = (Arc::clone(stores), Arc::clone(queue));
    let cluster_policies = stores.cluster_override_policies.subscribe(move |change| {
        for spec in specs(change, |policy| &policy.spec) {
            for binding in of_policy.bindings.list() {
                enqueue(&bindings, spec, &binding.spec.resource, || Key::of(&*binding));
            }
            for binding in of_policy.cluster_bindings.list() {
                enqueue(&bindings, spec, &binding.spec.resource, || Key::of(&*binding));
            }
        }
    });
    let (of_cluster, bindings) = (Arc::clone(stores), Arc::clone(queue));
    let clusters = stores.clusters.subscribe(move |change| {
        if may_change_targets(change) && selects_by_properties(&of_cluster) {
            let name = change.object().name_any();
            let uses = |spec: &BindingSpec| {
                spec.clusters.iter().any(|target| target.name == name) || !spec.required_by.is_empty()
            };
            let namespaced = of_cluster.bindings.list();
            let namespaced = namespaced.iter().filter(|binding| uses(&binding.spec));
            namespaced.for_each(|binding| bindings.add(Key::of(&**binding)));
            let cluster_wide = of_cluster.cluster_bindings.list();
            let cluster_wide = cluster_wide.iter().filter(|binding| uses(&binding.spec));
            cluster_wide.for_each(|binding| bindings.add(Key::of(&**binding)));
        }
    });
    Subscriptions {
        _policies: policies,
        _cluster_policies: cluster_policies,
        _clusters: clusters,
    }
}

/// Returns the specs before and after a change; none if the spec did not change.
fn specs<'a, P: Resource<DynamicType = ()>>(
    change: &Change<'a, P>,
    spec: impl Fn(&'a P) -> &'a OverrideSpec,
) -> Vec<&'a OverrideSpec> {
    match change {
        _ if !change.is_generation_change() => Vec::new(),
        Change::Added(policy) | Change::Deleted(policy) => vec![spec(policy)],
        Change::Updated { old, new } => vec![spec(old), spec(new)],
    }
}

/// Enqueues a binding if the selectors of a policy may select its object. Labels are not compared: a
/// ClusterOverridePolicy may change them.
fn enqueue(queue: &WorkQueue<Key>, spec: &OverrideSpec, object: &ObjectReference, key: impl Fn() -> Key) {
    let fits = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
    let may_select = |selector: &ResourceSelector| {
        selector.api_version == object.api_version
            && selector.kind == object.kind
            && fits(&selector.namespace, &object.namespace)
            && fits(&selector.name, &object.name)
    };
    if spec.resource_selectors.is_empty() || spec.resource_selectors.iter().any(may_select) {
        queue.add(key());
    }
}

/// Returns true if a property of a cluster changed that selectors compare.
fn may_change_targets(change: &Change<'_, Cluster>) -> bool {
    let Change::Updated { old, new } = change else {
        return false;
    };
    let properties = |cluster: &Cluster| {
        let spec = &cluster.spec;
        (spec.provider.clone(), spec.region.clone(), spec.zones.clone())
    };
    old.labels() != new.labels() || properties(old) != properties(new)
}

/// Returns true if a rule selects clusters by other properties than their names.
fn selects_by_properties(stores: &Stores) -> bool {
    let by_properties = |spec: &OverrideSpec| {
        spec.rules().iter().any(|rule| {
            let target = rule.target_cluster.as_ref();
            target.is_some_and(|target| target.label_selector.is_some() || target.field_selector.is_some())
        })
    };
    let cluster_wide = stores.cluster_override_policies.list();
    let namespaced = stores.override_policies.list();
    cluster_wide.iter().any(|policy| by_properties(&policy.spec))
        || namespaced.iter().any(|policy| by_properties(&policy.spec))
}

#[cfg(test)]
mod tests;
