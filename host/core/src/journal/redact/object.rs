//! Redaction of objects of third parties, by an allow-list: pod templates and other application content.
//!
//! | part | rule |
//! | --- | --- |
//! | `apiVersion`, `kind`, names, labels, generations, times, owners | kept |
//! | annotations of Karmada and Bulkhead | kept |
//! | numbers and booleans of `spec`, such as `replicas` and `paused`; [`SPEC`] | kept |
//! | `status` | kept |
//! | data of Secrets and ConfigMaps | the keys |
//! | everything else | a digest, or [`REDACTED`] if the content could be guessed from a digest |
//!
//! In the kept parts, members whose name indicates a secret are removed with their whole content. Strings that
//! contain a document are removed completely, and all other strings are cleaned as everywhere else.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{REDACTED, blank, text};

/// Members of `metadata` that are kept.
const METADATA: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "finalizers",
    "ownerReferences",
];
/// Members of `spec` that are kept regardless of their value: inputs of schedulers and rollouts.
const SPEC: [&str; 18] = [
    "accessModes",
    "affinity",
    "clusterIP",
    "completionMode",
    "maxUnavailable",
    "minAvailable",
    "nodeName",
    "nodeSelector",
    "podManagementPolicy",
    "priorityClassName",
    "resources",
    "schedulerName",
    "selector",
    "storageClassName",
    "strategy",
    "tolerations",
    "type",
    "updateStrategy",
];
/// Minimum size for a digest, in bytes; shorter content could be guessed from its digest.
const DIGEST_BYTES_MIN: usize = 256;
const DIGEST_START: &str = "(sha256 ";
const DATA: [&str; 3] = ["data", "stringData", "binaryData"];

/// Removes the parts of a member cluster's object that decisions do not read, and returns the number of removed
/// values.
pub(super) fn object(value: &mut Value) -> usize {
    let Value::Object(members) = value else {
        return withhold(value);
    };
    let holds_data = matches!(
        members.get("kind").and_then(Value::as_str),
        Some("Secret" | "ConfigMap")
    );
    let mut count = 0;
    for (key, value) in members.iter_mut() {
        count += match (key.as_str(), value) {
            ("apiVersion" | "kind", _) => 0,
            ("metadata", Value::Object(metadata)) => self::metadata(metadata),
            ("spec", Value::Object(spec)) => self::spec(spec),
            ("status", value) => kept(value),
            (key, Value::Object(data)) if holds_data && DATA.contains(&key) => data.values_mut().map(blank).sum(),
            (_, value) => withhold(value),
        };
    }
    count
}

fn metadata(metadata: &mut Map<String, Value>) -> usize {
    let mut count = usize::from(metadata.remove("managedFields").is_some());
    for (key, value) in metadata.iter_mut() {
        count += match (key.as_str(), value) {
            ("annotations", Value::Object(annotations)) => self::annotations(annotations),
            (key, _) if METADATA.contains(&key) => 0,
            (_, value) => withhold(value),
        };
    }
    count
}

/// Removes the annotations of other programs than Karmada and Bulkhead, which may contain whole objects.
pub(super) fn annotations(annotations: &mut Map<String, Value>) -> usize {
    let mut count = 0;
    for (key, value) in annotations.iter_mut() {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_ours = ["karmada.io", "bulkhead.dev"].iter().any(|ours| {
            domain
                .strip_suffix(ours)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        // Counters of the API server and its controllers.
        let is_counter =
            key.starts_with("deployment.kubernetes.io/") || key.ends_with("deprecated.daemonset.template.generation");
        if !is_ours && !is_counter {
            count += withhold(value);
        }
    }
    count
}

fn spec(spec: &mut Map<String, Value>) -> usize {
    let mut count = 0;
    for (key, value) in spec.iter_mut() {
        let is_plain = matches!(value, Value::Number(_) | Value::Bool(_) | Value::Null);
        count += if holds_secret(key) {
            blank_any(value)
        } else if is_plain {
            0
        } else if SPEC.contains(&key.as_str()) {
            kept(value)
        } else {
            withhold(value)
        };
    }
    count
}

/// Removes secrets from a part that is kept.
pub(super) fn kept(value: &mut Value) -> usize {
    match value {
        Value::Object(members) => {
            let one = |(key, value): (&String, &mut Value)| {
                if holds_secret(key) {
                    blank_any(value)
                } else {
                    kept(value)
                }
            };
            members.iter_mut().map(one).sum()
        }
        Value::Array(items) => items.iter_mut().map(kept).sum(),
        Value::String(text) if is_document(text) => blank(value),
        Value::String(text) => text::clean(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns true if the value of a member can be a secret, regardless of its type. References to Secrets are none.
pub(super) fn holds_secret(key: &str) -> bool {
    let plain = super::plain(key);
    let holds = super::is_secret(key) || plain.starts_with("secret") || plain.contains("token");
    holds && !is_reference(key)
}

/// Returns true if the value of a member names another object.
pub(super) fn is_reference(key: &str) -> bool {
    let plain = super::plain(key);
    let is_end = |end: &&str| plain.ends_with(*end);
    plain.contains("reference") || ["ref", "refs", "name", "names"].iter().any(is_end)
}

fn blank_any(value: &mut Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 0,
        value => blank(value),
    }
}

/// Returns true for JSON objects and lists, and for multi-line YAML.
fn is_document(text: &str) -> bool {
    let text = text.trim();
    let is_json = text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let is_member = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        line.split_once(':').is_some_and(|(key, rest)| {
            !key.is_empty() && !key.contains(char::is_whitespace) && (rest.is_empty() || rest.starts_with(' '))
        })
    };
    is_json || text.lines().filter(|line| is_member(line)).count() >= 2
}

/// Replaces a value by a digest. Known secrets are removed before the digest is computed.
fn withhold(value: &mut Value) -> usize {
    let is_marker = |text: &str| text == REDACTED || (text.starts_with(DIGEST_START) && text.ends_with(')'));
    match value {
        Value::Null | Value::Bool(_) => return 0,
        Value::String(text) if text.is_empty() || is_marker(text) => return 0,
        Value::Array(items) if items.is_empty() => return 0,
        Value::Object(members) if members.is_empty() => return 0,
        _ => {}
    }
    super::walk(value, "");
    kept(value);
    let content = value.to_string();
    if content.len() < DIGEST_BYTES_MIN {
        *value = Value::String(REDACTED.to_owned());
        return 1;
    }
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    let digest = Sha256::digest(content.as_bytes());
    let digest: String = digest
        .iter()
        .take(16)
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect();
    *value = Value::String(format!("{DIGEST_START}{digest})"));
    1
}

#[cfg(test)]
mod tests;
