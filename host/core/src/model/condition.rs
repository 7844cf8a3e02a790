use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `metav1.ConditionStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status cannot be determined.
    Unknown,
}

impl ConditionStatus {
    /// Returns the wire spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, for example `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Generation of the object that the condition was computed from; 0 if not tracked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Time of the last change of `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Machine-readable reason.
    #[serde(default)]
    pub reason: String,
    /// Human-readable message.
    #[serde(default)]
    pub message: String,
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

impl Condition {
    /// Creates a condition with transition time `now`.
    pub fn new(type_: &str, status: ConditionStatus, reason: &str, message: impl Into<String>, now: Time) -> Self {
        Self {
            type_: type_.to_owned(),
            status,
            observed_generation: 0,
            last_transition_time: Some(now),
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Returns the condition with that type.
    pub fn find<'a>(conditions: &'a [Self], type_: &str) -> Option<&'a Self> {
        conditions.iter().find(|condition| condition.type_ == type_)
    }
}

/// Sets a condition by type. The transition time changes only with `status`; reason and message are always
/// overwritten. Returns true if anything changed. (Kubernetes: `meta.SetStatusCondition`.)
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|condition| condition.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time;
    }
    let changed = *old != new;
    *old = new;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let (early, late) = (Time::from_millis(0), Time::from_millis(5_000));
        let mut conditions = vec![Condition::new("Ready", ConditionStatus::True, "A", "a", early)];
        assert!(set_condition(
            &mut conditions,
            Condition::new("Ready", ConditionStatus::True, "B", "b", late)
        ));
        assert_eq!(conditions[0].last_transition_time, Some(early));
        assert!(!set_condition(
            &mut conditions,
            Condition::new("Ready", ConditionStatus::True, "B", "b", late)
        ));
        assert!(set_condition(
            &mut conditions,
            Condition::new("Ready", ConditionStatus::False, "B", "b", late)
        ));
        assert_eq!(conditions[0].last_transition_time, Some(late));
    }
}
