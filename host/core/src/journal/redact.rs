//! Redaction: the journal stores no secrets, and no object content that decisions do not read.
//!
//! | rule | location | remainder |
//! | --- | --- | --- |
//! | objects of member clusters, by the allow-list in `object` | objects of health decisions, statuses in bindings | fields that decisions read, and digests |
//! | annotations of other programs than Karmada and Bulkhead | anywhere | the key, and a digest of long values |
//! | data of Secrets and ConfigMaps | `data`, `stringData`, `binaryData` | the keys |
//! | environment of containers | `value` in a list named `env` | the name |
//! | string members whose name indicates a secret | anywhere | the name |
//! | headers for proxies | `proxyHeader` | the names |
//! | passwords, tokens and keys in text | anywhere | the surrounding text |
//! | JSON objects with texts, and values that redaction removes from the object of the call | messages | the surrounding text |
//! | bookkeeping of tools | `managedFields`, the annotation of `kubectl apply` | nothing |
//!
//! Replies of policies are stored except for secrets in their messages, so a decision still replays. A new plugin
//! that is called with a redacted object sees [`REDACTED`] or a digest in place of the removed values.

mod echo;
mod object;
mod text;

use std::borrow::Cow;

use serde_json::Value;

pub use self::echo::{Echoes, without_echoes};

/// Marker that replaces a removed value.
pub const REDACTED: &str = "(redacted)";

/// Words in a member name that mark its value as a secret, by a part that they share; compared without case and
/// punctuation. Few names have one of the parts.
const SECRET_WORDS: [(&str, &[&str]); 5] = [
    ("pass", &["password", "passwd", "passphrase", "passcode"]),
    (
        "key",
        &[
            "secretkey",
            "accesskey",
            "apikey",
            "privatekey",
            "encryptionkey",
            "signingkey",
            "sharedkey",
        ],
    ),
    ("secretvalue", &["secretvalue"]),
    ("credential", &["credential"]),
    ("authorization", &["authorization"]),
];
/// Endings of a member name that mark its value as a secret: `token`, but not `tokenExpirationSeconds`.
const SECRET_ENDS: [&str; 5] = ["token", "tokens", "secret", "secrets", "pwd"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Redacts a decision record in canonical form and returns the number of removed values.
pub fn redact_decision_record(decision_record: &mut Value) -> usize {
    let object = decision_record
        .pointer_mut("/question/health/object")
        .map_or(0, object::object);
    object + redact(decision_record)
}

/// Redacts any other value and returns the number of removed values.
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
        // Items of a list have no name of their own, so they inherit the name of the list.
        Value::Array(items) => items.iter_mut().map(|item| walk(item, name)).sum(),
        Value::String(text) if name == "message" => text::message(text),
        Value::String(text) => text::clean(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_data(key: &str) -> bool {
    matches!(key, "data" | "stringData" | "binaryData")
}

/// Returns the name in lower case without punctuation.
fn plain(key: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if key.bytes().all(is_plain) {
        return key.into();
    }
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn is_secret(key: &str) -> bool {
    let plain = plain(key);
    plain == "pass"
        || SECRET_WORDS
            .iter()
            .any(|(part, words)| plain.contains(part) && words.iter().any(|word| plain.contains(word)))
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
        check(
            json!({"kind": "Game", "data": {"a": "b"}}),
            json!({"kind": "Game", "data": {"a": "b"}}),
            0,
        );
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
        check(
            json!({"joinToken": "x", "tokenPolicy": "y"}),
            json!({"joinToken": REDACTED, "tokenPolicy": "y"}),
            1,
        );
        check(
            json!({"secretRef": {"name": "member1"}}),
            json!({"secretRef": {"name": "member1"}}),
            0,
        );
    }

    #[test]
    fn urls_lose_their_user_and_managed_fields_go() {
        check(
            json!({"proxy": "https://me:pw@proxy:8080/x"}),
            json!({"proxy": "https://proxy:8080/x"}),
            1,
        );
        // A password may contain a slash.
        check(
            json!({"proxy": "https://me:p/w@proxy/x"}),
            json!({"proxy": "https://proxy/x"}),
            1,
        );
        let annotations = json!({LAST_APPLIED: "{}", "policy.karmada.io/applied-placement": "{}"});
        check(
            json!({"metadata": {"managedFields": [{"manager": "x"}], "annotations": annotations}}),
            json!({"metadata": {"annotations": {"policy.karmada.io/applied-placement": "{}"}}}),
            2,
        );
    }
}
