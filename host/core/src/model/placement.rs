use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{LabelSelector, List, SelectorRequirement, Toleration};

/// Where a workload may run and how its replicas are divided: `spec.placement` of policies and bindings.
///
/// Comparison is structural; Karmada compares the decoded annotation with the live value the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// One filter over clusters; excludes `cluster_affinities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Ordered groups, tried one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinities: Option<Vec<ClusterAffinityTerm>>,
    /// Taints that may be on a target cluster.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub cluster_tolerations: List<Toleration>,
    /// How many groups of clusters to spread over.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub spread_constraints: List<SpreadConstraint>,
    /// How replicas are divided; absent is Duplicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// Affinity between workloads, kept as it came; the scheduler reads the groups that the detector made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_affinity: Option<Value>,
}

impl Placement {
    /// Reads a placement from JSON text as Go would: null counts as unset wherever it stands, and fields that are
    /// not known are ignored.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_str(text)?;
        drop_nulls(&mut value);
        match value {
            Value::Null => Ok(Self::default()),
            // Serde would take the elements of a list for the fields, in order.
            Value::Array(_) => Err(serde::de::Error::custom("a placement is an object, not a list")),
            value => serde_json::from_value(value),
        }
    }

    /// The declared type; an absent `replicaScheduling` counts as Duplicated.
    pub fn replica_scheduling_type(&self) -> ReplicaSchedulingType {
        self.replica_scheduling
            .as_ref()
            .map_or(ReplicaSchedulingType::Duplicated, |scheduling| scheduling.replica_scheduling_type)
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

/// A filter over clusters; all parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// On the cluster's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// On `provider`, `region` and `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<FieldSelector>,
    /// Only these; empty is all.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub cluster_names: List<String>,
    /// Never these; beats everything else.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub exclude: List<String>,
}

/// Requirements on `provider`, `region` and `zone`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldSelector {
    /// All must hold.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub match_expressions: List<SelectorRequirement>,
}

/// One group of `clusterAffinities`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinityTerm {
    /// Name of the group, unique in the placement.
    pub affinity_name: String,
    /// The group's filter.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Further clusters to use, entry by entry, when the group itself is full; kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow_affinities: Option<Value>,
}

impl ClusterAffinityTerm {
    /// The overflow entries in order; none when there are none or when they cannot be read.
    pub fn overflow(&self) -> Vec<Self> {
        let entries = self.overflow_affinities.as_ref().filter(|entries| !entries.is_null());
        entries.and_then(|entries| Vec::deserialize(entries).ok()).unwrap_or_default()
    }
}

/// A spread constraint. `maxGroups` 0 means none at all, not "no limit", as in Karmada.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaScheduling {
    /// Every cluster gets all replicas, or they are divided. The CRD's default is Divided.
    #[serde(default)]
    pub replica_scheduling_type: ReplicaSchedulingType,
    /// How they are divided; an empty text reads as absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub replica_division_preference: Option<ReplicaDivisionPreference>,
    /// Weights for `Weighted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_preference: Option<ClusterPreferences>,
}

/// Duplicated or Divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplicaSchedulingType {
    /// Every target cluster gets all replicas.
    Duplicated,
    /// The replicas are divided over the target clusters.
    #[default]
    Divided,
}

/// How replicas are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplicaDivisionPreference {
    /// Over as few clusters as have room.
    Aggregated,
    /// By weight.
    Weighted,
}

/// Reads null and an empty text as absent, as Go does.
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
        Some(Text::Other(text)) => {
            Err(serde::de::Error::custom(format!("unknown preference {text:?}, expected Aggregated or Weighted")))
        }
    }
}

/// Weights of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreferences {
    /// Fixed weights; a cluster matched by several rules gets the largest.
    #[serde(default, skip_serializing_if = "List::is_absent")]
    pub static_weight_list: List<StaticWeight>,
    /// `AvailableReplicas`: by what each cluster has room for; the static list is then ignored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dynamic_weight: String,
}

/// One rule of a static weight list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StaticWeight {
    /// Which clusters.
    pub target_cluster: ClusterAffinity,
    /// Their weight, at least 1.
    pub weight: i64,
}
