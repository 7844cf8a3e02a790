//! Aggregation of a Job's status over all clusters.

use std::cmp::{max, min};

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use crate::aggregated_items::{collected, sums, time};
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

/// Returns the new status of a Job that is not finished. It fails if it failed in one cluster, and completes if it
/// completed in all. Of the template's status, only the start is kept. (Karmada:
/// `pkg/util/helper/job.go:ParsingJobStatus`.)
pub(crate) fn status(old: &Value, items: &[AggregatedStatusItem], now: Time) -> Result<Value, Malformed> {
    let mut status = sums(items, &["active", "succeeded", "failed"])?;
    let outcome = outcome(items)?;
    let conditions = outcome.conditions(items.len(), now);
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    let everywhere = |times: &[Time]| !items.is_empty() && times.len() == items.len();
    let first = outcome
        .started
        .iter()
        .copied()
        .reduce(min)
        .filter(|_| everywhere(&outcome.started));
    let last = outcome
        .finished
        .iter()
        .copied()
        .reduce(max)
        .filter(|_| everywhere(&outcome.finished));
    status.insert("startTime".to_owned(), json!(time(old, "startTime")?.or(first)));
    status.insert("completionTime".to_owned(), json!(last));
    Ok(Value::Object(status))
}

/// Returns the condition with which a Job finished; the first one counts.
pub(crate) fn finished(status: &Value) -> Result<Option<&str>, Malformed> {
    for condition in list(status, &["conditions"])? {
        let type_ = text(condition, &["type"])?;
        if ["Complete", "Failed"].contains(&type_) && text(condition, &["status"])? == "True" {
            return Ok(Some(type_));
        }
    }
    Ok(None)
}

fn outcome(items: &[AggregatedStatusItem]) -> Result<Outcome, Malformed> {
    let mut outcome = Outcome::default();
    for (cluster, member) in collected(items) {
        match finished(member)? {
            Some("Failed") => outcome.failed_in.push(cluster.to_owned()),
            Some(_) => outcome.completed += 1,
            None => {}
        }
        outcome.succeeded += usize::from(meets_success_criteria(member)?);
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

fn meets_success_criteria(status: &Value) -> Result<bool, Malformed> {
    for condition in list(status, &["conditions"])? {
        if text(condition, &["type"])? == "SuccessCriteriaMet" && text(condition, &["status"])? == "True" {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Aggregated, check};

    const START: &str = "2024-01-01T00:00:00Z";
    const MIDDLE: &str = "2024-01-01T00:30:00Z";
    const END: &str = "2024-01-01T01:00:00Z";

    fn conditions(types: &[&str]) -> Value {
        types
            .iter()
            .map(|type_| json!({"type": type_, "status": "True"}))
            .collect()
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
            (
                "m1",
                json!({"failed": 2, "startTime": MIDDLE, "conditions": conditions(&["Failed"])}),
            ),
            ("m2", json!({"succeeded": 1, "conditions": conditions(&["Complete"])})),
        ];
        // The reports contain no time, so the time of the call is used.
        let at = json!("1970-01-01T00:00:00Z");
        let failed = condition("Failed", "JobFailed", "Job executed failed in member clusters m1", at);
        let expected = json!({"failed": 2, "succeeded": 1, "conditions": [failed]});
        check(("batch/v1", "Job"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn a_finished_job_is_frozen_and_without_reports_nothing_changes() {
        let finished = json!({"status": {"conditions": conditions(&["Complete"]), "succeeded": 1}});
        check(
            ("batch/v1", "Job"),
            finished,
            &[("m1", json!({"failed": 5}))],
            Ok(json!("unchanged")),
        );
        check(("batch/v1", "Job"), json!({"spec": {}}), &[], Ok(json!("unchanged")));
        let odd = json!({"status": {"conditions": [{"type": "Complete", "status": "False"}], "succeeded": 1}});
        check(("batch/v1", "Job"), odd, &[], Ok(json!({})));
    }

    #[test]
    fn a_job_keeps_nothing_but_its_start() {
        let old = json!({
            "ready": 1, "terminating": 0, "startTime": MIDDLE, "completionTime": END,
            "conditions": [{"type": "Suspended", "status": "True"}],
        });
        let reported = [("m1", json!({"active": 1, "startTime": START}))];
        let expected = json!({"active": 1, "startTime": MIDDLE});
        check(("batch/v1", "Job"), json!({"status": old}), &reported, Ok(expected));
    }

    #[test]
    fn the_first_condition_decides_about_a_member() {
        let check = |types: &[&str], reason: &str| {
            let object = json!({});
            let reported = [("m1", json!({"completionTime": END, "conditions": conditions(types)}))];
            let aggregated = crate::aggregate::status(
                ("batch/v1", "Job"),
                &object,
                Some(&crate::aggregated_items::items(&reported)),
                Time::from_millis(0),
            );
            let Ok(Aggregated::Status(status)) = aggregated else {
                panic!("{aggregated:?}")
            };
            assert_eq!(status["conditions"][0]["reason"], reason, "{types:?}");
        };
        check(&["Complete", "Failed"], "Completed");
        check(&["Failed", "Complete"], "JobFailed");
    }
}
