//! Findings of graceful evictions.

use bulkhead_core::decide::graceful_eviction::result::{ScheduleResult, schedule_result};
use bulkhead_core::decide::reasons::{REASON_FAILBACK, REASON_RESCHEDULED};
use bulkhead_core::journal::{DecisionInput, DecisionRecord};
use bulkhead_core::model::{Binding, GracefulEvictionTask};

use super::super::diff::reason;
use super::super::finding::Finding;
use super::{answers, canonical_word, finding, ready_of};

pub(super) fn graceful_eviction(decision: &DecisionRecord, binding: &Binding, cluster: Option<&str>) -> Vec<Finding> {
    let DecisionInput::GracefulEviction {
        options, unconfirmed, ..
    } = &decision.input
    else {
        return Vec::new();
    };
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    let mut findings = Vec::new();
    for task in tasks.filter(|task| cluster.is_none_or(|cluster| task.from_cluster == cluster)) {
        findings.push(manual_override(task));
        findings.push(source(decision, binding, task));
        findings.extend(unconfirmed.iter().map(|(name, reason)| Finding {
            observed: format!("it {reason}"),
            would_change: "an answer from the cluster and a report about the current object".to_owned(),
            ..finding(format!("replacement on {name}"), "its report does not count")
        }));
        let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0).map(i64::from);
        let limit_s = own_s.unwrap_or(options.timeout_s);
        let age_s = task
            .creation_timestamp
            .map(|created| decision.now.millis_since(created).max(0) / 1000);
        let over = task
            .creation_timestamp
            .is_some_and(|created| decision.now > created.plus_seconds(limit_s));
        let whose = if own_s.is_some() {
            "gracePeriodSeconds of the task"
        } else {
            "graceful-eviction-timeout"
        };
        let rule = canonical_word(&options.purge_without_replacement);
        let threshold = format!("{limit_s} s ({whose}), then {rule}");
        findings.push(Finding {
            observed: age_s.map_or_else(
                || "the task has no time stamp yet".to_owned(),
                |age_s| format!("{age_s} s"),
            ),
            threshold: match task.reason.as_str() {
                REASON_FAILBACK => "none: a stand-in stays until the copy at home is healthy".to_owned(),
                REASON_RESCHEDULED => format!("{threshold}; none while the old copy is healthy and may stay"),
                _ => threshold,
            },
            would_change: if over {
                "a longer grace period".to_owned()
            } else {
                "the end of the grace period".to_owned()
            },
            ..finding("grace period", if over { "over" } else { "not over" })
        });
        let checks = answers(decision, Some(&task.from_cluster));
        let asked = if checks.is_empty() {
            "not called".to_owned()
        } else {
            format!("{} were called", checks.len())
        };
        findings.push(Finding {
            threshold: format!(
                "rule {}",
                bulkhead_core::journal::canonical(&decision.composition.eviction_check)
                    .to_string()
                    .trim_matches('"')
            ),
            would_change: "a different answer from one of them".to_owned(),
            within: checks,
            ..finding("eviction checks", asked)
        });
        findings.push(outcome(decision, &task.from_cluster));
    }
    findings
}

fn manual_override(task: &GracefulEvictionTask) -> Finding {
    let (verdict, would_change) = match task.suppress_deletion {
        Some(true) => ("held manually", "setting suppressDeletion to false"),
        Some(false) => ("released manually", ""),
        None => ("not set", "setting suppressDeletion of the task"),
    };
    Finding {
        would_change: would_change.to_owned(),
        ..finding("suppressDeletion", verdict)
    }
}

pub(super) fn source(decision: &DecisionRecord, binding: &Binding, task: &GracefulEvictionTask) -> Finding {
    let placed = match schedule_result(binding) {
        ScheduleResult::Present => "the workload is placed elsewhere",
        ScheduleResult::Empty => "the workload has no other placement",
        ScheduleResult::NoneYet => "the scheduler has not placed the workload yet",
    };
    let ready = decision
        .cluster(&task.from_cluster)
        .map_or_else(|| "it is gone".to_owned(), |known| ready_of(known, decision));
    Finding {
        observed: format!("{ready}; {placed}"),
        would_change: "recovery of the cluster while the workload has no other placement".to_owned(),
        ..finding("old cluster", task.from_cluster.clone())
    }
}

/// Returns the outcome of a task according to the plan.
fn outcome(decision: &DecisionRecord, cluster: &str) -> Finding {
    for (list, verdict) in [
        ("released", "the old copy may go"),
        ("held", "the old copy stays"),
        ("calledOff", "called off"),
    ] {
        let mut items = decision.plan[list].as_array().into_iter().flatten();
        if let Some(item) = items.find(|item| item["task"]["fromCluster"] == cluster) {
            return Finding {
                observed: reason(&item["because"]),
                ..finding("result", verdict)
            };
        }
    }
    finding("result", "the task received its timestamp")
}
