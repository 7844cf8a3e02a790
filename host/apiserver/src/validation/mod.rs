//! Validation of Kubernetes' own kinds beyond their schemas, and of the metadata of all kinds (Kubernetes:
//! `pkg/apis/*/validation`).
//!
//! It runs for [`Fidelity::People`](crate::Fidelity) only: controllers write valid objects, and simulations do not pay
//! for it.

mod data;
mod immutable;
mod metadata;
mod names;
mod pod;
mod service;
mod workload;

use serde_json::Value;

use crate::cause::Cause;
use crate::kind::ResourceKind;
use crate::kubectl::schema::{self, Checked};
use crate::status_error::StatusError;

/// Validates a complete object: with `is_main` all of it, otherwise only by its schema. `old` is the stored object of an
/// update. Returns warnings.
///
/// # Errors
///
/// 400 if a value cannot be decoded, 422 with all invalid fields.
pub(crate) fn validate(
    kind: &ResourceKind,
    name: &str,
    object: &Value,
    old: Option<&Value>,
    is_main: bool,
) -> Result<Vec<String>, StatusError> {
    decode(kind, object)?;
    let Checked { mut causes, warnings } = schema::check(kind, object, old)?;
    if is_main {
        for cause in check(kind, name, object, old) {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
    StatusError::refuse(kind, name, &causes)?;
    Ok(warnings)
}

/// Rejects values that cannot be decoded.
///
/// # Errors
///
/// 400 with the words of Go's decoder.
fn decode(kind: &ResourceKind, object: &Value) -> Result<(), StatusError> {
    let field = match (&*kind.group, &*kind.kind) {
        ("", "Secret") => "data",
        ("", "ConfigMap") => "binaryData",
        _ => return Ok(()),
    };
    for (key, value) in object[field].as_object().into_iter().flatten() {
        if let Some(at) = value.as_str().and_then(data::bad_base64) {
            let why = format!("illegal base64 data at input byte {at}");
            let cause = Cause::new(format!("{field}[{key}]"), "FieldValueInvalid", why.clone());
            return Err(StatusError::undecodable(kind, &why, vec![cause]));
        }
    }
    Ok(())
}

/// Returns the causes for which Kubernetes refuses an object. `old` is the stored object of an update.
fn check(kind: &ResourceKind, name: &str, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut wrong = Vec::new();
    metadata::check(kind, name, object, old, &mut wrong);
    match (&*kind.group, &*kind.kind) {
        ("", "Pod") => pod::check(&object["spec"], "spec", &mut wrong),
        ("", "Service") => service::check(&object["spec"], &mut wrong),
        ("", "ConfigMap" | "Secret") => data::check(kind, object, &mut wrong),
        ("apps" | "batch", _) => workload::check(kind, object, &mut wrong),
        _ => {}
    }
    if let Some(old) = old {
        immutable::check(kind, object, old, &mut wrong);
    }
    wrong
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(group: &'static str, kind: &'static str) -> ResourceKind {
        ResourceKind::namespaced(group, "v1", kind, "plurals")
    }

    fn refused(kind: &ResourceKind, object: &Value, old: Option<&Value>) -> Vec<String> {
        let causes = check(
            kind,
            object["metadata"]["name"].as_str().unwrap_or_default(),
            object,
            old,
        );
        causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    fn deployment() -> Value {
        json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Always"},
                },
            },
        })
    }

    /// Changes a valid Deployment and compares the causes.
    fn check_deployment(pointer: &str, value: Value, expected: &[&str]) {
        let mut object = deployment();
        *object.pointer_mut(pointer).expect(pointer) = value;
        assert_eq!(
            refused(&kind("apps", "Deployment"), &object, None),
            expected,
            "{pointer}"
        );
    }

    #[test]
    fn a_deployment_is_refused_with_the_words_of_kubernetes() {
        check_deployment("/spec/replicas", json!(1), &[]);
        let least = "spec.replicas: Invalid value: -4: must be greater than or equal to 0";
        check_deployment("/spec/replicas", json!(-4), &[least]);
        let containers = "/spec/template/spec/containers";
        check_deployment(
            containers,
            json!([]),
            &["spec.template.spec.containers: Required value"],
        );
        let twice = json!([{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]);
        check_deployment(
            containers,
            twice,
            &["spec.template.spec.containers[1].name: Duplicate value: \"a\""],
        );
        let mismatch = "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
                        template `labels`";
        check_deployment("/spec/selector", json!({"matchLabels": {"app": "x"}}), &[mismatch]);
        let empty = "spec.selector: Invalid value: {}: empty selector is invalid for deployment";
        check_deployment("/spec/selector", json!({}), &[empty]);
        let policy = "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
        check_deployment("/spec/template/spec/restartPolicy", json!("Never"), &[policy]);
    }

    #[test]
    fn names_labels_and_annotations_are_checked_for_every_kind() {
        let object = json!({"metadata": {
            "name": "Bad_Name", "labels": {"bad label": "a", "good": "x y"}, "annotations": {"x y": ""},
        }});
        let found = refused(&kind("example.io", "Widget"), &object, None);
        assert!(found[0].starts_with("metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain"));
        assert!(found[1].starts_with("metadata.labels: Invalid value: \"bad label\": name part must consist of"));
        assert!(found[2].starts_with("metadata.labels: Invalid value: \"x y\": a valid label must be an empty string"));
        assert!(found[3].starts_with("metadata.annotations: Invalid value: \"x y\": name part must consist of"));
        assert_eq!(found.len(), 4);
        let role = json!({"metadata": {"name": "system:node"}});
        assert_eq!(
            refused(&kind("rbac.authorization.k8s.io", "ClusterRole"), &role, None),
            [""; 0]
        );
    }

    #[test]
    fn fields_that_must_not_change_are_refused() {
        let mut moved = deployment();
        moved["spec"]["selector"]["matchLabels"]["app"] = json!("x");
        moved["spec"]["template"]["metadata"]["labels"]["app"] = json!("x");
        let expected = "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable";
        assert_eq!(
            refused(&kind("apps", "Deployment"), &moved, Some(&deployment())),
            [expected]
        );

        let settings = |value: &str| json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": value}});
        let expected = "data: Forbidden: field is immutable when `immutable` is set";
        assert_eq!(
            refused(&kind("", "ConfigMap"), &settings("2"), Some(&settings("1"))),
            [expected]
        );

        let service = |ip: &str| {
            let ports = json!([{"port": 80, "targetPort": 80, "protocol": "TCP"}]);
            json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP", "ports": ports, "clusterIPs": [ip]}})
        };
        let expected = "spec.clusterIPs[0]: Invalid value: [\"10.96.0.3\"]: may not change once set";
        assert_eq!(
            refused(&kind("", "Service"), &service("10.96.0.3"), Some(&service("10.96.0.2"))),
            [expected]
        );
    }

    #[test]
    fn ports_of_a_service_are_numbers_of_ports() {
        let service = json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP", "ports": [{"port": 99999}]}});
        let expected = "spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive";
        assert_eq!(refused(&kind("", "Service"), &service, None), [expected]);
        let none = json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP"}});
        assert_eq!(
            refused(&kind("", "Service"), &none, None),
            ["spec.ports: Required value"]
        );
    }

    #[test]
    fn data_has_a_size_and_is_base64() {
        let large = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(1 << 20)}});
        assert_eq!(refused(&kind("", "ConfigMap"), &large, None), [""; 0]);
        let larger = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat((1 << 20) + 1)}});
        let expected = "[]: Too long: may not be more than 1048576 bytes";
        assert_eq!(refused(&kind("", "ConfigMap"), &larger, None), [expected]);
        let error = decode(&kind("", "Secret"), &json!({"data": {"k": "*"}})).expect_err("no base64");
        let expected = "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0";
        assert_eq!((error.code, error.message.as_str()), (400, expected));
    }
}
