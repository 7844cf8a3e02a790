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

/// Sets a condition in a list and returns it. Keeps its position, its other fields and, if the status is unchanged, its
/// transition time.
pub(crate) fn set_condition<'a>(
    conditions: &'a mut Vec<Value>,
    condition: &Condition<'_>,
    now: Timestamp,
) -> &'a mut Value {
    let index = position(conditions, condition.type_).unwrap_or_else(|| {
        conditions.push(json!({"type": condition.type_}));
        conditions.len() - 1
    });
    let set = &mut conditions[index];
    let status = if condition.is_true { "True" } else { "False" };
    if set["status"] != status {
        set["status"] = json!(status);
        set["lastTransitionTime"] = json!(rfc3339(now));
    }
    for (field, text) in [("reason", condition.reason), ("message", condition.message)] {
        if !text.is_empty() && set[field] != text {
            set[field] = json!(text);
        } else if text.is_empty()
            && let Some(fields) = set.as_object_mut()
        {
            fields.remove(field);
        }
    }
    set
}

/// Returns the condition of a type, if the list has it.
pub(crate) fn find<'a>(conditions: &'a [Value], type_: &str) -> Option<&'a Value> {
    position(conditions, type_).map(|index| &conditions[index])
}

fn position(conditions: &[Value], type_: &str) -> Option<usize> {
    conditions.iter().position(|condition| condition["type"] == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_place_its_other_fields_and_without_a_transition_its_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ready = |is_true, reason, message| Condition {
            type_: "Ready",
            is_true,
            reason,
            message,
        };
        let mut conditions = vec![json!({"type": "Initialized", "status": "True"})];
        set_condition(&mut conditions, &ready(false, "Starting", "one of two"), at(1))["seen"] = json!(1);
        let mut expected = json!({
            "type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:00:01Z",
            "reason": "Starting", "message": "one of two", "seen": 1,
        });
        assert_eq!(conditions[1], expected);

        set_condition(&mut conditions, &ready(false, "Crashed", ""), at(2));
        expected["reason"] = json!("Crashed");
        expected.as_object_mut().unwrap().remove("message");
        assert_eq!(conditions[1], expected);

        set_condition(&mut conditions, &ready(true, "", ""), at(3));
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:03Z", "seen": 1});
        let initialized = json!({"type": "Initialized", "status": "True"});
        assert_eq!(conditions, [initialized, ready]);
    }
}
