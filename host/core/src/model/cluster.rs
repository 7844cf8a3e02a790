use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionHistory, ConditionStatus, Taint};
use crate::time::Time;

/// Member cluster as decisions and plugins see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Name, a DNS label of at most 48 characters.
    pub name: String,
    /// Labels, which cluster affinities select on.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Generation of `spec`, incremented on every change.
    #[serde(default)]
    pub generation: i64,
    /// Time at which the cluster joined.
    #[serde(default)]
    pub creation_timestamp: Option<Time>,
    /// Time of the removal request; absent while the cluster is not being removed.
    #[serde(default)]
    pub deletion_timestamp: Option<Time>,
    /// Desired state.
    #[serde(default)]
    pub spec: ClusterSpec,
    /// Observed state.
    #[serde(default)]
    pub status: ClusterStatus,
    /// Policy that added each taint: policy name by `key:effect`. All other taints were added by third parties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taint_owners: BTreeMap<String, String>,
    /// True if the record of the owners is malformed: any taint may have an owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taint_owners_unknown: bool,
    /// History of the conditions.
    #[serde(default, skip_serializing_if = "ConditionHistory::is_empty")]
    pub condition_history: ConditionHistory,
}

impl Cluster {
    /// Returns the `Ready` condition.
    pub fn ready(&self) -> Option<&Condition> {
        Condition::find(&self.status.conditions, "Ready")
    }

    /// Returns true if the `Ready` condition is True.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Returns the name of the policy that added the taint; `None` if no policy did.
    pub fn taint_owner(&self, taint: &Taint) -> Option<&String> {
        if self.taint_owners.is_empty() {
            None
        } else {
            self.taint_owners.get(&taint.identity())
        }
    }

    /// Returns true if the cluster is being removed.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns true if the cluster serves `kind` of `api_version`.
    pub fn serves(&self, api_version: &str, kind: &str) -> bool {
        self.status
            .api_enablements
            .iter()
            .filter(|enablement| enablement.group_version == api_version)
            .any(|enablement| enablement.resources.iter().any(|resource| resource.kind == kind))
    }
}

/// Direction of the connection between control plane and member cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SyncMode {
    /// The control plane calls the member cluster.
    #[default]
    Push,
    /// An agent in the member cluster calls the control plane.
    Pull,
}

/// `spec` of a `Cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Unique id of the member cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Push or Pull mode.
    pub sync_mode: SyncMode,
    /// URL of the member's API server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_endpoint: String,
    /// Secret with the credentials for the member cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::model::schema::SecretReference>"))]
    pub secret_ref: Option<serde_json::Value>,
    /// Secret with the credentials that Karmada's proxy uses for impersonation. Not used by Bulkhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::model::schema::SecretReference>"))]
    pub impersonator_secret_ref: Option<serde_json::Value>,
    /// True if the certificate of the member's API server is not verified.
    #[serde(
        default,
        rename = "insecureSkipTLSVerification",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub insecure_skip_tls_verification: bool,
    /// Proxy for connections to the member's API server: http, https or socks5.
    #[serde(default, rename = "proxyURL", skip_serializing_if = "String::is_empty")]
    pub proxy_url: String,
    /// Headers for the CONNECT request to the proxy. Preserved for Karmada; Bulkhead sends none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,
    /// Cloud provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Zone; deprecated singular form, moved to `zones` on every write.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Taints, unique by key and effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Grades of nodes, preserved as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::model::schema::ResourceModel>"))]
    pub resource_models: Vec<serde_json::Value>,
    /// Fields of later Karmada versions, preserved on writes. Bulkhead's own CRD has none of them.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// `status` of a `Cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Kubernetes version (`gitVersion`) of the member cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// APIs that the member cluster serves, sorted by group version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_enablements: Vec<ApiEnablement>,
    /// Conditions such as `Ready` and `CompleteAPIEnablements`; third parties may add others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Node counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_summary: Option<NodeSummary>,
    /// Resource totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_summary: Option<ResourceSummary>,
    /// Fields that decisions do not read, preserved on writes.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// Kinds that a member cluster serves in one group version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiEnablement {
    /// `group/version`, or `v1`.
    pub group_version: String,
    /// Resources, sorted by name, without subresources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ApiResource>,
}

/// Kind that a member cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiResource {
    /// Plural name.
    pub name: String,
    /// Kind.
    pub kind: String,
}

/// Node counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Number of nodes.
    #[serde(default)]
    pub total_num: i32,
    /// Number of nodes whose Ready condition is True.
    #[serde(default)]
    pub ready_num: i32,
}

/// Resource totals by name, as Kubernetes quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// Total allocatable resources of all nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// Requests of pods that are not assigned to a node yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocating: BTreeMap<String, String>,
    /// Requests of pods that are assigned to a node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated: BTreeMap<String, String>,
    /// Node counts by grade, preserved as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocatable_modelings: Vec<serde_json::Value>,
}
