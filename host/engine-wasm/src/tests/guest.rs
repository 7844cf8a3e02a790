//! Loading and calling the component of `guest.wat` with a modification.

use std::sync::Arc;

use bulkhead_core::call::{Call, EvictionCheckCall, EvictionVerdict, Reply};
use bulkhead_core::manifest::{Budget, Instances};
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::policy::{EngineKind, Fault, Policy};
use bulkhead_core::time::Time;
use bulkhead_plugin::{Engine, LoadError, Module, PluginSource};

use crate::{Options, WasmEngine};

/// Text of the well-behaved component.
pub(super) const GUEST: &str = include_str!("guest.wat");

/// Returns the component with one part of its text replaced, which must occur exactly once.
pub(super) fn with(old: &str, new: &str) -> String {
    assert_eq!(GUEST.matches(old).count(), 1, "{old}");
    GUEST.replace(old, new)
}

/// Loads the text of a component with a new engine.
pub(super) fn load(options: Options, text: &str, budget: Budget) -> Result<Arc<dyn Policy>, LoadError> {
    load_with(&WasmEngine::new(options).unwrap(), text, budget)
}

/// Loads the text of a component.
pub(super) fn load_with(engine: &WasmEngine, text: &str, budget: Budget) -> Result<Arc<dyn Policy>, LoadError> {
    engine
        .load(&PluginSource { budget, ..source(text) })
        .map(|loaded| loaded.policy)
}

/// Loads the text of a component whose instances are reused.
pub(super) fn load_reused(engine: &WasmEngine, text: &str, budget: Budget) -> Result<Arc<dyn Policy>, LoadError> {
    let source = PluginSource {
        budget,
        instances: Instances::Reused,
        ..source(text)
    };
    engine.load(&source).map(|loaded| loaded.policy)
}

fn source(text: &str) -> PluginSource {
    let code = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let module = Module {
        origin: "guest.wat".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    PluginSource::new("guest", EngineKind::Wasm, vec![module])
}

/// Returns its verdict on a task.
pub(super) fn ask(policy: &dyn Policy) -> Result<EvictionVerdict, Fault> {
    let (binding, task) = (Binding::default(), GracefulEvictionTask::default());
    let call = EvictionCheckCall {
        binding: &binding,
        task: &task,
        observed: &[],
        now: Time::from_millis(0),
    };
    policy.call(&Call::EvictionCheck(call)).map(|reply| match reply {
        Reply::EvictionCheck(verdict) => verdict,
        reply => panic!("a {} reply", reply.kind()),
    })
}
