//! Bounded history of a cluster's conditions.
//!
//! A condition has the time of its last status change, but not the statuses before it. Questions such as "for how
//! long has it been False or Unknown" or "does it flap" need more. The history is kept on the Cluster in an
//! annotation, so it survives restarts and is visible to every plugin.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionStatus};
use crate::time::Time;

/// Maximum number of changes kept per condition type.
const CHANGES_MAX: usize = 8;
/// Maximum number of condition types kept; third parties may write any number of them.
const TYPES_MAX: usize = 32;

/// Status with its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionChange {
    /// The status.
    pub status: ConditionStatus,
    /// Start time. Two successive changes with the same status mean that a status in between was not observed.
    pub since: Time,
}

/// Changes of conditions by type, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConditionHistory(BTreeMap<String, Vec<ConditionChange>>);

impl ConditionHistory {
    /// Returns true if the history is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the changes of a condition type, oldest first.
    pub fn changes(&self, type_: &str) -> &[ConditionChange] {
        self.0.get(type_).map_or(&[], Vec::as_slice)
    }

    /// Records the current conditions. A changed condition without a transition time starts at `now`. A start time
    /// before the last recorded change is raised to that change. Times in the future, which a clock that was set back
    /// can cause, are replaced by `now`. Returns true if the history changed.
    pub fn observe(&mut self, conditions: &[Condition], now: Time) -> bool {
        let before = self.clone();
        self.0.retain(|type_, _| Condition::find(conditions, type_).is_some());
        let ahead = |time: &Time| *time > now;
        for change in self.0.values_mut().flatten().filter(|change| ahead(&change.since)) {
            change.since = now.truncated();
        }
        for condition in conditions {
            if !self.0.contains_key(&condition.type_) && self.0.len() >= TYPES_MAX {
                continue;
            }
            let changes = self.0.entry(condition.type_.clone()).or_default();
            let last = changes.last().copied();
            let reported = condition
                .last_transition_time
                .filter(|reported| !ahead(reported))
                .map(Time::truncated);
            let since = match (last, reported) {
                (Some(last), Some(reported)) => reported.max(last.since),
                (Some(last), None) if last.status == condition.status => last.since,
                (_, None) => now.truncated(),
                (None, Some(reported)) => reported,
            };
            let change = ConditionChange {
                status: condition.status,
                since,
            };
            if last != Some(change) {
                changes.push(change);
                let surplus = changes.len().saturating_sub(CHANGES_MAX);
                changes.drain(..surplus);
            }
        }
        *self != before
    }

    /// Returns the number of status changes within the last `seconds`, as the maximum over `types`.
    pub fn changes_within(&self, types: &[&str], seconds: i64, now: Time) -> usize {
        let recent = |changes: &[ConditionChange]| {
            // The first entry marks the start of the history and is not a change.
            changes
                .iter()
                .skip(1)
                .filter(|change| change.since.plus_seconds(seconds) > now)
                .count()
        };
        types.iter().map(|type_| recent(self.changes(type_))).max().unwrap_or(0)
    }

    /// Returns the time since which `holds` has returned its current result. `holds` takes the status of each of
    /// `types`, `None` for a condition that did not exist. Without any history, returns the Unix epoch.
    pub fn held_since(&self, types: &[&str], holds: impl Fn(&[Option<ConditionStatus>]) -> bool) -> Time {
        let moments: BTreeSet<Time> = types
            .iter()
            .flat_map(|type_| self.changes(type_))
            .map(|change| change.since)
            .collect();
        let at = |moment: Time| {
            let status = |type_: &&str| {
                let changes = self.changes(type_);
                changes
                    .iter()
                    .rev()
                    .find(|change| change.since <= moment)
                    .map(|change| change.status)
            };
            holds(&types.iter().map(status).collect::<Vec<_>>())
        };
        let gap = |moment: Time| {
            let is_gap = |pair: &[ConditionChange]| matches!(pair, [before, after] if after.since == moment && before.status == after.status);
            types.iter().any(|type_| self.changes(type_).windows(2).any(is_gap))
        };
        let Some(now) = moments.last().map(|last| at(*last)) else {
            return Time::from_millis(0);
        };
        let mut since = Time::from_millis(0);
        for moment in moments.iter().rev() {
            if at(*moment) != now {
                return since;
            }
            since = *moment;
            if gap(*moment) {
                return since;
            }
        }
        // The state before the first recorded change is unknown, so the result is no older than that change.
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn condition(type_: &str, status: &str, since_s: Option<i64>) -> Condition {
        let status = match status {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        let mut condition = Condition::new(type_, status, "R", "m", at(0));
        condition.last_transition_time = since_s.map(at);
        condition
    }

    /// Returns the history of a Ready condition with the given statuses and start times.
    fn history(ready: &[(&str, i64)]) -> ConditionHistory {
        let mut history = ConditionHistory::default();
        for (status, since_s) in ready {
            history.observe(&[condition("Ready", status, Some(*since_s))], at(*since_s));
        }
        history
    }

    fn is_down(statuses: &[Option<ConditionStatus>]) -> bool {
        statuses
            .iter()
            .all(|status| status.is_some_and(|status| status != ConditionStatus::True))
    }

    #[test]
    fn a_match_lasts_over_changes_between_statuses_that_match() {
        let check = |ready: &[(&str, i64)], since_s: i64| {
            assert_eq!(history(ready).held_since(&["Ready"], is_down), at(since_s), "{ready:?}");
        };
        check(&[], 0);
        check(&[("False", 10)], 10);
        check(&[("True", 10), ("False", 20)], 20);
        check(&[("True", 10), ("False", 20), ("Unknown", 30), ("False", 40)], 20);
        check(&[("False", 20), ("True", 30)], 30);
        // The status changed between 20 and 30 without being observed.
        check(&[("True", 10), ("False", 20), ("False", 30)], 30);
    }

    #[test]
    fn several_conditions_hold_together_since_the_last_of_them_began_to() {
        let mut history = ConditionHistory::default();
        history.observe(
            &[
                condition("Ready", "False", Some(10)),
                condition("Disk", "True", Some(5)),
            ],
            at(10),
        );
        history.observe(
            &[
                condition("Ready", "False", Some(10)),
                condition("Disk", "False", Some(30)),
            ],
            at(30),
        );
        assert_eq!(history.held_since(&["Ready", "Disk"], is_down), at(30));
        assert_eq!(history.held_since(&["Ready"], is_down), at(10));
        assert_eq!(history.held_since(&["Gone"], is_down), at(0));
    }

    #[test]
    fn what_is_known_is_not_written_again_and_memory_is_bounded() {
        let mut history = history(&[("True", 10)]);
        assert!(!history.observe(&[condition("Ready", "True", Some(10))], at(99)));
        assert!(!history.observe(&[condition("Ready", "True", None)], at(99)));
        for second in 20..60 {
            let status = if second % 2 == 0 { "False" } else { "True" };
            assert!(history.observe(&[condition("Ready", status, Some(second))], at(second)));
        }
        assert_eq!(history.changes("Ready").len(), CHANGES_MAX);
        assert_eq!(history.changes_within(&["Ready"], 5, at(59)), 5);
        assert_eq!(history.changes_within(&["Ready"], 600, at(59)), CHANGES_MAX - 1);
        assert!(history.observe(&[], at(60)));
        assert!(history.is_empty());
    }

    #[test]
    fn a_clock_that_goes_back_makes_nothing_older_than_now() {
        let mut history = history(&[("True", 100)]);
        history.observe(&[condition("Ready", "False", Some(40))], at(40));
        assert_eq!(history.held_since(&["Ready"], is_down), at(40));
    }

    #[test]
    fn what_was_noted_while_a_clock_was_ahead_counts_from_when_it_is_put_right() {
        let mut history = history(&[("True", 10), ("False", 900)]);
        let ahead = [condition("Ready", "False", Some(900))];
        assert!(history.observe(&ahead, at(50)));
        assert_eq!(history.held_since(&["Ready"], is_down), at(50));
        assert!(
            !history.observe(&ahead, at(60)),
            "it does not begin again with every look"
        );
        assert_eq!(history.held_since(&["Ready"], is_down), at(50));
    }
}
