//! Policies of measurements and alerts.

use serde_json::json;

/// Returns a `PropagationPolicy` in the namespace `default` that sends the objects of a kind to `member2` if they have
/// the label `NAME=yes`, with the name of the policy.
pub(crate) fn to_member2(name: &str, api_version: &str, kind: &str) -> serde_json::Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": api_version,
                "kind": kind,
                "labelSelector": {"matchLabels": {name: "yes"}},
            }],
            "placement": {"clusterAffinity": {"clusterNames": ["member2"]}},
        },
    })
}
