//! Override policies, which change the copies of an object in some clusters (Karmada:
//! `pkg/apis/policy/v1alpha1/override_types.go`).

use std::borrow::Cow;

use bulkhead_core::model::{ClusterAffinity, OverrideRule, Overriders};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::api_object;
use crate::policy::ResourceSelector;

api_object! {
    /// Changes of objects of one namespace, for each cluster that gets a copy.
    OverridePolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "overridepolicies",
        scope: NamespaceResourceScope,
        spec: OverrideSpec
    }
}

api_object! {
    /// Changes of objects of any namespace, or of cluster scope, for each cluster that gets a copy. They are applied
    /// before those of an `OverridePolicy`.
    ClusterOverridePolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "clusteroverridepolicies",
        scope: ClusterResourceScope,
        spec: OverrideSpec
    }
}

/// `spec` of both override policies (Karmada: `override_types.go:OverrideSpec`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSpec {
    /// Resource templates that the policy selects; empty selects all templates of the policy's scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// Rules, applied in order; each applies to the clusters that it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_rules: Option<Vec<OverrideRule>>,
    /// Deprecated form of `overrideRules[].targetCluster`, for `overriders`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// Deprecated form of `overrideRules[].overriders`; ignored beside `overrideRules`.
    #[serde(default, skip_serializing_if = "Overriders::is_empty")]
    pub overriders: Overriders,
}

impl OverrideSpec {
    /// Returns the rules. Without any, the deprecated fields are the only rule, as in Karmada
    /// (`overridemanager.go:getOverridersFromOverridePolicies`).
    pub fn rules(&self) -> Cow<'_, [OverrideRule]> {
        match self.override_rules.as_deref() {
            Some(rules) if !rules.is_empty() => Cow::Borrowed(rules),
            _ => Cow::Owned(vec![OverrideRule {
                target_cluster: self.target_cluster.clone(),
                overriders: self.overriders.clone(),
            }]),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::decode_strict;

    /// Returns a spec with every field of Karmada's type.
    fn every_field() -> Value {
        let operations = json!([{"subPath": "/a", "operator": "replace", "value": {"b": [1, "c"]}},
            {"subPath": "/d", "operator": "remove"}]);
        let overriders = json!({
            "plaintext": [{"path": "/spec/paused", "operator": "add", "value": true}],
            "imageOverrider": [
                {"predicate": {"path": "/spec/image"}, "component": "Registry", "operator": "replace", "value": "r"},
                {"component": "Tag", "operator": "remove"},
            ],
            "commandOverrider": [{"containerName": "c", "operator": "add", "value": ["-v"]}],
            "argsOverrider": [{"containerName": "c", "operator": "remove", "value": ["-v"]}],
            "labelsOverrider": [{"operator": "add", "value": {"a": "b"}}],
            "annotationsOverrider": [{"operator": "replace", "value": {"a": "b"}}],
            "fieldOverrider": [{"fieldPath": "/data/a", "json": operations},
                {"fieldPath": "/data/b", "yaml": operations}],
        });
        let target = json!({"clusterNames": ["m1"], "exclude": ["m2"],
            "labelSelector": {"matchLabels": {"a": "b"}},
            "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}});
        json!({
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}],
            "overrideRules": [{"targetCluster": target, "overriders": overriders}],
            "targetCluster": target,
            "overriders": overriders,
        })
    }

    #[test]
    fn every_field_of_karmada_is_known_and_written_back() {
        let object = json!({"metadata": {"name": "p"}, "spec": every_field()});
        let decoded = decode_strict::<OverridePolicy>(&object).unwrap();
        assert_eq!(decoded.unknown, []);
        let written = serde_json::to_value(&decoded.object).unwrap();
        assert_eq!(written["spec"], every_field());
        assert_eq!(written["apiVersion"], "policy.karmada.io/v1alpha1");
        let cluster_wide = decode_strict::<ClusterOverridePolicy>(&object).unwrap();
        assert_eq!(cluster_wide.object.spec, decoded.object.spec);
        assert_eq!(ClusterOverridePolicy::plural(&()), "clusteroverridepolicies");
    }

    #[test]
    fn the_deprecated_fields_are_a_rule_only_where_no_other_exists() {
        let mut spec: OverrideSpec = serde_json::from_value(every_field()).unwrap();
        assert_eq!(spec.rules().len(), 1);
        spec.target_cluster = None;
        assert!(spec.rules()[0].target_cluster.is_some());
        spec.override_rules = Some(Vec::new());
        assert!(spec.rules()[0].target_cluster.is_none());
        assert_eq!(spec.rules()[0].overriders, spec.overriders);
    }

    #[test]
    fn the_definitions_have_karmadas_operators_and_any_value() {
        for kind in ["OverridePolicy", "ClusterOverridePolicy"] {
            let definitions = crate::definition::definitions();
            let definition = definitions.iter().find(|found| found.spec.names.kind == kind).unwrap();
            let schema = serde_json::to_value(&definition.spec.versions[0].schema).unwrap();
            let rule = "/openAPIV3Schema/properties/spec/properties/overrideRules/items";
            let of_rule = |path: &str| schema.pointer(&format!("{rule}{path}")).cloned().unwrap_or_default();
            assert_eq!(of_rule("/required"), json!(["overriders"]), "{kind}");
            let field = |list: &str, field: &str| {
                of_rule(&format!(
                    "/properties/overriders/properties/{list}/items/properties/{field}"
                ))
            };
            let all = json!(["add", "remove", "replace"]);
            assert_eq!(field("plaintext", "operator")["enum"], all, "{kind}");
            assert_eq!(field("labelsOverrider", "operator")["enum"], all, "{kind}");
            assert_eq!(
                field("argsOverrider", "operator")["enum"],
                json!(["add", "remove"]),
                "{kind}"
            );
            let components = json!(["Registry", "Repository", "Tag"]);
            assert_eq!(field("imageOverrider", "component")["enum"], components, "{kind}");
            let any = "x-kubernetes-preserve-unknown-fields";
            assert_eq!(field("plaintext", "value")[any], true, "{kind}");
            assert_eq!(
                field("fieldOverrider", "yaml")["items"]["properties"]["value"][any],
                true,
                "{kind}"
            );
            assert!(!schema.to_string().contains("\"default\""), "{kind}");
        }
    }

    #[test]
    fn an_operator_that_the_type_does_not_have_is_refused() {
        let check = |overriders: Value, expected: &str| {
            let object = json!({"spec": {"overrideRules": [{"overriders": overriders}]}});
            let error = decode_strict::<OverridePolicy>(&object).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        let rule = "spec.overrideRules[0].overriders";
        check(
            json!({"commandOverrider": [{"containerName": "c", "operator": "replace"}]}),
            &format!("{rule}.commandOverrider[0].operator: unknown variant `replace`"),
        );
        check(
            json!({"plaintext": [{"path": "/a", "operator": "test"}]}),
            &format!("{rule}.plaintext[0].operator: unknown variant `test`"),
        );
        check(
            json!({"imageOverrider": [{"component": "Digest", "operator": "add"}]}),
            &format!("{rule}.imageOverrider[0].component: unknown variant `Digest`"),
        );
    }
}
