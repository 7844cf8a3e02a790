//! NoExecute taints that a ready cluster keeps although a ClusterTaintPolicy would remove them.
//!
//! The rules are those of `bulkhead_core::decide::taint`, which this check calls.

use std::sync::Arc;

use bulkhead_controllers::flags::FeatureGate;
use bulkhead_core::decide::taint::{self, TaintOptions};
use bulkhead_core::model::{Cluster, Taint, TaintEffect};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::{ClusterTaintPolicyRule, TaintPolicyOptions};

use crate::doctor::facts::Facts;
use crate::doctor::finding::Section;

pub(super) fn check(facts: &Facts, cluster: &Cluster, section: &mut Section) {
    if !cluster.is_ready() || cluster.is_terminating() {
        return;
    }
    // Any owner counts here, as for Karmada.
    for (taint, policy) in removed(facts, cluster, false) {
        let what = format!("is Ready and has the taint {taint}, which evicts its workloads; {policy} would remove it");
        section.error(
            format!("cluster {}", cluster.name),
            what,
            remedy(facts, cluster, &taint),
        );
    }
}

/// Returns the NoExecute taints that the policies would remove now, each with the name of its policy. With
/// `owned_only`, a policy removes only the taints that this installation would let it remove.
fn removed(facts: &Facts, cluster: &Cluster, owned_only: bool) -> Vec<(Taint, String)> {
    let flags = &facts.installation.flags;
    let cleans_up = owned_only && flags.cluster_taint_policy_clean_up;
    let damping_window_s = flags.cluster_taint_policy_damping_window.as_secs();
    let options = TaintPolicyOptions {
        cleans_up,
        damping_window_s,
    };
    let unknown_age = Time::from_millis(0);
    let policies = facts
        .taint_policies
        .iter()
        .map(|policy| (policy.name.clone(), unknown_age, policy.spec.clone()));
    let rules = ClusterTaintPolicyRule::all(policies.collect(), options).into_iter();
    let rules = PolicySet::new(rules.map(|rule| -> Arc<dyn Policy> { Arc::new(rule) }).collect());
    let options = TaintOptions {
        cleans_up,
        policies_are_complete: owned_only,
        answers: false,
    };
    let plan = taint::decide(cluster, &rules, options, facts.now);
    let remaining = plan.taints.unwrap_or_else(|| cluster.spec.taints.clone());
    let is_gone = |taint: &Taint| !remaining.iter().any(|kept| kept.same_identity(taint));
    let removed = plan.removed.into_iter();
    let removed = removed.filter(|(taint, _)| taint.effect == TaintEffect::NoExecute && is_gone(taint));
    removed
        .map(|(taint, attribution)| (taint, attribution.reason.message))
        .collect()
}

/// Returns the remedy for a taint, which depends on the program that follows the policies.
fn remedy(facts: &Facts, cluster: &Cluster, taint: &Taint) -> String {
    let installation = &facts.installation;
    let by_hand = "remove the taint from spec.taints of the Cluster";
    let writes = installation.has("evict") || installation.has("all");
    if !writes {
        return format!("check that Karmada's controller clustertaintpolicy runs, or {by_hand}");
    }
    if !installation.flags.gate(FeatureGate::Failover) {
        return format!("the feature gate Failover is off, so no policy is followed: set it, or {by_hand}");
    }
    if !installation.runs("clustertaintpolicy") {
        return format!("add the controller clustertaintpolicy to --controllers, or {by_hand}");
    }
    if removed(facts, cluster, true)
        .iter()
        .any(|(known, _)| known.same_identity(taint))
    {
        return "bulkhead run in this mode removes it; if it runs, read its log".to_owned();
    }
    let why = match cluster.taint_owner(taint) {
        Some(owner) => format!("the taint belongs to {owner}"),
        None if cluster.taint_owners_unknown => "the annotation bulkhead.dev/taint-owners is malformed".to_owned(),
        None => "the taint has no timeAdded".to_owned(),
    };
    format!("bulkhead run leaves it, because {why}: {by_hand}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::checks::{MEMBERS, all};

    const ADDED: &str = "2026-08-01T11:00:00Z";

    /// Returns the facts of an installation in a mode, with a policy and a member that has one taint.
    fn facts(mode: &str, ready: &str, taint: Value) -> Facts {
        let condition =
            |operator: &str| json!([{"conditionType": "Ready", "operator": operator, "statusValues": ["True"]}]);
        serde_json::from_value(json!({
            "now": "2026-08-01T12:00:00Z",
            "installation": {
                "modes": [mode],
                "controllers": ["clustertaintpolicy"],
                "flags": {"feature-gates": {"Failover": true}},
            },
            "controlPlane": {},
            "taintPolicies": [{"name": "p", "spec": {
                "addOnConditions": condition("NotIn"),
                "removeOnConditions": condition("In"),
                "taints": [{"key": "not-ready", "effect": "NoExecute"}],
            }}],
            "members": [{"cluster": {
                "name": "member1",
                "spec": {"syncMode": "Push", "taints": [taint]},
                "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "", "message": "",
                    "lastTransitionTime": ADDED}]},
            }}],
        }))
        .unwrap()
    }

    /// Returns the remedies of the errors about members.
    fn remedies(facts: &Facts) -> Vec<String> {
        let section = all(facts).into_iter().find(|section| section.check == MEMBERS).unwrap();
        let errors = section
            .findings
            .into_iter()
            .filter(|finding| finding.what.contains("ClusterTaintPolicy p"));
        errors.map(|finding| finding.remedy).collect()
    }

    #[test]
    fn a_ready_cluster_with_an_evicting_taint_that_a_policy_would_remove_is_an_error() {
        let taint = |effect: &str| json!({"key": "not-ready", "effect": effect, "timeAdded": ADDED});
        let by_us = remedies(&facts("evict", "True", taint("NoExecute")));
        assert!(
            matches!(by_us.as_slice(), [remedy] if remedy.starts_with("bulkhead run in this mode")),
            "{by_us:?}"
        );
        let by_karmada = remedies(&facts("finish", "True", taint("NoExecute")));
        assert!(
            matches!(by_karmada.as_slice(), [remedy] if remedy.contains("Karmada's controller")),
            "{by_karmada:?}"
        );
        assert_eq!(
            remedies(&facts("evict", "False", taint("NoExecute"))),
            [""; 0],
            "the taint is due"
        );
        assert_eq!(
            remedies(&facts("evict", "True", taint("NoSchedule"))),
            [""; 0],
            "it evicts nothing"
        );
        let other = json!({"key": "maintenance", "effect": "NoExecute", "timeAdded": ADDED});
        assert_eq!(remedies(&facts("evict", "True", other)), [""; 0], "no policy names it");
    }

    #[test]
    fn the_remedy_names_the_reason_why_no_policy_removes_the_taint() {
        let taint = json!({"key": "not-ready", "effect": "NoExecute", "timeAdded": ADDED});
        let check = |change: &dyn Fn(&mut Facts), part: &str| {
            let mut facts = facts("all", "True", taint.clone());
            change(&mut facts);
            let found = remedies(&facts);
            assert!(
                matches!(found.as_slice(), [remedy] if remedy.contains(part)),
                "{part}: {found:?}"
            );
        };
        let cluster = |facts: &mut Facts, change: &dyn Fn(&mut Cluster)| {
            facts.members.iter_mut().for_each(|member| change(&mut member.cluster));
        };
        check(&|facts| facts.installation.controllers.clear(), "--controllers");
        check(
            &|facts| cluster(facts, &|one| one.taint_owners_unknown = true),
            "is malformed",
        );
        let owned = |one: &mut Cluster| {
            drop(
                one.taint_owners
                    .insert("not-ready:NoExecute".to_owned(), "Other".to_owned()),
            );
        };
        check(&|facts| cluster(facts, &owned), "belongs to Other");
        let undated = |one: &mut Cluster| one.spec.taints.iter_mut().for_each(|taint| taint.time_added = None);
        check(&|facts| cluster(facts, &undated), "no timeAdded");
    }
}
