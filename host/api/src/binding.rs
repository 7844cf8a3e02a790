//! Bindings: one resource template and its placement (Karmada: `pkg/apis/work/v1alpha2/binding_types.go`).
//!
//! Karmada has a namespaced and a cluster-scoped kind with the same spec and status. Controllers are generic over
//! [`AnyBinding`].

use bulkhead_core::model::{self, BindingSpec, BindingStatus};
use bulkhead_core::names::keys;
use kube::core::{ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::object::api_object;
use crate::time::{from_meta, to_meta};

api_object! {
    /// Binding of a namespaced resource template to member clusters.
    ResourceBinding {
        group: "work.karmada.io",
        version: "v1alpha2",
        plural: "resourcebindings",
        scope: NamespaceResourceScope,
        spec: BindingSpec,
        status: BindingStatus
    }
}

api_object! {
    /// Binding of a cluster-scoped resource template to member clusters.
    ClusterResourceBinding {
        group: "work.karmada.io",
        version: "v1alpha2",
        plural: "clusterresourcebindings",
        scope: ClusterResourceScope,
        spec: BindingSpec,
        status: BindingStatus
    }
}

/// Common interface of both kinds of binding.
pub trait AnyBinding:
    Resource<DynamicType = ()>
    + Clone
    + std::fmt::Debug
    + Default
    + PartialEq
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Label with the permanent id, by which Works reference their binding.
    const ID_LABEL: &'static str;
    /// Finalizer of the binding controller for this kind.
    const FINALIZER: &'static str;

    /// Returns the desired state.
    fn spec(&self) -> &BindingSpec;

    /// Returns the desired state for modification.
    fn spec_mut(&mut self) -> &mut BindingSpec;

    /// Returns the observed state.
    fn status(&self) -> &BindingStatus;

    /// Returns the observed state for modification.
    fn status_mut(&mut self) -> &mut BindingStatus;

    /// Returns the permanent id. An empty label counts as absent, because Works must never be looked up by it.
    fn permanent_id(&self) -> Option<&str> {
        self.labels()
            .get(Self::ID_LABEL)
            .map(String::as_str)
            .filter(|id| !id.is_empty())
    }

    /// True if a policy or another manager owns the binding. The scheduler leaves others alone (Karmada:
    /// `pkg/scheduler/event_handler.go`, `resourceBindingEventFilter`).
    fn is_managed(&self) -> bool {
        let managers = [
            keys::PROPAGATION_POLICY_ID,
            keys::CLUSTER_PROPAGATION_POLICY_ID,
            keys::BINDING_MANAGED_BY,
        ];
        let labels = self.labels();
        managers
            .into_iter()
            .any(|label| labels.get(label).is_some_and(|value| !value.is_empty()))
    }

    /// Converts the binding to the model that decisions use.
    fn to_model(&self) -> model::Binding {
        model::Binding {
            namespace: self.namespace(),
            name: self.name_any(),
            generation: self.meta().generation.unwrap_or_default(),
            labels: self.labels().clone(),
            annotations: self.annotations().clone(),
            deletion_timestamp: self.meta().deletion_timestamp.as_ref().map(from_meta),
            spec: self.spec().clone(),
            status: self.status().clone(),
        }
    }

    /// Creates the object of a model. Metadata that the model does not have stays empty.
    fn from_model(binding: &model::Binding) -> Self {
        let mut object = Self::default();
        *object.meta_mut() = ObjectMeta {
            namespace: binding.namespace.clone(),
            name: Some(binding.name.clone()),
            generation: (binding.generation != 0).then_some(binding.generation),
            labels: (!binding.labels.is_empty()).then(|| binding.labels.clone()),
            annotations: (!binding.annotations.is_empty()).then(|| binding.annotations.clone()),
            deletion_timestamp: binding.deletion_timestamp.map(to_meta),
            ..ObjectMeta::default()
        };
        object.spec_mut().clone_from(&binding.spec);
        object.status_mut().clone_from(&binding.status);
        object
    }
}

macro_rules! any_binding {
    ($kind:ty, $id_label:expr, $finalizer:expr) => {
        impl AnyBinding for $kind {
            const ID_LABEL: &'static str = $id_label;
            const FINALIZER: &'static str = $finalizer;

            fn spec(&self) -> &BindingSpec {
                &self.spec
            }

            fn spec_mut(&mut self) -> &mut BindingSpec {
                &mut self.spec
            }

            fn status(&self) -> &BindingStatus {
                &self.status
            }

            fn status_mut(&mut self) -> &mut BindingStatus {
                &mut self.status
            }
        }
    };
}

any_binding!(ResourceBinding, keys::RESOURCE_BINDING_ID, keys::BINDING_FINALIZER);
any_binding!(
    ClusterResourceBinding,
    keys::CLUSTER_RESOURCE_BINDING_ID,
    keys::CLUSTER_BINDING_FINALIZER
);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wire(kind: &str, namespace: Option<&str>, id_label: &str) -> Value {
        let mut object = json!({
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": kind,
            "metadata": {
                "name": "nginx-deployment",
                "generation": 2,
                "labels": {id_label: "5a7"},
                "annotations": {"policy.karmada.io/applied-placement": "{}"},
                "deletionTimestamp": "2023-11-14T22:13:20Z",
            },
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "uid": "u1"},
                "replicas": 2,
                "clusters": [{"name": "member1"}, {"name": "member2", "replicas": 2}],
                "schedulePriority": {"priority": 7},
                "gracefulEvictionTasks": [{
                    "fromCluster": "member3", "purgeMode": "Gracefully", "reason": "TaintUntolerated",
                    "producer": "TaintManager", "creationTimestamp": "2023-11-14T22:13:20Z",
                }],
            },
            "status": {"schedulerObservedGeneration": 2, "schedulerObservingAffinityName": "primary"},
        });
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object
    }

    fn check<B: AnyBinding>(wire: Value) {
        let binding: B = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(binding.permanent_id(), Some("5a7"));
        assert_eq!(binding.status().scheduler_observed_affinity_name, "primary");
        let model = binding.to_model();
        assert_eq!(model.kind(), B::kind(&()));
        assert_eq!(B::from_model(&model), binding);
        assert_eq!(serde_json::to_value(&binding).unwrap(), wire);
    }

    #[test]
    fn both_kinds_go_to_the_model_and_back() {
        check::<ResourceBinding>(wire("ResourceBinding", Some("default"), keys::RESOURCE_BINDING_ID));
        check::<ClusterResourceBinding>(wire("ClusterResourceBinding", None, keys::CLUSTER_RESOURCE_BINDING_ID));
    }

    #[test]
    fn an_empty_permanent_id_is_none() {
        let mut binding = ResourceBinding::default();
        assert_eq!(binding.permanent_id(), None);
        binding
            .labels_mut()
            .insert(keys::RESOURCE_BINDING_ID.into(), String::new());
        assert_eq!(binding.permanent_id(), None);
    }
}
