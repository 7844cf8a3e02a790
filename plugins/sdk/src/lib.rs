//! Write Bulkhead policy plugins in Rust.
//!
//! Implement [`Plugin`] and one of the kinds, for example [`EvictionCheck`], then call [`export!`] once
//! with every kind it implements. Build for `wasm32-unknown-unknown` and turn the module into a component.
//!
//! ```ignore
//! use bulkhead_sdk::{Document, EvictionCheck, EvictionVerdict, Plugin, PolicyError, Reason};
//!
//! struct Freeze;
//!
//! impl Plugin for Freeze {
//!     const NAME: &'static str = "freeze";
//!     const VERSION: &'static str = "1.0.0";
//!     fn configure(_config: &str) -> Result<Self, PolicyError> {
//!         Ok(Self)
//!     }
//! }
//!
//! impl EvictionCheck for Freeze {
//!     fn check(&self, _binding: &Document, _task: &Document, _now_s: i64) -> Result<EvictionVerdict, PolicyError> {
//!         Ok(EvictionVerdict::hold(Reason::new("Freeze", "nothing goes today")))
//!     }
//! }
//!
//! bulkhead_sdk::export!(Freeze: EvictionCheck);
//! ```
//!
//! Every call runs in a fresh instance, so nothing that a plugin stores survives a call.

#[doc(hidden)]
pub mod bindings;
mod export;

pub use bindings::any_plugin::bulkhead::policy::log::{Level, write as log};
pub use bindings::any_plugin::bulkhead::policy::types::{Metadata, ObjectKind, PolicyError, Reason, TaintEffect};
pub use bindings::eviction::bulkhead::policy::object::Object as Document;
pub use bindings::eviction::exports::bulkhead::policy::eviction::{HoldVerdict, Verdict as EvictionVerdict};
pub use bindings::filter::bulkhead::policy::clusters::Clusters;
pub use bindings::filter::exports::bulkhead::policy::filter::Verdict as FilterVerdict;
pub use bindings::health::exports::bulkhead::policy::health::{State as HealthState, Verdict as HealthVerdict};
pub use bindings::taints::exports::bulkhead::policy::taints::{Addition, Change as TaintChange, Removal};

impl Reason {
    /// A reason: one `CamelCase` word and a sentence.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl EvictionVerdict {
    /// Holds until the host asks again by itself.
    pub fn hold(reason: Reason) -> Self {
        Self::Hold(HoldVerdict { reason, recheck_after_s: None })
    }

    /// Holds and asks to be asked again after that many seconds.
    pub fn hold_for(reason: Reason, recheck_after_s: u32) -> Self {
        Self::Hold(HoldVerdict { reason, recheck_after_s: Some(recheck_after_s) })
    }
}

/// What every plugin has.
pub trait Plugin: Sized + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version.
    const VERSION: &'static str;
    /// JSON Schema of its configuration; empty when it takes none.
    const CONFIG_SCHEMA: &'static str = "";

    /// Takes the configuration as JSON text, `null` when there is none. An error says what would be right.
    fn configure(config: &str) -> Result<Self, PolicyError>;

    /// The kinds of object that a health interpreter answers for, as (apiVersion, kind); none is every kind.
    fn object_kinds() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

/// May an old copy go?
pub trait EvictionCheck: Plugin {
    /// Decides about one graceful eviction task. `now_s` is in seconds since the Unix epoch.
    fn check(&self, binding: &Document, task: &Document, now_s: i64) -> Result<EvictionVerdict, PolicyError>;
}

/// Which taints should a cluster carry?
pub trait ClusterTaint: Plugin {
    /// Decides about one cluster. `now_s` is in seconds since the Unix epoch.
    fn decide(&self, cluster: &Document, now_s: i64) -> Result<Vec<TaintChange>, PolicyError>;
}

/// How is an object in a member cluster?
pub trait HealthInterpreter: Plugin {
    /// Interprets an object as the member cluster reports it.
    fn interpret(&self, observed: &Document) -> Result<HealthVerdict, PolicyError>;
}

/// Where can a binding run?
pub trait Filter: Plugin {
    /// One verdict per candidate, in their order. `now_s` is in seconds since the Unix epoch.
    fn filter(&self, binding: &Document, candidates: &Clusters, now_s: i64) -> Result<Vec<FilterVerdict>, PolicyError>;
}

/// How good is each feasible cluster?
pub trait Score: Plugin {
    /// One score from 0 to 100 per cluster, in their order. `now_s` is in seconds since the Unix epoch.
    fn score(&self, binding: &Document, feasible: &Clusters, now_s: i64) -> Result<Vec<u32>, PolicyError>;
}

#[doc(hidden)]
pub fn metadata<P: Plugin>() -> Metadata {
    let kind = |(api_version, kind): (&str, &str)| ObjectKind { api_version: api_version.into(), kind: kind.into() };
    Metadata {
        name: P::NAME.into(),
        version: P::VERSION.into(),
        object_kinds: P::object_kinds().into_iter().map(kind).collect(),
        config_schema: P::CONFIG_SCHEMA.into(),
    }
}
