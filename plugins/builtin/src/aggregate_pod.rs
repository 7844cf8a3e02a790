//! Aggregation of a Pod's status over all clusters.

use bulkhead_core::model::AggregatedStatusItem;
use serde_json::{Map, Value, json};

use crate::aggregate::{collected, leading_phase};
use bulkhead_core::shape::{Malformed, field, list, members};

/// Returns the worst phase, and the state of every container of every cluster.
pub(crate) fn status(items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let phase = leading_phase(items, &["Failed", "Pending", "Running", "Succeeded"])?;
    let mut status = Map::new();
    if !phase.is_empty() {
        status.insert("phase".to_owned(), phase.into());
    }
    for name in ["containerStatuses", "initContainerStatuses"] {
        let mut containers = Vec::new();
        for (_, member) in collected(items) {
            for container in list(member, &[name])? {
                containers.push(state_alone(container)?);
            }
        }
        if !containers.is_empty() {
            status.insert(name.to_owned(), Value::Array(containers));
        }
    }
    Ok(status)
}

/// Reduces a container status to its state. The required fields are present but empty, as serialized by Karmada's
/// typed struct: the API rejects a container status without them.
fn state_alone(container: &Value) -> Result<Value, Malformed> {
    let ready = field(container, &["ready"])?.and_then(Value::as_bool).unwrap_or(false);
    let state = members(container, &["state"])?.cloned().unwrap_or_default();
    Ok(json!({
        "name": "", "image": "", "imageID": "", "lastState": {}, "restartCount": 0, "ready": ready, "state": state,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::check;

    #[test]
    fn the_worst_phase_counts() {
        let check = |phases: &[Option<&str>], expected: Value| {
            let status = |phase: Option<&str>| phase.map_or(Value::Null, |phase| json!({"phase": phase}));
            let statuses: Vec<_> = phases.iter().map(|phase| ("m", status(*phase))).collect();
            check(("v1", "Pod"), json!({"status": {"podIP": "1.1.1.1"}}), &statuses, Ok(expected));
        };
        check(&[Some("Running"), Some("Running")], json!({"phase": "Running"}));
        check(&[Some("Succeeded"), Some("Running")], json!({"phase": "Running"}));
        check(&[Some("Succeeded")], json!({"phase": "Succeeded"}));
        check(&[Some("Running"), None], json!({"phase": "Pending"}));
        check(&[None, Some("Failed")], json!({"phase": "Failed"}));
        check(&[Some("Odd")], json!({}));
    }

    #[test]
    fn containers_are_listed_with_their_state() {
        let container = json!({"name": "c", "image": "i", "restartCount": 3, "ready": true, "state": {"running": {}}});
        let reported = [
            ("m1", json!({"phase": "Running", "containerStatuses": [container]})),
            ("m2", json!({"phase": "Running", "containerStatuses": [{"name": "c"}]})),
        ];
        let listed = |ready: bool, state: Value| {
            json!({
                "name": "", "image": "", "imageID": "", "lastState": {}, "restartCount": 0,
                "ready": ready, "state": state,
            })
        };
        let containers = [listed(true, json!({"running": {}})), listed(false, json!({}))];
        let expected = json!({"phase": "Running", "containerStatuses": containers});
        check(("v1", "Pod"), json!({}), &reported, Ok(expected));
    }
}
