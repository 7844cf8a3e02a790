//! What every plugin engine shares: where code comes from, what it may cost, which replies are in bounds, and
//! the registry that holds the policies in force.
//!
//! An engine implements [`Engine`] once; [`Bounded`] wraps what it loads, built-ins included, so that reply
//! bounds, panics and counters are handled in one place. Nothing here knows wasmtime, mlua or kube.

mod bounds;
mod budget;
mod engine;
mod registry;
mod source;

pub use bounds::{Bounded, CallCounts, REASON_CODE_CHARS_MAX, REASON_MESSAGE_CHARS_MAX, TAINT_CHANGES_MAX};
pub use budget::Budget;
pub use engine::{Engine, LoadError, LoadStage};
pub use registry::{Layer, PluginReport, Registry, RegistrySubscription};
pub use source::{Entry, EntryPoint, Instances, Module, PluginSource};
