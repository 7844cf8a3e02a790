use crate::model::ConditionStatus;

/// Why nothing was scheduled. The text is Karmada's where Karmada has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No cluster passed the filters: the result is cleared, and only a change brings another attempt.
    #[error("{0}")]
    NoClusterFit(String),
    /// The selection failed: the result stays, and the attempt is repeated.
    #[error("failed to select clusters: {0}")]
    Select(String),
    /// The assignment failed: the result stays, and the attempt is repeated.
    #[error("failed to assign replicas: {0}")]
    Assign(String),
    /// There is not enough room: the result stays, and the attempt is repeated when something changes, or after
    /// five minutes.
    #[error("failed to assign replicas: {0}")]
    Unschedulable(String),
    /// The binding says something that cannot be scheduled: the result stays, and the attempt is repeated.
    #[error("{0}")]
    BadInput(String),
    /// The binding has no placement.
    #[error("the binding has no placement")]
    NoPlacement,
}

/// Why the result could not be written to the binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WriteError {
    /// What the API server said.
    pub message: String,
    /// Whether it refused because of a quota: status 403 with reason `QuotaExceeded`.
    pub quota_exceeded: bool,
}

/// When a binding is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before something changes.
    Forget,
    /// When something changes, or after five minutes.
    Unschedulable,
    /// After a back-off of 1 to 10 seconds, see [`super::backoff`].
    Backoff,
}

/// The `Scheduled` condition that follows from an attempt, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is scheduled.
    pub status: ConditionStatus,
    /// Karmada's word for why not.
    pub reason: &'static str,
    /// The text.
    pub message: String,
    /// When to look again.
    pub retry: Retry,
}

/// Karmada: `helper.go:getConditionByError` and `scheduler.go:handleErr`.
pub(super) fn verdict(decided: Option<&ScheduleError>, written: Result<(), &WriteError>) -> Verdict {
    let failed = |reason, message: String, retry| Verdict { status: ConditionStatus::False, reason, message, retry };
    match (decided, written) {
        (None, Ok(())) => Verdict {
            status: ConditionStatus::True,
            reason: "Success",
            message: "Binding has been scheduled successfully.".to_owned(),
            retry: Retry::Forget,
        },
        (None, Err(error)) => {
            let reason = if error.quota_exceeded { "QuotaExceeded" } else { "SchedulerError" };
            failed(reason, error.to_string(), Retry::Backoff)
        }
        (Some(error @ ScheduleError::NoClusterFit(_)), Ok(())) => {
            failed("NoClusterFit", error.to_string(), Retry::Forget)
        }
        (Some(error @ ScheduleError::NoClusterFit(_)), Err(refused)) => {
            failed("NoClusterFit", format!("[{error}, {refused}]"), Retry::Backoff)
        }
        (Some(error @ ScheduleError::Unschedulable(_)), _) => {
            failed("Unschedulable", error.to_string(), Retry::Unschedulable)
        }
        (Some(error), _) => failed("SchedulerError", error.to_string(), Retry::Backoff),
    }
}
