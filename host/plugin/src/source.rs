use bulkhead_core::call::CallKind;
use bulkhead_core::policy::{Capability, EngineKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Budget;

/// A plugin before it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSource {
    /// Name, unique in a registry.
    pub name: String,
    /// What is to run it.
    pub engine: EngineKind,
    /// Its code: one component, or one or more scripts.
    pub modules: Vec<Module>,
    /// Configuration handed to the plugin when it is loaded; null when there is none.
    pub config: Value,
    /// What one call may cost.
    pub budget: Budget,
    /// How long an instance lives.
    pub instances: Instances,
}

impl PluginSource {
    /// A plugin without configuration, with the default budget and an instance for every call.
    pub fn new(name: impl Into<String>, engine: EngineKind, modules: Vec<Module>) -> Self {
        Self {
            name: name.into(),
            engine,
            modules,
            config: Value::Null,
            budget: Budget::default(),
            instances: Instances::default(),
        }
    }
}

/// How long an instance of a component lives. Scripts always have a fresh environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// For one call.
    #[default]
    Fresh,
    /// For many calls. The component has to declare that it bears it.
    Reused,
}

/// One piece of code.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Where it came from, for messages: a path, or an object and field.
    pub origin: String,
    /// A component in binary form, or the text of a script.
    pub code: Vec<u8>,
    /// What a script answers. Empty for a component, whose exports say so.
    pub entries: Vec<Entry>,
}

/// One function of a script and what it is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which function.
    pub point: EntryPoint,
    /// `(apiVersion, kind)` of the objects, for functions that are asked about one; absent is every kind.
    pub object_kind: Option<(String, String)>,
}

impl Entry {
    /// The capability that this entry gives a policy.
    pub fn capability(&self) -> Capability {
        Capability { kind: self.point.call_kind(), object_kind: self.object_kind.clone() }
    }
}

/// The functions that a script may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// `ReviseReplica(obj, desiredReplica)`.
    Revise,
    /// `ReflectStatus(observedObj)`.
    ReflectStatus,
    /// `AggregateStatus(desiredObj, statusItems)`.
    AggregateStatus,
    /// `Retain(desiredObj, observedObj)`.
    Retain,
    /// `GetComponents(obj)`.
    Components,
    /// `GetDependencies(desiredObj)`.
    Dependencies,
}

impl EntryPoint {
    /// Every function, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Health,
        Self::ClusterTaint,
        Self::Filter,
        Self::Score,
        Self::EvictionCheck,
        Self::Replicas,
        Self::Revise,
        Self::ReflectStatus,
        Self::AggregateStatus,
        Self::Retain,
        Self::Components,
        Self::Dependencies,
    ];

    /// The kind of call that reaches it.
    pub fn call_kind(self) -> CallKind {
        match self {
            Self::Health => CallKind::Health,
            Self::ClusterTaint => CallKind::ClusterTaint,
            Self::Filter => CallKind::Filter,
            Self::Score => CallKind::Score,
            Self::EvictionCheck => CallKind::EvictionCheck,
            Self::Replicas
            | Self::Revise
            | Self::ReflectStatus
            | Self::AggregateStatus
            | Self::Retain
            | Self::Components
            | Self::Dependencies => CallKind::Interpret,
        }
    }

    /// Name of the global function; Karmada's own where Karmada has one.
    pub fn function(self) -> &'static str {
        match self {
            Self::Health => "InterpretHealth",
            Self::ClusterTaint => "ClusterTaint",
            Self::Filter => "Filter",
            Self::Score => "Score",
            Self::EvictionCheck => "EvictionCheck",
            Self::Replicas => "GetReplicas",
            Self::Revise => "ReviseReplica",
            Self::ReflectStatus => "ReflectStatus",
            Self::AggregateStatus => "AggregateStatus",
            Self::Retain => "Retain",
            Self::Components => "GetComponents",
            Self::Dependencies => "GetDependencies",
        }
    }
}
