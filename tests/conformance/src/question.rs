//! A question that owns its input, so that it can be made, kept and asked more than once.

use std::sync::Arc;

use bulkhead_core::call::{
    Call, CallKind, ClusterTaintCall, EvictionCheckCall, FilterCall, HealthCall, InterpretCall, Operation, Reply,
    ScoreCall,
};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::snapshot::{self, ClusterSnapshot};
use bulkhead_core::time::Time;
use serde_json::Value;

/// What a policy is asked, with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked about.
    pub request: Request,
    /// The time to reason with.
    pub now: Time,
}

/// What is asked about: one variant per kind, and one per operation of a resource interpreter.
#[derive(Clone, Debug)]
pub enum Request {
    /// How is this object?
    Health(Arc<Value>),
    /// Which taints should this cluster carry?
    ClusterTaint(Box<Cluster>),
    /// Where can this binding run?
    Filter(Box<Candidates>),
    /// How good are these clusters?
    Score(Box<Candidates>),
    /// May this old copy go?
    EvictionCheck(Box<Eviction>),
    /// How many replicas has this template?
    Replicas(Arc<Value>),
    /// Which components has this template?
    Components(Arc<Value>),
    /// What does this template look like with so many replicas?
    Revise(Arc<Value>, i32),
    /// What does the desired object (first) keep of the observed one (second)?
    Retain(Arc<Value>, Arc<Value>),
    /// Which part of this object's status is worth collecting?
    ReflectStatus(Arc<Value>),
    /// What does this template look like with these reports?
    AggregateStatus(Arc<Value>, Vec<AggregatedStatusItem>),
    /// What does this template need beside it?
    Dependencies(Arc<Value>),
}

/// A binding and clusters for it.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The binding to place.
    pub binding: Binding,
    /// The clusters, each with a name of its own.
    pub clusters: Vec<Arc<Cluster>>,
}

impl Candidates {
    fn snapshot(&self) -> (ClusterSnapshot, Vec<u32>) {
        let snapshot = ClusterSnapshot::new(self.clusters.iter().cloned());
        let rows = (0..).take(snapshot.len()).collect();
        (snapshot, rows)
    }
}

/// The elements of a list at these places, in their order.
pub(crate) fn picked<T: Clone>(list: &[T], places: &[usize]) -> Vec<T> {
    places.iter().filter_map(|place| list.get(*place).cloned()).collect()
}

/// A graceful eviction task and what is known about it.
#[derive(Clone, Debug, Default)]
pub struct Eviction {
    /// The binding.
    pub binding: Binding,
    /// The task.
    pub task: GracefulEvictionTask,
    /// What the member clusters report.
    pub observed: Vec<AggregatedStatusItem>,
}

impl Question {
    /// Makes the call that asks it, for as long as `ask` takes. Candidates are handed over in order of name.
    pub fn with_call<T>(&self, ask: impl FnOnce(&Call<'_>) -> T) -> T {
        let now = self.now;
        let interpret = |operation| Call::Interpret(InterpretCall { operation, now });
        let call = match &self.request {
            Request::Health(object) => Call::Health(HealthCall { object, now }),
            Request::ClusterTaint(cluster) => Call::ClusterTaint(ClusterTaintCall { cluster, now }),
            Request::Filter(asked) => {
                let (snapshot, rows) = asked.snapshot();
                let clusters = snapshot::Candidates::of_rows(&snapshot, &rows);
                return ask(&Call::Filter(FilterCall { binding: &asked.binding, clusters, peers: &[], now }));
            }
            Request::Score(asked) => {
                let (snapshot, rows) = asked.snapshot();
                let clusters = snapshot::Candidates::of_rows(&snapshot, &rows);
                return ask(&Call::Score(ScoreCall { binding: &asked.binding, clusters, now }));
            }
            Request::EvictionCheck(asked) => {
                let Eviction { binding, task, observed } = &**asked;
                Call::EvictionCheck(EvictionCheckCall { binding, task, observed, now })
            }
            Request::Replicas(object) => interpret(Operation::Replicas { object }),
            Request::Components(object) => interpret(Operation::Components { object }),
            Request::Revise(object, replicas) => interpret(Operation::Revise { object, replicas: (*replicas).into() }),
            Request::Retain(desired, observed) => interpret(Operation::Retain { desired, observed }),
            Request::ReflectStatus(object) => interpret(Operation::ReflectStatus { object }),
            Request::AggregateStatus(object, items) => interpret(Operation::AggregateStatus { object, items }),
            Request::Dependencies(object) => interpret(Operation::Dependencies { object }),
        };
        ask(&call)
    }

    /// A reply with verdicts in order of name, as policies give it, in the order of the question's clusters.
    pub(crate) fn in_own_order(&self, reply: Reply) -> Reply {
        let Some(clusters) = self.clusters() else { return reply };
        let mut by_name: Vec<_> = (0..clusters.len()).collect();
        by_name.sort_by_key(|index| clusters.get(*index).map(|cluster| cluster.name.as_str()));
        let mut places = vec![0; by_name.len()];
        for (place, index) in by_name.iter().enumerate() {
            if let Some(of_index) = places.get_mut(*index) {
                *of_index = place;
            }
        }
        match reply {
            Reply::Filter(verdicts) if verdicts.len() == places.len() => Reply::Filter(picked(&verdicts, &places)),
            Reply::Score(scores) if scores.len() == places.len() => Reply::Score(picked(&scores, &places)),
            // A list of the wrong length stays as it is, since nobody can tell which verdict is whose.
            other => other,
        }
    }

    /// Which kind of question it is.
    pub fn kind(&self) -> CallKind {
        self.with_call(|call| call.kind())
    }

    /// The clusters whose order must not matter, if it has any.
    pub(crate) fn clusters(&self) -> Option<&[Arc<Cluster>]> {
        match &self.request {
            Request::Filter(asked) | Request::Score(asked) => Some(&asked.clusters),
            _ => None,
        }
    }
}
