//! Ready condition of a cluster, derived from health probes.

use std::collections::BTreeMap;

use crate::model::{Condition, ConditionStatus};
use crate::time::Time;

/// Result of probing the health endpoint of a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// HTTP 200.
    Ready,
    /// HTTP 201 to 206.
    NotReady,
    /// No response, or any other status, which client-go converts to an error.
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

    /// Returns the observed Ready condition, before debouncing.
    pub fn condition(self, now: Time) -> Condition {
        let (status, reason, message) = match self {
            Self::Ready => (
                ConditionStatus::True,
                "ClusterReady",
                "cluster is healthy and ready to accept workloads",
            ),
            Self::NotReady => (
                ConditionStatus::False,
                "ClusterNotReady",
                "cluster is reachable but health endpoint responded without ok",
            ),
            Self::Unreachable => (
                ConditionStatus::False,
                "ClusterNotReachable",
                "cluster is not reachable",
            ),
        };
        Condition::new("Ready", status, reason, message, now)
    }
}

/// Durations for which an observation must persist before it replaces the stored condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Delay from not True to True, in seconds.
    pub success_s: i64,
    /// Delay from True to not True, in seconds.
    pub failure_s: i64,
}

/// Debouncer that keeps a flapping probe from flapping the condition (Karmada: `cluster_condition_cache.go`).
#[derive(Clone, Debug, Default)]
pub struct ReadyDebounce {
    clusters: BTreeMap<String, Observed>,
}

#[derive(Clone, Copy, Debug)]
struct Observed {
    status: ConditionStatus,
    /// Start of the threshold; absent for a first observation that does not contradict the condition.
    since: Option<Time>,
}

impl ReadyDebounce {
    /// Returns the condition to write, given the observation and the stored condition.
    ///
    /// The first observation of a process takes effect immediately if the stored condition is missing or `Unknown`. A
    /// first observation that contradicts the stored condition starts the threshold like any other change. A probe
    /// often fails once during a leader change, because the same fault caused both. (Karmada accepts the first
    /// observation.)
    pub fn adjust(
        &mut self,
        cluster: &str,
        observed: Condition,
        current: Option<&Condition>,
        thresholds: Thresholds,
        now: Time,
    ) -> Condition {
        let is_true = |condition: &Condition| condition.status == ConditionStatus::True;
        let contradicts = current.is_some_and(|current| {
            current.status != ConditionStatus::Unknown && is_true(current) != is_true(&observed)
        });
        let first = || Observed {
            status: observed.status,
            since: contradicts.then_some(now),
        };
        let memory = self.clusters.entry(cluster.to_owned()).or_insert_with(first);
        let Some(current) = current else { return observed };
        if memory.status != observed.status {
            *memory = Observed {
                status: observed.status,
                since: Some(now),
            };
        }
        let threshold_s = if is_true(&observed) {
            thresholds.success_s
        } else {
            thresholds.failure_s
        };
        let young = memory.since.is_some_and(|since| now < since.plus_seconds(threshold_s));
        if is_true(&observed) != is_true(current) && young {
            current.clone()
        } else {
            observed
        }
    }

    /// Returns true if the last probe of a cluster succeeded, regardless of its stored condition.
    pub fn was_ready(&self, cluster: &str) -> bool {
        self.clusters
            .get(cluster)
            .is_some_and(|memory| memory.status == ConditionStatus::True)
    }

    /// Removes a deleted cluster.
    pub fn forget(&mut self, cluster: &str) {
        self.clusters.remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: Thresholds = Thresholds {
        success_s: 30,
        failure_s: 30,
    };

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
            assert_eq!(
                observe(&mut debounce, probe, &mut current, at_s),
                expected,
                "at {at_s}s"
            );
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
    fn the_first_contrary_observation_after_a_restart_starts_the_threshold() {
        use ConditionStatus::{False, True};
        let stored = |probe: Probe| Some(probe.condition(Time::from_millis(0)));
        let check = |(stored, first): (Option<Condition>, Probe), probe, at_s, expected| {
            let (mut debounce, mut current) = (ReadyDebounce::default(), stored);
            observe(&mut debounce, first, &mut current, 10);
            assert_eq!(
                observe(&mut debounce, probe, &mut current, at_s),
                expected,
                "{first:?}, {probe:?} at {at_s}s"
            );
        };
        let lost = || (stored(Probe::Ready), Probe::Unreachable);
        check(lost(), Probe::Unreachable, 39, True);
        check(lost(), Probe::Unreachable, 40, False);
        check(lost(), Probe::Ready, 16, True);
        let back = || (stored(Probe::Unreachable), Probe::Ready);
        check(back(), Probe::Ready, 39, False);
        check(back(), Probe::Ready, 40, True);
        check(back(), Probe::Unreachable, 16, False);
    }

    #[test]
    fn the_first_observation_counts_at_once_where_it_contradicts_nothing() {
        let check = |mut current: Option<Condition>, probe, expected| {
            assert_eq!(
                observe(&mut ReadyDebounce::default(), probe, &mut current, 10),
                expected,
                "{current:?} {probe:?}"
            );
        };
        check(None, Probe::Ready, ConditionStatus::True);
        check(None, Probe::Unreachable, ConditionStatus::False);
        let silent = || {
            Some(Condition::new(
                "Ready",
                ConditionStatus::Unknown,
                "R",
                "",
                Time::from_millis(0),
            ))
        };
        check(silent(), Probe::Ready, ConditionStatus::True);
        check(silent(), Probe::Unreachable, ConditionStatus::False);
    }

    /// Karmada: `cluster_status_controller.go:getClusterHealthStatus`, where client-go makes an error of every status
    /// but 200 to 206.
    #[test]
    fn only_200_is_ready_and_the_rest_of_the_successes_is_reachable() {
        for (status, expected) in [
            (200, Probe::Ready),
            (201, Probe::NotReady),
            (206, Probe::NotReady),
            (199, Probe::Unreachable),
            (207, Probe::Unreachable),
            (301, Probe::Unreachable),
            (404, Probe::Unreachable),
            (503, Probe::Unreachable),
        ] {
            assert_eq!(Probe::from_http_status(status), expected, "{status}");
        }
    }

    #[test]
    fn another_reason_for_the_same_status_counts_at_once() {
        let (mut debounce, now) = (ReadyDebounce::default(), Time::from_millis(10_000));
        let stored = Probe::Unreachable.condition(Time::from_millis(0));
        // The threshold of a change to True runs.
        debounce.adjust("m", Probe::Ready.condition(now), Some(&stored), THRESHOLDS, now);
        let observed = Probe::NotReady.condition(now);
        let written = debounce.adjust("m", observed.clone(), Some(&stored), THRESHOLDS, now);
        assert_eq!(written, observed);
    }

    #[test]
    fn the_last_probe_of_a_cluster_is_known_until_the_cluster_is_deleted() {
        let (mut debounce, mut current) = (ReadyDebounce::default(), None);
        observe(&mut debounce, Probe::Ready, &mut current, 0);
        assert!(debounce.was_ready("m") && !debounce.was_ready("other"));
        observe(&mut debounce, Probe::Unreachable, &mut current, 10);
        assert!(!debounce.was_ready("m"), "the stored condition is still True");
        observe(&mut debounce, Probe::Ready, &mut current, 20);
        // A new cluster of the same name has no threshold in progress.
        debounce.forget("m");
        let unknown = ConditionStatus::Unknown;
        let mut current = Some(Condition::new("Ready", unknown, "R", "", Time::from_millis(0)));
        assert_eq!(
            observe(&mut debounce, Probe::Ready, &mut current, 21),
            ConditionStatus::True
        );
    }

    #[test]
    fn each_direction_has_its_own_threshold() {
        let thresholds = Thresholds {
            success_s: 10,
            failure_s: 60,
        };
        let changes_after = |stored: Probe, probe: Probe| {
            let (mut debounce, stored) = (ReadyDebounce::default(), stored.condition(Time::from_millis(0)));
            (0..100).find(|second| {
                let now = Time::from_millis(second * 1000);
                let written = debounce.adjust("m", probe.condition(now), Some(&stored), thresholds, now);
                written.status != stored.status
            })
        };
        assert_eq!(changes_after(Probe::Unreachable, Probe::Ready), Some(10));
        assert_eq!(changes_after(Probe::Ready, Probe::Unreachable), Some(60));
    }
}
