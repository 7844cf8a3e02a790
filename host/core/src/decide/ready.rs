//! From a probe to the Ready condition of a cluster.

use std::collections::BTreeMap;

use crate::model::{Condition, ConditionStatus};
use crate::time::Time;

/// What probing the health endpoint of a member cluster gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// HTTP 200.
    Ready,
    /// Another answer of the 2xx family.
    NotReady,
    /// No answer, or any other status: client-go turns those into errors.
    Unreachable,
}

impl Probe {
    /// Classifies an HTTP status (Karmada: `cluster_status_controller.go:getClusterHealthStatus`).
    pub fn from_http_status(status: u16) -> Self {
        match status {
            200 => Self::Ready,
            201..=206 => Self::NotReady,
            _ => Self::Unreachable,
        }
    }

    /// The Ready condition as observed, before any debouncing.
    pub fn condition(self, now: Time) -> Condition {
        let (status, reason, message) = match self {
            Self::Ready => (ConditionStatus::True, "ClusterReady", "cluster is healthy and ready to accept workloads"),
            Self::NotReady => (
                ConditionStatus::False,
                "ClusterNotReady",
                "cluster is reachable but health endpoint responded without ok",
            ),
            Self::Unreachable => (ConditionStatus::False, "ClusterNotReachable", "cluster is not reachable"),
        };
        Condition::new("Ready", status, reason, message, now)
    }
}

/// For how long an observation must last before it replaces the condition on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From not True to True, in seconds.
    pub success_s: i64,
    /// From True to not True, in seconds.
    pub failure_s: i64,
}

/// Keeps a flapping probe from flapping the condition (Karmada: `cluster_condition_cache.go`).
#[derive(Clone, Debug, Default)]
pub struct ReadyDebounce {
    clusters: BTreeMap<String, Observed>,
}

#[derive(Clone, Copy, Debug)]
struct Observed {
    status: ConditionStatus,
    /// When `status` last changed; absent for the first observation, which is never delayed.
    since: Option<Time>,
}

impl ReadyDebounce {
    /// The condition to write, given what was observed and what is on the object now.
    pub fn adjust(
        &mut self,
        cluster: &str,
        observed: Condition,
        current: Option<&Condition>,
        thresholds: Thresholds,
        now: Time,
    ) -> Condition {
        let Some(memory) = self.clusters.get_mut(cluster) else {
            self.clusters.insert(cluster.to_owned(), Observed { status: observed.status, since: None });
            return observed;
        };
        let Some(current) = current else { return observed };
        if memory.status != observed.status {
            *memory = Observed { status: observed.status, since: Some(now) };
        }
        let is_true = |condition: &Condition| condition.status == ConditionStatus::True;
        let threshold_s = if is_true(&observed) { thresholds.success_s } else { thresholds.failure_s };
        let young = memory.since.is_some_and(|since| now < since.plus_seconds(threshold_s));
        if is_true(&observed) != is_true(current) && young { current.clone() } else { observed }
    }

    /// Whether the last probe of a cluster found it ready, whatever its condition still says.
    pub fn was_ready(&self, cluster: &str) -> bool {
        self.clusters.get(cluster).is_some_and(|memory| memory.status == ConditionStatus::True)
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&mut self, cluster: &str) {
        self.clusters.remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: Thresholds = Thresholds { success_s: 30, failure_s: 30 };

    fn observe(
        debounce: &mut ReadyDebounce,
        probe: Probe,
        current: &mut Option<Condition>,
        at_s: i64,
    ) -> ConditionStatus {
        let now = Time::from_millis(at_s * 1000);
        let condition = debounce.adjust("m", probe.condition(now), current.as_ref(), THRESHOLDS, now);
        let status = condition.status;
        *current = Some(condition);
        status
    }

    #[test]
    fn a_failure_counts_after_the_threshold_and_not_before() {
        let (mut debounce, mut current) = (ReadyDebounce::default(), None);
        let mut check = |probe, at_s, expected| {
            assert_eq!(observe(&mut debounce, probe, &mut current, at_s), expected, "at {at_s}s");
        };
        check(Probe::Ready, 0, ConditionStatus::True);
        check(Probe::Unreachable, 10, ConditionStatus::True);
        check(Probe::Unreachable, 39, ConditionStatus::True);
        check(Probe::Unreachable, 40, ConditionStatus::False);
        check(Probe::Ready, 50, ConditionStatus::False);
        check(Probe::Unreachable, 60, ConditionStatus::False);
        check(Probe::Ready, 70, ConditionStatus::False);
        check(Probe::Ready, 99, ConditionStatus::False);
        check(Probe::Ready, 100, ConditionStatus::True);
    }

    #[test]
    fn the_first_observation_after_a_restart_counts_at_once() {
        let mut current = Some(Probe::Ready.condition(Time::from_millis(0)));
        let status = observe(&mut ReadyDebounce::default(), Probe::Unreachable, &mut current, 10);
        assert_eq!(status, ConditionStatus::False);
    }
}
