//! The waist: what a plugin is asked and what it may answer.
//!
//! [`Call`] and [`Reply`] are closed, one variant per plugin kind. Adding a kind breaks the build in every
//! place that has to decide what the new kind means there.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{
    AggregatedStatusItem, Binding, Cluster, Component, DependentObjectReference, GracefulEvictionTask, Health,
    ReplicaRequirements, Taint, TaintEffect,
};
use crate::snapshot::Candidates;
use crate::time::Time;

/// The plugin kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// How is an object in a member cluster?
    Health,
    /// Which taints should a cluster carry?
    ClusterTaint,
    /// Where can a binding run?
    Filter,
    /// How good is each feasible cluster for a binding?
    Score,
    /// May an old copy go?
    EvictionCheck,
    /// Karmada's other interpreter operations.
    Interpret,
}

impl CallKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 6] =
        [Self::Health, Self::ClusterTaint, Self::Filter, Self::Score, Self::EvictionCheck, Self::Interpret];

    /// The spelling used in manifests and messages, for example `eviction-check`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::ClusterTaint => "cluster-taint",
            Self::Filter => "filter",
            Self::Score => "score",
            Self::EvictionCheck => "eviction-check",
            Self::Interpret => "interpret",
        }
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One question to one plugin.
#[derive(Clone, Debug)]
pub enum Call<'a> {
    /// How is an object in a member cluster?
    Health(HealthCall<'a>),
    /// Which taints should a cluster carry?
    ClusterTaint(ClusterTaintCall<'a>),
    /// Where can a binding run? All candidates in one call.
    Filter(FilterCall<'a>),
    /// How good is each feasible cluster? All of them in one call.
    Score(ScoreCall<'a>),
    /// May an old copy go?
    EvictionCheck(EvictionCheckCall<'a>),
    /// One of Karmada's other interpreter operations.
    Interpret(InterpretCall<'a>),
}

impl Call<'_> {
    /// Which kind of question it is.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Health(_) => CallKind::Health,
            Self::ClusterTaint(_) => CallKind::ClusterTaint,
            Self::Filter(_) => CallKind::Filter,
            Self::Score(_) => CallKind::Score,
            Self::EvictionCheck(_) => CallKind::EvictionCheck,
            Self::Interpret(_) => CallKind::Interpret,
        }
    }

    /// The time to reason with.
    pub fn now(&self) -> Time {
        match self {
            Self::Health(call) => call.now,
            Self::ClusterTaint(call) => call.now,
            Self::Filter(call) => call.now,
            Self::Score(call) => call.now,
            Self::EvictionCheck(call) => call.now,
            Self::Interpret(call) => call.now,
        }
    }

    /// Karmada's name of the operation that it is, one of [`OPERATION_NAMES`]; none for what no interpreter is asked.
    pub fn operation_name(&self) -> Option<&'static str> {
        match self {
            Self::Health(_) => Some("InterpretHealth"),
            Self::Interpret(call) => Some(call.operation.name()),
            Self::ClusterTaint(_) | Self::Filter(_) | Self::Score(_) | Self::EvictionCheck(_) => None,
        }
    }

    /// The object that the question is about, for kinds that are registered per kind of object.
    pub fn object(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Health(call) => Some(call.object),
            Self::Interpret(call) => Some(call.operation.object()),
            Self::ClusterTaint(_) | Self::Filter(_) | Self::Score(_) | Self::EvictionCheck(_) => None,
        }
    }
}

/// Input of a health plugin.
#[derive(Clone, Debug)]
pub struct HealthCall<'a> {
    /// The object as the member cluster reports it, whole. Shared, so that an engine can lend it to a guest as it is.
    pub object: &'a Arc<Value>,
    /// The time to reason with.
    pub now: Time,
}

/// Input of a cluster-taint plugin.
#[derive(Clone, Debug)]
pub struct ClusterTaintCall<'a> {
    /// The cluster with its current taints and conditions; a condition's `lastTransitionTime` is its history.
    pub cluster: &'a Cluster,
    /// The time to reason with.
    pub now: Time,
}

/// Input of a filter plugin.
#[derive(Clone, Debug)]
pub struct FilterCall<'a> {
    /// The binding to place.
    pub binding: &'a Binding,
    /// Candidates, in order of name. The reply has one verdict for each, in this order.
    pub clusters: Candidates<'a>,
    /// Other bindings that share a group of workload affinity with this one, in order of name.
    pub peers: &'a [Peer],
    /// The time to reason with.
    pub now: Time,
}

/// Another binding of the same namespace, as far as workload affinity looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// Name of the binding.
    pub binding: String,
    /// Its affinity group; empty for none.
    pub affinity_group: String,
    /// Its anti-affinity group; empty for none.
    pub anti_affinity_group: String,
    /// Where it runs.
    pub clusters: Vec<String>,
}

/// Input of a score plugin.
#[derive(Clone, Debug)]
pub struct ScoreCall<'a> {
    /// The binding to place.
    pub binding: &'a Binding,
    /// Feasible clusters, in order of name. The reply has one score for each, in this order.
    pub clusters: Candidates<'a>,
    /// The time to reason with.
    pub now: Time,
}

/// Input of an eviction-check plugin.
#[derive(Clone, Debug)]
pub struct EvictionCheckCall<'a> {
    /// The binding; its `spec.clusters` is where the workload runs now.
    pub binding: &'a Binding,
    /// The task in question.
    pub task: &'a GracefulEvictionTask,
    /// What the member clusters report.
    pub observed: &'a [AggregatedStatusItem],
    /// The time to reason with.
    pub now: Time,
}

/// Input of a resource interpreter.
#[derive(Clone, Debug)]
pub struct InterpretCall<'a> {
    /// The operation with its arguments.
    pub operation: Operation<'a>,
    /// The time to reason with.
    pub now: Time,
}

/// An interpreter operation with its arguments. Objects are shared, so that an engine can lend them to a guest.
#[derive(Clone, Debug)]
pub enum Operation<'a> {
    /// Karmada's `InterpretReplica`: replicas and what one of them needs.
    Replicas {
        /// The resource template.
        object: &'a Arc<Value>,
    },
    /// Karmada's `InterpretComponent`: the pod templates of an object that has several.
    Components {
        /// The resource template.
        object: &'a Arc<Value>,
    },
    /// Karmada's `ReviseReplica`: the object with another number of replicas.
    Revise {
        /// The resource template.
        object: &'a Arc<Value>,
        /// Replicas to write in. As wide as Karmada's; a binding never holds more than 32 bits of it.
        replicas: i64,
    },
    /// Karmada's `Retain`: the desired object with what the member cluster owns.
    Retain {
        /// What is to be applied.
        desired: &'a Arc<Value>,
        /// The object as the member cluster has it.
        observed: &'a Arc<Value>,
    },
    /// Karmada's `InterpretStatus`: the part of the status worth collecting.
    ReflectStatus {
        /// The object as the member cluster reports it.
        object: &'a Arc<Value>,
    },
    /// Karmada's `AggregateStatus`: the template with a status folded from the member clusters.
    AggregateStatus {
        /// The resource template.
        object: &'a Arc<Value>,
        /// What the member clusters report, sorted by cluster.
        items: &'a [AggregatedStatusItem],
    },
    /// Karmada's `InterpretDependency`: the objects that the template needs beside it.
    Dependencies {
        /// The resource template.
        object: &'a Arc<Value>,
    },
}

/// Karmada's names of everything that an interpreter can be asked, in alphabetical order.
pub const OPERATION_NAMES: [&str; 8] = [
    "AggregateStatus",
    "InterpretComponent",
    "InterpretDependency",
    "InterpretHealth",
    "InterpretReplica",
    "InterpretStatus",
    "Retain",
    "ReviseReplica",
];

impl Operation<'_> {
    /// Karmada's name of the operation, one of [`OPERATION_NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Replicas { .. } => "InterpretReplica",
            Self::Components { .. } => "InterpretComponent",
            Self::Revise { .. } => "ReviseReplica",
            Self::Retain { .. } => "Retain",
            Self::ReflectStatus { .. } => "InterpretStatus",
            Self::AggregateStatus { .. } => "AggregateStatus",
            Self::Dependencies { .. } => "InterpretDependency",
        }
    }

    /// The object the operation is about; for `Retain` the desired one.
    pub fn object(&self) -> &Arc<Value> {
        match self {
            Self::Replicas { object }
            | Self::Components { object }
            | Self::Revise { object, .. }
            | Self::Retain { desired: object, .. }
            | Self::ReflectStatus { object }
            | Self::AggregateStatus { object, .. }
            | Self::Dependencies { object } => object,
        }
    }
}

/// An answer, of the same kind as its call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To [`Call::Health`].
    Health(HealthVerdict),
    /// To [`Call::ClusterTaint`].
    ClusterTaint(TaintVerdict),
    /// To [`Call::Filter`]: one verdict per candidate, in the order of the call.
    Filter(Vec<FilterVerdict>),
    /// To [`Call::Score`]: one score in 0..=100 per cluster, in the order of the call.
    Score(Vec<i64>),
    /// To [`Call::EvictionCheck`].
    EvictionCheck(EvictionVerdict),
    /// To [`Call::Interpret`]. `None`: this policy has no rule for that operation on that kind of object.
    Interpret(Option<Interpretation>),
}

impl Reply {
    /// Which kind of call it answers.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Health(_) => CallKind::Health,
            Self::ClusterTaint(_) => CallKind::ClusterTaint,
            Self::Filter(_) => CallKind::Filter,
            Self::Score(_) => CallKind::Score,
            Self::EvictionCheck(_) => CallKind::EvictionCheck,
            Self::Interpret(_) => CallKind::Interpret,
        }
    }
}

/// Why, for programs and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// One `CamelCase` word.
    pub code: String,
    /// A sentence; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Reason {
    /// A reason.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() { f.write_str(&self.code) } else { write!(f, "{}: {}", self.code, self.message) }
    }
}

/// Answer of a health plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthVerdict {
    /// The health; `Unknown` when the plugin cannot tell.
    pub health: Health,
    /// Why.
    pub reason: Reason,
}

/// Answer of a cluster-taint plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintVerdict {
    /// Changes in the order in which they are to be made.
    pub changes: Vec<TaintChange>,
}

/// One change of a cluster's taints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintChange {
    /// Add unless a taint with that key and effect is there.
    Add {
        /// The taint; `timeAdded` is set by the host.
        taint: Taint,
        /// Why.
        reason: Reason,
    },
    /// Remove the taint with that key and effect.
    Remove {
        /// Key of the taint.
        key: String,
        /// Effect of the taint.
        effect: TaintEffect,
        /// Why.
        reason: Reason,
    },
}

/// Answer of a filter plugin for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// It can run there, as far as this plugin is concerned.
    Fit,
    /// It cannot.
    Unfit(Reason),
    /// The plugin has no opinion.
    Abstain,
}

/// Answer of an eviction-check plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EvictionVerdict {
    /// The old copy may go.
    Release(Reason),
    /// It must stay.
    Hold {
        /// Why.
        reason: Reason,
        /// When to ask again, in seconds; absent leaves it to the host.
        recheck_after_s: Option<u32>,
    },
    /// The plugin has no opinion.
    Abstain,
}

/// Result of an interpreter operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Interpretation {
    /// To [`Operation::Replicas`].
    Replicas {
        /// Desired replicas.
        replicas: i32,
        /// What one replica needs.
        requirements: Option<ReplicaRequirements>,
    },
    /// To [`Operation::Components`].
    Components(Vec<Component>),
    /// To [`Operation::Revise`], [`Operation::Retain`] and [`Operation::AggregateStatus`]: the complete object.
    Object(Value),
    /// To [`Operation::ReflectStatus`]: the fragment, absent when the object has no status.
    Status(Option<Value>),
    /// To [`Operation::Dependencies`].
    Dependencies(Vec<DependentObjectReference>),
}

impl Interpretation {
    /// Whether it is of the sort that the operation asks for.
    pub fn answers(&self, operation: &Operation<'_>) -> bool {
        match operation {
            Operation::Replicas { .. } => matches!(self, Self::Replicas { .. }),
            Operation::Components { .. } => matches!(self, Self::Components(_)),
            Operation::Revise { .. } | Operation::Retain { .. } | Operation::AggregateStatus { .. } => {
                matches!(self, Self::Object(_))
            }
            Operation::ReflectStatus { .. } => matches!(self, Self::Status(_)),
            Operation::Dependencies { .. } => matches!(self, Self::Dependencies(_)),
        }
    }
}
