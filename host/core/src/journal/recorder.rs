//! Recording of policy calls during a decision, and their replay.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::recorded_reply::RecordedReply;
use crate::call::{Call, CallKind, Reply};
use crate::composition::{Composition, Mode};
use crate::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyEntry, PolicyId, PolicySet};

/// Policy that could be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySlot {
    /// Identity of the policy.
    pub policy: PolicyId,
    /// Digests of code and configuration; absent for compiled-in policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Participation in decisions.
    #[serde(default, skip_serializing_if = "is_enforced")]
    pub mode: Mode,
    /// Factor by which its scores are multiplied.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Kinds of calls that it answers, among those that the decision can make.
    pub answers: Vec<CallKind>,
}

fn is_enforced(mode: &Mode) -> bool {
    *mode == Mode::Enforce
}

fn one() -> u32 {
    1
}

fn is_one(weight: &u32) -> bool {
    *weight == 1
}

/// Recorded call with its reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedCall {
    /// Index of the called policy in the list of slots, from 0.
    #[serde(rename = "seat")]
    pub slot: usize,
    /// Kind of the call.
    pub kind: CallKind,
    /// Short description of the input: a cluster, an object or the number of clusters.
    pub about: String,
    /// Reply to the call.
    #[serde(rename = "answer")]
    pub reply: RecordedReply,
}

/// Recorder of the policy calls of one decision.
#[derive(Debug)]
pub struct CallRecorder {
    slots: Vec<PolicySlot>,
    composition: Composition,
    calls: Arc<Mutex<Vec<RecordedCall>>>,
}

impl CallRecorder {
    /// Wraps the policies so that every call of these kinds is recorded. `keeps` returns true for the policies to
    /// record; the others remain unwrapped.
    pub fn start(policies: &PolicySet, kinds: &[CallKind], keeps: impl Fn(&dyn Policy) -> bool) -> (PolicySet, Self) {
        let calls: Arc<Mutex<Vec<RecordedCall>>> = Arc::default();
        let mut slots = Vec::new();
        let entries = policies.entries().iter().map(|entry| {
            let answers = answered(entry.policy.as_ref(), kinds);
            if answers.is_empty() || entry.mode == Mode::Off || !keeps(entry.policy.as_ref()) {
                return entry.clone();
            }
            let recording = RecordingPolicy {
                inner: Arc::clone(&entry.policy),
                slot: slots.len(),
                calls: Arc::clone(&calls),
            };
            let (policy, build) = (entry.policy.id().clone(), entry.policy.build().cloned());
            slots.push(PolicySlot {
                policy,
                build,
                mode: entry.mode,
                weight: entry.weight,
                answers,
            });
            PolicyEntry {
                policy: Arc::new(recording),
                ..entry.clone()
            }
        });
        let set = PolicySet::composed(entries.collect(), policies.composition());
        (
            set,
            Self {
                slots,
                composition: policies.composition(),
                calls,
            },
        )
    }

    /// Returns the policy slots, the rules that combine replies, and the calls recorded so far, in order.
    pub fn finish(self) -> (Vec<PolicySlot>, Composition, Vec<RecordedCall>) {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        (self.slots, self.composition, calls)
    }
}

fn answered(policy: &dyn Policy, kinds: &[CallKind]) -> Vec<CallKind> {
    let mut answers: Vec<_> = policy.capabilities().iter().map(|capability| capability.kind).collect();
    answers.retain(|kind| kinds.contains(kind));
    answers.sort_unstable();
    answers.dedup();
    answers
}

/// Policy whose calls are recorded.
struct RecordingPolicy {
    inner: Arc<dyn Policy>,
    slot: usize,
    calls: Arc<Mutex<Vec<RecordedCall>>>,
}

impl Policy for RecordingPolicy {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let answer = self.inner.call(call);
        if let Some(kept) = RecordedReply::of(&answer) {
            let recorded = RecordedCall {
                slot: self.slot,
                kind: call.kind(),
                about: about(call),
                reply: kept,
            };
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(recorded);
        }
        answer
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}

/// Returns a description of the call's input. If a policy can answer two calls of one decision differently, their
/// descriptions differ or a replay makes them in the same order.
fn about(call: &Call<'_>) -> String {
    match call {
        Call::Health(call) => {
            let text = |pointer| {
                call.object
                    .pointer(pointer)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
            };
            format!(
                "{} {}/{}",
                text("/kind"),
                text("/metadata/namespace"),
                text("/metadata/name")
            )
        }
        Call::ClusterTaint(call) => call.cluster.name.clone(),
        Call::Filter(call) => format!("{} clusters", call.clusters.len()),
        Call::Score(call) => format!("{} clusters", call.clusters.len()),
        Call::EvictionCheck(call) => call.task.from_cluster.clone(),
        Call::Interpret(call) => call.operation.name().to_owned(),
    }
}

/// Policy that replays its recorded replies.
pub(super) struct ReplayingPolicy {
    id: PolicyId,
    capabilities: Vec<Capability>,
    build: Option<Build>,
    answers: Mutex<VecDeque<RecordedCall>>,
}

impl ReplayingPolicy {
    /// Creates the policy for a slot; `calls` are the recorded calls of the whole decision.
    pub(super) fn new(position: usize, slot: &PolicySlot, calls: &[RecordedCall]) -> Self {
        let own = calls.iter().filter(|recorded| recorded.slot == position);
        Self {
            id: slot.policy.clone(),
            capabilities: slot.answers.iter().map(|kind| Capability::any(*kind)).collect(),
            build: slot.build.clone(),
            answers: Mutex::new(own.cloned().collect()),
        }
    }
}

impl Policy for ReplayingPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let position = answers
            .iter()
            .position(|recorded| recorded.kind == call.kind() && recorded.about == about(call));
        let recorded = position.and_then(|position| answers.remove(position));
        let unknown = || {
            Fault::new(
                FaultKind::NotLoaded,
                format!("the record has no answer about {}", about(call)),
            )
        };
        recorded.ok_or_else(unknown)?.reply.to_reply()
    }

    fn build(&self) -> Option<&Build> {
        self.build.as_ref()
    }
}
