use bulkhead_core::composition::Mode;
use bulkhead_core::policy::PolicyId;

use crate::{BreakerState, CallCounts, Digest, LoadError, LoadStage};

/// What became of one plugin of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStatus {
    /// Its name.
    pub name: String,
    /// The stage that its newest version reached, [`LoadStage::Active`], or the one that it failed.
    pub stage: LoadStage,
    /// Why the newest version is not in force.
    pub refused: Option<Refused>,
    /// The version in force, which is an older one when the newest was refused; absent when there is none.
    pub active: Option<PolicyId>,
    /// The digest of the code in force.
    pub digest: Option<Digest>,
    /// Whether its answers count.
    pub mode: Option<Mode>,
    /// What its breaker is doing.
    pub breaker: BreakerState,
    /// How often the version in force was called.
    pub counts: CallCounts,
}

/// A version that was not put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The stage that failed.
    pub stage: LoadStage,
    /// Where its code came from.
    pub origin: String,
    /// Why, and what would be right.
    pub message: String,
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Self {
        let LoadError { plugin: _, origin, stage, message } = error;
        Self { stage, origin, message }
    }
}
