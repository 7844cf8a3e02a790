//! What a journal must not keep: secrets, and bodies of objects that no decision looks at.
//!
//! | rule | where | what is left |
//! | --- | --- | --- |
//! | data of Secrets and ConfigMaps | `data`, `stringData`, `binaryData` | the keys |
//! | environment of containers | `value` in a list named `env` | the name |
//! | members whose name tells of a secret | anywhere, if the value is a text | the name |
//! | user and password in a URL | anywhere | the URL without them |
//! | what tools keep of an object | `managedFields`, the annotation of `kubectl apply` | nothing |
//!
//! What policies answered is kept as it was, so a decision replays all the same. A new plugin that is asked about a
//! redacted object sees [`REDACTED`] where something was taken out.

use serde_json::Value;

/// What stands where something was taken out.
pub const REDACTED: &str = "(redacted)";

/// Words that make the value of a member a secret, compared without case and punctuation.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "secretkey", "accesskey", "apikey", "privatekey", "credential", "authorization"];
/// The same for names that end so: `token`, but not `tokenExpirationSeconds`.
const SECRET_ENDS: [&str; 3] = ["token", "secret", "passphrase"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out what must not be kept, and counts how many values that were.
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
            for (key, value) in members.iter_mut() {
                count += match value {
                    Value::Object(data) if holds_data && is_data(key) => data.values_mut().map(blank).sum(),
                    Value::String(_) if is_secret(key) || (name == "env" && key == "value") => blank(value),
                    value => walk(value, key),
                };
            }
            count
        }
        // A list is what its name says; its items have none of their own.
        Value::Array(items) => items.iter_mut().map(|item| walk(item, name)).sum(),
        Value::String(text) => without_userinfo(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_data(key: &str) -> bool {
    matches!(key, "data" | "stringData" | "binaryData")
}

fn is_secret(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_WORDS.iter().any(|word| plain.contains(word)) || SECRET_ENDS.iter().any(|end| plain.ends_with(end))
}

fn blank(value: &mut Value) -> usize {
    if value.as_str() == Some(REDACTED) {
        return 0;
    }
    *value = Value::String(REDACTED.to_owned());
    1
}

/// `scheme://user:password@host` without what is before the `@`.
fn without_userinfo(text: &mut String) -> usize {
    let Some(start) = text.find("://").map(|position| position + 3) else { return 0 };
    let authority = text[start..].split(['/', '?', '#', ' ', '"']).next().unwrap_or_default();
    let Some(at) = authority.rfind('@') else { return 0 };
    text.replace_range(start..=start + at, "");
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
        check(json!({"proxy": "https://proxy:8080/me@x"}), json!({"proxy": "https://proxy:8080/me@x"}), 0);
        let annotations = json!({LAST_APPLIED: "{}", "other": "stays"});
        check(
            json!({"metadata": {"managedFields": [{"manager": "x"}], "annotations": annotations}}),
            json!({"metadata": {"annotations": {"other": "stays"}}}),
            2,
        );
    }
}
