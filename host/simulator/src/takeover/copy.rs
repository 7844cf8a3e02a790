//! Copy of the objects of a control plane that the controllers of a mode read.

use std::collections::BTreeSet;
use std::fmt;

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
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, discovery};
use serde_json::{Value, json};

/// Page size of list requests.
const PAGE: u32 = 500;

/// Objects of a control plane, with the kinds of resource templates.
#[derive(Clone, Debug, Default)]
pub struct ControlPlaneCopy {
    /// Objects with `apiVersion` and `kind`, as the API server returned them.
    pub objects: Vec<Value>,
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

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot list {}", self.what)
    }
}

impl std::error::Error for NotRead {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
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
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = match api.list(&page).await {
                Ok(list) => list,
                Err(error) if is_not_found(&error) => return Ok(()),
                Err(source) => {
                    return Err(NotRead {
                        what: resource.plural.clone(),
                        source: Box::new(source),
                    });
                }
            };
            for object in list.items {
                let mut object = json!(object);
                object["apiVersion"] = json!(resource.api_version);
                object["kind"] = json!(resource.kind);
                self.objects.push(object);
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    async fn list_templates(&mut self, client: &Client, kind: &ObjectKind) -> Result<(), NotRead> {
        let (group, version) = names::split_api_version(&kind.api_version);
        let gvk = GroupVersionKind::gvk(group, version, &kind.kind);
        let (resource, capabilities) = match discovery::pinned_kind(client, &gvk).await {
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
        let has_status = capabilities.subresources.iter().any(|(resource, _)| {
            let parts = resource.plural.split_once('/');
            parts.map_or(resource.plural.as_str(), |(_, name)| name) == "status"
        });
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
        let is_read = |kind: &ObjectKind| self.objects.iter().any(|object| kind_of(object) == *kind);
        kinds
            .into_iter()
            .filter(|kind| !kind.kind.is_empty() && !is_read(kind))
            .collect()
    }

    /// Returns the objects as an API server stores them, with the namespaces that they need. Metadata that a file may
    /// lack is added.
    pub(super) fn contents(&self, now: Time) -> Contents {
        let mut version = self.objects.iter().map(version_of).max().unwrap_or(0);
        let mut objects = self.objects.clone();
        let (mut wanted, mut known) = (BTreeSet::new(), BTreeSet::new());
        for object in &self.objects {
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
        let namespace = |name: &String| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        objects.extend(wanted.difference(&known).map(namespace));
        for (index, object) in objects.iter_mut().enumerate() {
            let is_new = version_of(object) == 0;
            let metadata = &mut object["metadata"];
            if is_new {
                version += 1;
                metadata["resourceVersion"] = json!(version.to_string());
            }
            for (field, default) in [
                ("uid", json!(format!("copied-{index}"))),
                ("generation", json!(1)),
                ("creationTimestamp", json!(now.truncated())),
            ] {
                if metadata[field].is_null() {
                    metadata[field] = default;
                }
            }
        }
        Contents { version, objects }
    }
}

fn kind_of(object: &Value) -> ObjectKind {
    ObjectKind::new(text(object, "/apiVersion"), text(object, "/kind"))
}

fn version_of(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or(0)
}

fn served(kind: &ObjectKind, plural: String, namespaced: bool, has_status: bool) -> ResourceKind {
    let (group, version) = names::split_api_version(&kind.api_version);
    let mut served = ResourceKind::namespaced("", "", "", "");
    served.group = group.to_owned().into();
    served.version = version.to_owned().into();
    served.kind = kind.kind.clone().into();
    served.plural = plural.into();
    served.scope = if namespaced { Scope::Namespaced } else { Scope::Cluster };
    served.status_subresource = has_status;
    served
}
