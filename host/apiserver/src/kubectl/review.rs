//! Reviews of the client's own identity and rights, for `kubectl auth`. The token of a server permits everything.

use serde_json::{Value, json};

use crate::request::{ResourceRequest, Verb};

const ACCESS: &str = "selfsubjectaccessreviews";
const RULES: &str = "selfsubjectrulesreviews";
const IDENTITY: &str = "selfsubjectreviews";

/// Returns true if a request creates a review.
pub(crate) fn is_review(request: &ResourceRequest) -> bool {
    let is_known = match request.group.as_str() {
        "authorization.k8s.io" => matches!(request.plural.as_str(), ACCESS | RULES),
        "authentication.k8s.io" => request.plural == IDENTITY,
        _ => false,
    };
    is_known && request.version == "v1" && request.verb == Verb::Create && request.name.is_none()
}

/// Returns a review with its answer.
pub(crate) fn answer(request: &ResourceRequest, mut review: Value) -> Value {
    let (kind, status) = match request.plural.as_str() {
        ACCESS => ("SelfSubjectAccessReview", json!({"allowed": true})),
        RULES => (
            "SelfSubjectRulesReview",
            json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
        ),
        _ => {
            let user = json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]});
            ("SelfSubjectReview", json!({"userInfo": user}))
        }
    };
    if !review.is_object() {
        review = json!({});
    }
    review["apiVersion"] = json!(format!("{}/{}", request.group, request.version));
    review["kind"] = json!(kind);
    review["status"] = status;
    review
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(group: &str, plural: &str) -> ResourceRequest {
        ResourceRequest {
            verb: Verb::Create,
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            namespace: None,
            name: None,
            subresource: None,
        }
    }

    #[test]
    fn everything_is_allowed() {
        let access = request("authorization.k8s.io", ACCESS);
        assert!(is_review(&access) && !is_review(&request("authorization.k8s.io", "others")));
        let review = answer(&access, json!({"spec": {"resourceAttributes": {"verb": "delete"}}}));
        assert_eq!(
            (&review["kind"], &review["status"]["allowed"]),
            (&json!("SelfSubjectAccessReview"), &json!(true))
        );
        assert_eq!(review["spec"]["resourceAttributes"]["verb"], "delete");
        let rules = answer(&request("authorization.k8s.io", RULES), Value::Null);
        assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
        let identity = answer(&request("authentication.k8s.io", IDENTITY), Value::Null);
        assert_eq!(identity["status"]["userInfo"]["username"], "admin");
    }
}
