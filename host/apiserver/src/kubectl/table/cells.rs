//! Contents of cells that the kinds have in common.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::json::{array, text};

/// Rule that makes the content of a cell from an object and the time.
pub(super) type Rule = fn(&Value, Timestamp) -> Value;

/// Columns of a kind after its name: heading, priority and rule.
pub(super) type Columns = Vec<(&'static str, i64, Rule)>;

pub(super) const AGE: (&str, i64, Rule) = ("Age", 0, |object, now| json!(age::of(object, now)));

/// Joins a list to text, `<none>` if it is empty.
pub(super) fn listed(words: Vec<String>) -> Value {
    if words.is_empty() {
        json!("<none>")
    } else {
        json!(words.join(","))
    }
}

/// Returns a text, `<none>` if it is empty.
pub(super) fn or_none(object: &Value, pointer: &str) -> Value {
    match text(object, pointer) {
        "" => json!("<none>"),
        text => json!(text),
    }
}

/// Returns the access modes at a pointer, abbreviated.
pub(super) fn access_modes(object: &Value, pointer: &str) -> Value {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO".to_owned(),
        Some("ReadOnlyMany") => "ROX".to_owned(),
        Some("ReadWriteMany") => "RWX".to_owned(),
        Some("ReadWriteOncePod") => "RWOP".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    };
    json!(array(object, pointer).iter().map(short).collect::<Vec<_>>().join(","))
}

/// Formats the labels of a selector as an argument of `-l`.
pub(super) fn match_labels(labels: &Value) -> Value {
    let labels = labels.as_object().into_iter().flatten();
    listed(
        labels
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect(),
    )
}
