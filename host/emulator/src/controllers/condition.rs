//! Conditions. As in Kubernetes, the transition time changes only with the status.

use bulkhead_apiserver::rfc3339;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Condition to set.
pub(crate) struct Condition<'a> {
    pub(crate) type_: &'a str,
    pub(crate) is_true: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Sets a condition in a list. Keeps its position and, if the status is unchanged, its transition time.
pub(crate) fn set_condition(conditions: &mut Vec<Value>, condition: &Condition<'_>, now: Timestamp) {
    let status = if condition.is_true { "True" } else { "False" };
    let mut new = json!({
        "type": condition.type_,
        "status": status,
        "lastTransitionTime": rfc3339(now),
    });
    if !condition.reason.is_empty() {
        new["reason"] = json!(condition.reason);
    }
    if !condition.message.is_empty() {
        new["message"] = json!(condition.message);
    }
    match conditions.iter_mut().find(|known| known["type"] == condition.type_) {
        Some(known) => {
            if known["status"] == status {
                new["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = new;
        }
        None => conditions.push(new),
    }
}

/// Returns the condition of a type, if the list has it.
pub(crate) fn find<'a>(conditions: &'a [Value], type_: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition["type"] == type_)
}
