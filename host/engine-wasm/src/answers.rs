//! From WIT values to replies.

use bulkhead_core::call::{EvictionVerdict, FilterVerdict, HealthVerdict, Reason, TaintChange};
use bulkhead_core::model::{Health, Taint, TaintEffect};
use bulkhead_core::policy::{Fault, FaultKind};

use crate::bindings::bulkhead::policy::types;
use crate::bindings::exports::bulkhead::policy::{eviction, filter, health, taints};

/// The fault that a guest's own error amounts to.
pub(crate) fn guest_error(error: types::PolicyError) -> Fault {
    let message = match error {
        types::PolicyError::Unsupported => "the plugin does not handle this".to_owned(),
        types::PolicyError::InvalidConfig(message) => format!("invalid configuration: {message}"),
        types::PolicyError::Internal(message) => message,
    };
    Fault::new(FaultKind::GuestError, message)
}

fn reason(reason: types::Reason) -> Reason {
    Reason { code: reason.code, message: reason.message }
}

fn effect(effect: types::TaintEffect) -> TaintEffect {
    match effect {
        types::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
        types::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        types::TaintEffect::NoExecute => TaintEffect::NoExecute,
    }
}

pub(crate) fn health(verdict: health::Verdict) -> HealthVerdict {
    let health = match verdict.state {
        health::State::Healthy => Health::Healthy,
        health::State::Unhealthy => Health::Unhealthy,
        health::State::Unknown => Health::Unknown,
    };
    HealthVerdict { health, reason: reason(verdict.reason) }
}

pub(crate) fn taint_change(change: taints::Change) -> TaintChange {
    match change {
        taints::Change::Add(added) => TaintChange::Add {
            taint: Taint { key: added.key, value: added.value, effect: effect(added.effect), time_added: None },
            reason: reason(added.reason),
        },
        taints::Change::Remove(removed) => {
            TaintChange::Remove { key: removed.key, effect: effect(removed.effect), reason: reason(removed.reason) }
        }
    }
}

pub(crate) fn filter(verdict: filter::Verdict) -> FilterVerdict {
    match verdict {
        filter::Verdict::Fit => FilterVerdict::Fit,
        filter::Verdict::Unfit(why) => FilterVerdict::Unfit(reason(why)),
        filter::Verdict::Abstain => FilterVerdict::Abstain,
    }
}

pub(crate) fn eviction(verdict: eviction::Verdict) -> EvictionVerdict {
    match verdict {
        eviction::Verdict::Release(why) => EvictionVerdict::Release(reason(why)),
        eviction::Verdict::Hold(hold) => {
            EvictionVerdict::Hold { reason: reason(hold.reason), recheck_after_s: hold.recheck_after_s }
        }
        eviction::Verdict::Abstain => EvictionVerdict::Abstain,
    }
}
