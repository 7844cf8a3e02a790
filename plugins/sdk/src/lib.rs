//! SDK for Bulkhead policy plugins in Rust.
//!
//! Implement [`Plugin`] and one or more kinds, for example [`EvictionCheck`], then call [`export!`] once with every
//! kind that it implements. `bulkhead plugin build` builds the component.
//!
//! ```no_run,standalone_crate
//! use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
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
//!     fn check(&self, _binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
//!         Ok(EvictionVerdict::hold(Reason::new("Freeze", "evictions are frozen")))
//!     }
//! }
//!
//! bulkhead_sdk::export!(Freeze: EvictionCheck);
//! # fn main() {}
//! ```
//!
//! Every call runs in a new instance, so no state of a plugin survives a call, unless it declares itself
//! [`REUSABLE`](Plugin::REUSABLE) and its operator allows it.

#[doc(hidden)]
pub mod bindings;
mod export;
mod kinds;
mod verdict;

pub use bindings::inputs::bulkhead::policy::binding::{Binding, EvictionTask, Target};
pub use bindings::inputs::bulkhead::policy::cluster::{Cluster, Condition, Taint};
pub use bindings::inputs::bulkhead::policy::clusters::Clusters;
pub use bindings::inputs::bulkhead::policy::context::{now_ms, plugin_name, seed};
pub use bindings::inputs::bulkhead::policy::log::{Level, write as log};
pub use bindings::inputs::bulkhead::policy::object::{Object, Value};
pub use bindings::inputs::bulkhead::policy::observations::Observations;
pub use bindings::inputs::bulkhead::policy::types::{
    ConditionStatus, HealthState, Metadata, ObjectKind, PolicyError, Reason, TaintEffect,
};

pub use bindings::eviction::exports::bulkhead::policy::eviction::{HoldVerdict, Verdict as EvictionVerdict};
pub use bindings::filter::exports::bulkhead::policy::filter::Verdict as FilterVerdict;
pub use bindings::health::exports::bulkhead::policy::health::Verdict as HealthVerdict;
pub use bindings::interpreter::exports::bulkhead::policy::interpreter::{
    Assignment, Component, Dependency, Edit, ReplicaRequirements, Replicas,
};
pub use bindings::taints::exports::bulkhead::policy::taints::{Addition, Change as TaintChange, Removal};

/// Writes the messages of panics to the log of the host, which knows only the trap otherwise.
#[doc(hidden)]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
}

pub use kinds::{ClusterTaint, EvictionCheck, Filter, HealthInterpreter, ResourceInterpreter, Score};

/// Metadata and configuration of a plugin, common to all kinds.
pub trait Plugin: Sized + 'static {
    /// Name of the plugin.
    const NAME: &'static str;
    /// Version, 1 to 64 characters.
    const VERSION: &'static str;
    /// Purpose of the plugin in one sentence.
    const DESCRIPTION: &'static str = "";
    /// JSON Schema of the configuration; empty if it takes none. The schema's `examples` are valid configurations,
    /// which the conformance suite tests.
    const CONFIG_SCHEMA: &'static str = "";
    /// Kinds of object that it interprets, as (apiVersion, kind); empty means every kind.
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[];
    /// Keys of the taints that it may add and remove.
    const TAINT_KEYS: &'static [&'static str] = &[];
    /// True if an instance may answer several calls. Set it only if no call leaves state behind that changes a later
    /// answer.
    const REUSABLE: bool = false;

    /// Creates the plugin from its configuration in JSON text, `null` if there is none; [`config`] parses it. An
    /// error describes a valid configuration. It is called on every instance before its first call, so it must be
    /// cheap.
    fn configure(config: &str) -> Result<Self, PolicyError>;
}

/// Parses a configuration. The error contains the position of an invalid value.
#[cfg(feature = "serde")]
pub fn config<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, PolicyError> {
    serde_json::from_str(text).map_err(|error| PolicyError::InvalidConfig(error.to_string()))
}

#[doc(hidden)]
pub fn metadata<P: Plugin>() -> Metadata {
    let kind = |(api_version, kind): &(&str, &str)| ObjectKind {
        api_version: (*api_version).into(),
        kind: (*kind).into(),
    };
    Metadata {
        name: P::NAME.into(),
        version: P::VERSION.into(),
        description: P::DESCRIPTION.into(),
        object_kinds: P::OBJECT_KINDS.iter().map(kind).collect(),
        taint_keys: P::TAINT_KEYS.iter().map(|key| (*key).into()).collect(),
        config_schema: P::CONFIG_SCHEMA.into(),
        reusable: P::REUSABLE,
        annotations: Vec::new(),
    }
}
