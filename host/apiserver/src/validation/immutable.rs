//! Fields that an update must not change.

use serde_json::Value;

use crate::cause::Cause;
use crate::kind::ResourceKind;

const IMMUTABLE: &str = "field is immutable";
const FROZEN: &str = "field is immutable when `immutable` is set";
const STATEFUL_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
     'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
     forbidden";
/// Fields of a StatefulSet that may change.
const STATEFUL_SET_MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Validates an update.
pub(super) fn check(kind: &ResourceKind, new: &Value, old: &Value, wrong: &mut Vec<Cause>) {
    match (&*kind.group, &*kind.kind) {
        ("", "ConfigMap" | "Secret") => check_data(kind, new, old, wrong),
        ("", "Service") => check_service(new, old, wrong),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => same(new, old, "selector", wrong),
        ("apps", "StatefulSet") => check_stateful_set(new, old, wrong),
        ("batch", "Job") => {
            // A suspended Job that has not started may still be changed.
            if old["spec"]["suspend"] != true {
                same(new, old, "template", wrong);
            }
            for field in ["selector", "completionMode"] {
                same(new, old, field, wrong);
            }
            if old["spec"]["completionMode"] != "Indexed" {
                same(new, old, "completions", wrong);
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") if new["roleRef"] != old["roleRef"] => {
            wrong.push(Cause::invalid("roleRef", &new["roleRef"], "cannot change roleRef"));
        }
        _ => {}
    }
}

/// Requires that a field of the spec stays as it is.
fn same(new: &Value, old: &Value, field: &str, wrong: &mut Vec<Cause>) {
    if new["spec"][field] != old["spec"][field] {
        wrong.push(Cause::invalid(format!("spec.{field}"), &new["spec"][field], IMMUTABLE));
    }
}

fn check_data(kind: &ResourceKind, new: &Value, old: &Value, wrong: &mut Vec<Cause>) {
    if old["immutable"] == true {
        if new["immutable"] != true {
            wrong.push(Cause::forbidden("immutable", FROZEN));
        }
        for field in ["data", "binaryData"] {
            if new[field] != old[field] {
                wrong.push(Cause::forbidden(field, FROZEN));
            }
        }
    }
    if kind.kind == "Secret" && !old["type"].is_null() && new["type"] != old["type"] {
        wrong.push(Cause::invalid("type", &new["type"], IMMUTABLE));
    }
}

fn check_service(new: &Value, old: &Value, wrong: &mut Vec<Cause>) {
    let is_external = |service: &Value| service["spec"]["type"] == "ExternalName";
    let first = |service: &Value| service["spec"]["clusterIPs"].get(0).cloned().unwrap_or_default();
    let before = first(old);
    if !before.is_null() && !is_external(old) && !is_external(new) && first(new) != before {
        let ips = &new["spec"]["clusterIPs"];
        wrong.push(Cause::invalid("spec.clusterIPs[0]", ips, "may not change once set"));
    }
}

fn check_stateful_set(new: &Value, old: &Value, wrong: &mut Vec<Cause>) {
    let is_fixed = |field: &&String| !STATEFUL_SET_MUTABLE.contains(&field.as_str());
    let fields = |object: &Value| -> Vec<String> {
        object["spec"]
            .as_object()
            .into_iter()
            .flat_map(|spec| spec.keys())
            .filter(is_fixed)
            .cloned()
            .collect()
    };
    let mut all = fields(new);
    all.extend(fields(old));
    if all.iter().any(|field| new["spec"][field] != old["spec"][field]) {
        wrong.push(Cause::forbidden("spec", STATEFUL_SET));
    }
}
