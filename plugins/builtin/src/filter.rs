//! The filter rules of Karmada's scheduler, one function each, with Karmada's reason texts. Each evaluates all
//! candidates of a call, from the columns of the snapshot where possible.

use bulkhead_core::call::{FilterCall, FilterVerdict, Peer, Reason};
use bulkhead_core::decide::schedule::blocked_until;
use bulkhead_core::model::{Binding, Cluster, ClusterAffinity, TaintEffect};
use bulkhead_core::snapshot::Topology;

fn unfit(code: &str, message: impl Into<String>) -> FilterVerdict {
    FilterVerdict::Unfit(Reason::new(code, message))
}

fn all_fit(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    vec![FilterVerdict::Fit; call.clusters.len()]
}

/// Returns true for each candidate that already runs the workload.
fn current_targets(call: &FilterCall<'_>) -> Vec<bool> {
    let mut current = vec![false; call.clusters.len()];
    for target in &call.binding.spec.clusters {
        if let Some(position) = call.clusters.position_of(&target.name) {
            current[position] = true;
        }
    }
    current
}

/// Rejects clusters that do not serve the resource's API. (Karmada: `apienablement/api_enablement.go:Filter`.) A
/// current target passes: its list of APIs may be incomplete while it is unhealthy, which is no reason to move a
/// workload.
pub(crate) fn api_enablement(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let resource = &call.binding.spec.resource;
    let serving = call.clusters.snapshot().serving(&resource.api_version, &resource.kind);
    let mut current = None;
    let verdict = |(position, row): (usize, &u32)| {
        if serving.contains(*row) || current.get_or_insert_with(|| current_targets(call))[position] {
            return FilterVerdict::Fit;
        }
        unfit("APINotEnabled", "cluster(s) did not have the API resource")
    };
    call.clusters.rows().iter().enumerate().map(verdict).collect()
}

/// Rejects clusters with a taint that is not tolerated. (Karmada: `tainttoleration/taint_toleration.go:Filter`.) A
/// current target passes: its eviction is up to the taint manager, which considers toleration seconds.
pub(crate) fn taint_toleration(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let mut verdicts = all_fit(call);
    let mut current = None;
    for row in call.clusters.snapshot().tainted_rows() {
        let Some(position) = call.clusters.position(*row) else {
            continue;
        };
        let exempt = current.get_or_insert_with(|| current_targets(call))[position];
        if exempt {
            continue;
        }
        if let Some(cluster) = call.clusters.snapshot().cluster(*row) {
            verdicts[position] = tolerates(call.binding, cluster);
        }
    }
    verdicts
}

fn tolerates(binding: &Binding, cluster: &Cluster) -> FilterVerdict {
    let tolerations = binding
        .spec
        .placement
        .as_ref()
        .map_or(&[][..], |placement| &*placement.cluster_tolerations);
    let untolerated = cluster
        .spec
        .taints
        .iter()
        .filter(|taint| !matches!(taint.effect, TaintEffect::PreferNoSchedule | TaintEffect::Other(_)))
        .find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)));
    match untolerated {
        Some(taint) => unfit(
            "UntoleratedTaint",
            format!("cluster(s) had untolerated taint {{{taint}}}"),
        ),
        None => FilterVerdict::Fit,
    }
}

/// Rejects clusters that the placement does not select. (Karmada: `clusteraffinity/cluster_affinity.go:Filter`.)
/// Current targets are not exempt.
pub(crate) fn cluster_affinity(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let affinities = effective_affinities(call.binding);
    if affinities.is_empty() {
        return all_fit(call);
    }
    let selected: Vec<_> = affinities
        .iter()
        .map(|affinity| call.clusters.snapshot().selected_by(affinity))
        .collect();
    let verdict = |row: &u32| {
        if selected.iter().any(|rows| rows.get(*row as usize) == Some(&true)) {
            return FilterVerdict::Fit;
        }
        unfit(
            "AffinityMismatch",
            "cluster(s) did not match the placement cluster affinity constraint",
        )
    };
    call.clusters.rows().iter().map(verdict).collect()
}

/// Returns the affinities of which one must match; empty if all clusters match. Overflow groups apply only to
/// workloads, because only replicas can overflow.
fn effective_affinities(binding: &Binding) -> Vec<ClusterAffinity> {
    let Some(placement) = &binding.spec.placement else {
        return Vec::new();
    };
    if let Some(affinity) = &placement.cluster_affinity {
        return vec![affinity.clone()];
    }
    let observed = &binding.status.scheduler_observed_affinity_name;
    let mut terms = placement.cluster_affinities.iter().flatten();
    let Some(term) = terms.find(|term| term.affinity_name == *observed) else {
        return Vec::new();
    };
    let overflow = if binding.spec.is_workload() {
        term.overflow()
    } else {
        Vec::new()
    };
    std::iter::once(term.affinity.clone())
        .chain(overflow.into_iter().map(|entry| entry.affinity))
        .collect()
}

/// Rejects clusters without a property that the spread constraints group by. (Karmada:
/// `spreadconstraint/spread_constraint.go:Filter`.)
pub(crate) fn spread_constraint(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let placement = call.binding.spec.placement.as_ref();
    let constraints = placement.map_or(&[][..], |placement| &*placement.spread_constraints);
    let fields = constraints.iter().map(|constraint| constraint.spread_by_field.as_str());
    let needed: Vec<_> = fields
        .filter(|field| matches!(*field, "provider" | "region" | "zone"))
        .collect();
    if needed.is_empty() {
        return all_fit(call);
    }
    let places = call.clusters.snapshot().places();
    call.clusters
        .rows()
        .iter()
        .map(|row| has_properties(&needed, places.zonal(*row)))
        .collect()
}

fn has_properties(needed: &[&str], has: Topology) -> FilterVerdict {
    let lacking = needed.iter().find_map(|field| match *field {
        "provider" if !has.provider => Some("provider"),
        "region" if !has.region => Some("region"),
        "zone" if !has.zones => Some("zones"),
        _ => None,
    });
    match lacking {
        Some(property) => unfit(
            "SpreadPropertyMissing",
            format!("cluster(s) did not have {property} property"),
        ),
        None => FilterVerdict::Fit,
    }
}

/// Rejects clusters that the workload is being evicted from. (Karmada: `clustereviction/cluster_eviction.go:Filter`.)
/// Any purge mode counts, and current targets are not exempt.
pub(crate) fn cluster_eviction(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let mut verdicts = all_fit(call);
    for task in &call.binding.spec.graceful_eviction_tasks {
        if let Some(position) = call.clusters.position_of(&task.from_cluster) {
            verdicts[position] = unfit("EvictionInProgress", "cluster(s) is in the process of eviction");
        }
    }
    verdicts
}

/// Rejects clusters that the workload has failed over from within the `blockPredecessorSeconds` of its policy. Not in
/// any release of Karmada (proposal of application failover). Has no effect on a binding without such a history.
pub(crate) fn recent_eviction(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let mut verdicts = all_fit(call);
    for (cluster, until) in blocked_until(call.binding, call.now) {
        if let Some(position) = call.clusters.position_of(&cluster) {
            let until = until.map_or_else(|| "permanently".to_owned(), |until| format!("until {until}"));
            let message = format!("cluster(s) was recently evicted from and is blocked {until}");
            verdicts[position] = unfit("RecentlyEvicted", message);
        }
    }
    verdicts
}

/// Rejects clusters that do not run all other workloads of the affinity group, except for current targets. (Karmada:
/// `workloadaffinity/workload_affinity.go:FilterWithContext`.)
pub(crate) fn workload_affinity(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let group = call.binding.spec.affinity_group();
    let peers: Vec<_> = call
        .peers
        .iter()
        .filter(|peer| peer.affinity_group == group && !peer.clusters.is_empty())
        .collect();
    if group.is_empty() || peers.is_empty() {
        return all_fit(call);
    }
    let runs_all = |cluster: &Cluster| peers.iter().all(|peer| runs_on(peer, cluster));
    let message = "ResourceBinding with the same affinity group does not target this cluster";
    with_exemption(call, |cluster| {
        runs_all(cluster)
            .then_some(())
            .ok_or(("AffinityGroupElsewhere", message))
    })
}

/// Rejects clusters that run another workload of the anti-affinity group, except for current targets. (Karmada:
/// `workloadantiaffinity/workload_anti_affinity.go:FilterWithContext`.)
pub(crate) fn workload_anti_affinity(call: &FilterCall<'_>) -> Vec<FilterVerdict> {
    let group = call.binding.spec.anti_affinity_group();
    let peers: Vec<_> = call
        .peers
        .iter()
        .filter(|peer| peer.anti_affinity_group == group)
        .collect();
    if group.is_empty() || peers.is_empty() {
        return all_fit(call);
    }
    let runs_none = |cluster: &Cluster| !peers.iter().any(|peer| runs_on(peer, cluster));
    let message = "cluster already has workload with the same anti-affinity group";
    with_exemption(call, |cluster| {
        runs_none(cluster)
            .then_some(())
            .ok_or(("AntiAffinityGroupPresent", message))
    })
}

fn runs_on(peer: &Peer, cluster: &Cluster) -> bool {
    peer.clusters.contains(&cluster.name)
}

/// Returns the verdicts of a rule that current targets are exempt from.
fn with_exemption(
    call: &FilterCall<'_>,
    rule: impl Fn(&Cluster) -> Result<(), (&'static str, &'static str)>,
) -> Vec<FilterVerdict> {
    let verdict = |(cluster, current): (&std::sync::Arc<Cluster>, bool)| match rule(cluster) {
        Err((code, message)) if !current => unfit(code, message),
        _ => FilterVerdict::Fit,
    };
    call.clusters.iter().zip(current_targets(call)).map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::{Call, Reply};
    use bulkhead_core::policy::Policy;
    use bulkhead_core::snapshot::ClusterSnapshot;
    use bulkhead_core::time::Time;
    use serde_json::{Value, json};

    use crate::SchedulingPolicy;

    use super::*;

    /// Checks the verdict on a cluster. `expected` is empty if it fits, otherwise `code: message`.
    fn check(policy: &SchedulingPolicy, spec: Value, status: Value, cluster: Value, expected: &str) {
        let binding: Binding =
            serde_json::from_value(json!({"namespace": "ns", "name": "b", "spec": spec, "status": status})).unwrap();
        let mut cluster: Cluster = serde_json::from_value(cluster).unwrap();
        cluster.name = "member1".to_owned();
        let clusters = ClusterSnapshot::new([Arc::new(cluster)]);
        let now = Time::from_millis(0);
        let call = Call::Filter(FilterCall {
            binding: &binding,
            clusters: clusters.present(),
            peers: &[],
            now,
        });
        let Ok(Reply::Filter(verdicts)) = policy.call(&call) else {
            panic!("no filter reply")
        };
        let actual: Vec<_> = verdicts
            .iter()
            .map(|verdict| match verdict {
                FilterVerdict::Fit => String::new(),
                FilterVerdict::Unfit(reason) => reason.to_string(),
                FilterVerdict::Abstain => "abstain".to_owned(),
            })
            .collect();
        assert_eq!(actual, [expected], "{spec} on {:?}", clusters.clusters());
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
            check(
                &policy,
                spec(rest),
                json!({}),
                cluster(json!({}), json!({"apiEnablements": enablements})),
                expected,
            );
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
            check(
                &policy,
                spec,
                json!({}),
                cluster(json!({"taints": taints}), json!({})),
                expected,
            );
        };
        let taint = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
        let text = "UntoleratedTaint: cluster(s) had untolerated taint {k=v:NoExecute}";
        check(taint.clone(), json!([]), json!([]), text);
        check(taint.clone(), json!([]), json!([{"name": "member1"}]), "");
        check(
            taint.clone(),
            json!([{"key": "k", "operator": "Exists"}]),
            json!([]),
            "",
        );
        check(taint.clone(), json!([{"key": "k", "value": "v"}]), json!([]), "");
        check(taint.clone(), json!([{"key": "k", "value": "w"}]), json!([]), text);
        check(
            taint.clone(),
            json!([{"operator": "Exists", "effect": "NoSchedule"}]),
            json!([]),
            text,
        );
        check(
            taint,
            json!([{"operator": "Exists", "tolerationSeconds": 0}]),
            json!([]),
            "",
        );
        check(
            json!([{"key": "k", "effect": "PreferNoSchedule"}]),
            json!([]),
            json!([]),
            "",
        );
        let two = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]);
        check(
            two,
            json!([]),
            json!([]),
            "UntoleratedTaint: cluster(s) had untolerated taint {a:NoSchedule}",
        );
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
        let text = "AffinityMismatch: cluster(s) did not match the placement cluster affinity constraint";
        let named = |name: &str| json!({"clusterNames": [name]});
        check(json!({}), json!({}), "", "");
        check(json!({"clusterAffinity": named("member1")}), json!({}), "", "");
        check(
            json!({"clusterAffinity": named("member2")}),
            json!({"clusters": [{"name": "member1"}]}),
            "",
            text,
        );
        let groups = json!({"clusterAffinities": [
            {"affinityName": "a", "clusterNames": ["member2"],
             "overflowAffinities": [{"affinityName": "o", "clusterNames": ["member1"]}]},
            {"affinityName": "b", "clusterNames": ["member1"]},
            {"affinityName": "c", "clusterNames": ["member2"]},
        ]});
        check(groups.clone(), json!({}), "a", text);
        check(groups.clone(), json!({"replicas": 1}), "a", "");
        check(groups.clone(), json!({}), "b", "");
        check(groups.clone(), json!({"replicas": 1}), "c", text);
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
        check(
            &["provider"],
            json!({}),
            "SpreadPropertyMissing: cluster(s) did not have provider property",
        );
        check(
            &["region", "provider"],
            json!({}),
            "SpreadPropertyMissing: cluster(s) did not have region property",
        );
        check(
            &["zone"],
            json!({"zone": "z"}),
            "SpreadPropertyMissing: cluster(s) did not have zones property",
        );
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
        check(
            "member1",
            "EvictionInProgress: cluster(s) is in the process of eviction",
        );
        check("member2", "");
    }
}
