//! Policies for tests: a well-behaved one, and ways to make it misbehave.

use std::sync::atomic::{AtomicU64, Ordering};

use bulkhead_core::call::{
    Call, CallKind, EvictionVerdict, FilterVerdict, HealthVerdict, Interpretation, Operation, Reason, Reply,
    TaintChange, TaintVerdict,
};
use bulkhead_core::model::{Health, Taint, TaintEffect};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId, Usage};
use serde_json::{Value, json};

/// Taint key that the well-behaved policy uses.
pub(crate) const TAINT_KEY: &str = "example.io/unreachable";

type Script = dyn Fn(&Call<'_>) -> Result<Reply, Fault> + Send + Sync;
type Cost = dyn Fn(&Call<'_>) -> u64 + Send + Sync;

/// A policy whose answers and costs are functions of the call.
pub(crate) struct Scripted {
    id: PolicyId,
    capabilities: Vec<Capability>,
    answer: Box<Script>,
    cost: Box<Cost>,
    steps: AtomicU64,
    calls: AtomicU64,
}

impl Scripted {
    /// Returns a well-behaved policy for one call kind.
    pub(crate) fn good(kind: CallKind) -> Self {
        let capability = match kind {
            CallKind::Health | CallKind::Interpret => Capability::on(kind, "example.io/v1", "Game"),
            _ => Capability::any(kind),
        };
        Self::with(vec![capability])
    }

    /// Returns a well-behaved policy with these capabilities.
    pub(crate) fn with(capabilities: Vec<Capability>) -> Self {
        Self {
            id: PolicyId::builtin("scripted"),
            capabilities,
            answer: Box::new(|call| Ok(good(call))),
            cost: Box::new(|call| 1_000 + 10 * clusters(call)),
            steps: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Replaces the function that computes the answers.
    pub(crate) fn answering(self, answer: impl Fn(&Call<'_>) -> Result<Reply, Fault> + Send + Sync + 'static) -> Self {
        Self {
            answer: Box::new(answer),
            ..self
        }
    }

    /// Replaces the function that computes the cost in steps.
    pub(crate) fn costing(self, cost: impl Fn(&Call<'_>) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            cost: Box::new(cost),
            ..self
        }
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Policy for Scripted {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.steps.fetch_add((self.cost)(call), Ordering::Relaxed);
        (self.answer)(call)
    }

    /// All calls count as calls of one kind.
    fn usage_of(&self, kind: CallKind) -> Usage {
        let steps = match kind {
            CallKind::Health => self.steps.load(Ordering::Relaxed),
            _ => 0,
        };
        Usage {
            steps,
            memory_bytes_max: 0,
        }
    }
}

/// Returns the number of clusters in a call.
pub(crate) fn clusters(call: &Call<'_>) -> u64 {
    let count = match call {
        Call::Filter(call) => call.clusters.len(),
        Call::Score(call) => call.clusters.len(),
        Call::EvictionCheck(call) => call.observed.len(),
        _ => 0,
    };
    count as u64
}

/// Returns the object of a call, or null.
pub(crate) fn object(call: &Call<'_>) -> Value {
    call.object().map(|object| (**object).clone()).unwrap_or_default()
}

/// Returns the answer of a well-behaved policy.
pub(crate) fn good(call: &Call<'_>) -> Reply {
    match call {
        Call::Health(call) => {
            let ready = call.object.pointer("/status/readyReplicas").and_then(Value::as_i64);
            let (health, code) = match ready {
                Some(3..) => (Health::Healthy, "Ready"),
                Some(_) => (Health::Unhealthy, "NotReady"),
                None => (Health::Unknown, "NoStatus"),
            };
            Reply::Health(HealthVerdict {
                health,
                reason: Reason::new(code, "as reported"),
            })
        }
        Call::ClusterTaint(call) => {
            let changes = if call.cluster.is_ready() {
                Vec::new()
            } else {
                vec![taint(TAINT_KEY)]
            };
            Reply::ClusterTaint(TaintVerdict { changes })
        }
        Call::Filter(call) => {
            let unfit = || FilterVerdict::Unfit(Reason::new("NotGold", ""));
            let verdict = |gold: bool| if gold { FilterVerdict::Fit } else { unfit() };
            let gold = call
                .clusters
                .iter()
                .map(|c| c.labels.get("tier").is_some_and(|tier| tier == "gold"));
            Reply::Filter(gold.map(verdict).collect())
        }
        Call::Score(call) => {
            let score = |region: &str| if region == "eu-west" { 100 } else { 0 };
            Reply::Score(
                call.clusters
                    .iter()
                    .map(|cluster| score(&cluster.spec.region))
                    .collect(),
            )
        }
        Call::EvictionCheck(call) => {
            let reason = Reason::new("Reports", format!("{} reports", call.observed.len()));
            Reply::EvictionCheck(EvictionVerdict::Hold {
                reason,
                recheck_after_s: Some(10),
            })
        }
        Call::Interpret(call) => Reply::Interpret(match &call.operation {
            Operation::Replicas { .. } => Some(Interpretation::Replicas {
                replicas: 3,
                requirements: None,
            }),
            Operation::ReflectStatus { object } => Some(Interpretation::Status(object.get("status").cloned())),
            Operation::Revise { object, replicas } => {
                let mut object = (***object).clone();
                if object.get("spec").is_some_and(Value::is_object) {
                    object["spec"]["replicas"] = json!(replicas);
                }
                Some(Interpretation::Object(object))
            }
            _ => None,
        }),
    }
}

/// Returns a change that adds a taint.
pub(crate) fn taint(key: &str) -> TaintChange {
    let taint = Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoExecute,
        time_added: None,
    };
    TaintChange::Add {
        taint,
        reason: Reason::new("NotReady", ""),
    }
}
