//! Aggregation of a Job's status over all clusters.

use std::cmp::{max, min};

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::time::Time;
use serde_json::{Map, Value, json};

use crate::aggregate::{Aggregated, collected, old_status, sum, time};
use crate::reflect::{Counter, write_counter};
use bulkhead_core::shape::{Malformed, list, text};

/// Combined outcome of all clusters.
#[derive(Default)]
struct Outcome {
    failed_in: Vec<String>,
    completed: usize,
    succeeded: usize,
    started: Vec<Time>,
    finished: Vec<Time>,
    /// Latest transition or completion in any cluster. It is used instead of the current time, which Karmada writes
    /// to new conditions, so that the same reports always give the same status.
    decided: Option<Time>,
}

/// Aggregates a Job. A finished Job does not change. It fails if it failed in one cluster, and completes if it
/// completed in all. (Karmada: `pkg/util/helper/job.go:ParsingJobStatus`.)
pub(crate) fn status(object: &Value, items: &[AggregatedStatusItem], now: Time) -> Result<Aggregated, Malformed> {
    if object.get("status").map_or(Ok(false), |status| Ok(holds(status, "Complete")? || holds(status, "Failed")?))? {
        return Ok(Aggregated::Unchanged);
    }
    let mut status = old_status(object)?;
    for name in ["active", "succeeded", "failed"] {
        write_counter(&mut status, &Counter { name, omitted_when_zero: true }, sum(items, name)?);
    }
    let outcome = outcome(items)?;
    for condition in outcome.conditions(items.len(), now) {
        push_condition(&mut status, condition);
    }
    let everywhere = |times: &[Time]| !items.is_empty() && times.len() == items.len();
    if everywhere(&outcome.started) && !status.contains_key("startTime") {
        status.extend(outcome.started.iter().copied().reduce(min).map(|time| ("startTime".to_owned(), json!(time))));
    }
    if everywhere(&outcome.finished) {
        status.extend(
            outcome.finished.iter().copied().reduce(max).map(|time| ("completionTime".to_owned(), json!(time))),
        );
    }
    let unchanged = status.is_empty() && object.get("status").is_none();
    Ok(if unchanged { Aggregated::Unchanged } else { Aggregated::Status(status) })
}

fn outcome(items: &[AggregatedStatusItem]) -> Result<Outcome, Malformed> {
    let mut outcome = Outcome::default();
    for (cluster, member) in collected(items) {
        if holds(member, "Failed")? {
            outcome.failed_in.push(cluster.to_owned());
        }
        outcome.completed += usize::from(holds(member, "Complete")?);
        outcome.succeeded += usize::from(holds(member, "SuccessCriteriaMet")?);
        outcome.started.extend(time(member, "startTime")?);
        let completion = time(member, "completionTime")?;
        outcome.finished.extend(completion);
        outcome.decided = max(outcome.decided, completion);
        for condition in list(member, &["conditions"])? {
            outcome.decided = max(outcome.decided, time(condition, "lastTransitionTime")?);
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn conditions(&self, items: usize, now: Time) -> Vec<Value> {
        let decided = self.decided.unwrap_or_else(|| now.truncated());
        let condition = |type_: &str, reason: &str, message: String| {
            json!({
                "type": type_, "status": "True", "reason": reason, "message": message,
                "lastProbeTime": decided, "lastTransitionTime": decided,
            })
        };
        if !self.failed_in.is_empty() {
            let message = format!("Job executed failed in member clusters {}", self.failed_in.join(","));
            return vec![condition("Failed", "JobFailed", message)];
        }
        if items == 0 || self.completed < items {
            return Vec::new();
        }
        let mut conditions = vec![condition("Complete", "Completed", "Job completed".to_owned())];
        if self.succeeded == items {
            let message = "All member clusters have met success criteria".to_owned();
            conditions.push(condition("SuccessCriteriaMet", "CompletionsReached", message));
        }
        conditions
    }
}

fn holds(status: &Value, type_: &str) -> Result<bool, Malformed> {
    for condition in list(status, &["conditions"])? {
        if text(condition, &["type"])? == type_ && text(condition, &["status"])? == "True" {
            return Ok(true);
        }
    }
    Ok(false)
}

fn push_condition(status: &mut Map<String, Value>, condition: Value) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|old| old.get("type") != condition.get("type"));
        conditions.push(condition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::check;

    const START: &str = "2024-01-01T00:00:00Z";
    const MIDDLE: &str = "2024-01-01T00:30:00Z";
    const END: &str = "2024-01-01T01:00:00Z";

    fn conditions(types: &[&str]) -> Value {
        types.iter().map(|type_| json!({"type": type_, "status": "True"})).collect()
    }

    fn condition(type_: &str, reason: &str, message: &str, at: Value) -> Value {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": message,
            "lastProbeTime": at, "lastTransitionTime": at,
        })
    }

    #[test]
    fn a_job_completes_when_it_did_everywhere() {
        let done = |types: &[&str]| json!({"succeeded": 2, "startTime": START, "completionTime": END, "conditions": conditions(types)});
        let complete = condition("Complete", "Completed", "Job completed", json!(END));
        let message = "All member clusters have met success criteria";
        let met = condition("SuccessCriteriaMet", "CompletionsReached", message, json!(END));
        let status = |conditions: &[&Value], succeeded: i64| json!({"succeeded": succeeded, "startTime": START, "completionTime": END, "conditions": conditions});
        let check = |reported: &[(&str, Value)], expected: Value| {
            check(("batch/v1", "Job"), json!({}), reported, Ok(expected));
        };
        let both = done(&["SuccessCriteriaMet", "Complete"]);
        check(&[("m1", both.clone())], status(&[&complete, &met], 2));
        check(&[("m1", both), ("m2", done(&["Complete"]))], status(&[&complete], 4));
        let running = json!({"active": 1, "startTime": MIDDLE});
        let expected = json!({"active": 1, "succeeded": 2, "startTime": START});
        check(&[("m1", done(&["Complete"])), ("m2", running)], expected);
    }

    #[test]
    fn a_job_fails_when_it_did_somewhere() {
        let reported = [
            ("m1", json!({"failed": 2, "startTime": MIDDLE, "conditions": conditions(&["Failed"])})),
            ("m2", json!({"succeeded": 1, "conditions": conditions(&["Complete"])})),
        ];
        // The reports contain no time, so the time of the call is used.
        let at = json!("1970-01-01T00:00:00Z");
        let failed = condition("Failed", "JobFailed", "Job executed failed in member clusters m1", at);
        let expected = json!({"failed": 2, "succeeded": 1, "conditions": [failed]});
        check(("batch/v1", "Job"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn a_finished_job_is_frozen_and_no_news_change_nothing() {
        let finished = json!({"status": {"conditions": conditions(&["Complete"]), "succeeded": 1}});
        check(("batch/v1", "Job"), finished, &[("m1", json!({"failed": 5}))], Ok(json!("unchanged")));
        check(("batch/v1", "Job"), json!({"spec": {}}), &[], Ok(json!("unchanged")));
    }
}
