//! Constructors of verdicts.

use crate::{
    Addition, Assignment, Edit, EvictionVerdict, HealthState, HealthVerdict, HoldVerdict, Reason, Removal, TaintChange,
    TaintEffect,
};

impl Reason {
    /// Returns a reason: one `CamelCase` word and a sentence.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl HealthVerdict {
    /// Returns a healthy verdict.
    pub fn healthy(reason: Reason) -> Self {
        Self {
            state: HealthState::Healthy,
            reason,
        }
    }

    /// Returns an unhealthy verdict.
    pub fn unhealthy(reason: Reason) -> Self {
        Self {
            state: HealthState::Unhealthy,
            reason,
        }
    }

    /// Returns a verdict for health that cannot be determined.
    pub fn unknown(reason: Reason) -> Self {
        Self {
            state: HealthState::Unknown,
            reason,
        }
    }
}

impl EvictionVerdict {
    /// Returns a hold verdict; the host decides when to check again.
    pub fn hold(reason: Reason) -> Self {
        Self::Hold(HoldVerdict {
            reason,
            recheck_after_s: None,
        })
    }

    /// Returns a hold verdict with the time until the next check in seconds.
    pub fn hold_for(reason: Reason, recheck_after_s: u32) -> Self {
        Self::Hold(HoldVerdict {
            reason,
            recheck_after_s: Some(recheck_after_s),
        })
    }
}

impl TaintChange {
    /// Returns a change that adds a taint with an empty value.
    pub fn add_taint(key: impl Into<String>, effect: TaintEffect, reason: Reason) -> Self {
        Self::Add(Addition {
            key: key.into(),
            value: String::new(),
            effect,
            reason,
        })
    }

    /// Returns a change that removes a taint.
    pub fn remove_taint(key: impl Into<String>, effect: TaintEffect, reason: Reason) -> Self {
        Self::Remove(Removal {
            key: key.into(),
            effect,
            reason,
        })
    }
}

impl Edit {
    /// Returns an edit that writes a value, given as JSON text, at a JSON Pointer.
    pub fn set_json(pointer: impl Into<String>, json: impl Into<String>) -> Self {
        Self::Set(Assignment {
            pointer: pointer.into(),
            json: json.into(),
        })
    }
}
