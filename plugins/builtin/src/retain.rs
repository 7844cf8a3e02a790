//! Fields that an update must not remove from a member cluster's object. (Karmada:
//! `pkg/resourceinterpreter/default/native/retain.go`, `pkg/util/lifted/retain.go`.)
//!
//! Labels, annotations and server-set metadata are retained for every kind elsewhere. Intentional differences: a pod
//! keeps the fields that Karmada's typed struct does not know, an entry of a service account without a name is an
//! error where Karmada panics, and a null list of a service account is an empty one where Karmada fails.

use std::collections::BTreeSet;

use bulkhead_core::shape::{Malformed, list, text};
use bulkhead_core::unstructured::{self, put};
use serde_json::Value;

use crate::statuses;

/// Label of a template whose replicas are managed by the member cluster.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";
const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";

/// Returns `desired` with the retained fields of `observed`; `None` for kinds without a rule.
pub(crate) fn retain(kind: (&str, &str), desired: &Value, observed: &Value) -> Result<Option<Value>, Malformed> {
    let mut retained = desired.clone();
    match kind {
        ("apps/v1", "Deployment") => replicas(&mut retained, observed)?,
        ("v1", "Service") => service(&mut retained, observed)?,
        ("v1", "ServiceAccount") => service_account(&mut retained, observed)?,
        ("v1", "PersistentVolumeClaim") => {
            let path = ["spec", "volumeName"];
            if let Some(name) = unstructured::text(observed, &path)?.filter(|name| !name.is_empty()) {
                put(&mut retained, &path, name.into())?;
            }
        }
        ("v1", "PersistentVolume") => copy(&mut retained, observed, &["spec", "claimRef"])?,
        ("batch/v1", "Job") => {
            copy_texts(&mut retained, observed, &["spec", "selector", "matchLabels"])?;
            copy_texts(&mut retained, observed, &["spec", "template", "metadata", "labels"])?;
        }
        ("v1", "Secret") => {
            if desired.get("type").and_then(Value::as_str) == Some(TOKEN_SECRET) {
                copy_texts(&mut retained, observed, &["data"])?;
            }
        }
        ("v1", "Pod") => pod(&mut retained, observed)?,
        _ => return Ok(None),
    }
    Ok(Some(retained))
}

fn copy(retained: &mut Value, observed: &Value, path: &[&str]) -> Result<(), Malformed> {
    unstructured::value(observed, path)?.map_or(Ok(()), |value| put(retained, path, value.clone()))
}

/// Copies an object whose members must all be strings.
fn copy_texts(retained: &mut Value, observed: &Value, path: &[&str]) -> Result<(), Malformed> {
    let Some(texts) = unstructured::texts(observed, path)? else {
        return Ok(());
    };
    put(retained, path, Value::Object(texts.clone()))
}

fn replicas(retained: &mut Value, observed: &Value) -> Result<(), Malformed> {
    let labels = unstructured::texts(retained, &["metadata", "labels"])?;
    if labels
        .and_then(|labels| labels.get(RETAIN_REPLICAS))
        .and_then(Value::as_str)
        != Some("true")
    {
        return Ok(());
    }
    let path = ["spec", "replicas"];
    match unstructured::integer(observed, &path) {
        Ok(Some(replicas)) => put(retained, &path, replicas.into()),
        _ => Err(Malformed::new(
            "the observed object has no integer at spec.replicas, which is to be retained",
        )),
    }
}

/// Retains addresses and ports that the member's API server allocated. As in Karmada, these do not include
/// `clusterIPs` and node ports.
fn service(retained: &mut Value, observed: &Value) -> Result<(), Malformed> {
    let path = ["spec", "healthCheckNodePort"];
    if let Some(port) = unstructured::integer(observed, &path)?.filter(|port| *port > 0) {
        put(retained, &path, port.into())?;
    }
    let path = ["spec", "clusterIP"];
    if let Some(address) = unstructured::text(observed, &path)?.filter(|address| !address.is_empty()) {
        put(retained, &path, address.into())?;
    }
    Ok(())
}

/// Merges the template's entries with those of the member that have other names. Without any entry the field is null.
fn service_account(retained: &mut Value, observed: &Value) -> Result<(), Malformed> {
    for field in ["secrets", "imagePullSecrets"] {
        let (mut merged, mut names) = (Vec::new(), BTreeSet::new());
        for entry in entries(retained, field)? {
            names.insert(name_of(entry, field)?.to_owned());
            merged.push(entry.clone());
        }
        for entry in entries(observed, field)? {
            if names.insert(name_of(entry, field)?.to_owned()) {
                merged.push(entry.clone());
            }
        }
        let merged = if merged.is_empty() {
            Value::Null
        } else {
            Value::Array(merged)
        };
        put(retained, &[field], merged)?;
    }
    Ok(())
}

fn entries<'a>(object: &'a Value, field: &str) -> Result<&'a [Value], Malformed> {
    list(object, &[field])
}

fn name_of<'a>(entry: &'a Value, field: &str) -> Result<&'a str, Malformed> {
    let name = entry.get("name").and_then(Value::as_str);
    name.ok_or_else(|| Malformed::new(format!("an entry of {field} has no name")))
}

/// Retains the fields written by scheduling and admission in the member cluster. As in Karmada, volumes are those of
/// the member, so volumes added to the template are lost, and tolerations are not retained.
fn pod(retained: &mut Value, observed: &Value) -> Result<(), Malformed> {
    for object in [&*retained, observed] {
        statuses::check_object(("v1", "Pod"), object)?;
    }
    for field in ["nodeName", "serviceAccountName"] {
        let path = ["spec", field];
        match text(observed, &path)? {
            "" => remove(retained, "spec", field),
            value => put(retained, &path, value.into())?,
        }
    }
    match list(observed, &["spec", "volumes"])? {
        [] => remove(retained, "spec", "volumes"),
        volumes => put(retained, &["spec", "volumes"], volumes.to_vec().into())?,
    }
    for field in ["containers", "initContainers"] {
        list(retained, &["spec", field])?;
        for container in list(observed, &["spec", field])? {
            let name = text(container, &["name"])?;
            let mounts = list(container, &["volumeMounts"])?;
            let ours = retained
                .get_mut("spec")
                .and_then(|spec| spec.get_mut(field))
                .and_then(Value::as_array_mut);
            let same = |ours: &&mut Value| ours.get("name").and_then(Value::as_str).unwrap_or_default() == name;
            let Some(Value::Object(ours)) = ours.and_then(|ours| ours.iter_mut().find(same)) else {
                continue;
            };
            if mounts.is_empty() {
                ours.remove("volumeMounts");
            } else {
                ours.insert("volumeMounts".to_owned(), mounts.to_vec().into());
            }
        }
    }
    Ok(())
}

fn remove(object: &mut Value, parent: &str, field: &str) {
    if let Some(members) = object.get_mut(parent).and_then(Value::as_object_mut) {
        members.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: (&str, &str), desired: Value, observed: Value, expected: Result<Value, &str>) {
        let actual = retain(kind, &desired, &observed)
            .map(Option::unwrap_or_default)
            .map_err(|error| error.to_string());
        assert_eq!(
            actual,
            expected.map_err(str::to_owned),
            "{kind:?} {desired} beside {observed}"
        );
    }

    #[test]
    fn replicas_are_left_to_the_member_where_the_template_says_so() {
        let spec = |labels: Value, replicas: Value| json!({"metadata": {"labels": labels}, "spec": replicas});
        let (mine, theirs) = (json!({"replicas": 2}), json!({"spec": {"replicas": 7}}));
        let check = |labels: Value, mine: &Value, theirs: &Value, expected: Result<Value, &str>| {
            let desired = spec(labels.clone(), mine.clone());
            let expected = expected.map(|replicas| spec(labels, replicas));
            check(("apps/v1", "Deployment"), desired, theirs.clone(), expected);
        };
        check(json!({}), &mine, &theirs, Ok(json!({"replicas": 2})));
        check(
            json!({RETAIN_REPLICAS: "yes"}),
            &mine,
            &theirs,
            Ok(json!({"replicas": 2})),
        );
        check(
            json!({RETAIN_REPLICAS: "true"}),
            &mine,
            &theirs,
            Ok(json!({"replicas": 7})),
        );
        check(
            json!({RETAIN_REPLICAS: "true"}),
            &json!({}),
            &theirs,
            Ok(json!({"replicas": 7})),
        );
        let message = "the observed object has no integer at spec.replicas, which is to be retained";
        check(
            json!({RETAIN_REPLICAS: "true"}),
            &mine,
            &json!({"spec": {}}),
            Err(message),
        );
        check(
            json!({RETAIN_REPLICAS: "true"}),
            &mine,
            &json!({"spec": "x"}),
            Err(message),
        );
        check(
            json!({RETAIN_REPLICAS: "true"}),
            &mine,
            &json!({"spec": {"replicas": 7.0}}),
            Err(message),
        );
        check(
            json!({"a": 1}),
            &mine,
            &theirs,
            Err("metadata.labels.a is a number, not a string"),
        );
        check(
            Value::Null,
            &mine,
            &theirs,
            Err("metadata.labels is null, not an object"),
        );
    }

    #[test]
    fn what_a_cluster_allocated_to_a_service_stays() {
        let check = |mine: Value, theirs: Value, expected: Result<Value, &str>| {
            let expected = expected.map(|spec| json!({"spec": spec}));
            check(
                ("v1", "Service"),
                json!({"spec": mine}),
                json!({"spec": theirs}),
                expected,
            );
        };
        let theirs = json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 31_000});
        check(
            json!({"ports": []}),
            theirs,
            Ok(json!({
                "ports": [], "clusterIP": "10.0.0.1", "healthCheckNodePort": 31_000,
            })),
        );
        check(
            json!({}),
            json!({"clusterIP": "None"}),
            Ok(json!({"clusterIP": "None"})),
        );
        check(
            json!({"clusterIP": "a"}),
            json!({"clusterIP": "", "healthCheckNodePort": 0}),
            Ok(json!({"clusterIP": "a"})),
        );
        let message = "spec.healthCheckNodePort is a string, not an integer";
        check(json!({}), json!({"healthCheckNodePort": "x"}), Err(message));
        check(json!({"clusterIP": "a"}), Value::Null, Ok(json!({"clusterIP": "a"})));
        check(
            json!({}),
            json!({"clusterIP": null}),
            Err("spec.clusterIP is null, not a string"),
        );
    }

    #[test]
    fn secrets_of_a_service_account_are_united() {
        let kind = ("v1", "ServiceAccount");
        let mine = json!({"secrets": [{"name": "a"}, {"name": "a"}], "imagePullSecrets": [{"name": "p"}]});
        let theirs = json!({"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": null});
        let expected =
            json!({"secrets": [{"name": "a"}, {"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "p"}]});
        check(kind, mine, theirs, Ok(expected));
        check(
            kind,
            json!({}),
            json!({}),
            Ok(json!({"secrets": null, "imagePullSecrets": null})),
        );
        check(
            kind,
            json!({"secrets": [{}]}),
            json!({}),
            Err("an entry of secrets has no name"),
        );
        check(
            kind,
            json!({"secrets": {}}),
            json!({}),
            Err("secrets is an object, not a list"),
        );
    }

    #[test]
    fn volumes_claims_jobs_and_tokens_keep_what_their_controllers_wrote() {
        let spec = |spec: Value| json!({"spec": spec});
        let claim = ("v1", "PersistentVolumeClaim");
        check(
            claim,
            spec(json!({})),
            spec(json!({"volumeName": "v"})),
            Ok(spec(json!({"volumeName": "v"}))),
        );
        check(
            claim,
            spec(json!({"volumeName": "m"})),
            spec(json!({"volumeName": ""})),
            Ok(spec(json!({"volumeName": "m"}))),
        );
        check(
            claim,
            spec(json!({})),
            spec(json!({"volumeName": 3})),
            Err("spec.volumeName is a number, not a string"),
        );
        let volume = ("v1", "PersistentVolume");
        check(
            volume,
            spec(json!({})),
            spec(json!({"claimRef": {"uid": "u"}})),
            Ok(spec(json!({"claimRef": {"uid": "u"}}))),
        );
        let labels = json!({"template": {"metadata": {"labels": {"controller-uid": "u"}}}});
        check(
            ("batch/v1", "Job"),
            spec(json!({})),
            spec(labels.clone()),
            Ok(spec(labels)),
        );
        let secret = |type_: &str, data: Value| json!({"type": type_, "data": data});
        let (mine, theirs) = (json!({"a": "YQ=="}), json!({"token": "dA=="}));
        let observed = secret(TOKEN_SECRET, theirs.clone());
        check(
            ("v1", "Secret"),
            secret(TOKEN_SECRET, mine.clone()),
            observed.clone(),
            Ok(observed.clone()),
        );
        check(
            ("v1", "Secret"),
            secret("Opaque", mine.clone()),
            observed,
            Ok(secret("Opaque", mine)),
        );
    }

    #[test]
    fn a_pod_keeps_its_node_its_account_and_its_volumes() {
        let desired = json!({"spec": {
            "serviceAccountName": "mine", "volumes": [{"name": "mine"}], "priority": 3,
            "containers": [{"name": "a", "volumeMounts": [{"name": "mine"}]}, {"name": "b"}],
        }});
        let observed = json!({"spec": {
            "nodeName": "n", "volumes": [{"name": "token"}], "tolerations": [{"key": "k"}],
            "containers": [{"name": "a"}, {"name": "b", "volumeMounts": [{"name": "token"}]}, {"name": "sidecar"}],
        }});
        let expected = json!({"spec": {
            "nodeName": "n", "volumes": [{"name": "token"}], "priority": 3,
            "containers": [{"name": "a"}, {"name": "b", "volumeMounts": [{"name": "token"}]}],
        }});
        check(("v1", "Pod"), desired.clone(), observed, Ok(expected));
        let odd = json!({"spec": {}, "status": {"containerStatuses": {}}});
        let message = "status.containerStatuses is an object, not a list";
        check(("v1", "Pod"), desired, odd.clone(), Err(message));
        check(("v1", "Pod"), odd, json!({}), Err(message));
    }

    #[test]
    fn other_kinds_have_no_rule() {
        check(("apps/v1", "DaemonSet"), json!({}), json!({}), Ok(Value::Null));
        check(("apps/v1beta1", "Deployment"), json!({}), json!({}), Ok(Value::Null));
    }
}
