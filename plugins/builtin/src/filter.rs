//! The filter rules of Karmada's scheduler, one function each, with Karmada's reason texts.

use bulkhead_core::call::{FilterVerdict, Reason};
use bulkhead_core::decide::affinity::matches;
use bulkhead_core::model::{Binding, Cluster, ClusterAffinityTerm, TaintEffect};

fn unfit(code: &str, message: impl Into<String>) -> FilterVerdict {
    FilterVerdict::Unfit(Reason::new(code, message))
}

/// Karmada: `apienablement/api_enablement.go:Filter`. A current target passes: its list of APIs may be partial
/// while it is unhealthy, and that is no reason to move a workload.
pub(crate) fn api_enablement(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    let resource = &binding.spec.resource;
    if binding.spec.targets(&cluster.name) || cluster.serves(&resource.api_version, &resource.kind) {
        return FilterVerdict::Fit;
    }
    unfit("APINotEnabled", "cluster(s) did not have the API resource")
}

/// Karmada: `tainttoleration/taint_toleration.go:Filter`. A current target passes: leaving it is the taint
/// manager's decision, which knows toleration seconds.
pub(crate) fn taint_toleration(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    if binding.spec.targets(&cluster.name) {
        return FilterVerdict::Fit;
    }
    let tolerations = binding.spec.placement.as_ref().map_or(&[][..], |placement| &placement.cluster_tolerations);
    let untolerated = cluster
        .spec
        .taints
        .iter()
        .filter(|taint| matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute))
        .find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)));
    match untolerated {
        Some(taint) => unfit("UntoleratedTaint", format!("cluster(s) had untolerated taint {{{taint}}}")),
        None => FilterVerdict::Fit,
    }
}

/// Karmada: `clusteraffinity/cluster_affinity.go:Filter`. Current targets are not exempt.
pub(crate) fn cluster_affinity(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    let Some(placement) = &binding.spec.placement else { return FilterVerdict::Fit };
    let selected = match (&placement.cluster_affinity, &placement.cluster_affinities) {
        (Some(affinity), _) => matches(affinity, cluster),
        (None, Some(terms)) => {
            let observed = &binding.status.scheduler_observed_affinity_name;
            let term = terms.iter().find(|term| term.affinity_name == *observed);
            term.is_none_or(|term| matches_term(binding, term, cluster))
        }
        (None, None) => true,
    };
    if selected {
        return FilterVerdict::Fit;
    }
    unfit("AffinityMismatch", "cluster(s) did not match the placement cluster affinity constraint")
}

/// Overflow groups are for workloads only, because only their replicas can overflow.
fn matches_term(binding: &Binding, term: &ClusterAffinityTerm, cluster: &Cluster) -> bool {
    matches(&term.affinity, cluster)
        || (binding.spec.is_workload()
            && overflow_groups(term).iter().any(|overflow| matches(&overflow.affinity, cluster)))
}

fn overflow_groups(term: &ClusterAffinityTerm) -> Vec<ClusterAffinityTerm> {
    let groups = term.overflow_affinities.clone();
    groups.and_then(|groups| serde_json::from_value(groups).ok()).unwrap_or_default()
}

/// Karmada: `spreadconstraint/spread_constraint.go:Filter`.
pub(crate) fn spread_constraint(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    let constraints = binding.spec.placement.as_ref().map_or(&[][..], |placement| &placement.spread_constraints);
    let lacking = constraints.iter().find_map(|constraint| match constraint.spread_by_field.as_str() {
        "provider" if cluster.spec.provider.is_empty() => Some("provider"),
        "region" if cluster.spec.region.is_empty() => Some("region"),
        "zone" if cluster.spec.zones.is_empty() => Some("zones"),
        _ => None,
    });
    match lacking {
        Some(property) => unfit("SpreadPropertyMissing", format!("cluster(s) did not have {property} property")),
        None => FilterVerdict::Fit,
    }
}

/// Karmada: `clustereviction/cluster_eviction.go:Filter`. Any purge mode counts, and current targets are not
/// exempt.
pub(crate) fn cluster_eviction(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    if binding.spec.is_evicting(&cluster.name) {
        return unfit("EvictionInProgress", "cluster(s) is in the process of eviction");
    }
    FilterVerdict::Fit
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::{Call, FilterCall, Reply};
    use bulkhead_core::policy::Policy;
    use bulkhead_core::time::Time;
    use serde_json::{Value, json};

    use crate::SchedulingPolicy;

    use super::*;

    /// `expected` is empty for a cluster that fits, otherwise `code: message`.
    fn check(policy: &SchedulingPolicy, spec: Value, status: Value, cluster: Value, expected: &str) {
        let binding: Binding =
            serde_json::from_value(json!({"namespace": "ns", "name": "b", "spec": spec, "status": status})).unwrap();
        let mut cluster: Cluster = serde_json::from_value(cluster).unwrap();
        cluster.name = "member1".to_owned();
        let clusters = [Arc::new(cluster)];
        let call = Call::Filter(FilterCall { binding: &binding, clusters: &clusters, now: Time::from_millis(0) });
        let Ok(Reply::Filter(verdicts)) = policy.call(&call) else { panic!("no filter reply") };
        let told: Vec<_> = verdicts
            .iter()
            .map(|verdict| match verdict {
                FilterVerdict::Fit => String::new(),
                FilterVerdict::Unfit(reason) => reason.to_string(),
                FilterVerdict::Abstain => "abstain".to_owned(),
            })
            .collect();
        assert_eq!(told, [expected], "{spec} on {clusters:?}");
    }

    fn spec(rest: Value) -> Value {
        let mut spec = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}});
        for (key, value) in rest.as_object().cloned().unwrap_or_default() {
            spec[key] = value;
        }
        spec
    }

    fn cluster(spec: Value, status: Value) -> Value {
        let mut full = json!({"syncMode": "Push"});
        for (key, value) in spec.as_object().cloned().unwrap_or_default() {
            full[key] = value;
        }
        json!({"name": "", "spec": full, "status": status})
    }

    #[test]
    fn the_api_must_be_enabled() {
        let policy = SchedulingPolicy::api_enablement();
        let check = |enablements: Value, rest: Value, expected: &str| {
            check(&policy, spec(rest), json!({}), cluster(json!({}), json!({"apiEnablements": enablements})), expected);
        };
        let missing = "APINotEnabled: cluster(s) did not have the API resource";
        let serving =
            json!([{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]);
        check(serving, json!({}), "");
        check(json!([]), json!({}), missing);
        check(
            json!([{"groupVersion": "apps/v1beta1", "resources": [{"name": "d", "kind": "Deployment"}]}]),
            json!({}),
            missing,
        );
        check(
            json!([{"groupVersion": "apps/v1", "resources": [{"name": "d", "kind": "DaemonSet"}]}]),
            json!({}),
            missing,
        );
        check(json!([]), json!({"clusters": [{"name": "member1"}]}), "");
    }

    #[test]
    fn taints_must_be_tolerated() {
        let policy = SchedulingPolicy::taint_toleration();
        let check = |taints: Value, tolerations: Value, targets: Value, expected: &str| {
            let spec = spec(json!({"placement": {"clusterTolerations": tolerations}, "clusters": targets}));
            check(&policy, spec, json!({}), cluster(json!({"taints": taints}), json!({})), expected);
        };
        let taint = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
        let told = "UntoleratedTaint: cluster(s) had untolerated taint {k=v:NoExecute}";
        check(taint.clone(), json!([]), json!([]), told);
        check(taint.clone(), json!([]), json!([{"name": "member1"}]), "");
        check(taint.clone(), json!([{"key": "k", "operator": "Exists"}]), json!([]), "");
        check(taint.clone(), json!([{"key": "k", "value": "v"}]), json!([]), "");
        check(taint.clone(), json!([{"key": "k", "value": "w"}]), json!([]), told);
        check(taint.clone(), json!([{"operator": "Exists", "effect": "NoSchedule"}]), json!([]), told);
        check(taint, json!([{"operator": "Exists", "tolerationSeconds": 0}]), json!([]), "");
        check(json!([{"key": "k", "effect": "PreferNoSchedule"}]), json!([]), json!([]), "");
        let two = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]);
        check(two, json!([]), json!([]), "UntoleratedTaint: cluster(s) had untolerated taint {a:NoSchedule}");
    }

    #[test]
    fn the_affinity_must_select_the_cluster() {
        let policy = SchedulingPolicy::cluster_affinity();
        let check = |placement: Value, rest: Value, observed: &str, expected: &str| {
            let mut rest = rest;
            rest["placement"] = placement;
            let status = json!({"schedulerObservingAffinityName": observed});
            check(&policy, spec(rest), status, cluster(json!({}), json!({})), expected);
        };
        let told = "AffinityMismatch: cluster(s) did not match the placement cluster affinity constraint";
        let named = |name: &str| json!({"clusterNames": [name]});
        check(json!({}), json!({}), "", "");
        check(json!({"clusterAffinity": named("member1")}), json!({}), "", "");
        check(json!({"clusterAffinity": named("member2")}), json!({"clusters": [{"name": "member1"}]}), "", told);
        let groups = json!({"clusterAffinities": [
            {"affinityName": "a", "clusterNames": ["member2"],
             "overflowAffinities": [{"affinityName": "o", "clusterNames": ["member1"]}]},
            {"affinityName": "b", "clusterNames": ["member1"]},
            {"affinityName": "c", "clusterNames": ["member2"]},
        ]});
        check(groups.clone(), json!({}), "a", told);
        check(groups.clone(), json!({"replicas": 1}), "a", "");
        check(groups.clone(), json!({}), "b", "");
        check(groups.clone(), json!({"replicas": 1}), "c", told);
        check(groups, json!({}), "gone", "");
    }

    #[test]
    fn spread_constraints_need_their_property() {
        let policy = SchedulingPolicy::spread_constraint();
        let check = |fields: &[&str], cluster_spec: Value, expected: &str| {
            let constraints: Vec<_> = fields.iter().map(|field| json!({"spreadByField": field})).collect();
            let spec = spec(json!({"placement": {"spreadConstraints": constraints}}));
            check(&policy, spec, json!({}), cluster(cluster_spec, json!({})), expected);
        };
        check(&[], json!({}), "");
        check(&["cluster"], json!({}), "");
        check(&["provider"], json!({}), "SpreadPropertyMissing: cluster(s) did not have provider property");
        check(&["region", "provider"], json!({}), "SpreadPropertyMissing: cluster(s) did not have region property");
        check(&["zone"], json!({"zone": "z"}), "SpreadPropertyMissing: cluster(s) did not have zones property");
        check(&["zone", "region"], json!({"zones": ["z"], "region": "r"}), "");
    }

    #[test]
    fn a_cluster_in_eviction_is_not_fit() {
        let policy = SchedulingPolicy::cluster_eviction();
        let check = |from: &str, expected: &str| {
            let task = json!({"fromCluster": from, "reason": "r", "producer": "p"});
            let spec = spec(json!({"gracefulEvictionTasks": [task], "clusters": [{"name": "member1"}]}));
            check(&policy, spec, json!({}), cluster(json!({}), json!({})), expected);
        };
        check("member1", "EvictionInProgress: cluster(s) is in the process of eviction");
        check("member2", "");
    }
}
