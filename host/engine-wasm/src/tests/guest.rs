//! Loading and asking the component of `guest.wat`, changed in one place.

use std::sync::Arc;

use bulkhead_core::call::{Call, EvictionCheckCall, EvictionVerdict, Reply};
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::policy::{EngineKind, Fault, Policy};
use bulkhead_core::time::Time;
use bulkhead_plugin::{Budget, Engine, LoadError, Module, PluginSource};

use crate::{Options, WasmEngine};

/// The text of the well-behaved component.
pub(super) const GUEST: &str = include_str!("guest.wat");

/// The component with one part of its text replaced, which must be there once.
pub(super) fn with(old: &str, new: &str) -> String {
    assert_eq!(GUEST.matches(old).count(), 1, "{old}");
    GUEST.replace(old, new)
}

/// Loads the text of a component.
pub(super) fn load(options: Options, text: &str, budget: Budget) -> Result<Arc<dyn Policy>, LoadError> {
    let code = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let module = Module { origin: "guest.wat".to_owned(), code, entries: Vec::new() };
    let source = PluginSource { budget, ..PluginSource::new("guest", EngineKind::Wasm, vec![module]) };
    WasmEngine::new(options).unwrap().load(&source).map(|loaded| loaded.policy)
}

/// What it says about a task.
pub(super) fn ask(policy: &dyn Policy) -> Result<EvictionVerdict, Fault> {
    let (binding, task) = (Binding::default(), GracefulEvictionTask::default());
    let call = EvictionCheckCall { binding: &binding, task: &task, observed: &[], now: Time::from_millis(0) };
    policy.call(&Call::EvictionCheck(call)).map(|reply| match reply {
        Reply::EvictionCheck(verdict) => verdict,
        reply => panic!("a {} reply", reply.kind()),
    })
}
