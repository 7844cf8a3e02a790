use std::fmt;

use bulkhead_core::call::{CallKind, Operation};
use bulkhead_core::policy::{Build, Capability, EngineKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

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
    /// For scripts whose functions are found by looking: `(apiVersion, kind)` of the objects that those are asked
    /// about; none is every kind.
    pub object_kinds: Vec<(String, String)>,
    /// Configuration handed to the plugin when it is loaded; null when there is none.
    pub config: Value,
    /// JSON Schema of the configuration, for plugins that cannot tell it themselves: scripts.
    pub config_schema: Option<Value>,
    /// Keys of the taints that it may add and remove, for plugins that cannot tell them themselves: scripts.
    pub taint_keys: Vec<String>,
    /// What one call may cost.
    pub budget: Budget,
    /// How long an instance lives.
    pub instances: Instances,
    /// When a script has to be what it promises to be.
    pub inspection: Inspection,
}

impl PluginSource {
    /// A plugin without configuration, with the default budget and an instance for every call.
    pub fn new(name: impl Into<String>, engine: EngineKind, modules: Vec<Module>) -> Self {
        Self {
            name: name.into(),
            engine,
            modules,
            object_kinds: Vec::new(),
            config: Value::Null,
            config_schema: None,
            taint_keys: Vec::new(),
            budget: Budget::default(),
            instances: Instances::default(),
            inspection: Inspection::default(),
        }
    }

    /// Where its code came from, for messages; that of the first module.
    pub fn origin(&self) -> &str {
        self.modules.first().map_or("", |module| &module.origin)
    }

    /// Its code and configuration, for records of what it decided.
    pub fn build(&self) -> Build {
        let config = self.config.to_string();
        Build { code: self.digest().to_string(), config: Digest::of(std::iter::once(config.as_bytes())).to_string() }
    }

    /// The digest of its code.
    pub fn digest(&self) -> Digest {
        Digest::of(self.modules.iter().map(|module| module.code.as_slice()))
    }
}

/// When a script has to be what it promises to be. What a component exports is known without running it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inspection {
    /// When it is loaded: its top level runs once, and has to define the functions that it promises.
    #[default]
    AtLoading,
    /// When it is called, as in Karmada. It has to compile all the same.
    AtCalls,
}

/// How long an instance of a component lives. Scripts always have a fresh environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// For one call.
    #[default]
    Fresh,
    /// For many calls. The component has to declare that it bears it.
    Reused,
}

/// SHA-256 of a plugin's code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of several pieces, each with its length, so that moving a border changes it; of a single piece it is
    /// the plain SHA-256, which other tools tell too.
    pub fn of<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let pieces: Vec<_> = pieces.collect();
        let mut hash = Sha256::new();
        for piece in &pieces {
            if pieces.len() > 1 {
                hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
            }
            hash.update(piece);
        }
        Self(hash.finalize().into())
    }

    /// The first 12 hexadecimal digits: enough to tell builds of a plugin apart at a glance.
    pub fn short(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(12);
        digits
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

/// One piece of code.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Where it came from, for messages: a path, or an object and field.
    pub origin: String,
    /// A component in binary form, or the text of a script.
    pub code: Vec<u8>,
    /// What a script answers; empty is every function of [`EntryPoint::ALL`] that it defines. Empty for a component,
    /// whose exports say so.
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
    /// A function that is asked about objects of these kinds, one entry for each; none is every kind.
    pub fn on(point: EntryPoint, object_kinds: &[(String, String)]) -> Vec<Self> {
        if object_kinds.is_empty() {
            return vec![Self { point, object_kind: None }];
        }
        object_kinds.iter().map(|kind| Self { point, object_kind: Some(kind.clone()) }).collect()
    }

    /// The capability that this entry gives a policy.
    pub fn capability(&self) -> Capability {
        Capability { kind: self.point.call_kind(), object_kind: self.object_kind.clone() }
    }
}

/// The functions that a script may offer.
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
    /// Every function, in the order of declaration.
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

    /// The function that answers an operation.
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

    /// The field of a ResourceInterpreterCustomization that holds its script; none for functions that are ours.
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

    /// The function whose script is in that field.
    pub fn of_rule(rule: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.rule() == Some(rule))
    }

    /// Karmada's name of the operation that it answers; none for functions that are ours.
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

    /// The kind of call that reaches it.
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

    /// Name of the global function; Karmada's own where Karmada has one.
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

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn one_piece_has_the_digest_that_other_tools_tell() {
        let digest = Digest::of([b"abc".as_slice()].into_iter());
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.short(), "ba7816bf8f01");
    }

    #[test]
    fn the_border_between_pieces_counts() {
        let of = |pieces: [&'static str; 2]| Digest::of(pieces.into_iter().map(str::as_bytes));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
