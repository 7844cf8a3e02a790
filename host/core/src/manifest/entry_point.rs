//! Functions of scripts.

use serde::{Deserialize, Serialize};

use crate::call::{Call, CallKind, Operation};

/// Functions that a script may define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EntryPoint {
    /// `InterpretHealth(observedObj)`.
    Health,
    /// `ClusterTaint(cluster, now)`.
    ClusterTaint,
    /// `Filter(binding, clusters, now)`.
    Filter,
    /// `Score(binding, clusters, now)`.
    Score,
    /// `EvictionCheck(binding, task, observed, now)`.
    EvictionCheck,
    /// `GetReplicas(obj)`.
    Replicas,
    /// `GetComponents(obj)`.
    Components,
    /// `ReviseReplica(obj, desiredReplica)`.
    Revise,
    /// `Retain(desiredObj, observedObj)`.
    Retain,
    /// `ReflectStatus(observedObj)`.
    ReflectStatus,
    /// `AggregateStatus(desiredObj, statusItems)`.
    AggregateStatus,
    /// `GetDependencies(desiredObj)`.
    Dependencies,
}

impl EntryPoint {
    /// All functions in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Health,
        Self::ClusterTaint,
        Self::Filter,
        Self::Score,
        Self::EvictionCheck,
        Self::Replicas,
        Self::Components,
        Self::Revise,
        Self::Retain,
        Self::ReflectStatus,
        Self::AggregateStatus,
        Self::Dependencies,
    ];

    /// Returns the function for an operation.
    pub fn of(operation: &Operation<'_>) -> Self {
        match operation {
            Operation::Replicas { .. } => Self::Replicas,
            Operation::Components { .. } => Self::Components,
            Operation::Revise { .. } => Self::Revise,
            Operation::Retain { .. } => Self::Retain,
            Operation::ReflectStatus { .. } => Self::ReflectStatus,
            Operation::AggregateStatus { .. } => Self::AggregateStatus,
            Operation::Dependencies { .. } => Self::Dependencies,
        }
    }

    /// Returns the function for a call.
    pub fn of_call(call: &Call<'_>) -> Self {
        match call {
            Call::Health(_) => Self::Health,
            Call::ClusterTaint(_) => Self::ClusterTaint,
            Call::Filter(_) => Self::Filter,
            Call::Score(_) => Self::Score,
            Call::EvictionCheck(_) => Self::EvictionCheck,
            Call::Interpret(call) => Self::of(&call.operation),
        }
    }

    /// Returns the field of a ResourceInterpreterCustomization that holds its script; `None` for Bulkhead's own
    /// functions.
    pub fn rule(self) -> Option<&'static str> {
        match self {
            Self::Health => Some("healthInterpretation"),
            Self::Replicas => Some("replicaResource"),
            Self::Components => Some("componentResource"),
            Self::Revise => Some("replicaRevision"),
            Self::Retain => Some("retention"),
            Self::ReflectStatus => Some("statusReflection"),
            Self::AggregateStatus => Some("statusAggregation"),
            Self::Dependencies => Some("dependencyInterpretation"),
            Self::ClusterTaint | Self::Filter | Self::Score | Self::EvictionCheck => None,
        }
    }

    /// Returns the function whose script is in that field.
    pub fn of_rule(rule: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.rule() == Some(rule))
    }

    /// Returns Karmada's name of its operation; `None` for Bulkhead's own functions.
    pub fn operation(self) -> Option<&'static str> {
        match self {
            Self::Health => Some("InterpretHealth"),
            Self::Replicas => Some("InterpretReplica"),
            Self::Components => Some("InterpretComponent"),
            Self::Revise => Some("ReviseReplica"),
            Self::Retain => Some("Retain"),
            Self::ReflectStatus => Some("InterpretStatus"),
            Self::AggregateStatus => Some("AggregateStatus"),
            Self::Dependencies => Some("InterpretDependency"),
            Self::ClusterTaint | Self::Filter | Self::Score | Self::EvictionCheck => None,
        }
    }

    /// Returns the kind of call that it answers.
    pub fn call_kind(self) -> CallKind {
        match self {
            Self::Health => CallKind::Health,
            Self::ClusterTaint => CallKind::ClusterTaint,
            Self::Filter => CallKind::Filter,
            Self::Score => CallKind::Score,
            Self::EvictionCheck => CallKind::EvictionCheck,
            Self::Replicas
            | Self::Components
            | Self::Revise
            | Self::Retain
            | Self::ReflectStatus
            | Self::AggregateStatus
            | Self::Dependencies => CallKind::Interpret,
        }
    }

    /// Returns the name of the global function; Karmada's name if it has one.
    pub fn function(self) -> &'static str {
        match self {
            Self::Health => "InterpretHealth",
            Self::ClusterTaint => "ClusterTaint",
            Self::Filter => "Filter",
            Self::Score => "Score",
            Self::EvictionCheck => "EvictionCheck",
            Self::Replicas => "GetReplicas",
            Self::Components => "GetComponents",
            Self::Revise => "ReviseReplica",
            Self::Retain => "Retain",
            Self::ReflectStatus => "ReflectStatus",
            Self::AggregateStatus => "AggregateStatus",
            Self::Dependencies => "GetDependencies",
        }
    }
}
