//! Redaction: a journal keeps no secrets, and no bodies of objects that no decision looks at.
//!
//! | rule | where | what is left |
//! | --- | --- | --- |
//! | objects of member clusters, by the allow-list in `object` | the question of a health decision, statuses in bindings | what decisions read, and digests |
//! | annotations that neither Karmada nor Bulkhead wrote | anywhere | the key, and a digest of long values |
//! | data of Secrets and ConfigMaps | `data`, `stringData`, `binaryData` | the keys |
//! | environment of containers | `value` in a list named `env` | the name |
//! | members whose name is one of a secret | anywhere, if the value is a text | the name |
//! | headers for proxies | `proxyHeader` | the names |
//! | passwords, tokens and keys in texts | anywhere | the text around them |
//! | what tools keep of an object | `managedFields`, the annotation of `kubectl apply` | nothing |
//!
//! Answers of policies are kept but for secrets in their messages, so a decision replays all the same. A new plugin that
//! is asked about a redacted object sees [`REDACTED`] or a digest where something was taken out.

mod object;
mod text;

use serde_json::Value;

/// Marker in the place of a value that was taken out.
pub const REDACTED: &str = "(redacted)";

/// Words that make the value of a member a secret, compared without case and punctuation.
const SECRET_WORDS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secretkey",
    "secretvalue",
    "accesskey",
    "apikey",
    "privatekey",
    "encryptionkey",
    "signingkey",
    "sharedkey",
    "credential",
    "authorization",
];
/// The same for names that end so: `token`, but not `tokenExpirationSeconds`.
const SECRET_ENDS: [&str; 5] = ["token", "tokens", "secret", "secrets", "pwd"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out of a case, in canonical form, what must not be kept, and counts how many values that were.
pub fn redact_case(case: &mut Value) -> usize {
    let object = case.pointer_mut("/question/health/object").map_or(0, object::object);
    object + redact(case)
}

/// Takes out of any other value what must not be kept, and counts how many values that were.
pub fn redact(value: &mut Value) -> usize {
    walk(value, "")
}

fn walk(value: &mut Value, name: &str) -> usize {
    match value {
        Value::Object(members) => {
            let kind = members.get("kind").and_then(Value::as_str);
            let holds_data = matches!(kind, Some("Secret" | "ConfigMap"));
            let mut count = usize::from(members.remove("managedFields").is_some());
            count += usize::from(members.remove(LAST_APPLIED).is_some());
            if name == "annotations" {
                return count + object::annotations(members);
            }
            for (key, value) in members.iter_mut() {
                count += match value {
                    Value::Object(data) if holds_data && is_data(key) => data.values_mut().map(blank).sum(),
                    Value::Object(headers) if key == "proxyHeader" => headers.values_mut().map(blank).sum(),
                    status if name == "aggregatedStatus" && key == "status" => object::kept(status),
                    Value::String(_) if is_secret(key) || (name == "env" && key == "value") => blank(value),
                    value => walk(value, key),
                };
            }
            count
        }
        // A list is what its name says; its items have none of their own.
        Value::Array(items) => items.iter_mut().map(|item| walk(item, name)).sum(),
        Value::String(text) => text::clean(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_data(key: &str) -> bool {
    matches!(key, "data" | "stringData" | "binaryData")
}

/// A name without case and punctuation.
fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_secret(key: &str) -> bool {
    let plain = plain(key);
    plain == "pass"
        || SECRET_WORDS.iter().any(|word| plain.contains(word))
        || SECRET_ENDS.iter().any(|end| plain.ends_with(end))
}

fn blank(value: &mut Value) -> usize {
    if value.as_str() == Some(REDACTED) {
        return 0;
    }
    *value = Value::String(REDACTED.to_owned());
    1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut value: Value, expected: Value, count: usize) {
        assert_eq!(redact(&mut value), count, "{value}");
        assert_eq!(value, expected);
        assert_eq!(redact(&mut value), 0, "what is redacted stays as it is");
    }

    #[test]
    fn secrets_are_taken_out_by_rule() {
        check(
            json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"b": "x"}}),
            json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": REDACTED}, "stringData": {"b": REDACTED}}),
            2,
        );
        check(json!({"kind": "Game", "data": {"a": "b"}}), json!({"kind": "Game", "data": {"a": "b"}}), 0);
        check(
            json!({"containers": [{"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"f": "g"}}]}]}),
            json!({"containers": [{"env": [{"name": "A", "value": REDACTED}, {"name": "B", "valueFrom": {"f": "g"}}]}]}),
            1,
        );
        check(
            json!({"dbPassword": "x", "api-key": "y", "passwordLength": 3}),
            json!({"dbPassword": REDACTED, "api-key": REDACTED, "passwordLength": 3}),
            2,
        );
        check(json!({"joinToken": "x", "tokenPolicy": "y"}), json!({"joinToken": REDACTED, "tokenPolicy": "y"}), 1);
        check(json!({"secretRef": {"name": "member1"}}), json!({"secretRef": {"name": "member1"}}), 0);
    }

    #[test]
    fn urls_lose_their_user_and_managed_fields_go() {
        check(json!({"proxy": "https://me:pw@proxy:8080/x"}), json!({"proxy": "https://proxy:8080/x"}), 1);
        // A password may have a slash in it.
        check(json!({"proxy": "https://me:p/w@proxy/x"}), json!({"proxy": "https://proxy/x"}), 1);
        let annotations = json!({LAST_APPLIED: "{}", "policy.karmada.io/applied-placement": "{}"});
        check(
            json!({"metadata": {"managedFields": [{"manager": "x"}], "annotations": annotations}}),
            json!({"metadata": {"annotations": {"policy.karmada.io/applied-placement": "{}"}}}),
            2,
        );
    }
}
