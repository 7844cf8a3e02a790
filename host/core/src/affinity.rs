//! Cluster affinity matching (Karmada: `pkg/util/selector.go:ClusterMatches`).

use crate::model::{
    Cluster, ClusterAffinity, ClusterAffinityTerm, FieldSelector, SelectorOperator, SelectorRequirement,
};

/// Returns true if `affinity` selects `cluster`: it is not excluded and satisfies label selector, field selector and
/// names.
pub fn matches(affinity: &ClusterAffinity, cluster: &Cluster) -> bool {
    !affinity.exclude.contains(&cluster.name)
        && affinity
            .label_selector
            .as_ref()
            .is_none_or(|selector| selector.matches(&cluster.labels))
        && affinity
            .field_selector
            .as_ref()
            .is_none_or(|selector| matches_fields(selector, cluster))
        && (affinity.cluster_names.is_empty() || affinity.cluster_names.contains(&cluster.name))
}

/// Returns true if an affinity group, or an overflow entry of it, selects `cluster`.
pub(crate) fn group_matches(group: &ClusterAffinityTerm, cluster: &Cluster) -> bool {
    matches(&group.affinity, cluster)
        || group
            .overflow()
            .iter()
            .any(|overflow| matches(&overflow.affinity, cluster))
}

/// Returns true if a cluster's provider, region and zones satisfy all expressions.
pub(crate) fn matches_fields(selector: &FieldSelector, cluster: &Cluster) -> bool {
    selector
        .match_expressions
        .iter()
        .all(|requirement| match requirement.key.as_str() {
            "zone" => matches_zones(requirement, &cluster.spec.zones),
            "provider" => requirement.matches(non_empty(&cluster.spec.provider)),
            "region" => requirement.matches(non_empty(&cluster.spec.region)),
            _ => requirement.matches(None),
        })
}

fn non_empty(value: &str) -> Option<&str> {
    (!value.is_empty()).then_some(value)
}

/// Matches a requirement on zones. A cluster may have several, so the rules for labels do not apply; values that do
/// not fit the operator are not an error.
fn matches_zones(requirement: &SelectorRequirement, zones: &[String]) -> bool {
    let listed = || zones.iter().any(|zone| requirement.values.contains(zone));
    match requirement.operator {
        SelectorOperator::In => listed(),
        SelectorOperator::NotIn => !listed(),
        SelectorOperator::Exists => !zones.is_empty(),
        SelectorOperator::DoesNotExist => zones.is_empty(),
        SelectorOperator::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(affinity: Value, expected: bool) {
        let cluster: Cluster = serde_json::from_value(json!({
            "name": "member1",
            "labels": {"env": "prod"},
            "spec": {"syncMode": "Push", "provider": "p1", "zones": ["z1", "z2"]},
        }))
        .unwrap();
        let parsed: ClusterAffinity = serde_json::from_value(affinity.clone()).unwrap();
        assert_eq!(matches(&parsed, &cluster), expected, "{affinity}");
    }

    fn field(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}})
    }

    #[test]
    fn affinities_follow_karmada() {
        check(json!({}), true);
        check(json!({"clusterNames": ["member1"]}), true);
        check(json!({"clusterNames": ["member2"]}), false);
        check(json!({"clusterNames": ["member1"], "exclude": ["member1"]}), false);
        check(json!({"labelSelector": {}}), true);
        check(json!({"labelSelector": {"matchLabels": {"env": "prod"}}}), true);
        check(json!({"labelSelector": {"matchLabels": {"env": "test"}}}), false);
        check(field("provider", "In", &["p1"]), true);
        check(field("region", "In", &["r1"]), false);
        check(field("region", "NotIn", &["r1"]), true);
        check(field("zone", "In", &["z2"]), true);
        check(field("zone", "NotIn", &["z2"]), false);
        check(field("zone", "Exists", &[]), true);
        check(field("unknown", "NotIn", &["x"]), true);
    }
}
