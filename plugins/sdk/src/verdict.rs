//! Short ways to write verdicts.

use crate::{
    Addition, Assignment, Edit, EvictionVerdict, HealthState, HealthVerdict, HoldVerdict, Reason, Removal, TaintChange,
    TaintEffect,
};

impl Reason {
    /// A reason: one `CamelCase` word and a sentence.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl HealthVerdict {
    /// It does its work.
    pub fn healthy(reason: Reason) -> Self {
        Self { state: HealthState::Healthy, reason }
    }

    /// It does not.
    pub fn unhealthy(reason: Reason) -> Self {
        Self { state: HealthState::Unhealthy, reason }
    }

    /// The plugin cannot tell.
    pub fn unknown(reason: Reason) -> Self {
        Self { state: HealthState::Unknown, reason }
    }
}

impl EvictionVerdict {
    /// Holds until the host asks again by itself.
    pub fn hold(reason: Reason) -> Self {
        Self::Hold(HoldVerdict { reason, recheck_after_s: None })
    }

    /// Holds and asks to be asked again after that many seconds.
    pub fn hold_for(reason: Reason, recheck_after_s: u32) -> Self {
        Self::Hold(HoldVerdict { reason, recheck_after_s: Some(recheck_after_s) })
    }
}

impl TaintChange {
    /// Adds a taint with an empty value.
    pub fn add_taint(key: impl Into<String>, effect: TaintEffect, reason: Reason) -> Self {
        Self::Add(Addition { key: key.into(), value: String::new(), effect, reason })
    }

    /// Removes a taint.
    pub fn remove_taint(key: impl Into<String>, effect: TaintEffect, reason: Reason) -> Self {
        Self::Remove(Removal { key: key.into(), effect, reason })
    }
}

impl Edit {
    /// Writes a value, given as JSON text, at a JSON Pointer.
    pub fn set_json(pointer: impl Into<String>, json: impl Into<String>) -> Self {
        Self::Set(Assignment { pointer: pointer.into(), json: json.into() })
    }
}
