use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{LabelSelector, List, SelectorRequirement, Toleration, WorkloadAffinity};

/// Cluster selection and replica division of a workload: `spec.placement` of policies and bindings.
///
/// Comparison is structural, as when Karmada compares the decoded annotation with the live value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Cluster filter; mutually exclusive with `cluster_affinities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Ordered affinity groups, tried in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinities: Option<Vec<ClusterAffinityTerm>>,
    /// Tolerations for taints of target clusters.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub cluster_tolerations: List<Toleration>,
    /// Limits on the number of cluster groups to spread over.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub spread_constraints: List<SpreadConstraint>,
    /// Division of replicas; absent means Duplicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// Affinity and anti-affinity between the workloads of a namespace, behind the feature gate `WorkloadAffinity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

impl Placement {
    /// Parses a placement from JSON text with Go's semantics: null counts as unset at every level, and unknown fields
    /// are ignored.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_str(text)?;
        drop_nulls(&mut value);
        match value {
            Value::Null => Ok(Self::default()),
            // Serde would accept a list and assign its elements to the fields in order.
            Value::Array(_) => Err(serde::de::Error::custom("a placement is an object, not a list")),
            value => serde_json::from_value(value),
        }
    }

    /// Returns the declared type; an absent `replicaScheduling` counts as Duplicated.
    pub fn replica_scheduling_type(&self) -> ReplicaSchedulingType {
        self.replica_scheduling
            .as_ref()
            .map_or(ReplicaSchedulingType::Duplicated, |scheduling| {
                scheduling.replica_scheduling_type
            })
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Cluster filter; all parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// Selector on the cluster's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Selector on `provider`, `region` and `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
    /// Names of the selected clusters; empty selects all.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub cluster_names: List<String>,
    /// Names of excluded clusters; takes precedence over all other parts.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub exclude: List<String>,
}

/// Requirements on `provider`, `region` and `zone`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldSelector {
    /// Requirements; all must match.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub match_expressions: List<SelectorRequirement>,
}

/// One affinity group of `clusterAffinities`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinityTerm {
    /// Name of the group, unique in the placement.
    pub affinity_name: String,
    /// Cluster filter of the group.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Additional clusters, used entry by entry when the group has no capacity; preserved as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_affinities: Option<Value>,
}

impl ClusterAffinityTerm {
    /// Returns the overflow entries in order; empty if absent or malformed.
    pub fn overflow(&self) -> Vec<Self> {
        let entries = self.overflow_affinities.as_ref().filter(|entries| !entries.is_null());
        entries
            .and_then(|entries| Vec::deserialize(entries).ok())
            .unwrap_or_default()
    }
}

/// Spread constraint. As in Karmada, a `maxGroups` of 0 allows no group; it does not mean "no limit".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// `cluster`, `region`, `zone` or `provider`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_field: String,
    /// Label key; not implemented in Karmada.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spread_by_label: String,
    /// Maximum number of groups.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_groups: i64,
    /// Minimum number of groups.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_groups: i64,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// Division of replicas among the target clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaScheduling {
    /// Duplicated or Divided. The CRD default is Divided.
    #[serde(default)]
    pub replica_scheduling_type: ReplicaSchedulingType,
    /// Division strategy; an empty string reads as absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub replica_division_preference: Option<ReplicaDivisionPreference>,
    /// Weights for the `Weighted` strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<ClusterPreferences>,
}

/// Type of replica scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplicaSchedulingType {
    /// Every target cluster gets all replicas.
    Duplicated,
    /// The replicas are divided among the target clusters.
    #[default]
    Divided,
}

/// Strategy for dividing replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplicaDivisionPreference {
    /// Use as few clusters as have sufficient capacity.
    Aggregated,
    /// Divide by weight.
    Weighted,
}

/// Reads null and an empty string as absent, as Go does.
fn empty_is_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ReplicaDivisionPreference>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Preference(ReplicaDivisionPreference),
        Other(String),
    }
    match Option::deserialize(deserializer)? {
        None => Ok(None),
        Some(Text::Preference(preference)) => Ok(Some(preference)),
        Some(Text::Other(text)) if text.is_empty() => Ok(None),
        Some(Text::Other(text)) => Err(serde::de::Error::custom(format!(
            "unknown preference {text:?}, expected Aggregated or Weighted"
        ))),
    }
}

/// Weights of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreferences {
    /// Static weights; a cluster that matches several rules gets the largest weight.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub static_weight_list: List<StaticWeight>,
    /// `AvailableReplicas`: weight by the available replicas of each cluster; the static list is then ignored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dynamic_weight: String,
}

/// Rule of a static weight list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StaticWeight {
    /// Clusters to which the rule applies.
    pub target_cluster: ClusterAffinity,
    /// Weight of these clusters, at least 1.
    pub weight: i64,
}
