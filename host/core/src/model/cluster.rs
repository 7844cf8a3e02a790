use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionHistory, ConditionStatus, Taint};
use crate::time::Time;

/// A member cluster as decisions and plugins see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Name, a DNS label of at most 48 characters.
    pub name: String,
    /// Labels, which affinities select by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Bumped by every change of `spec`.
    #[serde(default)]
    pub generation: i64,
    /// When it joined.
    #[serde(default)]
    pub creation_timestamp: Option<Time>,
    /// Set while it is being removed.
    #[serde(default)]
    pub deletion_timestamp: Option<Time>,
    /// Desired state.
    #[serde(default)]
    pub spec: ClusterSpec,
    /// Observed state.
    #[serde(default)]
    pub status: ClusterStatus,
    /// Which policy added which taint: name of the policy by `key:effect`. A taint that is not here is somebody else's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taint_owners: BTreeMap<String, String>,
    /// What the conditions were before.
    #[serde(default, skip_serializing_if = "ConditionHistory::is_empty")]
    pub condition_history: ConditionHistory,
}

impl Cluster {
    /// The `Ready` condition.
    pub fn ready(&self) -> Option<&Condition> {
        Condition::find(&self.status.conditions, "Ready")
    }

    /// Whether the `Ready` condition is True.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Name of the policy that added a taint, if one did.
    pub fn taint_owner(&self, taint: &Taint) -> Option<&String> {
        if self.taint_owners.is_empty() { None } else { self.taint_owners.get(&taint.identity()) }
    }

    /// Whether it is being removed.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether the cluster serves `kind` of `api_version`.
    pub fn serves(&self, api_version: &str, kind: &str) -> bool {
        self.status
            .api_enablements
            .iter()
            .filter(|enablement| enablement.group_version == api_version)
            .any(|enablement| enablement.resources.iter().any(|resource| resource.kind == kind))
    }
}

/// Who talks to whom.
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
    /// Push or Pull.
    pub sync_mode: SyncMode,
    /// URL of the member's API server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_endpoint: String,
    /// Where the member's credentials are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::SecretReference>"))]
    pub secret_ref: Option<serde_json::Value>,
    /// Where the credentials are with which Karmada's proxy acts in the name of others. Nothing here uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::SecretReference>"))]
    pub impersonator_secret_ref: Option<serde_json::Value>,
    /// Whether the certificate of the member's API server goes unchecked.
    #[serde(default, rename = "insecureSkipTLSVerification", skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_tls_verification: bool,
    /// Proxy on the way to the member's API server: http, https or socks5.
    #[serde(default, rename = "proxyURL", skip_serializing_if = "String::is_empty")]
    pub proxy_url: String,
    /// Headers for the proxy, with the request to connect. Kept for Karmada; this program sends none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,
    /// Cloud provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Zone, the deprecated single form; moved to `zones` on every write.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Taints, unique by (key, effect).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Grades of nodes, kept as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::ResourceModel>"))]
    pub resource_models: Vec<serde_json::Value>,
    /// Fields of a later Karmada, kept so that a write loses nothing. Our own definition has none of them.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// `status` of a `Cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// `gitVersion` of the member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// What the member serves, sorted by group version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_enablements: Vec<ApiEnablement>,
    /// `Ready`, `CompleteAPIEnablements` and others that third parties write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Counts of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_summary: Option<NodeSummary>,
    /// Sums of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_summary: Option<ResourceSummary>,
    /// Fields that decisions do not read, kept so that a write loses nothing.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// The kinds a member serves in one group version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiEnablement {
    /// `group/version`, or `v1`.
    pub group_version: String,
    /// Sorted by name; subresources are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ApiResource>,
}

/// One kind a member serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiResource {
    /// Plural name.
    pub name: String,
    /// Kind.
    pub kind: String,
}

/// Counts of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// All nodes.
    #[serde(default)]
    pub total_num: i32,
    /// Nodes whose Ready condition is True.
    #[serde(default)]
    pub ready_num: i32,
}

/// Sums of resources by name, as Kubernetes quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// What all nodes offer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// Requested by pods that have no node yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocating: BTreeMap<String, String>,
    /// Requested by pods that have a node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated: BTreeMap<String, String>,
    /// Counts of nodes by grade, kept as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocatable_modelings: Vec<serde_json::Value>,
}
