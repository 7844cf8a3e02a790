#[cfg(feature = "schema")]
mod schema;

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{ClusterAffinity, TaintEffect};
use crate::unknown_fields;

/// `spec` of a `ClusterTaintPolicy`, in one of two forms: Karmada's (`targetClusters`, `addOnConditions`,
/// `removeOnConditions`, `taints`) or that of the proposal "Optimize Cluster Failover" (`targetCluster`,
/// `matchConditions`, `taintsToAdd`), which is not in any Karmada release.
///
/// A policy with an unknown field is refused, because without a misspelt one it would taint more clusters than its author
/// wrote. If it was stored by other means, it changes no taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// Clusters to which the policy applies; absent means all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<TargetClusters>,
    /// `targetClusters` in the spelling of the proposal. A policy has at most one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<TargetClusters>,
    /// Conditions for adding the taints; all must match. Empty means never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// Conditions for removing the taints; all must match. Empty means never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// Taints to add or remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<PolicyTaint>,
    /// Conditions under which `taintsToAdd` are present; all must match. Empty means always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = schema::known_operators))]
    pub match_conditions: Vec<MatchCondition>,
    /// Taints that are present while `matchConditions` match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = schema::default_windows))]
    pub taints_to_add: Vec<PolicyTaint>,
    /// Fields that the type does not have.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

impl ClusterTaintPolicySpec {
    /// Returns the clusters to which the policy applies; absent means all clusters.
    pub fn target(&self) -> Option<&ClusterAffinity> {
        self.target_clusters
            .as_ref()
            .or(self.target_cluster.as_ref())
            .map(|target| &**target)
    }

    /// Returns the fields that make the policy invalid, with their paths below `spec`: fields that the type does not
    /// have, and `targetCluster` beside `targetClusters`. A policy with such a field must change no taint.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<_> = self
            .unknown
            .keys()
            .map(|name| format!("{name}: unknown field"))
            .collect();
        if self.target_clusters.is_some() && self.target_cluster.is_some() {
            faults.push("targetCluster: cannot be combined with targetClusters".to_owned());
        }
        for (field, target) in [
            ("targetClusters", &self.target_clusters),
            ("targetCluster", &self.target_cluster),
        ] {
            let unknown = target.iter().flat_map(|target| &target.unknown);
            faults.extend(unknown.map(|path| format!("{field}.{path}: unknown field")));
        }
        let conditions = [
            ("addOnConditions", &self.add_on_conditions),
            ("removeOnConditions", &self.remove_on_conditions),
            ("matchConditions", &self.match_conditions),
        ];
        for (list, conditions) in conditions {
            let items = conditions.iter().map(|condition| &condition.unknown);
            faults.extend(of_items(list, items));
        }
        for (list, taints) in [("taints", &self.taints), ("taintsToAdd", &self.taints_to_add)] {
            faults.extend(of_items(list, taints.iter().map(|taint| &taint.unknown)));
        }
        faults
    }

    /// Returns true if the desired taints can change through the passage of time alone.
    pub fn has_windows(&self) -> bool {
        let windowed =
            |taint: &PolicyTaint| taint.add_on_match_seconds.is_some() || taint.remove_on_mismatch_seconds.is_some();
        !self.taints_to_add.is_empty() || self.taints.iter().any(windowed)
    }
}

fn of_items<'a>(list: &str, items: impl Iterator<Item = &'a BTreeMap<String, Value>>) -> Vec<String> {
    let fault = |(index, name): (usize, &String)| format!("{list}[{index}].{name}: unknown field");
    items
        .enumerate()
        .flat_map(|(index, unknown)| unknown.keys().map(move |name| (index, name)))
        .map(fault)
        .collect()
}

/// Clusters to which a policy applies, with the paths of fields that the type does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetClusters {
    affinity: ClusterAffinity,
    unknown: Vec<String>,
}

impl Deref for TargetClusters {
    type Target = ClusterAffinity;

    fn deref(&self) -> &ClusterAffinity {
        &self.affinity
    }
}

impl From<ClusterAffinity> for TargetClusters {
    fn from(affinity: ClusterAffinity) -> Self {
        Self {
            affinity,
            unknown: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for TargetClusters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let affinity = ClusterAffinity::deserialize(&given).map_err(D::Error::custom)?;
        let written = serde_json::to_value(&affinity).map_err(D::Error::custom)?;
        Ok(Self {
            affinity,
            unknown: unknown_fields::paths(&given, &written),
        })
    }
}

impl Serialize for TargetClusters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.affinity.serialize(serializer)
    }
}

/// Default delay in seconds between a match and the addition of a taint of [`ClusterTaintPolicySpec::taints_to_add`].
pub const ADD_ON_MATCH_SECONDS: i32 = 300;
/// Default delay in seconds between a mismatch and the removal of such a taint.
pub const REMOVE_ON_MISMATCH_SECONDS: i32 = 180;

/// Requirement on a cluster's conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Type of the condition; a cluster without this condition never matches.
    pub condition_type: String,
    /// `In` or `NotIn`; with any other operator, the whole match is false.
    pub operator: String,
    /// Statuses to compare with, for example `False` or `Unknown`.
    #[serde(default)]
    pub status_values: Vec<String>,
    /// Fields that the type does not have.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// Taint declared by a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyTaint {
    /// Qualified name.
    pub key: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// Label value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Seconds for which the conditions must match before the taint is added, at least 1. If absent, it is added
    /// immediately for `taints` and after [`ADD_ON_MATCH_SECONDS`] for `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_match_seconds: Option<i32>,
    /// Seconds for which the conditions for removal must hold before the taint is removed, at least 1. If absent, it
    /// is removed immediately for `taints` and after [`REMOVE_ON_MISMATCH_SECONDS`] for `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_on_mismatch_seconds: Option<i32>,
    /// Fields that the type does not have.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_the_type_does_not_have_is_reported_at_any_depth() {
        let check = |spec: Value, expected: &[&str]| {
            let spec: ClusterTaintPolicySpec = serde_json::from_value(spec).unwrap();
            assert_eq!(spec.faults(), expected);
        };
        let names = json!({"clusterNames": ["m1"]});
        check(json!({"targetClusters": names}), &[]);
        check(json!({"targetCluster": names}), &[]);
        check(json!({"targetClustrs": names}), &["targetClustrs: unknown field"]);
        check(
            json!({"targetCluster": {"clusterName": ["m1"]}}),
            &["targetCluster.clusterName: unknown field"],
        );
        let selector = json!({"labelSelector": {"matchLabel": {"tier": "gold"}}});
        check(
            json!({"targetClusters": selector}),
            &["targetClusters.labelSelector.matchLabel: unknown field"],
        );
        let both = "targetCluster: cannot be combined with targetClusters";
        check(json!({"targetClusters": names, "targetCluster": names}), &[both]);
        let condition = json!({"conditionType": "Ready", "operator": "NotIn", "statusValue": ["True"]});
        check(
            json!({"matchConditions": [condition]}),
            &["matchConditions[0].statusValue: unknown field"],
        );
        let taint = json!({"key": "a", "effect": "NoExecute", "addOnMatchSecond": 300});
        check(
            json!({"taintsToAdd": [taint]}),
            &["taintsToAdd[0].addOnMatchSecond: unknown field"],
        );
    }

    #[test]
    fn both_spellings_name_the_target_and_are_written_back_as_they_came() {
        for field in ["targetClusters", "targetCluster"] {
            let given = json!({field: {"clusterNames": ["m1"]}});
            let spec: ClusterTaintPolicySpec = serde_json::from_value(given.clone()).unwrap();
            assert_eq!(spec.target().unwrap().cluster_names.iter().collect::<Vec<_>>(), ["m1"]);
            assert_eq!(serde_json::to_value(&spec).unwrap(), given);
        }
    }
}
