//! Aggregation of a Pod's status over all clusters.

use bulkhead_core::model::AggregatedStatusItem;
use serde_json::{Value, json};

use crate::aggregated_items::{collected, leading_phase};
use bulkhead_core::shape::{Malformed, list};

/// Returns the worst phase, and readiness and state of every container of every cluster. Names and restarts are
/// empty, as in Karmada.
pub(crate) fn status(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    let phase = leading_phase(items, &["Failed", "Pending", "Running", "Succeeded"])?;
    let containers = states(items, "containerStatuses")?;
    // Karmada's list of containers is empty, that of init containers missing.
    let inits = Some(states(items, "initContainerStatuses")?).filter(|inits| !inits.is_empty());
    Ok(json!({"phase": phase, "containerStatuses": containers, "initContainerStatuses": inits}))
}

fn states(items: &[AggregatedStatusItem], name: &str) -> Result<Vec<Value>, Malformed> {
    let mut states = Vec::new();
    for (_, member) in collected(items) {
        for container in list(member, &[name])? {
            let part = |name: &str| container.get(name).cloned().unwrap_or_default();
            states.push(json!({"ready": part("ready"), "state": part("state")}));
        }
    }
    Ok(states)
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
            check(
                ("v1", "Pod"),
                json!({"status": {"podIP": "1.1.1.1"}}),
                &statuses,
                Ok(expected),
            );
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
        let containers = [
            listed(true, json!({"running": {"startedAt": null}})),
            listed(false, json!({})),
        ];
        let expected = json!({"phase": "Running", "containerStatuses": containers});
        check(("v1", "Pod"), json!({}), &reported, Ok(expected));
        let terminated = json!({"terminated": {"exitCode": 1, "signal": 0, "extra": 1}});
        let reported = [(
            "m1",
            json!({"phase": "Failed", "initContainerStatuses": [{"state": terminated}]}),
        )];
        let printed = json!({"terminated": {"exitCode": 1, "startedAt": null, "finishedAt": null}});
        let expected = json!({"phase": "Failed", "initContainerStatuses": [listed(false, printed)]});
        check(("v1", "Pod"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn a_malformed_report_of_a_pod_is_an_error() {
        let check = |status: Value, expected: &str| {
            check(("v1", "Pod"), json!({}), &[("m1", status)], Err(expected));
        };
        let ready = json!({"containerStatuses": [{"ready": "yes"}]});
        check(
            ready,
            "status in m1: containerStatuses[0].ready is a string, not a boolean",
        );
        check(json!({"phase": 3}), "status in m1: phase is a number, not a string");
    }
}
