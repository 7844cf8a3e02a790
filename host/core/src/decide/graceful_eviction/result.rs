//! State of the scheduling result of a binding.

use crate::model::{Binding, Condition, ConditionStatus};

/// State of a scheduling result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleResult {
    /// The scheduler has not finished this generation: scheduling is in progress or being retried.
    NoneYet,
    /// The scheduler found no cluster for the workload.
    Empty,
    /// All replicas are placed.
    Present,
}

/// Reads the state from the binding. Karmada does not advance the observed generation if no cluster fits, so an empty
/// result is visible only in the `Scheduled` condition.
pub fn schedule_result(binding: &Binding) -> ScheduleResult {
    let seen = binding.status.scheduler_observed_generation == binding.generation;
    match (seen, binding.spec.clusters.is_empty()) {
        (true, false) => ScheduleResult::Present,
        (seen, true) if seen || failed(binding) => ScheduleResult::Empty,
        _ => ScheduleResult::NoneYet,
    }
}

/// Returns true if the last scheduling attempt failed.
pub fn failed(binding: &Binding) -> bool {
    Condition::find(&binding.status.conditions, "Scheduled").is_some_and(|c| c.status == ConditionStatus::False)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TargetCluster;
    use crate::time::Time;

    #[test]
    fn an_empty_result_differs_from_a_missing_one() {
        let check = |observed, targets: usize, scheduled: Option<ConditionStatus>, expected| {
            let mut binding = Binding {
                generation: 3,
                ..Binding::default()
            };
            binding.status.scheduler_observed_generation = observed;
            binding.spec.clusters = vec![TargetCluster::new("m2", 1); targets];
            let condition = |status| Condition::new("Scheduled", status, "R", "", Time::from_millis(0));
            binding.status.conditions = scheduled.map(condition).into_iter().collect();
            assert_eq!(
                schedule_result(&binding),
                expected,
                "{observed} {targets} {scheduled:?}"
            );
        };
        check(3, 1, Some(ConditionStatus::True), ScheduleResult::Present);
        check(3, 0, Some(ConditionStatus::True), ScheduleResult::Empty);
        check(2, 0, Some(ConditionStatus::False), ScheduleResult::Empty);
        check(2, 0, Some(ConditionStatus::True), ScheduleResult::NoneYet);
        check(2, 0, None, ScheduleResult::NoneYet);
        check(2, 1, Some(ConditionStatus::False), ScheduleResult::NoneYet);
    }
}
