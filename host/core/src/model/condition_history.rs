//! What the conditions of a cluster were before, as far as anybody remembers.
//!
//! A condition says when its status last changed and nothing about what was before. Whoever asks "for how long has it
//! been False or Unknown", or "does it flap", needs more. The history is kept on the Cluster itself, in an annotation,
//! so that it is there after a restart and every plugin sees it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionStatus};
use crate::time::Time;

/// Most changes that are remembered of one type of condition.
const CHANGES_MAX: usize = 8;
/// Most types of condition that are remembered: third parties may write any number of them.
const TYPES_MAX: usize = 32;

/// A status and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionChange {
    /// The status.
    pub status: ConditionStatus,
    /// When it began. Two changes in a row with the same status mean that another one in between was not seen.
    pub since: Time,
}

/// Changes of conditions by type, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConditionHistory(BTreeMap<String, Vec<ConditionChange>>);

impl ConditionHistory {
    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changes of a type, the oldest first.
    pub fn changes(&self, type_: &str) -> &[ConditionChange] {
        self.0.get(type_).map_or(&[], Vec::as_slice)
    }

    /// Takes note of the conditions as they are. A condition without a transition time began now; one whose time lies
    /// before the last change began with that change. What lies ahead, because a clock was set back, is now. Returns
    /// whether anything is new.
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
            let told = condition.last_transition_time.filter(|told| !ahead(told)).map(Time::truncated);
            let since = match (last, told) {
                (Some(last), Some(told)) => told.max(last.since),
                (Some(last), None) if last.status == condition.status => last.since,
                (_, None) => now.truncated(),
                (None, Some(told)) => told,
            };
            let change = ConditionChange { status: condition.status, since };
            if last != Some(change) {
                changes.push(change);
                let surplus = changes.len().saturating_sub(CHANGES_MAX);
                changes.drain(..surplus);
            }
        }
        *self != before
    }

    /// How often the conditions of these types changed in the last so many seconds; of several the one that did most.
    pub fn changes_within(&self, types: &[&str], seconds: i64, now: Time) -> usize {
        let recent = |changes: &[ConditionChange]| {
            // The first one that is remembered is where memory begins, not a change.
            changes.iter().skip(1).filter(|change| change.since.plus_seconds(seconds) > now).count()
        };
        types.iter().map(|type_| recent(self.changes(type_))).max().unwrap_or(0)
    }

    /// Since when `holds` has given the answer that it gives for the conditions as they are. It is asked with the
    /// status of each of `types`, none where there was no such condition. With nothing remembered the answer is
    /// as old as can be.
    pub fn held_since(&self, types: &[&str], holds: impl Fn(&[Option<ConditionStatus>]) -> bool) -> Time {
        let moments: BTreeSet<Time> =
            types.iter().flat_map(|type_| self.changes(type_)).map(|change| change.since).collect();
        let at = |moment: Time| {
            let status = |type_: &&str| {
                let changes = self.changes(type_);
                changes.iter().rev().find(|change| change.since <= moment).map(|change| change.status)
            };
            holds(&types.iter().map(status).collect::<Vec<_>>())
        };
        let gap = |moment: Time| {
            let is_gap = |pair: &[ConditionChange]| matches!(pair, [before, after] if after.since == moment && before.status == after.status);
            types.iter().any(|type_| self.changes(type_).windows(2).any(is_gap))
        };
        let Some(now) = moments.last().map(|last| at(*last)) else { return Time::from_millis(0) };
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
        // Before the first change that is remembered nobody knows, so the answer is no older than that.
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

    /// The history after these statuses of Ready began at these times.
    fn history(ready: &[(&str, i64)]) -> ConditionHistory {
        let mut history = ConditionHistory::default();
        for (status, since_s) in ready {
            history.observe(&[condition("Ready", status, Some(*since_s))], at(*since_s));
        }
        history
    }

    fn is_down(statuses: &[Option<ConditionStatus>]) -> bool {
        statuses.iter().all(|status| status.is_some_and(|status| status != ConditionStatus::True))
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
        // It was something else between 20 and 30, and nobody saw it.
        check(&[("True", 10), ("False", 20), ("False", 30)], 30);
    }

    #[test]
    fn several_conditions_hold_together_since_the_last_of_them_began_to() {
        let mut history = ConditionHistory::default();
        history.observe(&[condition("Ready", "False", Some(10)), condition("Disk", "True", Some(5))], at(10));
        history.observe(&[condition("Ready", "False", Some(10)), condition("Disk", "False", Some(30))], at(30));
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
        assert!(!history.observe(&ahead, at(60)), "it does not begin again with every look");
        assert_eq!(history.held_since(&["Ready"], is_down), at(50));
    }
}
