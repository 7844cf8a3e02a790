//! Handling of `AdmissionReview` requests: the response contains a patch that completes the object, or the reason
//! for its rejection.

use anyhow::Context as _;
use bulkhead_api::admission::{self, AdmissionOptions, Operation};
use bulkhead_core::time::Time;
use bulkhead_defaults::admission::AdmissionEnvironment;
use serde::Deserialize;
use serde_json::{Value, json};

/// Path of reviews.
pub(super) const PATH: &str = "/admit";

#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: GroupVersionKind,
    operation: String,
    #[serde(default)]
    namespace: String,
    object: Value,
    #[serde(default)]
    old_object: Value,
}

#[derive(Deserialize)]
struct GroupVersionKind {
    group: String,
    kind: String,
}

/// Answers a review. `customizations` returns the stored ones, as far as known.
///
/// # Errors
///
/// The body is not an AdmissionReview.
pub(super) fn answer(
    body: &[u8],
    options: AdmissionOptions,
    customizations: &dyn Fn() -> Vec<Value>,
) -> anyhow::Result<Vec<u8>> {
    let Review { request } = serde_json::from_slice(body).context("this is not an AdmissionReview of version v1")?;
    let operation = match request.operation.as_str() {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        _ => Operation::Delete,
    };
    let asked = admission::Request {
        group: &request.kind.group,
        kind: &request.kind.kind,
        operation,
        namespace: Some(request.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        old: Some(&request.old_object).filter(|old| !old.is_null()),
    };
    let mut object = request.object.clone();
    let mut ids = || uuid::Uuid::new_v4().to_string();
    let mut environment = AdmissionEnvironment {
        ids: &mut ids,
        now: Time::new(crate::now()),
        others: customizations,
    };
    let response = match admission::admit(&asked, &mut object, &mut environment, options) {
        Ok(()) => {
            let patch = json_patch::diff(&request.object, &object);
            let mut response = json!({"uid": request.uid, "allowed": true});
            if !patch.0.is_empty() {
                let patch = serde_json::to_vec(&patch)?;
                response["patchType"] = json!("JSONPatch");
                response["patch"] = serde_json::to_value(k8s_openapi::ByteString(patch))?;
            }
            response
        }
        Err(denied) => json!({
            "uid": request.uid,
            "allowed": false,
            "status": {"code": 422, "reason": "Invalid", "message": denied.to_string()},
        }),
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(serde_json::to_vec(&review)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::{edits, with_edits};

    fn answered(request: &Value) -> Value {
        let body = serde_json::to_vec(&json!({"request": request})).unwrap();
        let answer = answer(&body, AdmissionOptions::default(), &Vec::new).unwrap();
        serde_json::from_slice::<Value>(&answer).unwrap()["response"].clone()
    }

    fn policy(spec: &Value) -> Value {
        json!({
            "uid": "1",
            "kind": {"group": "policy.karmada.io", "version": "v1alpha1", "kind": "PropagationPolicy"},
            "operation": "CREATE",
            "namespace": "default",
            "object": {"metadata": {"name": "nginx", "namespace": "default"}, "spec": spec},
            "oldObject": null,
        })
    }

    #[test]
    fn an_object_is_completed_by_a_patch() {
        let request = policy(&json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}));
        let response = answered(&request);
        assert_eq!(response["allowed"], true, "{response}");
        let patch: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch.0).unwrap();
        let mut object = request["object"].clone();
        json_patch::patch(&mut object, &patch).unwrap();
        assert!(
            object["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"].is_string(),
            "{object}"
        );
        assert_eq!(object["spec"]["schedulerName"], "default-scheduler");
    }

    #[test]
    fn a_bad_object_is_refused_with_its_field() {
        let response = answered(&policy(&json!({"resourceSelectors": "all"})));
        assert_eq!(response["allowed"], false);
        assert!(
            response["status"]["message"]
                .as_str()
                .unwrap()
                .contains("resourceSelectors"),
            "{response}"
        );
    }

    #[test]
    fn a_body_that_is_no_review_is_rejected() {
        let error = answer(b"{}", AdmissionOptions::default(), &Vec::new).unwrap_err();
        assert!(format!("{error:#}").contains("not an AdmissionReview"), "{error:#}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        /// A body of any content is rejected, or answered with the uid of its request.
        #[test]
        fn any_body_is_answered_or_rejected(edits in edits()) {
            let spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}, "failover": {"cluster": {}}});
            let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": policy(&spec)});
            let body = with_edits(body.to_string().as_bytes(), &edits, 64 * 1024);
            if let Ok(answer) = answer(&body, AdmissionOptions::default(), &Vec::new) {
                let Ok(asked) = serde_json::from_slice::<Value>(&body) else { return Ok(()) };
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                prop_assert_eq!(&answer["response"]["uid"], &asked["request"]["uid"]);
                prop_assert!(answer["response"]["allowed"].is_boolean());
            }
        }
    }
}
