//! A question that owns its input, so that it can be made, kept and asked more than once.

use std::sync::Arc;

use bulkhead_core::call::{
    Call, CallKind, ClusterTaintCall, EvictionCheckCall, FilterCall, HealthCall, InterpretCall, Operation, ScoreCall,
};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
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
    /// The clusters, in order of name unless a law shuffles them.
    pub clusters: Vec<Arc<Cluster>>,
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
    /// The call that asks it.
    pub fn call(&self) -> Call<'_> {
        let now = self.now;
        let interpret = |operation| Call::Interpret(InterpretCall { operation, now });
        match &self.request {
            Request::Health(object) => Call::Health(HealthCall { object, now }),
            Request::ClusterTaint(cluster) => Call::ClusterTaint(ClusterTaintCall { cluster, now }),
            Request::Filter(asked) => {
                Call::Filter(FilterCall { binding: &asked.binding, clusters: &asked.clusters, now })
            }
            Request::Score(asked) => Call::Score(ScoreCall { binding: &asked.binding, clusters: &asked.clusters, now }),
            Request::EvictionCheck(asked) => {
                let Eviction { binding, task, observed } = &**asked;
                Call::EvictionCheck(EvictionCheckCall { binding, task, observed, now })
            }
            Request::Replicas(object) => interpret(Operation::Replicas { object }),
            Request::Components(object) => interpret(Operation::Components { object }),
            Request::Revise(object, replicas) => interpret(Operation::Revise { object, replicas: *replicas }),
            Request::Retain(desired, observed) => interpret(Operation::Retain { desired, observed }),
            Request::ReflectStatus(object) => interpret(Operation::ReflectStatus { object }),
            Request::AggregateStatus(object, items) => interpret(Operation::AggregateStatus { object, items }),
            Request::Dependencies(object) => interpret(Operation::Dependencies { object }),
        }
    }

    /// Which kind of question it is.
    pub fn kind(&self) -> CallKind {
        self.call().kind()
    }

    /// The clusters whose order must not matter, if it has any.
    pub(crate) fn clusters(&self) -> Option<&[Arc<Cluster>]> {
        match &self.request {
            Request::Filter(asked) | Request::Score(asked) => Some(&asked.clusters),
            _ => None,
        }
    }
}
