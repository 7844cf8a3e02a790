//! The port: a policy answers calls, and nobody who calls knows which engine runs it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, CallKind, Reply};

/// What runs a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Compiled into the host.
    Builtin,
    /// A WebAssembly component.
    Wasm,
    /// A Lua script.
    Lua,
}

impl EngineKind {
    /// The spelling used in manifests and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Wasm => "wasm",
            Self::Lua => "lua",
        }
    }
}

/// Who answered, precisely enough to find the same code again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyId {
    /// Name, unique in a policy set.
    pub name: String,
    /// Version as the plugin declares it, or a digest of its code.
    pub version: String,
    /// What runs it.
    pub engine: EngineKind,
}

impl PolicyId {
    /// The id of a built-in policy; its version is that of the host.
    pub fn builtin(name: &str) -> Self {
        Self { name: name.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), engine: EngineKind::Builtin }
    }
}

/// `name`, or `name (engine)` for what is not built in.
impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.engine {
            EngineKind::Builtin => f.write_str(&self.name),
            EngineKind::Wasm | EngineKind::Lua => write!(f, "{} ({})", self.name, self.engine.as_str()),
        }
    }
}

/// What a policy answers: a kind of call and, for calls about an object, which kind of object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// The kind of call.
    pub kind: CallKind,
    /// `(apiVersion, kind)` of the objects; absent is every kind, or a call that is about no object.
    pub object_kind: Option<(String, String)>,
}

impl Capability {
    /// Answers every call of that kind.
    pub fn any(kind: CallKind) -> Self {
        Self { kind, object_kind: None }
    }

    /// Answers calls of that kind about objects of that kind.
    pub fn on(kind: CallKind, api_version: impl Into<String>, object_kind: impl Into<String>) -> Self {
        Self { kind, object_kind: Some((api_version.into(), object_kind.into())) }
    }

    fn covers(&self, kind: CallKind, object: Option<(&str, &str)>) -> bool {
        self.kind == kind
            && match (&self.object_kind, object) {
                (None, _) => true,
                (Some((api_version, object_kind)), Some(asked)) => {
                    (api_version.as_str(), object_kind.as_str()) == asked
                }
                (Some(_), None) => false,
            }
    }
}

/// The whole plugin boundary as decisions see it.
pub trait Policy: Send + Sync {
    /// Who this is.
    fn id(&self) -> &PolicyId;

    /// What it answers. Fixed for the life of the policy.
    fn capabilities(&self) -> &[Capability];

    /// Answers one call. Never blocks for longer than its budget, and never panics: what goes wrong is a
    /// [`Fault`], which is not a verdict.
    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault>;
}

/// Whose fault a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The plugin.
    Guest,
    /// Bulkhead.
    Host,
}

/// What kind of fault it is. Programs match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The guest stopped itself: a trap, a panic, a runtime error of a script.
    Trap,
    /// The step budget is used up.
    OutOfFuel,
    /// The wall-clock backstop fired.
    Deadline,
    /// The memory limit was hit.
    Memory,
    /// The answer is of the wrong type, out of range, too large, or not as long as the call requires.
    BadReply,
    /// The guest returned an error of its own.
    GuestError,
    /// The guest lacks the function that its manifest or its target promises.
    MissingExport,
    /// The guest asked for something that it may not have.
    Denied,
    /// A bug in the host.
    HostBug,
}

impl FaultKind {
    /// Whose fault this kind is.
    pub fn blame(self) -> Blame {
        match self {
            Self::HostBug => Blame::Host,
            Self::Trap
            | Self::OutOfFuel
            | Self::Deadline
            | Self::Memory
            | Self::BadReply
            | Self::GuestError
            | Self::MissingExport
            | Self::Denied => Blame::Guest,
        }
    }

    /// One `CamelCase` word for reasons.
    pub fn code(self) -> &'static str {
        match self {
            Self::Trap => "PluginTrapped",
            Self::OutOfFuel => "PluginOutOfFuel",
            Self::Deadline => "PluginDeadlineExceeded",
            Self::Memory => "PluginOutOfMemory",
            Self::BadReply => "PluginBadReply",
            Self::GuestError => "PluginError",
            Self::MissingExport => "PluginMissingExport",
            Self::Denied => "PluginDenied",
            Self::HostBug => "HostBug",
        }
    }
}

/// A call that got no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Details for people, for example script and line.
    pub message: String,
}

impl Fault {
    /// A fault.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The policies in force, in the order of configuration. Immutable: a reload makes a new one.
#[derive(Clone, Default)]
pub struct PolicySet {
    policies: Vec<Arc<dyn Policy>>,
}

impl PolicySet {
    /// A set; the order of `policies` is the order in which they are asked.
    pub fn new(policies: Vec<Arc<dyn Policy>>) -> Self {
        Self { policies }
    }

    /// The policies that `keep` says yes to, in the same order.
    pub fn filtered(&self, keep: impl Fn(&dyn Policy) -> bool) -> Self {
        Self { policies: self.policies.iter().filter(|policy| keep(policy.as_ref())).cloned().collect() }
    }

    /// Every policy, in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Policy> {
        self.policies.iter().map(AsRef::as_ref)
    }

    /// The policies that answer such a call, in order.
    pub fn answering<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a dyn Policy> {
        let kind = call.kind();
        let object = call.object().map(object_kind);
        let covering: Vec<_> = self
            .iter()
            .filter(|policy| policy.capabilities().iter().any(|capability| capability.covers(kind, object)))
            .collect();
        covering.into_iter()
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Policy::id)).finish()
    }
}

fn object_kind(object: &Value) -> (&str, &str) {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    (field("apiVersion"), field("kind"))
}
