use crate::model::ConditionStatus;

/// Reason why a binding was not scheduled. Uses Karmada's messages where they exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No cluster passed the filters: the result is cleared, and only a change triggers another attempt.
    #[error("{0}")]
    NoClusterFit(String),
    /// The selection failed: the result stays, and the attempt is retried.
    #[error("failed to select clusters: {0}")]
    Select(String),
    /// The assignment failed: the result stays, and the attempt is retried.
    #[error("failed to assign replicas: {0}")]
    Assign(String),
    /// The capacity is insufficient: the result stays, and the attempt is retried after a change or after five
    /// minutes.
    #[error("failed to assign replicas: {0}")]
    Unschedulable(String),
    /// The binding is invalid for scheduling: the result stays, and the attempt is retried.
    #[error("{0}")]
    BadInput(String),
    /// The binding has no placement.
    #[error("the binding has no placement")]
    NoPlacement,
}

/// Failed write of the result to the binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WriteError {
    /// Message of the API server.
    pub message: String,
    /// True if a quota was exceeded: status 403 with reason `QuotaExceeded`.
    pub quota_exceeded: bool,
}

/// Time of the next scheduling attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After a change only.
    Forget,
    /// After a change, or after five minutes.
    Unschedulable,
    /// After a backoff of 1 to 10 seconds, see [`super::backoff`].
    Backoff,
}

/// `Scheduled` condition that results from an attempt, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Karmada's reason for this status.
    pub reason: &'static str,
    /// Human-readable message.
    pub message: String,
    /// Time of the next attempt.
    pub retry: Retry,
}

/// Derives the condition from the results of decision and write (Karmada: `helper.go:getConditionByError`,
/// `scheduler.go:handleErr`).
pub(super) fn verdict(decided: Option<&ScheduleError>, written: Result<(), &WriteError>) -> Verdict {
    let failed = |reason, message: String, retry| Verdict {
        status: ConditionStatus::False,
        reason,
        message,
        retry,
    };
    match (decided, written) {
        (None, Ok(())) => Verdict {
            status: ConditionStatus::True,
            reason: "Success",
            message: "Binding has been scheduled successfully.".to_owned(),
            retry: Retry::Forget,
        },
        (None, Err(error)) => {
            let reason = if error.quota_exceeded {
                "QuotaExceeded"
            } else {
                "SchedulerError"
            };
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
