//! Write Bulkhead policy plugins in Rust.
//!
//! Implement [`Plugin`] and one or more kinds, for example [`EvictionCheck`], then call [`export!`] once with every kind
//! it implements. `bulkhead plugin build` makes the component.
//!
//! ```ignore
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
//!         Ok(EvictionVerdict::hold(Reason::new("Freeze", "nothing goes today")))
//!     }
//! }
//!
//! bulkhead_sdk::export!(Freeze: EvictionCheck);
//! ```
//!
//! Every call runs in a fresh instance, so nothing that a plugin stores survives a call, unless it declares itself
//! [`REUSABLE`](Plugin::REUSABLE) and its operator agrees.

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

pub use kinds::{ClusterTaint, EvictionCheck, Filter, HealthInterpreter, ResourceInterpreter, Score};

/// What every plugin has.
pub trait Plugin: Sized + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version, 1 to 64 characters.
    const VERSION: &'static str;
    /// What it is for, in a sentence.
    const DESCRIPTION: &'static str = "";
    /// JSON Schema of its configuration; empty when it takes none. Its `examples` are configurations that it accepts,
    /// which the conformance suite tries.
    const CONFIG_SCHEMA: &'static str = "";
    /// The kinds of object that it interprets, as (apiVersion, kind); none is every kind.
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[];
    /// The keys of the taints that it may add and remove.
    const TAINT_KEYS: &'static [&'static str] = &[];
    /// Whether an instance may answer one call after another. Say so only if no call leaves anything behind that
    /// changes the next answer.
    const REUSABLE: bool = false;

    /// Takes the configuration as JSON text, `null` when there is none; [`config`] reads it into a type. An error says
    /// what would be right. It is called on every instance before its first question, so it must be cheap.
    fn configure(config: &str) -> Result<Self, PolicyError>;
}

/// Reads a configuration into a type; what does not fit is an error that says where.
#[cfg(feature = "serde")]
pub fn config<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, PolicyError> {
    serde_json::from_str(text).map_err(|error| PolicyError::InvalidConfig(error.to_string()))
}

#[doc(hidden)]
pub fn metadata<P: Plugin>() -> Metadata {
    let kind =
        |(api_version, kind): &(&str, &str)| ObjectKind { api_version: (*api_version).into(), kind: (*kind).into() };
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
