//! The port: a policy answers calls, and nobody who calls knows which engine runs it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, CallKind, Reply};
use crate::composition::{Composition, Mode};

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
    /// A webhook that somebody else runs.
    Webhook,
}

impl EngineKind {
    /// The spelling used in manifests and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Wasm => "wasm",
            Self::Lua => "lua",
            Self::Webhook => "webhook",
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
            EngineKind::Wasm | EngineKind::Lua | EngineKind::Webhook => {
                write!(f, "{} ({})", self.name, self.engine.as_str())
            }
        }
    }
}

/// The very code and configuration of a policy that is not compiled in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Build {
    /// SHA-256 of the code, as 64 hexadecimal digits.
    pub code: String,
    /// SHA-256 of the configuration as JSON text, as 64 hexadecimal digits.
    pub config: String,
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

    /// Answers calls of the kind of that one, about objects of the kind of its object.
    pub fn like(call: &Call<'_>) -> Self {
        match call.object().map(|object| object_kind(object)) {
            Some((api_version, kind)) => Self::on(call.kind(), api_version, kind),
            None => Self::any(call.kind()),
        }
    }

    /// Whether it promises an answer to that call.
    pub fn answers(&self, call: &Call<'_>) -> bool {
        self.covers(call.kind(), call.object().map(|object| object_kind(object)))
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

/// What the calls of a policy have cost since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Steps of all calls together, in the unit of the engine: fuel, or interrupt checks. The same call costs the same.
    pub steps: u64,
    /// The most memory that any one call held, in bytes; 0 when the engine does not measure it.
    pub memory_bytes_max: u64,
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

    /// What its calls have cost so far. Policies that are compiled in are not metered.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Its code and configuration. Policies that are compiled in have the version of the program.
    fn build(&self) -> Option<&Build> {
        None
    }
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
    /// The guest does not handle what it was asked about. This is an abstention and counts against nobody.
    Unsupported,
    /// The guest lacks the function that its manifest or its target promises.
    MissingExport,
    /// The guest asked for something that it may not have.
    Denied,
    /// The plugin is in quarantine after too many faults and was not asked.
    Quarantined,
    /// The host had no room for the call in time, and the plugin was not asked. The same call may well succeed later.
    HostBusy,
    /// The plugin could not be loaded, and nobody answers in its place.
    NotLoaded,
    /// The plugin runs elsewhere and could not be reached, or is not who it should be.
    Unreachable,
    /// A bug in the host.
    HostBug,
}

impl FaultKind {
    /// Whose fault this kind is.
    pub fn blame(self) -> Blame {
        match self {
            Self::HostBusy | Self::HostBug => Blame::Host,
            Self::Trap
            | Self::OutOfFuel
            | Self::Deadline
            | Self::Memory
            | Self::BadReply
            | Self::GuestError
            | Self::Unsupported
            | Self::MissingExport
            | Self::Denied
            | Self::Quarantined
            | Self::NotLoaded
            | Self::Unreachable => Blame::Guest,
        }
    }

    /// Whether nothing was found out about the plugin, and to ask again later is all that is needed.
    pub fn is_retryable(self) -> bool {
        self == Self::HostBusy
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
            Self::Unsupported => "PluginUnsupported",
            Self::MissingExport => "PluginMissingExport",
            Self::Denied => "PluginDenied",
            Self::Quarantined => "PluginQuarantined",
            Self::HostBusy => "HostBusy",
            Self::NotLoaded => "PluginNotLoaded",
            Self::Unreachable => "PluginUnreachable",
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

/// A policy and how it takes part.
#[derive(Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<dyn Policy>,
    /// Whether its answers count.
    pub mode: Mode,
    /// What its scores are multiplied with.
    pub weight: u32,
}

impl Member {
    /// A policy whose answers count, with weight 1.
    pub fn enforced(policy: Arc<dyn Policy>) -> Self {
        Self { policy, mode: Mode::Enforce, weight: 1 }
    }
}

/// The policies in force, in the order of configuration. Immutable: a reload makes a new one.
#[derive(Clone, Default)]
pub struct PolicySet {
    members: Vec<Member>,
    composition: Composition,
}

impl PolicySet {
    /// A set of policies that are all enforced, with weight 1 and the default rules; the order of `policies` is the
    /// order in which they are asked.
    pub fn new(policies: Vec<Arc<dyn Policy>>) -> Self {
        Self::composed(policies.into_iter().map(Member::enforced).collect(), Composition::default())
    }

    /// A set; the order of `members` is the order in which they are asked.
    pub fn composed(members: Vec<Member>, composition: Composition) -> Self {
        Self { members, composition }
    }

    /// The rules by which several answers become one.
    pub fn composition(&self) -> Composition {
        self.composition
    }

    /// Every policy with how it takes part, in order, those that are off included.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The policies that `keep` says yes to, in the same order and with the same rules.
    pub fn filtered(&self, keep: impl Fn(&dyn Policy) -> bool) -> Self {
        let members = self.members.iter().filter(|member| keep(member.policy.as_ref())).cloned().collect();
        Self { members, composition: self.composition }
    }

    /// Every policy that is not off, in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Policy> {
        self.members.iter().filter(|member| member.mode != Mode::Off).map(|member| member.policy.as_ref())
    }

    /// The policies whose answers to such a call count, in order.
    pub fn answering<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a Member> {
        self.covering(call, Mode::Enforce)
    }

    /// The policies that are asked such a call only to compare, in order.
    pub fn shadowing<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a Member> {
        self.covering(call, Mode::Shadow)
    }

    fn covering<'a>(&'a self, call: &Call<'_>, mode: Mode) -> impl Iterator<Item = &'a Member> {
        let kind = call.kind();
        let object = call.object().map(|object| object_kind(object));
        let covers = |member: &&Member| {
            member.mode == mode && member.policy.capabilities().iter().any(|capability| capability.covers(kind, object))
        };
        let covering: Vec<_> = self.members.iter().filter(covers).collect();
        covering.into_iter()
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| (member.policy.id(), member.mode))).finish()
    }
}

fn object_kind(object: &Value) -> (&str, &str) {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    (field("apiVersion"), field("kind"))
}
