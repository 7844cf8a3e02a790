//! Policy port: a policy answers calls, and its callers do not depend on the engine that runs it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, CallKind, Reply};
use crate::composition::{Composition, Mode};

/// Engine that runs a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Compiled into the host.
    Builtin,
    /// A WebAssembly component.
    Wasm,
    /// A Lua script.
    Lua,
    /// A webhook outside of the host.
    Webhook,
}

impl EngineKind {
    /// Returns the spelling used in manifests and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Wasm => "wasm",
            Self::Lua => "lua",
            Self::Webhook => "webhook",
        }
    }
}

/// Identity of a policy, precise enough to find the same code again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyId {
    /// Name, unique in a policy set.
    pub name: String,
    /// Version declared by the plugin, or a digest of its code.
    pub version: String,
    /// Engine that runs the policy.
    pub engine: EngineKind,
}

impl PolicyId {
    /// Returns the id of a built-in policy, with the version of the host.
    pub fn builtin(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: EngineKind::Builtin,
        }
    }
}

/// `name`, or `name (engine)` for a policy that is not built in.
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

/// Digests of the code and configuration of a policy that is not compiled in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Build {
    /// SHA-256 of the code, as 64 hexadecimal digits.
    pub code: String,
    /// SHA-256 of the configuration as JSON text, as 64 hexadecimal digits.
    pub config: String,
    /// Image that the code comes from; absent for a file or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<SignedImage>,
}

impl Build {
    /// Returns true if code and configuration are the same; the images may differ.
    pub fn is_same_code(&self, other: &Self) -> bool {
        self.code == other.code && self.config == other.config
    }
}

/// Image of a plugin, with its signer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SignedImage {
    /// Registry, repository, and digest of the manifest.
    pub reference: String,
    /// Name of the key that has signed the manifest, as the trust file has it; absent if no signature was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// Formats the reference and the signer.
impl fmt::Display for SignedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference, signer } = self;
        match signer {
            Some(signer) => write!(f, "{reference}, signed by {signer}"),
            None => write!(f, "{reference}, signature not required"),
        }
    }
}

/// Calls that a policy answers: a call kind and, for calls about an object, an object kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// Call kind.
    pub kind: CallKind,
    /// `(apiVersion, kind)` of the objects; absent for every object kind, or for calls without an object.
    pub object_kind: Option<(String, String)>,
}

impl Capability {
    /// Covers every call of this kind.
    pub fn any(kind: CallKind) -> Self {
        Self {
            kind,
            object_kind: None,
        }
    }

    /// Covers calls of this kind for objects of this kind.
    pub fn on(kind: CallKind, api_version: impl Into<String>, object_kind: impl Into<String>) -> Self {
        Self {
            kind,
            object_kind: Some((api_version.into(), object_kind.into())),
        }
    }

    /// Covers calls with the call kind and object kind of `call`.
    pub fn like(call: &Call<'_>) -> Self {
        match call.object().map(|object| object_kind(object)) {
            Some((api_version, kind)) => Self::on(call.kind(), api_version, kind),
            None => Self::any(call.kind()),
        }
    }

    /// Returns true if the capability covers the call.
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

/// Resource usage of a policy's calls since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Steps of all calls, in the unit of the engine: fuel or interrupt checks. The same call has the same cost.
    pub steps: u64,
    /// Peak memory of a single call, in bytes. Lua states grow by pages, so that a small call may need 0.
    pub memory_bytes_max: u64,
}

impl Usage {
    /// Returns the usage of these calls and of others.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_add(other.steps),
            memory_bytes_max: self.memory_bytes_max.max(other.memory_bytes_max),
        }
    }
}

/// Plugin boundary as decisions see it.
pub trait Policy: Send + Sync {
    /// Returns the identity of the policy.
    fn id(&self) -> &PolicyId;

    /// Returns the calls that the policy answers. Constant for the lifetime of the policy.
    fn capabilities(&self) -> &[Capability];

    /// Answers one call. Never blocks beyond its budget and never panics. A failure is a [`Fault`], which is not a
    /// verdict.
    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault>;

    /// Returns the resource usage of the calls of one kind so far. Compiled-in policies are not metered.
    fn usage_of(&self, _kind: CallKind) -> Usage {
        Usage::default()
    }

    /// Returns the resource usage of all calls so far.
    fn usage(&self) -> Usage {
        let of_kinds = CallKind::ALL.map(|kind| self.usage_of(kind));
        of_kinds.into_iter().fold(Usage::default(), Usage::with)
    }

    /// Returns the digests of code and configuration. `None` for compiled-in policies, which have the version of the
    /// program.
    fn build(&self) -> Option<&Build> {
        None
    }
}

/// Party responsible for a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// Plugin.
    Guest,
    /// Bulkhead itself.
    Host,
}

/// Kind of a fault. Programs match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The guest aborted: a trap, a panic or a script runtime error.
    Trap,
    /// The step budget is exhausted.
    OutOfFuel,
    /// The wall-clock limit was reached.
    Deadline,
    /// The memory limit was reached.
    Memory,
    /// The reply has the wrong type or length, is out of range, or is too large.
    BadReply,
    /// The guest returned an error of its own.
    GuestError,
    /// The guest does not handle this input. Counts as an abstention, not as a failure of the plugin.
    Unsupported,
    /// The guest lacks a function that its manifest or its target promises.
    MissingExport,
    /// The guest requested something that it is not permitted to use.
    Denied,
    /// The plugin is quarantined after too many faults and was not called.
    Quarantined,
    /// The host had no capacity for the call in time and did not call the plugin. A retry may succeed.
    HostBusy,
    /// The plugin could not be loaded and has no fallback.
    NotLoaded,
    /// The remote plugin could not be reached, or its identity could not be verified.
    Unreachable,
    /// A bug in the host.
    HostBug,
}

impl FaultKind {
    /// Returns the party responsible for this kind of fault.
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

    /// Returns the `CamelCase` code used in reasons.
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

/// Failed call to a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Human-readable details, for example script and line.
    pub message: String,
}

impl Fault {
    /// Creates a fault.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Policy with its mode and weight.
#[derive(Clone)]
pub struct PolicyEntry {
    /// The policy.
    pub policy: Arc<dyn Policy>,
    /// Participation in decisions.
    pub mode: Mode,
    /// Factor by which its scores are multiplied.
    pub weight: u32,
}

impl PolicyEntry {
    /// Creates an entry with mode `Enforce` and weight 1.
    pub fn enforced(policy: Arc<dyn Policy>) -> Self {
        Self {
            policy,
            mode: Mode::Enforce,
            weight: 1,
        }
    }
}

/// Policies in force, in configuration order. Immutable: a reload creates a new set.
#[derive(Clone, Default)]
pub struct PolicySet {
    entries: Vec<PolicyEntry>,
    composition: Composition,
}

impl PolicySet {
    /// Creates a set in which all policies are enforced with weight 1 and the default rules. They are called in the
    /// order of `policies`.
    pub fn new(policies: Vec<Arc<dyn Policy>>) -> Self {
        Self::composed(
            policies.into_iter().map(PolicyEntry::enforced).collect(),
            Composition::default(),
        )
    }

    /// Creates a set; policies are called in the order of `entries`.
    pub fn composed(entries: Vec<PolicyEntry>, composition: Composition) -> Self {
        Self { entries, composition }
    }

    /// Returns the rules that combine several replies into one.
    pub fn composition(&self) -> Composition {
        self.composition
    }

    /// Returns all entries in order, including policies that are off.
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.entries
    }

    /// Returns the entries for which `keep` returns true, with the order and the rules unchanged.
    pub fn filtered(&self, keep: impl Fn(&dyn Policy) -> bool) -> Self {
        let entries = self
            .entries
            .iter()
            .filter(|entry| keep(entry.policy.as_ref()))
            .cloned()
            .collect();
        Self {
            entries,
            composition: self.composition,
        }
    }

    /// Returns all policies that are not off, in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Policy> {
        self.entries
            .iter()
            .filter(|entry| entry.mode != Mode::Off)
            .map(|entry| entry.policy.as_ref())
    }

    /// Returns the enforced policies that cover the call, in order.
    pub fn answering<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a PolicyEntry> {
        self.covering(call, Mode::Enforce)
    }

    /// Returns the shadow policies that cover the call, in order.
    pub fn shadowing<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a PolicyEntry> {
        self.covering(call, Mode::Shadow)
    }

    fn covering<'a>(&'a self, call: &Call<'_>, mode: Mode) -> impl Iterator<Item = &'a PolicyEntry> {
        let answers = answers(call);
        let covers = |entry: &&PolicyEntry| entry.mode == mode && answers(&*entry.policy);
        let covering: Vec<_> = self.entries.iter().filter(covers).collect();
        covering.into_iter()
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries.iter().map(|entry| (entry.policy.id(), entry.mode)))
            .finish()
    }
}

/// Returns a function that is true for policies that cover the call. It looks up the kind of the object once.
pub fn answers<'a>(call: &'a Call<'_>) -> impl Fn(&dyn Policy) -> bool + use<'a> {
    let kind = call.kind();
    let object = call.object().map(|object| object_kind(object));
    move |policy| {
        let mut capabilities = policy.capabilities().iter();
        capabilities.any(|capability| capability.covers(kind, object))
    }
}

fn object_kind(object: &Value) -> (&str, &str) {
    let field = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    (field("apiVersion"), field("kind"))
}
