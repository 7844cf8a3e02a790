//! Calls that own their input, so that they can be stored and repeated.

use std::sync::Arc;

use bulkhead_core::call::{
    Call, CallKind, ClusterTaintCall, EvictionCheckCall, FilterCall, HealthCall, InterpretCall, Operation, Reply,
    ScoreCall,
};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::snapshot::{self, ClusterSnapshot};
use bulkhead_core::time::Time;
use serde_json::Value;

/// Default time of a call, in milliseconds since the Unix epoch: 2026-01-01T00:00:00Z.
pub(crate) const NOW: i64 = 1_767_225_600_000;

/// One policy call with all of its input.
#[derive(Clone, Debug)]
pub struct OwnedCall {
    /// Subject of the call.
    pub request: Request,
    /// Current time as the policy sees it.
    pub now: Time,
}

/// Subject of a call: one variant per call kind, and one per operation of a resource interpreter.
#[derive(Clone, Debug)]
pub enum Request {
    /// Health of this object.
    Health(Arc<Value>),
    /// Taint changes of this cluster.
    ClusterTaint(Box<Cluster>),
    /// Clusters that this binding can run on.
    Filter(Box<Candidates>),
    /// Scores of these clusters for this binding.
    Score(Box<Candidates>),
    /// Permission to remove the old copy on the evicted cluster.
    EvictionCheck(Box<Eviction>),
    /// Number of replicas of this template.
    Replicas(Arc<Value>),
    /// Components of this template.
    Components(Arc<Value>),
    /// This template with that number of replicas.
    Revise(Arc<Value>, i32),
    /// Desired object (first) with the fields retained from the observed object (second).
    Retain(Arc<Value>, Arc<Value>),
    /// Part of this object's status to collect.
    ReflectStatus(Arc<Value>),
    /// This template with these reports aggregated into its status.
    AggregateStatus(Arc<Value>, Vec<AggregatedStatusItem>),
    /// Dependencies of this template.
    Dependencies(Arc<Value>),
}

/// A binding and its candidate clusters.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The binding to place.
    pub binding: Binding,
    /// Candidate clusters, with unique names.
    pub clusters: Vec<Arc<Cluster>>,
}

impl Candidates {
    fn snapshot(&self) -> (ClusterSnapshot, Vec<u32>) {
        let snapshot = ClusterSnapshot::new(self.clusters.iter().cloned());
        let rows = (0..).take(snapshot.len()).collect();
        (snapshot, rows)
    }
}

/// Returns the elements of `list` at the given indexes, in the order of the indexes.
pub(crate) fn picked<T: Clone>(list: &[T], places: &[usize]) -> Vec<T> {
    places.iter().filter_map(|place| list.get(*place).cloned()).collect()
}

/// A graceful eviction task with its binding and reports.
#[derive(Clone, Debug, Default)]
pub struct Eviction {
    /// The binding.
    pub binding: Binding,
    /// The task.
    pub task: GracefulEvictionTask,
    /// Statuses reported by the member clusters.
    pub observed: Vec<AggregatedStatusItem>,
}

impl OwnedCall {
    /// Builds the call and passes it to `ask`. Candidates are passed in order of name.
    pub fn with_call<T>(&self, ask: impl FnOnce(&Call<'_>) -> T) -> T {
        let now = self.now;
        let interpret = |operation| Call::Interpret(InterpretCall { operation, now });
        let call = match &self.request {
            Request::Health(object) => Call::Health(HealthCall { object, now }),
            Request::ClusterTaint(cluster) => Call::ClusterTaint(ClusterTaintCall { cluster, now }),
            Request::Filter(asked) => {
                let (snapshot, rows) = asked.snapshot();
                let clusters = snapshot::Candidates::of_rows(&snapshot, &rows);
                return ask(&Call::Filter(FilterCall {
                    binding: &asked.binding,
                    clusters,
                    peers: &[],
                    now,
                }));
            }
            Request::Score(asked) => {
                let (snapshot, rows) = asked.snapshot();
                let clusters = snapshot::Candidates::of_rows(&snapshot, &rows);
                return ask(&Call::Score(ScoreCall {
                    binding: &asked.binding,
                    clusters,
                    now,
                }));
            }
            Request::EvictionCheck(asked) => {
                let Eviction {
                    binding,
                    task,
                    observed,
                } = &**asked;
                Call::EvictionCheck(EvictionCheckCall {
                    binding,
                    task,
                    observed,
                    now,
                })
            }
            Request::Replicas(object) => interpret(Operation::Replicas { object }),
            Request::Components(object) => interpret(Operation::Components { object }),
            Request::Revise(object, replicas) => interpret(Operation::Revise {
                object,
                replicas: (*replicas).into(),
            }),
            Request::Retain(desired, observed) => interpret(Operation::Retain { desired, observed }),
            Request::ReflectStatus(object) => interpret(Operation::ReflectStatus { object }),
            Request::AggregateStatus(object, items) => interpret(Operation::AggregateStatus { object, items }),
            Request::Dependencies(object) => interpret(Operation::Dependencies { object }),
        };
        ask(&call)
    }

    /// Reorders a reply from name order, as policies return it, into the order of the call's clusters.
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
            // A list of the wrong length stays unchanged: its verdicts cannot be attributed to clusters.
            other => other,
        }
    }

    /// Returns the kind of this call.
    pub fn kind(&self) -> CallKind {
        self.with_call(|call| call.kind())
    }

    /// Returns the clusters whose order must not matter, if the call has any.
    pub(crate) fn clusters(&self) -> Option<&[Arc<Cluster>]> {
        match &self.request {
            Request::Filter(asked) | Request::Score(asked) => Some(&asked.clusters),
            _ => None,
        }
    }
}
