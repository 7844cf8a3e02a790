//! Requests to schedule workloads again (Karmada: `pkg/controllers/workloadrebalancer`).

use std::collections::BTreeSet;

use crate::model::{
    ObservedWorkload, RebalanceFailedReason, RebalanceResult, RebalancedWorkload, WorkloadRebalancerSpec,
    WorkloadRebalancerStatus,
};
use crate::time::Time;

/// Answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The binding has the request, or had a later one.
    Requested,
    /// The object has no binding.
    NoBinding,
    /// The request could not be written and is tried again.
    NotWritten,
}

/// Returns the workloads that a status reports, in its order, with the results that stand.
///
/// Each workload of the spec is listed once. A workload that the spec no longer names stays if it was scheduled again,
/// and is forgotten otherwise.
pub fn observed(spec: &WorkloadRebalancerSpec, status: &WorkloadRebalancerStatus) -> Vec<ObservedWorkload> {
    let mut missing: BTreeSet<&RebalancedWorkload> = spec.workloads.iter().collect();
    let mut observed: Vec<ObservedWorkload> = status
        .observed_workloads
        .iter()
        .filter(|item| missing.remove(&item.workload) || item.result == Some(RebalanceResult::Successful))
        .cloned()
        .collect();
    observed.extend(missing.into_iter().map(|workload| ObservedWorkload {
        workload: workload.clone(),
        ..ObservedWorkload::default()
    }));
    observed.sort_by(|a, b| a.workload.cmp(&b.workload));
    observed
}

/// Returns true if a request made at `requested` is newer than the one that a binding has.
pub fn is_newer(requested: Time, triggered: Option<Time>) -> bool {
    triggered.is_none_or(|triggered| requested > triggered)
}

/// Records the answer to the request for one workload.
pub fn record(item: &mut ObservedWorkload, answer: Answer) {
    match answer {
        Answer::Requested => item.result = Some(RebalanceResult::Successful),
        Answer::NoBinding => {
            item.result = Some(RebalanceResult::Failed);
            item.reason = Some(RebalanceFailedReason::ReferencedBindingNotFound);
        }
        Answer::NotWritten => {}
    }
}

/// Returns the new status of the results in `observed`. It is finished at `now` if it changed and each workload has a
/// result; otherwise the earlier time stands.
pub fn status(
    before: &WorkloadRebalancerStatus,
    observed: Vec<ObservedWorkload>,
    generation: i64,
    now: Time,
) -> WorkloadRebalancerStatus {
    let is_finished = observed.iter().all(|item| item.result.is_some());
    let mut after = WorkloadRebalancerStatus {
        observed_workloads: observed,
        observed_generation: generation,
        finish_time: before.finish_time,
    };
    if after != *before && is_finished {
        after.finish_time = Some(now.truncated());
    }
    after
}

/// Returns the time at which a finished object is deleted; none without a limit or before its end.
pub fn expires_at(spec: &WorkloadRebalancerSpec, status: &WorkloadRebalancerStatus) -> Option<Time> {
    let ttl_s = spec.ttl_seconds_after_finished?;
    status.finish_time.map(|end| end.plus_seconds(ttl_s.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str) -> RebalancedWorkload {
        RebalancedWorkload {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    fn item(name: &str, result: Option<RebalanceResult>) -> ObservedWorkload {
        ObservedWorkload {
            workload: workload(name),
            result,
            reason: None,
        }
    }

    fn spec(names: &[&str]) -> WorkloadRebalancerSpec {
        WorkloadRebalancerSpec {
            workloads: names.iter().map(|name| workload(name)).collect(),
            ttl_seconds_after_finished: None,
        }
    }

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    const DONE: Option<RebalanceResult> = Some(RebalanceResult::Successful);
    const LOST: Option<RebalanceResult> = Some(RebalanceResult::Failed);

    #[test]
    fn a_workload_that_the_spec_no_longer_names_stays_only_if_it_was_scheduled_again() {
        let before = WorkloadRebalancerStatus {
            observed_workloads: vec![item("b", LOST), item("c", DONE), item("d", LOST), item("e", None)],
            ..Default::default()
        };
        let names = |observed: Vec<ObservedWorkload>| -> Vec<(String, Option<RebalanceResult>)> {
            observed
                .into_iter()
                .map(|item| (item.workload.name, item.result))
                .collect()
        };
        let expected = [("a", None), ("c", DONE), ("d", LOST)].map(|(name, result)| (name.to_owned(), result));
        assert_eq!(names(observed(&spec(&["d", "a", "a"]), &before)), expected);
    }

    #[test]
    fn results_are_sorted_by_api_version_kind_namespace_and_name() {
        let mut spec = spec(&["b", "a"]);
        let other = RebalancedWorkload {
            namespace: String::new(),
            kind: "ClusterRole".to_owned(),
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            ..workload("a")
        };
        spec.workloads.insert(0, other.clone());
        spec.workloads.push(RebalancedWorkload {
            namespace: "bar".to_owned(),
            ..workload("z")
        });
        let order: Vec<_> = observed(&spec, &WorkloadRebalancerStatus::default())
            .into_iter()
            .map(|item| format!("{}/{}", item.workload.namespace, item.workload.name))
            .collect();
        assert_eq!(order, ["bar/z", "shop/a", "shop/b", "/a"]);
    }

    #[test]
    fn the_end_is_the_first_moment_at_which_each_workload_has_a_result() {
        let nothing = WorkloadRebalancerStatus::default();
        let waiting = status(&nothing, vec![item("a", DONE), item("b", None)], 1, at(10));
        assert_eq!(waiting.finish_time, None);
        let done = status(&waiting, vec![item("a", DONE), item("b", LOST)], 1, at(20));
        assert_eq!(done.finish_time, Some(at(20)));
        let same = status(&done, done.observed_workloads.clone(), 1, at(30));
        assert_eq!(same, done);
        let again = status(&done, done.observed_workloads.clone(), 2, at(40));
        assert_eq!((again.observed_generation, again.finish_time), (2, Some(at(40))));
    }

    #[test]
    fn only_a_newer_request_replaces_the_one_of_a_binding() {
        assert!(is_newer(at(5), None) && is_newer(at(5), Some(at(4))));
        assert!(!is_newer(at(5), Some(at(5))) && !is_newer(at(5), Some(at(6))));
    }

    #[test]
    fn an_object_without_a_limit_or_an_end_does_not_expire() {
        let mut spec = spec(&["a"]);
        let done = status(&WorkloadRebalancerStatus::default(), vec![item("a", DONE)], 1, at(20));
        assert_eq!(expires_at(&spec, &done), None);
        spec.ttl_seconds_after_finished = Some(30);
        assert_eq!(expires_at(&spec, &done), Some(at(50)));
        assert_eq!(expires_at(&spec, &WorkloadRebalancerStatus::default()), None);
    }

    #[test]
    fn a_failure_has_a_reason_and_a_write_that_failed_has_no_result() {
        let mut failed = item("a", None);
        record(&mut failed, Answer::NoBinding);
        assert_eq!(
            (failed.result, failed.reason),
            (LOST, Some(RebalanceFailedReason::ReferencedBindingNotFound))
        );
        let mut waiting = item("a", None);
        record(&mut waiting, Answer::NotWritten);
        assert_eq!(waiting, item("a", None));
    }
}
