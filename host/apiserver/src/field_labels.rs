//! Fields that a field selector may name. They depend on the kind.

use crate::kind::ResourceKind;
use crate::status_error::StatusError;

/// Field with the name in selectors, its path in the object, and the value that stands for an absent field.
pub(crate) struct FieldLabel {
    /// Name in selectors.
    name: &'static str,
    /// Path in the object.
    pub(crate) path: &'static str,
    /// Value of an absent field.
    pub(crate) default: &'static str,
}

const fn field(name: &'static str) -> FieldLabel {
    FieldLabel {
        name,
        path: name,
        default: "",
    }
}

const fn field_or(name: &'static str, default: &'static str) -> FieldLabel {
    FieldLabel {
        name,
        path: name,
        default,
    }
}

const NONE: &[FieldLabel] = &[];
const POD: &[FieldLabel] = &[
    field("spec.nodeName"),
    field("spec.restartPolicy"),
    field("spec.schedulerName"),
    field("spec.serviceAccountName"),
    field_or("spec.hostNetwork", "false"),
    field("status.phase"),
    field("status.podIP"),
    field("status.podIPs"),
    field("status.nominatedNodeName"),
];
const EVENT: &[FieldLabel] = &[
    field("involvedObject.kind"),
    field("involvedObject.namespace"),
    field("involvedObject.name"),
    field("involvedObject.uid"),
    field("involvedObject.apiVersion"),
    field("involvedObject.resourceVersion"),
    field("involvedObject.fieldPath"),
    field("reason"),
    field("reportingComponent"),
    FieldLabel {
        name: "source",
        path: "source.component",
        default: "",
    },
    field("type"),
];

const NODE: &[FieldLabel] = &[field_or("spec.unschedulable", "false")];
const NAMESPACE: &[FieldLabel] = &[field("status.phase")];
const SECRET: &[FieldLabel] = &[field("type")];
const SERVICE: &[FieldLabel] = &[field("spec.clusterIP"), field("spec.type")];
const REPLICA_SET: &[FieldLabel] = &[field_or("status.replicas", "0")];
const JOB: &[FieldLabel] = &[FieldLabel {
    name: "status.successful",
    path: "status.succeeded",
    default: "0",
}];

/// Returns the selectable fields of a kind besides its name and namespace, and the name of the kind if messages
/// contain it. Returns `None` for Kubernetes' own kinds without such fields.
fn own(kind: &ResourceKind) -> Option<(&'static [FieldLabel], Option<&'static str>)> {
    Some(match (&*kind.group, &*kind.kind) {
        ("", "Pod") => (POD, None),
        ("", "Event") => (EVENT, None),
        ("", "Node") => (NODE, None),
        ("", "Namespace") => (NAMESPACE, None),
        ("", "Secret") => (SECRET, None),
        ("", "Service") => (SERVICE, None),
        ("apps", "ReplicaSet") => (REPLICA_SET, Some("appsv1.ReplicaSet")),
        ("batch", "Job") => (JOB, Some("Job")),
        _ if kind.is_builtin() => return None,
        _ => (NONE, None),
    })
}

/// Resolves a field of a selector. Returns `None` for the name, the namespace and the selectable fields of a
/// definition, whose paths equal their names.
///
/// # Errors
///
/// 400 if the kind cannot be selected by this field.
pub(crate) fn resolve(kind: &ResourceKind, name: &str) -> Result<Option<&'static FieldLabel>, StatusError> {
    let is_common =
        name == "metadata.name" || (name == "metadata.namespace" && (kind.is_builtin() || kind.is_namespaced()));
    if is_common || kind.selectable_fields.iter().any(|field| field == name) {
        return Ok(None);
    }
    let Some((fields, named)) = own(kind) else {
        return Err(StatusError::bad_request(format!(
            "\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )));
    };
    let found = fields.iter().find(|field| field.name == name);
    found.map(Some).ok_or_else(|| {
        StatusError::bad_request(match named {
            Some(kind) => format!("field label \"{name}\" not supported for {kind}"),
            None => format!("field label not supported: {name}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(group: &'static str, kind: &'static str, name: &str, expected: Option<&str>) {
        let mut kind = ResourceKind::namespaced(group, "v1", kind, "plurals");
        kind.selectable_fields = if group == "example.io" {
            vec!["spec.size".to_owned()]
        } else {
            Vec::new()
        };
        let message = resolve(&kind, name).err().map(|error| error.message);
        assert_eq!(message.as_deref(), expected, "{name}");
    }

    #[test]
    fn only_some_fields_can_be_selected() {
        check("", "Pod", "spec.nodeName", None);
        check("", "Pod", "foo", Some("field label not supported: foo"));
        check("apps", "Deployment", "metadata.name", None);
        let known = "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        check("apps", "Deployment", "spec.replicas", Some(known));
        check("batch", "Job", "status.successful", None);
        check("batch", "Job", "a", Some("field label \"a\" not supported for Job"));
        check("example.io", "Widget", "spec.size", None);
        check(
            "example.io",
            "Widget",
            "spec.mode",
            Some("field label not supported: spec.mode"),
        );
    }
}
