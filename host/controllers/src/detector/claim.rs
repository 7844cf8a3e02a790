//! The policy that claims a resource template (Karmada: `pkg/detector/detector.go:propagateResource`).
//!
//! A claim holds as long as its policy exists, is not being deleted, and matches. Policies do not preempt each other:
//! Karmada's feature gate `PropagationPolicyPreemption`, which is off by default there, has no counterpart here.

use bulkhead_api::policy::PropagationSpec;
use bulkhead_core::combine::Attribution;
use bulkhead_core::names::keys;
use bulkhead_runtime::key::Key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::selection::{Specificity, Template, specificity};

/// Policy that matches a template.
pub(super) struct Claim {
    /// Key of the policy; without a namespace it is a ClusterPropagationPolicy.
    pub(super) policy: Key,
    pub(super) permanent_id: String,
    pub(super) spec: PropagationSpec,
    pub(super) attribution: Attribution,
}

/// Metadata and spec of a policy.
type Candidate<'a> = (&'a ObjectMeta, &'a PropagationSpec);

/// Returns the policy in charge. A policy that claimed the template already stays in charge as long as it matches, of
/// either scope. Otherwise it is the best match: of the namespace first, then of the whole control plane.
pub(super) fn choose<'a>(
    namespaced: impl Iterator<Item = Candidate<'a>> + Clone,
    cluster_wide: impl Iterator<Item = Candidate<'a>> + Clone,
    template: &Template<'_>,
) -> Option<Claim> {
    const NAMESPACED: &str = keys::PROPAGATION_POLICY_ID;
    const CLUSTER_WIDE: &str = keys::CLUSTER_PROPAGATION_POLICY_ID;
    let claims = |meta: &ObjectMeta, label: &str| {
        let claimed = template.labels.get(label);
        claimed.is_some() && claimed == permanent_id(meta, label)
    };
    best(
        namespaced.clone().filter(|(meta, _)| claims(meta, NAMESPACED)),
        NAMESPACED,
        template,
    )
    .or_else(|| {
        best(
            cluster_wide.clone().filter(|(meta, _)| claims(meta, CLUSTER_WIDE)),
            CLUSTER_WIDE,
            template,
        )
    })
    .or_else(|| best(namespaced, NAMESPACED, template))
    .or_else(|| best(cluster_wide, CLUSTER_WIDE, template))
}

/// Returns the permanent ID of a policy, which the templates that it claims carry too.
fn permanent_id<'a>(meta: &'a ObjectMeta, label: &str) -> Option<&'a String> {
    meta.labels.as_ref()?.get(label).filter(|id| !id.is_empty())
}

/// Returns the best match: the higher priority, then the more specific selector, then the name that sorts first.
/// `id_label` is the label with a policy's permanent ID.
fn best<'a>(candidates: impl Iterator<Item = Candidate<'a>>, id_label: &str, template: &Template<'_>) -> Option<Claim> {
    let mut best: Option<((i32, Specificity), _, _, _)> = None;
    for (meta, spec) in candidates.filter(|(meta, _)| meta.deletion_timestamp.is_none()) {
        let matching = spec
            .resource_selectors
            .iter()
            .filter_map(|selector| specificity(selector, template));
        // A policy without an ID could not be found again, so it claims nothing.
        let (Some(specificity), Some(id)) = (matching.max(), permanent_id(meta, id_label)) else {
            continue;
        };
        let rank = (spec.priority.unwrap_or_default(), specificity);
        if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
            best = Some((rank, meta, id, spec));
        }
    }
    let ((_, specificity), meta, id, spec) = best?;
    let policy = Key::new(
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let policy_kind = if policy.namespace.is_empty() {
        "ClusterPropagationPolicy"
    } else {
        "PropagationPolicy"
    };
    let attribution = Attribution::rule(
        "PolicyMatched",
        format!("{policy_kind} {policy} selects it {}", specificity.how()),
    );
    Some(Claim {
        policy,
        permanent_id: id.clone(),
        spec: spec.clone(),
        attribution,
    })
}

#[cfg(test)]
mod tests {
    use bulkhead_runtime::dynamic::KeptObject;
    use bulkhead_runtime::kinds::ObjectKind;
    use serde_json::{Value, json};

    use super::*;

    /// Creates a policy; without a namespace it is a ClusterPropagationPolicy.
    fn policy(namespace: &str, name: &str, selects: &str, priority: i32) -> (ObjectMeta, PropagationSpec) {
        let label = if namespace.is_empty() {
            keys::CLUSTER_PROPAGATION_POLICY_ID
        } else {
            keys::PROPAGATION_POLICY_ID
        };
        let meta = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            labels: Some([(label.to_owned(), format!("id-{name}"))].into()),
            ..ObjectMeta::default()
        };
        let spec = json!({
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": selects}],
            "priority": priority,
        });
        (meta, serde_json::from_value(spec).unwrap())
    }

    /// Checks the policy in charge of a Deployment `web` that has the given labels.
    fn check(policies: &[(ObjectMeta, PropagationSpec)], labels: Value, expected: &str) {
        let kind = ObjectKind::new("apps/v1", "Deployment");
        let object = json!({"metadata": {"name": "web", "namespace": "default", "labels": labels}});
        let object: KeptObject = serde_json::from_value(object).unwrap();
        let of_scope = |namespaced: bool| {
            let is_in = move |(meta, _): &Candidate<'_>| meta.namespace.is_some() == namespaced;
            policies.iter().map(|policy| (&policy.0, &policy.1)).filter(is_in)
        };
        let claim = choose(of_scope(true), of_scope(false), &Template::new(&kind, &object));
        assert_eq!(
            claim.map(|claim| claim.policy.to_string()).as_deref(),
            Some(expected),
            "labels {labels}"
        );
    }

    #[test]
    fn a_namespaced_policy_comes_first_at_the_first_claim_only() {
        let policies = [policy("default", "own", "web", 0), policy("", "all", "web", 100)];
        check(&policies, json!({}), "default/own");
        check(
            &policies,
            json!({(keys::CLUSTER_PROPAGATION_POLICY_ID): "id-all"}),
            "all",
        );
        check(
            &policies,
            json!({(keys::PROPAGATION_POLICY_ID): "id-own"}),
            "default/own",
        );
    }

    #[test]
    fn a_claim_ends_with_its_policy_or_its_match() {
        let claimed = json!({(keys::CLUSTER_PROPAGATION_POLICY_ID): "id-all"});
        check(
            &[policy("default", "own", "web", 0), policy("", "all", "other", 0)],
            claimed.clone(),
            "default/own",
        );
        check(&[policy("default", "own", "web", 0)], claimed, "default/own");
    }

    #[test]
    fn a_policy_that_is_being_deleted_claims_nothing() {
        let deleted = |(meta, spec): (ObjectMeta, PropagationSpec)| {
            let deletion_timestamp = Some(bulkhead_api::time::to_meta(bulkhead_core::time::Time::from_millis(0)));
            (
                ObjectMeta {
                    deletion_timestamp,
                    ..meta
                },
                spec,
            )
        };
        let policies = [
            deleted(policy("default", "high", "web", 9)),
            policy("default", "low", "web", 1),
        ];
        check(&policies, json!({}), "default/low");
        check(
            &policies,
            json!({(keys::PROPAGATION_POLICY_ID): "id-high"}),
            "default/low",
        );
        let policies = [deleted(policy("default", "own", "web", 0)), policy("", "all", "web", 0)];
        check(&policies, json!({(keys::PROPAGATION_POLICY_ID): "id-own"}), "all");
    }

    #[test]
    fn a_claimed_template_is_not_taken_over_by_a_higher_priority() {
        let policies = [policy("default", "high", "web", 9), policy("default", "low", "web", 1)];
        check(&policies, json!({}), "default/high");
        check(
            &policies,
            json!({(keys::PROPAGATION_POLICY_ID): "id-low"}),
            "default/low",
        );
    }
}
