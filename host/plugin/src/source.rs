use std::fmt;

use bulkhead_core::call::{Call, CallKind, Operation};
use bulkhead_core::policy::{Build, Capability, EngineKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{Budget, Dialect};

/// A plugin before it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSource {
    /// Name, unique in a registry.
    pub name: String,
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Code: one component, or one or more scripts.
    pub modules: Vec<Module>,
    /// For scripts without listed functions: `(apiVersion, kind)` of the objects that the functions take; empty means
    /// every kind.
    pub object_kinds: Vec<(String, String)>,
    /// Configuration passed to the plugin when it is loaded; null if there is none.
    pub config: Value,
    /// JSON Schema of the configuration, for plugins that cannot declare it themselves: scripts.
    pub config_schema: Option<Value>,
    /// Keys of the taints that it may add and remove, for plugins that cannot declare them themselves: scripts.
    pub taint_keys: Vec<String>,
    /// Limits of one call.
    pub budget: Budget,
    /// Lifetime of an instance.
    pub instances: Instances,
    /// Time at which a script is checked for its functions.
    pub inspection: Inspection,
    /// Interface that its scripts are written for. It decides which library functions they may call; the code is
    /// translated already.
    pub dialect: Dialect,
}

impl PluginSource {
    /// Returns a plugin without configuration, with the default budget and an instance for every call.
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
            dialect: Dialect::default(),
        }
    }

    /// Returns the origin of the first module, for messages.
    pub fn origin(&self) -> &str {
        self.modules.first().map_or("", |module| &module.origin)
    }

    /// Returns the digests of its code and configuration, for records of its decisions.
    pub fn build(&self) -> Build {
        let config = self.config.to_string();
        Build { code: self.digest().to_string(), config: Digest::of(std::iter::once(config.as_bytes())).to_string() }
    }

    /// Returns the digest of its code.
    pub fn digest(&self) -> Digest {
        Digest::of(self.modules.iter().map(|module| module.code.as_slice()))
    }
}

/// Time at which a script is checked for its functions. The exports of a component are known without running it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inspection {
    /// During loading: the top level runs once and must define the functions of the entries.
    #[default]
    AtLoading,
    /// During calls, as in Karmada. The script must compile nevertheless.
    AtCalls,
}

/// Lifetime of an instance of a component. Scripts always have a new environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// One call.
    #[default]
    Fresh,
    /// Many calls. The component must declare that it supports this.
    Reused,
}

/// SHA-256 of a plugin's code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of several pieces, each prefixed with its length, so that moving a boundary changes it. The
    /// digest of a single piece is the plain SHA-256, as computed by other tools.
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

    /// Returns the first 12 hexadecimal digits, to distinguish builds of a plugin.
    pub fn short(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(12);
        digits
    }
}

/// Formats the digest as 64 hexadecimal digits.
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
    /// Origin for messages: a path, or an object and field.
    pub origin: String,
    /// A component in binary form, or the text of a script.
    pub code: Vec<u8>,
    /// Functions of a script that are called; empty means every function of [`EntryPoint::ALL`] that it defines.
    /// Empty for a component, whose exports declare them.
    pub entries: Vec<Entry>,
}

/// One function of a script and the kind of object that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Function.
    pub point: EntryPoint,
    /// `(apiVersion, kind)` of the objects, for functions that take one; absent for every kind.
    pub object_kind: Option<(String, String)>,
}

impl Entry {
    /// Returns one entry for each kind of object; a single entry for every kind if there are none.
    pub fn on(point: EntryPoint, object_kinds: &[(String, String)]) -> Vec<Self> {
        if object_kinds.is_empty() {
            return vec![Self { point, object_kind: None }];
        }
        object_kinds.iter().map(|kind| Self { point, object_kind: Some(kind.clone()) }).collect()
    }

    /// Returns the capability that this entry gives a policy.
    pub fn capability(&self) -> Capability {
        Capability { kind: self.point.call_kind(), object_kind: self.object_kind.clone() }
    }
}

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
