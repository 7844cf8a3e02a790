//! Defaults of Kubernetes' own kinds that are visible to users: workloads, their pods, Services (Kubernetes:
//! `pkg/apis/*/v1/defaults.go`).

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::kind::ResourceKind;

/// Sets the defaults of an object of one of Kubernetes' own kinds. Values of a wrong type are left to the subsequent
/// validation.
pub(super) fn complete(kind: &ResourceKind, object: &mut Value) {
    let defaults = match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => return namespace(object),
        ("", "Secret") => return secret(object),
        ("", "Pod" | "Service") | ("apps", _) | ("batch", "Job") => workload_defaults(&kind.kind),
        ("storage.k8s.io", "StorageClass") => {
            return default(
                object,
                json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
            );
        }
        _ => match spec_defaults(kind, object) {
            Some(defaults) => defaults,
            None => return,
        },
    };
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    match &*kind.kind {
        "Pod" => pod(spec),
        "Service" => service(spec),
        "CronJob" => cron_job(spec, defaults),
        _ => workload(spec, defaults),
    }
}

/// Returns the defaults of the spec of a kind that is no workload.
fn spec_defaults(kind: &ResourceKind, object: &Value) -> Option<Value> {
    Some(match (&*kind.group, &*kind.kind) {
        ("", "PersistentVolumeClaim") => json!({"volumeMode": "Filesystem"}),
        ("", "PersistentVolume") => {
            json!({"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"})
        }
        ("batch", "CronJob") => json!({
            "concurrencyPolicy": "Allow",
            "suspend": false,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        }),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            json!({"minReplicas": 1, "metrics": [metric]})
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            let types = if object["spec"]["egress"].is_array() {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
            json!({"policyTypes": types})
        }
        _ => return None,
    })
}

fn workload_defaults(kind: &str) -> Value {
    match kind {
        "Deployment" => json!({
            "replicas": 1,
            "strategy": {},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }),
        "ReplicaSet" => json!({"replicas": 1}),
        "StatefulSet" => json!({
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        }),
        "DaemonSet" => json!({
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        }),
        "Job" => json!({
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": false,
        }),
        _ => json!({}),
    }
}

/// Adds missing fields. A value that is not an object is left to the subsequent validation.
fn default(value: &mut Value, defaults: Value) {
    if let (Some(fields), Value::Object(defaults)) = (value.as_object_mut(), defaults) {
        for (name, default) in defaults {
            fields.entry(name).or_insert(default);
        }
    }
}

fn each(value: &mut Value, field: &str, complete: impl FnMut(&mut Value)) {
    if let Some(items) = value.get_mut(field).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(complete);
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    default(object, json!({"spec": {}}));
    default(&mut object["spec"], json!({"finalizers": ["kubernetes"]}));
    default(&mut object["metadata"], json!({"labels": {}}));
    let labels = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    if let Some(labels) = labels.filter(|_| name.is_string()) {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Moves `stringData` to `data`.
fn secret(object: &mut Value) {
    default(object, json!({"type": "Opaque"}));
    let written = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    if let Some(Value::Object(written)) = written {
        default(object, json!({"data": {}}));
        if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
            let texts = written
                .into_iter()
                .filter_map(|(key, text)| Some((key, text.as_str()?.as_bytes().to_vec())));
            data.extend(texts.map(|(key, bytes)| (key, json!(ByteString(bytes)))));
        }
    }
}

fn workload(spec: &mut Value, defaults: Value) {
    default(spec, defaults);
    if let Some(strategy) = spec.get_mut("strategy") {
        default(strategy, json!({"type": "RollingUpdate"}));
        if strategy["type"] == "RollingUpdate" {
            default(strategy, json!({"rollingUpdate": {}}));
            default(
                &mut strategy["rollingUpdate"],
                json!({"maxSurge": "25%", "maxUnavailable": "25%"}),
            );
        }
    }
    if let Some(template) = spec.pointer_mut("/template/spec") {
        pod(template);
    }
}

fn cron_job(spec: &mut Value, defaults: Value) {
    default(spec, defaults);
    if let Some(template) = spec.pointer_mut("/jobTemplate/spec/template/spec") {
        pod(template);
    }
}

fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default(
        spec,
        json!({
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        }),
    );
    for field in ["containers", "initContainers"] {
        each(spec, field, container);
    }
    each(spec, "volumes", |volume| {
        for (source, fields) in [
            ("configMap", json!({"defaultMode": 420})),
            ("secret", json!({"defaultMode": 420})),
        ] {
            if let Some(source) = volume.get_mut(source) {
                default(source, fields);
            }
        }
    });
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    // The tag follows the last colon, unless a slash follows it: then the colon precedes a port of the registry.
    let tag = image
        .rsplit('/')
        .next()
        .and_then(|name| name.split_once(':'))
        .map(|(_, tag)| tag);
    let is_latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    default(
        container,
        json!({
            "imagePullPolicy": if is_latest { "Always" } else { "IfNotPresent" },
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }),
    );
    each(container, "ports", |port| default(port, json!({"protocol": "TCP"})));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            let times = json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
            default(probe, times);
            if let Some(request) = probe.get_mut("httpGet") {
                default(request, json!({"scheme": "HTTP"}));
            }
        }
    }
}

fn service(spec: &mut Value) {
    default(spec, json!({"type": "ClusterIP", "sessionAffinity": "None"}));
    if spec["type"] != "ExternalName" {
        default(spec, json!({"internalTrafficPolicy": "Cluster"}));
    }
    each(spec, "ports", |port| {
        default(port, json!({"protocol": "TCP"}));
        let target = port["port"].clone();
        default(port, json!({"targetPort": target}));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_secret_become_data() {
        let kind = ResourceKind::namespaced("", "v1", "Secret", "secrets");
        let mut object = json!({"stringData": {"word": "secret"}});
        complete(&kind, &mut object);
        assert_eq!(object, json!({"type": "Opaque", "data": {"word": "c2VjcmV0"}}));
    }

    #[test]
    fn a_deployment_shows_what_will_be_done() {
        let kind = ResourceKind::namespaced("apps", "v1", "Deployment", "deployments");
        let containers = json!([{"name": "a", "image": "registry:5000/a"}, {"name": "b", "image": "b:1"}]);
        let mut object = json!({"spec": {"replicas": 2, "template": {"spec": {"containers": containers}}}});
        complete(&kind, &mut object);
        let spec = &object["spec"];
        assert_eq!(spec["replicas"], 2);
        assert_eq!(spec["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        assert_eq!(spec["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(
            spec["template"]["spec"]["containers"][1]["imagePullPolicy"],
            "IfNotPresent"
        );
        let before = object.clone();
        complete(&kind, &mut object);
        assert_eq!(object, before);
    }
}
