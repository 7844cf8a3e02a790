//! Plugin interface: the calls to a plugin and the replies that it may give.
//!
//! [`Call`] and [`Reply`] are closed enums with one variant per plugin kind. A new kind breaks the build wherever
//! code must handle it.

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

/// Kinds of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CallKind {
    /// Health of an object in a member cluster.
    Health,
    /// Taints that a cluster should carry.
    ClusterTaint,
    /// Feasibility of clusters for a binding.
    Filter,
    /// Score of each feasible cluster for a binding.
    Score,
    /// Release of an old copy.
    EvictionCheck,
    /// Karmada's other resource interpreter operations.
    Interpret,
}

impl CallKind {
    /// All kinds, in declaration order.
    pub const ALL: [Self; 6] = [
        Self::Health,
        Self::ClusterTaint,
        Self::Filter,
        Self::Score,
        Self::EvictionCheck,
        Self::Interpret,
    ];

    /// Returns the position of the kind in [`CallKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the spelling used in manifests and messages, for example `eviction-check`.
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

/// One call to one plugin.
#[derive(Clone, Debug)]
pub enum Call<'a> {
    /// Determine the health of an object in a member cluster.
    Health(HealthCall<'a>),
    /// Determine the taints of a cluster.
    ClusterTaint(ClusterTaintCall<'a>),
    /// Filter the clusters for a binding; one call covers all candidates.
    Filter(FilterCall<'a>),
    /// Score the feasible clusters for a binding; one call covers all of them.
    Score(ScoreCall<'a>),
    /// Decide if an old copy may be deleted.
    EvictionCheck(EvictionCheckCall<'a>),
    /// Run one of Karmada's other resource interpreter operations.
    Interpret(InterpretCall<'a>),
}

impl Call<'_> {
    /// Returns the kind of this call.
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

    /// Returns the evaluation time.
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

    /// Returns Karmada's name of the operation, one of [`OPERATION_NAMES`]; `None` for kinds that no interpreter
    /// handles.
    pub fn operation_name(&self) -> Option<&'static str> {
        match self {
            Self::Health(_) => Some("InterpretHealth"),
            Self::Interpret(call) => Some(call.operation.name()),
            Self::ClusterTaint(_) | Self::Filter(_) | Self::Score(_) | Self::EvictionCheck(_) => None,
        }
    }

    /// Returns the object of the call, for kinds that are registered per object kind.
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
    /// Complete object as the member cluster reports it. Shared, so an engine can lend it to a guest without a copy.
    pub object: &'a Arc<Value>,
    /// Evaluation time.
    pub now: Time,
}

/// Input of a cluster-taint plugin.
#[derive(Clone, Debug)]
pub struct ClusterTaintCall<'a> {
    /// Cluster with its current taints and conditions; `lastTransitionTime` of a condition shows its last change.
    pub cluster: &'a Cluster,
    /// Evaluation time.
    pub now: Time,
}

/// Input of a filter plugin.
#[derive(Clone, Debug)]
pub struct FilterCall<'a> {
    /// Binding to place.
    pub binding: &'a Binding,
    /// Candidates, sorted by name. The reply has one verdict per candidate, in this order.
    pub clusters: Candidates<'a>,
    /// Other bindings that share a workload affinity group with this one, sorted by name.
    pub peers: &'a [Peer],
    /// Evaluation time.
    pub now: Time,
}

/// Another binding in the same namespace, with the fields that workload affinity reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// Name of the binding.
    pub binding: String,
    /// Its affinity group; empty for none.
    pub affinity_group: String,
    /// Its anti-affinity group; empty for none.
    pub anti_affinity_group: String,
    /// Clusters on which it runs.
    pub clusters: Vec<String>,
}

/// Input of a score plugin.
#[derive(Clone, Debug)]
pub struct ScoreCall<'a> {
    /// Binding to place.
    pub binding: &'a Binding,
    /// Feasible clusters, sorted by name. The reply has one score per cluster, in this order.
    pub clusters: Candidates<'a>,
    /// Evaluation time.
    pub now: Time,
}

/// Input of an eviction-check plugin.
#[derive(Clone, Debug)]
pub struct EvictionCheckCall<'a> {
    /// Binding; `spec.clusters` lists the clusters on which the workload runs now.
    pub binding: &'a Binding,
    /// Graceful eviction task to check.
    pub task: &'a GracefulEvictionTask,
    /// Status reported by the member clusters.
    pub observed: &'a [AggregatedStatusItem],
    /// Evaluation time.
    pub now: Time,
}

/// Input of a resource interpreter.
#[derive(Clone, Debug)]
pub struct InterpretCall<'a> {
    /// Operation with its arguments.
    pub operation: Operation<'a>,
    /// Evaluation time.
    pub now: Time,
}

/// Interpreter operation with its arguments. Objects are shared, so an engine can lend them to a guest.
#[derive(Clone, Debug)]
pub enum Operation<'a> {
    /// Karmada's `InterpretReplica`: returns the replicas and the requirements of one replica.
    Replicas {
        /// Resource template.
        object: &'a Arc<Value>,
    },
    /// Karmada's `InterpretComponent`: returns the pod templates of an object with several of them.
    Components {
        /// Resource template.
        object: &'a Arc<Value>,
    },
    /// Karmada's `ReviseReplica`: returns the object with a different number of replicas.
    Revise {
        /// Resource template.
        object: &'a Arc<Value>,
        /// New number of replicas. 64 bits as in Karmada; a binding holds at most 32 bits.
        replicas: i64,
    },
    /// Karmada's `Retain`: returns the desired object with the fields that the member cluster owns.
    Retain {
        /// Object to apply.
        desired: &'a Arc<Value>,
        /// Object as it exists in the member cluster.
        observed: &'a Arc<Value>,
    },
    /// Karmada's `InterpretStatus`: returns the part of the status to collect.
    ReflectStatus {
        /// Object as the member cluster reports it.
        object: &'a Arc<Value>,
    },
    /// Karmada's `AggregateStatus`: returns the template with a status aggregated from the member clusters.
    AggregateStatus {
        /// Resource template.
        object: &'a Arc<Value>,
        /// Status reported by the member clusters, sorted by cluster.
        items: &'a [AggregatedStatusItem],
    },
    /// Karmada's `InterpretDependency`: returns the objects that the template depends on.
    Dependencies {
        /// Resource template.
        object: &'a Arc<Value>,
    },
}

/// Karmada's names of all interpreter operations, in alphabetical order.
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
    /// Returns Karmada's name of the operation, one of [`OPERATION_NAMES`].
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

    /// Returns the object of the operation; for `Retain`, the desired object.
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

/// Reply to a call, of the same kind as the call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Reply to [`Call::Health`].
    Health(HealthVerdict),
    /// Reply to [`Call::ClusterTaint`].
    ClusterTaint(TaintVerdict),
    /// Reply to [`Call::Filter`]: one verdict per candidate, in the order of the call.
    Filter(Vec<FilterVerdict>),
    /// Reply to [`Call::Score`]: one score in 0..=100 per cluster, in the order of the call.
    Score(Vec<i64>),
    /// Reply to [`Call::EvictionCheck`].
    EvictionCheck(EvictionVerdict),
    /// Reply to [`Call::Interpret`]. `None` if the policy has no rule for the operation on this object kind.
    Interpret(Option<Interpretation>),
}

impl Reply {
    /// Returns the kind of call that this replies to.
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

/// Explanation of a verdict, for programs and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// `CamelCase` identifier.
    pub code: String,
    /// Human-readable sentence; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Reason {
    /// Creates a reason.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            f.write_str(&self.code)
        } else {
            write!(f, "{}: {}", self.code, self.message)
        }
    }
}

/// Reply of a health plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthVerdict {
    /// Health; `Unknown` if the plugin cannot determine it.
    pub health: Health,
    /// Explanation of the verdict.
    pub reason: Reason,
}

/// Reply of a cluster-taint plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintVerdict {
    /// Changes, in the order in which they apply.
    pub changes: Vec<TaintChange>,
}

/// One change to the taints of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintChange {
    /// Add the taint unless one with the same key and effect exists.
    Add {
        /// Taint to add; the host sets `timeAdded`.
        taint: Taint,
        /// Explanation of the change.
        reason: Reason,
    },
    /// Remove the taint with this key and effect.
    Remove {
        /// Key of the taint.
        key: String,
        /// Effect of the taint.
        effect: TaintEffect,
        /// Explanation of the change.
        reason: Reason,
    },
}

/// Verdict of a filter plugin on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// The plugin accepts the cluster.
    Fit,
    /// The plugin rejects the cluster.
    Unfit(Reason),
    /// The plugin abstains.
    Abstain,
}

/// Reply of an eviction-check plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EvictionVerdict {
    /// Release the old copy.
    Release(Reason),
    /// Keep the old copy.
    Hold {
        /// Explanation of the hold.
        reason: Reason,
        /// Delay until the next check, in seconds; if absent, the host decides.
        recheck_after_s: Option<u32>,
    },
    /// The plugin abstains.
    Abstain,
}

/// Result of an interpreter operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Interpretation {
    /// Result of [`Operation::Replicas`].
    Replicas {
        /// Desired replicas.
        replicas: i32,
        /// Requirements of one replica.
        requirements: Option<ReplicaRequirements>,
    },
    /// Result of [`Operation::Components`].
    Components(Vec<Component>),
    /// Result of [`Operation::Revise`], [`Operation::Retain`] and [`Operation::AggregateStatus`]: the complete
    /// object.
    Object(Value),
    /// Result of [`Operation::ReflectStatus`]: the status fragment, absent if the object has no status.
    Status(Option<Value>),
    /// Result of [`Operation::Dependencies`].
    Dependencies(Vec<DependentObjectReference>),
}

impl Interpretation {
    /// Returns true if the result type matches the operation.
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
