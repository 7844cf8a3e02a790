//! `ClusterTaintPolicy` objects as one policy.

use bulkhead_core::call::{Call, CallKind, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::decide::affinity;
use bulkhead_core::model::{Cluster, ClusterTaintPolicySpec, Condition, MatchCondition, PolicyTaint, Taint};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};
use bulkhead_core::time::Time;

use crate::not_asked;

/// All `ClusterTaintPolicy` objects, the oldest first; Karmada leaves the order of equally old ones open, here
/// the name decides. (Karmada: `pkg/controllers/taint/clustertaintpolicy_controller.go:Reconcile`.)
///
/// Changes are emitted whether or not the taint is there: adding and removing look at (key, effect) alone, so
/// the order of the changes is all that a later policy depends on.
pub struct ClusterTaintPolicies {
    id: PolicyId,
    capabilities: Vec<Capability>,
    policies: Vec<(String, Time, ClusterTaintPolicySpec)>,
}

impl ClusterTaintPolicies {
    /// The policies with their names and times of creation, in any order.
    pub fn new(mut policies: Vec<(String, Time, ClusterTaintPolicySpec)>) -> Self {
        policies.sort_by(|(name, created, _), (other_name, other_created, _)| {
            created.cmp(other_created).then_with(|| name.cmp(other_name))
        });
        let capabilities = vec![Capability::any(CallKind::ClusterTaint)];
        Self { id: PolicyId::builtin("ClusterTaintPolicies"), capabilities, policies }
    }
}

impl Policy for ClusterTaintPolicies {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Call::ClusterTaint(call) = call else { return Err(not_asked(&self.id, call)) };
        let changes = self.policies.iter().flat_map(|(name, _, spec)| changes(name, spec, call.cluster)).collect();
        Ok(Reply::ClusterTaint(TaintVerdict { changes }))
    }
}

/// Additions come before removals, so a taint ends up removed when both lists of conditions hold.
fn changes(name: &str, spec: &ClusterTaintPolicySpec, cluster: &Cluster) -> Vec<TaintChange> {
    if spec.target_clusters.as_ref().is_some_and(|affinity| !affinity::matches(affinity, cluster)) {
        return Vec::new();
    }
    let holds = |conditions| all_hold(conditions, &cluster.status.conditions);
    let taints_if = |holds: bool| if holds { spec.taints.as_slice() } else { &[] };
    let added = taints_if(holds(&spec.add_on_conditions)).iter().map(|taint| add(name, taint));
    let removed = taints_if(holds(&spec.remove_on_conditions)).iter().map(|taint| remove(name, taint));
    added.chain(removed).collect()
}

fn add(name: &str, taint: &PolicyTaint) -> TaintChange {
    let reason = Reason::new("AddOnConditions", format!("ClusterTaintPolicy {name}"));
    let PolicyTaint { key, effect, value } = taint.clone();
    TaintChange::Add { taint: Taint { key, value, effect, time_added: None }, reason }
}

fn remove(name: &str, taint: &PolicyTaint) -> TaintChange {
    let reason = Reason::new("RemoveOnConditions", format!("ClusterTaintPolicy {name}"));
    TaintChange::Remove { key: taint.key.clone(), effect: taint.effect, reason }
}

fn all_hold(required: &[MatchCondition], conditions: &[Condition]) -> bool {
    !required.is_empty() && required.iter().all(|required| holds(required, conditions))
}

/// A condition that the cluster lacks satisfies neither operator.
fn holds(required: &MatchCondition, conditions: &[Condition]) -> bool {
    let Some(condition) = Condition::find(conditions, &required.condition_type) else { return false };
    let listed = required.status_values.iter().any(|value| value == condition.status.as_str());
    match required.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::ClusterTaintCall;
    use serde_json::{Value, json};

    use super::*;
    use crate::ready_condition::in_short;

    /// The cluster has Ready=False and Disk=True.
    fn check(policies: Vec<(&str, i64, Value)>, expected: &[&str]) {
        let cluster: Cluster = serde_json::from_value(json!({
            "name": "member1",
            "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]},
        }))
        .unwrap();
        let label = format!("{policies:?}");
        let policies = policies.into_iter().map(|(name, created_s, spec)| {
            (name.to_owned(), Time::from_millis(created_s * 1000), serde_json::from_value(spec).unwrap())
        });
        let policy = ClusterTaintPolicies::new(policies.collect());
        let call = ClusterTaintCall { cluster: &cluster, now: Time::from_millis(0) };
        assert_eq!(in_short(policy.call(&Call::ClusterTaint(call))), expected, "{label}");
    }

    fn when(type_: &str, operator: &str, values: &[&str]) -> Value {
        json!({"conditionType": type_, "operator": operator, "statusValues": values})
    }

    fn spec(add: &[Value], remove: &[Value], key: &str) -> Value {
        json!({"addOnConditions": add, "removeOnConditions": remove, "taints": [{"key": key, "effect": "NoExecute"}]})
    }

    #[test]
    fn conditions_are_matched_as_in_karmada() {
        let check = |conditions: &[Value], added: bool| {
            let expected: &[&str] = if added { &["+k:NoExecute"] } else { &[] };
            check(vec![("p", 0, spec(conditions, &[], "k"))], expected);
        };
        check(&[], false);
        check(&[when("Ready", "In", &["False", "Unknown"])], true);
        check(&[when("Ready", "In", &["True"])], false);
        check(&[when("Ready", "In", &[])], false);
        check(&[when("Ready", "NotIn", &["True"])], true);
        check(&[when("Ready", "NotIn", &[])], true);
        check(&[when("Ready", "NotIn", &["False"])], false);
        check(&[when("Gone", "NotIn", &["True"])], false);
        check(&[when("Ready", "Exists", &["False"])], false);
        check(&[when("Ready", "In", &["False"]), when("Disk", "In", &["True"])], true);
        check(&[when("Ready", "In", &["False"]), when("Disk", "In", &["False"])], false);
    }

    #[test]
    fn policies_apply_in_order_of_age_then_name() {
        let (holds, fails) = ([when("Ready", "In", &["False"])], [when("Ready", "In", &["True"])]);
        check(vec![("p", 0, spec(&holds, &holds, "k"))], &["+k:NoExecute", "-k:NoExecute"]);
        check(vec![("p", 0, spec(&fails, &holds, "k"))], &["-k:NoExecute"]);
        let three = vec![
            ("young", 9, spec(&holds, &[], "c")),
            ("b", 1, spec(&holds, &[], "b")),
            ("a", 1, spec(&holds, &[], "a")),
        ];
        check(three, &["+a:NoExecute", "+b:NoExecute", "+c:NoExecute"]);
    }

    #[test]
    fn only_target_clusters_are_touched() {
        let targeted = |name: &str| {
            let mut spec = spec(&[when("Ready", "In", &["False"])], &[], "k");
            spec["targetClusters"] = json!({"clusterNames": [name]});
            spec
        };
        check(vec![("p", 0, targeted("member1"))], &["+k:NoExecute"]);
        check(vec![("p", 0, targeted("member2"))], &[]);
    }
}
