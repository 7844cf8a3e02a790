//! Disruptions of a member cluster by name, as in scenarios and annotations.

use std::time::Duration;

use bulkhead_apiserver::{LinkState, ReadyState};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::FailureMode;

/// Time for which a crash-looping replica stays ready.
const CRASH_AFTER: Duration = Duration::from_secs(20);

/// State of a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// The API server is unreachable, and requests of the agent fail. Workloads keep running.
    Unreachable,
    /// The API server responds, but `/readyz` returns 500.
    ReadyzFailing,
    /// The API server responds, but `/readyz` returns 202, which is neither ready nor unreachable.
    ReadyzDegraded,
    /// The cluster is ready again.
    Recover,
}

impl ClusterState {
    /// Returns the state of the link to the cluster.
    pub fn link(self) -> LinkState {
        if self == Self::Unreachable {
            LinkState::Down
        } else {
            LinkState::Up
        }
    }

    /// Returns the answer of the cluster's `/readyz`.
    pub fn ready(self) -> ReadyState {
        match self {
            Self::Unreachable | Self::Recover => ReadyState::Ready,
            Self::ReadyzFailing => ReadyState::Failing(500),
            Self::ReadyzDegraded => ReadyState::Failing(202),
        }
    }
}

/// Kind of workload failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadFailure {
    /// Replicas start but never become ready.
    NeverReady,
    /// Replicas become ready and fail again, repeatedly.
    CrashLoop,
    /// Image pulls fail.
    ImagePull,
}

impl From<WorkloadFailure> for FailureMode {
    fn from(failure: WorkloadFailure) -> Self {
        match failure {
            WorkloadFailure::NeverReady => Self::NeverReady,
            WorkloadFailure::CrashLoop => Self::CrashLoop { ready_for: CRASH_AFTER },
            WorkloadFailure::ImagePull => Self::ImagePull,
        }
    }
}
