//! Results of calls and their text form.

use bulkhead_core::call::{EvictionVerdict, FilterVerdict, Interpretation, Reason, Reply, TaintChange};
use bulkhead_core::policy::{Fault, FaultKind, Policy};

use crate::owned_call::OwnedCall;

/// Maximum length of a displayed answer, in characters.
const SHOWN_CHARS_MAX: usize = 300;

/// Result of a call with its cost.
#[derive(Clone, Debug)]
pub(crate) struct CallResult {
    /// Reply or fault that the policy returned.
    pub(crate) reply: Result<Reply, Fault>,
    /// Steps used; 0 if the engine does not meter.
    pub(crate) steps: u64,
}

/// Calls the policy and measures its steps. Concurrent calls of the same policy would be counted as well.
pub(crate) fn ask(policy: &dyn Policy, call: &OwnedCall) -> CallResult {
    let before = policy.usage().steps;
    let reply = call
        .with_call(|call| policy.call(call))
        .map(|reply| call.in_own_order(reply));
    CallResult {
        reply,
        steps: policy.usage().steps.saturating_sub(before),
    }
}

impl CallResult {
    /// Returns the fault, if the call failed.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.reply.as_ref().err()
    }

    /// True if the policy has no opinion on the call.
    pub(crate) fn is_abstention(&self) -> bool {
        match &self.reply {
            Ok(reply) => matches!(reply, Reply::Interpret(None)),
            Err(fault) => fault.kind == FaultKind::Unsupported,
        }
    }

    /// True if both answers mean the same. The message of a fault is not compared.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.reply, &other.reply) {
            (Ok(one), Ok(other)) => one == other,
            (Err(one), Err(other)) => one.kind == other.kind,
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        }
    }

    /// Describes how `other` differs. For two lists, the first elements that differ are named.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let lists = match (&self.reply, &other.reply) {
            (Ok(Reply::Filter(one)), Ok(Reply::Filter(other))) => first_difference(one, other, filter_verdict),
            (Ok(Reply::Score(one)), Ok(Reply::Score(other))) => first_difference(one, other, ToString::to_string),
            _ => None,
        };
        lists.unwrap_or_else(|| format!("{} first, then {}", shown(&self.reply), shown(&other.reply)))
    }
}

fn first_difference<T: PartialEq>(one: &[T], other: &[T], show: impl Fn(&T) -> String) -> Option<String> {
    let (index, (one, other)) = one
        .iter()
        .zip(other)
        .enumerate()
        .find(|(_, (one, other))| one != other)?;
    Some(format!("{} first, then {} for cluster {index}", show(one), show(other)))
}

/// Returns the machine-readable name of a fault kind.
pub(crate) fn fault_name(kind: FaultKind) -> String {
    let name = serde_json::to_value(kind).ok();
    name.and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_else(|| kind.code().to_owned())
}

/// Formats an answer in one line.
pub(crate) fn shown(reply: &Result<Reply, Fault>) -> String {
    let text = match reply {
        Ok(Reply::Health(verdict)) => format!("{} ({})", verdict.health.as_str(), verdict.reason),
        Ok(Reply::ClusterTaint(verdict)) if verdict.changes.is_empty() => "no changes of taints".to_owned(),
        Ok(Reply::ClusterTaint(verdict)) => verdict.changes.iter().map(taint_change).collect::<Vec<_>>().join(", "),
        Ok(Reply::Filter(verdicts)) => verdicts.iter().map(filter_verdict).collect::<Vec<_>>().join(", "),
        Ok(Reply::Score(scores)) => format!("{scores:?}"),
        Ok(Reply::EvictionCheck(verdict)) => eviction_verdict(verdict),
        Ok(Reply::Interpret(None)) => "no rule".to_owned(),
        Ok(Reply::Interpret(Some(answer))) => interpretation(answer).to_string(),
        Err(fault) => format!("the fault {} ({fault})", fault_name(fault.kind)),
    };
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text;
    }
    text.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}

fn taint_change(change: &TaintChange) -> String {
    match change {
        TaintChange::Add { taint, reason } => format!("add {taint} ({reason})"),
        TaintChange::Remove { key, effect, reason } => format!("remove {key}:{} ({reason})", effect.as_str()),
    }
}

/// Formats a verdict on one cluster.
pub(crate) fn filter_verdict(verdict: &FilterVerdict) -> String {
    match verdict {
        FilterVerdict::Fit => "fit".to_owned(),
        FilterVerdict::Unfit(reason) => format!("unfit ({reason})"),
        FilterVerdict::Abstain => "abstain".to_owned(),
    }
}

fn eviction_verdict(verdict: &EvictionVerdict) -> String {
    match verdict {
        EvictionVerdict::Release(reason) => format!("release ({reason})"),
        EvictionVerdict::Hold {
            reason,
            recheck_after_s: None,
        } => format!("hold ({reason})"),
        EvictionVerdict::Hold {
            reason,
            recheck_after_s: Some(seconds),
        } => {
            format!("hold ({reason}; again after {seconds} s)")
        }
        EvictionVerdict::Abstain => "abstain".to_owned(),
    }
}

/// Returns the JSON form of an interpretation: replicas as `{"replicas": 3, "requirements": {…}}`, everything else
/// unchanged.
pub(crate) fn interpretation(answer: &Interpretation) -> serde_json::Value {
    use serde_json::{Value, json, to_value};
    match answer {
        Interpretation::Replicas {
            replicas,
            requirements: None,
        } => json!({"replicas": replicas}),
        Interpretation::Replicas {
            replicas,
            requirements: Some(requirements),
        } => {
            json!({"replicas": replicas, "requirements": requirements})
        }
        Interpretation::Components(components) => to_value(components).unwrap_or_default(),
        Interpretation::Object(object) => object.clone(),
        Interpretation::Status(status) => status.clone().unwrap_or(Value::Null),
        Interpretation::Dependencies(dependencies) => to_value(dependencies).unwrap_or_default(),
    }
}

/// Returns every reason in a reply.
pub(crate) fn reasons(reply: &Reply) -> Vec<&Reason> {
    match reply {
        Reply::Health(verdict) => vec![&verdict.reason],
        Reply::ClusterTaint(verdict) => verdict.changes.iter().map(reason_of_change).collect(),
        Reply::Filter(verdicts) => verdicts.iter().filter_map(reason_of_filter).collect(),
        Reply::EvictionCheck(EvictionVerdict::Release(reason) | EvictionVerdict::Hold { reason, .. }) => vec![reason],
        Reply::EvictionCheck(EvictionVerdict::Abstain) | Reply::Score(_) | Reply::Interpret(_) => Vec::new(),
    }
}

fn reason_of_change(change: &TaintChange) -> &Reason {
    match change {
        TaintChange::Add { reason, .. } | TaintChange::Remove { reason, .. } => reason,
    }
}

fn reason_of_filter(verdict: &FilterVerdict) -> Option<&Reason> {
    match verdict {
        FilterVerdict::Unfit(reason) => Some(reason),
        FilterVerdict::Fit | FilterVerdict::Abstain => None,
    }
}
