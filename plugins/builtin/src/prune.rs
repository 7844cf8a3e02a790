//! What belongs to the control plane's copy of an object only, and is taken out before a member cluster gets it.
//! (Karmada: `pkg/resourceinterpreter/default/native/prune/prune.go`.)
//!
//! The rules of a kind go by its name alone, as in Karmada, so that a `Service` of another API group has them too.

use bulkhead_core::shape::{Malformed, list};
use serde_json::{Map, Value};

const BOOKKEEPING: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];
const REVISIONS: [&str; 2] = ["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"];
const JOB_UIDS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const JOB_NAMES: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// Takes out what is of no use, or harmful, in a member cluster.
pub fn prune(object: &mut Value) -> Result<(), Malformed> {
    let Some(members) = object.as_object_mut() else { return Ok(()) };
    members.remove("status");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in BOOKKEEPING {
            metadata.remove(field);
        }
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "Deployment" => drop_members(object, "/metadata/annotations", &REVISIONS),
        "Job" => job(object),
        "Secret" => token_secret(object),
        "ServiceAccount" => service_account(object)?,
        "Service" => service(object),
        "PersistentVolumeClaim" => {
            drop_members(object, "/metadata/annotations", &["volume.kubernetes.io/selected-node"]);
        }
        _ => {}
    }
    Ok(())
}

/// Takes the time to live from a Job: the member would delete it when it has finished, and it would be made again.
pub fn prune_time_to_live(object: &mut Value) {
    if object.get("kind").and_then(Value::as_str) == Some("Job") {
        drop_members(object, "/spec", &["ttlSecondsAfterFinished"]);
    }
}

fn map_at<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer).and_then(Value::as_object_mut)
}

fn drop_members(object: &mut Value, pointer: &str, names: &[&str]) {
    if let Some(members) = map_at(object, pointer) {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Labels that the Job controller generated would claim another Job's pods.
fn job(object: &mut Value) {
    if object.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    drop_members(object, "/spec/selector/matchLabels", &JOB_UIDS);
    drop_members(object, "/spec/template/metadata/labels", &JOB_UIDS);
    drop_members(object, "/spec/template/metadata/labels", &JOB_NAMES);
}

/// The token is the member's own business.
fn token_secret(object: &mut Value) {
    if object.get("type").and_then(Value::as_str) != Some("kubernetes.io/service-account-token") {
        return;
    }
    drop_members(object, "/metadata/annotations", &["kubernetes.io/service-account.uid"]);
    if let Some(members) = object.as_object_mut() {
        members.insert("data".to_owned(), Value::Null);
    }
}

/// Secrets that the control plane generated. Where two of them are neighbours the second one stays, as in Karmada.
fn service_account(object: &mut Value) -> Result<(), Malformed> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let (generated, mut kept, mut removed_before) = (format!("{name}-token-"), Vec::new(), false);
    let secrets = list(object, &["secrets"])?;
    if secrets.is_empty() {
        return Ok(());
    }
    for secret in secrets {
        let name = secret.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Malformed::new("an entry of secrets has no name"))?;
        let remove = name.starts_with(&generated) && !removed_before;
        if !remove {
            kept.push(secret.clone());
        }
        removed_before = remove;
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("secrets".to_owned(), Value::Array(kept));
    }
    Ok(())
}

/// A headless service stays headless; any other gets its addresses in the member.
fn service(object: &mut Value) {
    let address = object.pointer("/spec/clusterIP").and_then(Value::as_str);
    if address.is_some_and(|address| address != "None") {
        drop_members(object, "/spec", &["clusterIP", "clusterIPs"]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, mut object: Value, expected: Result<Value, &str>) {
        object["kind"] = json!(kind);
        let before = object.clone();
        let told = prune(&mut object).map(|()| object).map_err(|error| error.to_string());
        let expected = expected.map(|mut expected| {
            expected["kind"] = json!(kind);
            expected
        });
        assert_eq!(told, expected.map_err(str::to_owned), "{before}");
    }

    #[test]
    fn bookkeeping_and_status_stay_behind() {
        let metadata = json!({"name": "x", "uid": "u", "generation": 3, "finalizers": ["f"], "labels": {"a": "b"}});
        let object = json!({"metadata": metadata, "status": {}, "spec": {}});
        check("Widget", object, Ok(json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {}})));
    }

    #[test]
    fn kinds_lose_what_their_controllers_wrote() {
        let annotated = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let revisions = json!({"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/revision-history": "1,2", "a": "b"});
        check("Deployment", annotated(revisions), Ok(annotated(json!({"a": "b"}))));
        let selected = json!({"volume.kubernetes.io/selected-node": "n", "a": "b"});
        check("PersistentVolumeClaim", annotated(selected), Ok(annotated(json!({"a": "b"}))));
        let job = |labels: Value, selector: Value, manual: bool| json!({"spec": {"manualSelector": manual, "selector": {"matchLabels": selector}, "template": {"metadata": {"labels": labels}}}});
        let (labels, selector) =
            (json!({"controller-uid": "u", "job-name": "j", "a": "b"}), json!({"controller-uid": "u"}));
        check("Job", job(labels.clone(), selector.clone(), false), Ok(job(json!({"a": "b"}), json!({}), false)));
        check("Job", job(labels.clone(), selector.clone(), true), Ok(job(labels, selector, true)));
        let spec = |spec: Value| json!({"spec": spec});
        check("Service", spec(json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]})), Ok(spec(json!({}))));
        let headless = spec(json!({"clusterIP": "None", "clusterIPs": ["None"]}));
        check("Service", headless.clone(), Ok(headless));
    }

    #[test]
    fn tokens_of_service_accounts_stay_behind() {
        let account = |secrets: Value| json!({"metadata": {"name": "sa"}, "secrets": secrets});
        let named = |names: &[&str]| account(names.iter().map(|name| json!({"name": name})).collect());
        check("ServiceAccount", named(&["sa-token-a", "mine"]), Ok(named(&["mine"])));
        check("ServiceAccount", named(&["sa-token-a", "sa-token-b", "mine"]), Ok(named(&["sa-token-b", "mine"])));
        check("ServiceAccount", account(json!([{}])), Err("an entry of secrets has no name"));
        let secret = json!({"type": "kubernetes.io/service-account-token", "data": {"token": "dA=="}});
        check("Secret", secret, Ok(json!({"type": "kubernetes.io/service-account-token", "data": null})));
        let opaque = json!({"type": "Opaque", "data": {"a": "YQ=="}});
        check("Secret", opaque.clone(), Ok(opaque));
    }

    #[test]
    fn a_job_lives_until_the_control_plane_deletes_it() {
        let mut job = json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": 5}});
        prune_time_to_live(&mut job);
        assert_eq!(job, json!({"kind": "Job", "spec": {}}));
    }
}
