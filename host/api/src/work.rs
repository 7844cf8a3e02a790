//! Works: objects for one member cluster (Karmada: `pkg/apis/work/v1alpha1/work_types.go`).

use bulkhead_core::model::{Condition, Health};
use kube::core::NamespaceResourceScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::api_object;

/// Condition type: the manifests are applied in the member cluster.
pub const APPLIED: &str = "Applied";
/// Condition type: False while dispatching is suspended.
pub const DISPATCHING: &str = "Dispatching";

api_object! {
    /// Manifests for one member cluster, in that cluster's execution namespace.
    Work {
        group: "work.karmada.io",
        version: "v1alpha1",
        plural: "works",
        scope: NamespaceResourceScope,
        spec: WorkSpec,
        status: WorkStatus
    }
}

/// `spec` of a [`Work`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkSpec {
    /// Objects to apply.
    #[serde(default)]
    pub workload: WorkloadTemplate,
    /// True if nothing is dispatched to the member cluster for now; Karmada always writes it, `false` included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_dispatching: Option<bool>,
    /// True if member objects outlive the Work; Karmada always writes it, `false` included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// `spec.workload` of a [`Work`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadTemplate {
    /// Complete objects; Karmada writes exactly one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Value>")]
    pub manifests: Vec<Manifest>,
}

/// Object of a [`Work`], stored as the JSON that was read. A control plane holds very many of them and reads few at a
/// time; a tree takes several times as much memory. Manifests are equal if their values are, in any order of the
/// fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest(Box<RawValue>);

impl Manifest {
    /// Returns the object as JSON.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the object.
    ///
    /// # Errors
    ///
    /// The object has more than 127 levels, a number beyond the range of a 64-bit float, or an escape that is no Unicode
    /// character.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl From<&Value> for Manifest {
    fn from(object: &Value) -> Self {
        // A value can always be serialized.
        Self(serde_json::value::to_raw_value(object).unwrap_or_default())
    }
}

impl PartialEq for Manifest {
    fn eq(&self, other: &Self) -> bool {
        // API servers sort the fields, so that equal values nearly always have equal texts.
        let is_same_text = self.text() == other.text();
        is_same_text
            || self
                .value()
                .is_ok_and(|own| other.value().is_ok_and(|other| own == other))
    }
}

/// `status` of a [`Work`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkStatus {
    /// Conditions [`APPLIED`] and [`DISPATCHING`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Status of each manifest, as reported by the member cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_statuses: Vec<ManifestStatus>,
}

/// Status of one manifest, as reported by the member cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestStatus {
    /// Identity of the manifest.
    pub identifier: ResourceIdentifier,
    /// Reflected status of the object in the member cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Health of the object in the member cluster; absent until it is determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// Identity of one manifest of a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceIdentifier {
    /// Index in `spec.workload.manifests`.
    pub ordinal: i32,
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name; required on the wire, and always empty in objects that Karmada writes.
    #[serde(default)]
    pub resource: String,
    /// Namespace; empty for cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn manifests_are_equal_in_any_order_of_their_fields() {
        let read = |text: &str| serde_json::from_str::<Manifest>(text).unwrap();
        let sorted = read(r#"{"a":{"b":[1,-2,0.5,null,true],"c":"\u003cé\""},"kind":"Job"}"#);
        let other = read(r#" {"kind": "Job", "a": {"c": "<é\"", "b": [1, -2, 0.5, null, true]}} "#);
        assert_eq!(sorted, other);
        assert_eq!(sorted, Manifest::from(&sorted.value().unwrap()));
        assert_eq!(serde_json::to_value(&other).unwrap(), sorted.value().unwrap());
        assert_ne!(sorted, read(r#"{"kind":"Job"}"#));
        assert!(serde_json::from_str::<Manifest>(r#"{"kind":}"#).is_err());
    }

    #[test]
    fn a_manifest_that_cannot_be_read_does_not_hide_the_others() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let work = format!(r#"{{"spec": {{"workload": {{"manifests": [{deep}, {{"kind": "Job"}}]}}}}}}"#);
        let work: Work = serde_json::from_str(&work).unwrap();
        let manifests = work.spec.workload.manifests;
        assert!(manifests[0].value().is_err());
        assert_eq!(manifests[0], manifests[0].clone());
        assert_eq!(manifests[1].value().unwrap(), json!({"kind": "Job"}));
    }

    #[test]
    fn works_round_trip() {
        let wire = json!({
            "apiVersion": "work.karmada.io/v1alpha1",
            "kind": "Work",
            "metadata": {"name": "nginx-687f7fb96f", "namespace": "karmada-es-member1"},
            "spec": {
                "workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]},
                "suspendDispatching": false,
                "preserveResourcesOnDeletion": false,
            },
            "status": {
                "conditions": [{
                    "type": "Applied", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z",
                    "reason": "AppliedSuccessful", "message": "Manifest has been successfully applied",
                }],
                "manifestStatuses": [{
                    "identifier": {"ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "", "name": "c"},
                    "health": "Healthy",
                }],
            },
        });
        let work: Work = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(serde_json::to_value(work).unwrap(), wire);
    }
}
