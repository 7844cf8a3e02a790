use serde::{Deserialize, Serialize};

use super::{LabelSelector, SelectorRequirement, Toleration};

/// Where a workload may run and how its replicas are divided: `spec.placement` of policies and bindings.
///
/// Comparison is structural; Karmada compares the decoded annotation with the live value the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// One filter over clusters; excludes `cluster_affinities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Ordered groups, tried one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinities: Option<Vec<ClusterAffinityTerm>>,
    /// Taints that may be on a target cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_tolerations: Vec<Toleration>,
    /// How many groups of clusters to spread over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// How replicas are divided; absent is Duplicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// Affinity between workloads, kept as it came: this scheduler does not read it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<serde_json::Value>,
}

impl Placement {
    /// The declared type; an absent `replicaScheduling` counts as Duplicated.
    pub fn replica_scheduling_type(&self) -> ReplicaSchedulingType {
        self.replica_scheduling
            .as_ref()
            .map_or(ReplicaSchedulingType::Duplicated, |scheduling| scheduling.replica_scheduling_type)
    }
}

/// A filter over clusters; all parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// On the cluster's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// On `provider`, `region` and `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
    /// Only these; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
    /// Never these; beats everything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// Requirements on `provider`, `region` and `zone`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldSelector {
    /// All must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One group of `clusterAffinities`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinityTerm {
    /// Name of the group, unique in the placement.
    pub affinity_name: String,
    /// The group's filter.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Further clusters to use when the group itself is full, kept as it came: not used by this scheduler yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_affinities: Option<serde_json::Value>,
}

/// A spread constraint. `maxGroups` 0 means none at all, not "no limit", as in Karmada.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// `cluster`, `region`, `zone` or `provider`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_field: String,
    /// A label key; never implemented by Karmada.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_label: String,
    /// Most groups to use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_groups: i64,
    /// Fewest groups to use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_groups: i64,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// How replicas are divided over the target clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaScheduling {
    /// Every cluster gets all replicas, or they are divided. The CRD's default is Divided.
    #[serde(default)]
    pub replica_scheduling_type: ReplicaSchedulingType,
    /// How they are divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_division_preference: Option<ReplicaDivisionPreference>,
    /// Weights for `Weighted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<ClusterPreferences>,
}

/// Duplicated or Divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaSchedulingType {
    /// Every target cluster gets all replicas.
    Duplicated,
    /// The replicas are divided over the target clusters.
    #[default]
    Divided,
}

/// How replicas are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaDivisionPreference {
    /// Over as few clusters as have room.
    Aggregated,
    /// By weight.
    Weighted,
}

/// Weights of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreferences {
    /// Fixed weights; a cluster matched by several rules gets the largest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_weight_list: Vec<StaticWeight>,
    /// `AvailableReplicas`: by what each cluster has room for; the static list is then ignored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dynamic_weight: String,
}

/// One rule of a static weight list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticWeight {
    /// Which clusters.
    pub target_cluster: ClusterAffinity,
    /// Their weight, at least 1.
    pub weight: i64,
}
