//! What policies were asked while a decision was made, and the same policies again when it is replayed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use crate::call::{Call, CallKind, Reply};
use crate::composition::{Composition, Mode};
use crate::policy::{Build, Capability, Fault, FaultKind, Member, Policy, PolicyId, PolicySet};

/// A policy that could be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// Who it is.
    pub policy: PolicyId,
    /// Its code and configuration, for what is not compiled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Whether its answers count.
    #[serde(default, skip_serializing_if = "is_enforced")]
    pub mode: Mode,
    /// What its scores are multiplied with.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// The calls that it answers, among those that the decision may make.
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

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Who was asked: the position in the list of seats, from 0.
    pub seat: usize,
    /// What sort of question.
    pub kind: CallKind,
    /// What it was about, in one word: a cluster, an object, or how many clusters.
    pub about: String,
    /// The answer.
    pub answer: Answer,
}

/// Notes what the policies of one decision are asked.
#[derive(Debug)]
pub struct Tape {
    seats: Vec<Seat>,
    composition: Composition,
    calls: Arc<Mutex<Vec<Asked>>>,
}

impl Tape {
    /// The same policies, with every call that is of one of these kinds noted on the tape. `keeps` says which policies
    /// can matter; the others are left as they are.
    pub fn start(policies: &PolicySet, kinds: &[CallKind], keeps: impl Fn(&dyn Policy) -> bool) -> (PolicySet, Self) {
        let calls: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let mut seats = Vec::new();
        let members = policies.members().iter().map(|member| {
            let answers = answered(member.policy.as_ref(), kinds);
            if answers.is_empty() || member.mode == Mode::Off || !keeps(member.policy.as_ref()) {
                return member.clone();
            }
            let taped = Taped { inner: Arc::clone(&member.policy), seat: seats.len(), calls: Arc::clone(&calls) };
            let (policy, build) = (member.policy.id().clone(), member.policy.build().cloned());
            seats.push(Seat { policy, build, mode: member.mode, weight: member.weight, answers });
            Member { policy: Arc::new(taped), ..member.clone() }
        });
        let set = PolicySet::composed(members.collect(), policies.composition());
        (set, Self { seats, composition: policies.composition(), calls })
    }

    /// Who could be asked, the rules by which answers become one, and what was asked so far, in order.
    pub fn finish(self) -> (Vec<Seat>, Composition, Vec<Asked>) {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        (self.seats, self.composition, calls)
    }
}

fn answered(policy: &dyn Policy, kinds: &[CallKind]) -> Vec<CallKind> {
    let mut answers: Vec<_> = policy.capabilities().iter().map(|capability| capability.kind).collect();
    answers.retain(|kind| kinds.contains(kind));
    answers.sort_unstable();
    answers.dedup();
    answers
}

/// A policy whose calls are noted.
struct Taped {
    inner: Arc<dyn Policy>,
    seat: usize,
    calls: Arc<Mutex<Vec<Asked>>>,
}

impl Policy for Taped {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let answer = self.inner.call(call);
        if let Some(kept) = Answer::of(&answer) {
            let asked = Asked { seat: self.seat, kind: call.kind(), about: about(call), answer: kept };
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        }
        answer
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}

/// What a call is about. Two calls of one decision that a policy could answer differently differ in it, or come in the
/// same order again.
fn about(call: &Call<'_>) -> String {
    match call {
        Call::Health(call) => {
            let text = |pointer| call.object.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
            format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        }
        Call::ClusterTaint(call) => call.cluster.name.clone(),
        Call::Filter(call) => format!("{} clusters", call.clusters.len()),
        Call::Score(call) => format!("{} clusters", call.clusters.len()),
        Call::EvictionCheck(call) => call.task.from_cluster.clone(),
        Call::Interpret(call) => call.operation.name().to_owned(),
    }
}

/// A policy that answers as it did when the decision was recorded.
pub(super) struct Replayed {
    id: PolicyId,
    capabilities: Vec<Capability>,
    build: Option<Build>,
    answers: Mutex<VecDeque<Asked>>,
}

impl Replayed {
    /// What sits in a seat; `calls` are those of the whole decision.
    pub(super) fn new(position: usize, seat: &Seat, calls: &[Asked]) -> Self {
        let own = calls.iter().filter(|asked| asked.seat == position);
        Self {
            id: seat.policy.clone(),
            capabilities: seat.answers.iter().map(|kind| Capability::any(*kind)).collect(),
            build: seat.build.clone(),
            answers: Mutex::new(own.cloned().collect()),
        }
    }
}

impl Policy for Replayed {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let position = answers.iter().position(|asked| asked.kind == call.kind() && asked.about == about(call));
        let asked = position.and_then(|position| answers.remove(position));
        let unknown = || Fault::new(FaultKind::NotLoaded, format!("the record has no answer about {}", about(call)));
        asked.ok_or_else(unknown)?.answer.reply()
    }

    fn build(&self) -> Option<&Build> {
        self.build.as_ref()
    }
}
