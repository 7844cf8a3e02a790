//! Copy of the objects of a control plane that the controllers of a mode read.

use std::collections::BTreeSet;

use bulkhead_api::{
    Cluster, ClusterDrain, ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, ClusterTaintPolicy,
    EvictionPause, OverridePolicy, PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization,
    ResourceInterpreterWebhookConfiguration, Work, WorkloadRebalancer,
};
use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Contents, ResourceKind, Scope};
use bulkhead_core::names;
use bulkhead_core::time::Time;
use bulkhead_runtime::controller::is_not_found;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::pages;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource, discovery};
use serde_json::{Value, json};

/// Objects of a control plane, with the kinds of resource templates.
#[derive(Clone, Debug, Default)]
pub struct ControlPlaneCopy {
    /// Objects with `apiVersion` and `kind`, as the API server returned them.
    pub(super) objects: Vec<Value>,
    /// Kinds of resource templates.
    pub(super) kinds: Vec<ResourceKind>,
}

/// Objects could not be read, so that a rehearsal would show changes that are none.
#[derive(Debug)]
pub struct NotRead {
    /// Plural or kind that could not be listed.
    pub what: String,
    /// Error of the request.
    pub source: Box<kube::Error>,
}

/// Reads the objects that `controllers` need, page by page, without writing. Kinds that are not served have no
/// objects.
///
/// # Errors
///
/// A request fails. Without all of its objects, a control plane looks as if they were deleted.
pub async fn read(client: &Client, controllers: &[&str]) -> Result<ControlPlaneCopy, NotRead> {
    let mut copy = ControlPlaneCopy::default();
    // Works first: a binding without its Work looks new, and a Work without its binding would look left over.
    copy.list::<Work>(client).await?;
    copy.list::<ResourceBinding>(client).await?;
    copy.list::<ClusterResourceBinding>(client).await?;
    copy.list::<PropagationPolicy>(client).await?;
    copy.list::<ClusterPropagationPolicy>(client).await?;
    copy.list::<Cluster>(client).await?;
    copy.list::<ClusterTaintPolicy>(client).await?;
    copy.list::<EvictionPause>(client).await?;
    copy.list::<ClusterDrain>(client).await?;
    copy.list::<ResourceInterpreterCustomization>(client).await?;
    copy.list::<ResourceInterpreterWebhookConfiguration>(client).await?;
    if controllers.contains(&"binding") {
        copy.list::<OverridePolicy>(client).await?;
        copy.list::<ClusterOverridePolicy>(client).await?;
    }
    if controllers.contains(&"workloadRebalancer") {
        copy.list::<WorkloadRebalancer>(client).await?;
    }
    if controllers.contains(&"detector") {
        copy.list::<Namespace>(client).await?;
        copy.list::<PriorityClass>(client).await?;
        for kind in copy.kinds_of_templates() {
            copy.list_templates(client, &kind).await?;
        }
    }
    Ok(copy)
}

impl ControlPlaneCopy {
    async fn list<K: Resource<DynamicType = ()>>(&mut self, client: &Client) -> Result<(), NotRead> {
        self.list_resource(client, &ApiResource::erase::<K>(&())).await
    }

    async fn list_resource(&mut self, client: &Client, resource: &ApiResource) -> Result<(), NotRead> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
        let take = |object: DynamicObject| {
            let mut object = json!(object);
            object["apiVersion"] = json!(resource.api_version);
            object["kind"] = json!(resource.kind);
            self.objects.push(object);
        };
        match pages::each(async |page| api.list(page).await, take).await {
            Err(error) if !is_not_found(&error) => Err(NotRead {
                what: resource.plural.clone(),
                source: Box::new(error),
            }),
            _ => Ok(()),
        }
    }

    async fn list_templates(&mut self, client: &Client, kind: &ObjectKind) -> Result<(), NotRead> {
        let (resource, capabilities) = match discovery::pinned_kind(client, &kind.gvk()).await {
            Ok(found) => found,
            // A policy may select a kind that is not installed. The check of interpreters reports it.
            Err(kube::Error::Discovery(_)) => return Ok(()),
            Err(error) if is_not_found(&error) => return Ok(()),
            Err(source) => {
                return Err(NotRead {
                    what: kind.to_string(),
                    source: Box::new(source),
                });
            }
        };
        let mut subresources = capabilities.subresources.iter();
        let has_status = subresources.any(|(resource, _)| resource.plural == "status");
        let namespaced = capabilities.scope == discovery::Scope::Namespaced;
        self.kinds
            .push(served(kind, resource.plural.clone(), namespaced, has_status));
        self.list_resource(client, &resource).await
    }

    /// Returns the kinds that policies select and that bindings name, without those that were read.
    fn kinds_of_templates(&self) -> BTreeSet<ObjectKind> {
        let mut kinds = BTreeSet::new();
        for object in &self.objects {
            match text(object, "/kind") {
                "PropagationPolicy" | "ClusterPropagationPolicy" => {
                    kinds.extend(array(object, "/spec/resourceSelectors").iter().map(kind_of));
                }
                "ResourceBinding" | "ClusterResourceBinding" => {
                    kinds.insert(kind_of(&object["spec"]["resource"]));
                }
                _ => {}
            }
        }
        let read: BTreeSet<_> = self.objects.iter().map(kind_of).collect();
        kinds.retain(|kind| !kind.kind.is_empty() && !read.contains(kind));
        kinds
    }
}

/// Returns the objects as an API server stores them, with the namespaces that they need.
pub(super) fn contents(mut objects: Vec<Value>, now: Time) -> Contents {
    let mut version = objects.iter().map(version_of).max().unwrap_or(0);
    let (mut wanted, mut known) = (BTreeSet::new(), BTreeSet::new());
    for object in &objects {
        let name = text(object, "/metadata/name");
        match text(object, "/kind") {
            "Namespace" => drop(known.insert(name.to_owned())),
            "Cluster" => drop(wanted.insert(names::execution_namespace(name))),
            _ => {}
        }
        let namespace = text(object, "/metadata/namespace");
        if !namespace.is_empty() {
            wanted.insert(namespace.to_owned());
        }
    }
    for (index, name) in wanted.difference(&known).enumerate() {
        version += 1;
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": format!("copied-{index}"),
                "resourceVersion": version.to_string(),
                "generation": 1,
                "creationTimestamp": now.truncated(),
            },
        }));
    }
    Contents { version, objects }
}

fn kind_of(object: &Value) -> ObjectKind {
    ObjectKind::new(text(object, "/apiVersion"), text(object, "/kind"))
}

fn version_of(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or(0)
}

fn served(kind: &ObjectKind, plural: String, namespaced: bool, has_status: bool) -> ResourceKind {
    let (group, version) = names::split_api_version(&kind.api_version);
    ResourceKind {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.kind.clone().into(),
        plural: plural.into(),
        scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
        status_subresource: has_status,
        ..ResourceKind::namespaced("", "", "", "")
    }
}
