use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Affinity and anti-affinity between the workloads of a namespace: `spec.placement.workloadAffinity`.
///
/// The detector forms groups by a label of the resource templates and writes them into the bindings, from which the
/// scheduler reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAffinity {
    /// Grouping of workloads that must share clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<WorkloadAffinityTerm>,
    /// Grouping of workloads that must not share a cluster, by another label than `affinity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<WorkloadAffinityTerm>,
    /// Fields that are not read, preserved on writes.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl WorkloadAffinity {
    /// Returns the groups of a resource template that has these labels.
    pub fn groups(&self, labels: &BTreeMap<String, String>) -> WorkloadAffinityGroups {
        WorkloadAffinityGroups {
            affinity_group: self.affinity.as_ref().and_then(|term| term.group(labels)),
            anti_affinity_group: self.anti_affinity.as_ref().and_then(|term| term.group(labels)),
        }
    }
}

/// Grouping of workloads by a label of their resource templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAffinityTerm {
    /// Key of the label. Templates with the same value form a group; a template without the label is in no group.
    pub group_by_label_key: String,
    /// Fields that are not read, preserved on writes.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl WorkloadAffinityTerm {
    /// Returns the group as `<labelKey>=<value>`, or `None` without the label. An empty value forms a group too.
    fn group(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let key = &self.group_by_label_key;
        labels.get(key).map(|value| format!("{key}={value}"))
    }
}

/// Groups of a workload, each as `<labelKey>=<value>`; `None` for no group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadAffinityGroups {
    /// Group whose members must share clusters.
    pub affinity_group: Option<String>,
    /// Group whose members must not share a cluster.
    pub anti_affinity_group: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Karmada: `pkg/detector/detector.go:getWorkloadAffinityGroups`.
    #[test]
    fn a_group_is_a_label_of_the_template() {
        let check = |affinity: Value, labels: &[(&str, &str)], expected: [Option<&str>; 2]| {
            let labels: BTreeMap<String, String> = labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect();
            let affinity: WorkloadAffinity = serde_json::from_value(affinity).unwrap();
            let groups = affinity.groups(&labels);
            let found = [groups.affinity_group.as_deref(), groups.anti_affinity_group.as_deref()];
            assert_eq!(found, expected, "{affinity:?} {labels:?}");
        };
        let both = json!({"affinity": {"groupByLabelKey": "a.io/app"}, "antiAffinity": {"groupByLabelKey": "tier"}});
        check(
            both.clone(),
            &[("a.io/app", "shop"), ("tier", "db")],
            [Some("a.io/app=shop"), Some("tier=db")],
        );
        check(both.clone(), &[("a.io/app", "shop")], [Some("a.io/app=shop"), None]);
        check(both.clone(), &[("tier", "")], [None, Some("tier=")]);
        check(both.clone(), &[("app", "shop")], [None, None]);
        check(both, &[], [None, None]);
        let apart = json!({"affinity": null, "antiAffinity": {"groupByLabelKey": "tier"}});
        check(apart, &[("a.io/app", "shop"), ("tier", "db")], [None, Some("tier=db")]);
        check(
            json!({"affinity": {"groupByLabelKey": ""}}),
            &[("app", "shop")],
            [None, None],
        );
        check(json!({}), &[("app", "shop")], [None, None]);
    }

    #[test]
    fn unknown_fields_survive() {
        let affinity = json!({
            "affinity": {"groupByLabelKey": "app", "weight": 7}, "preferredAffinity": [{"groupByLabelKey": "tier"}],
        });
        let decoded: WorkloadAffinity = serde_json::from_value(affinity.clone()).unwrap();
        assert_eq!(serde_json::to_value(decoded).unwrap(), affinity);
    }
}
