//! Tests from scripts to verdicts and faults, one file per topic.

mod arguments;
mod health;
mod hostile;
mod interpret;
mod kinds;
mod kube;
mod lines;
mod load;
mod operations;
mod reference;
mod sandbox;

use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, HealthVerdict, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::{EngineKind, Fault, FaultKind, Policy};
use bulkhead_core::time::Time;
use bulkhead_plugin::{Engine, Entry, LoadError, Module, PluginSource};
use serde_json::{Value, json};

use crate::LuaEngine;

/// Returns the time of calls about objects.
pub(crate) fn now() -> Time {
    Time::from_millis(1_700_000_000_000)
}

/// Returns a budget that hostile scripts exhaust quickly.
fn small_budget() -> Budget {
    Budget {
        steps: 100_000,
        wall_clock_ms: 10_000,
        memory_bytes: 4 << 20,
        reply_bytes: 64 << 10,
    }
}

fn source(script: &str, points: &[EntryPoint]) -> PluginSource {
    let entries = points
        .iter()
        .map(|point| Entry {
            point: *point,
            object_kind: None,
        })
        .collect();
    let module = Module {
        origin: "test.lua".to_owned(),
        code: script.into(),
        entries,
    };
    PluginSource {
        taint_keys: vec!["a".to_owned()],
        budget: small_budget(),
        ..PluginSource::new("test", EngineKind::Lua, vec![module])
    }
}

fn try_load(script: &str, point: EntryPoint) -> Result<Arc<dyn Policy>, LoadError> {
    LuaEngine::default()
        .load(&source(script, &[point]))
        .map(|loaded| loaded.policy)
}

fn load(script: &str, point: EntryPoint) -> Arc<dyn Policy> {
    try_load(script, point).unwrap_or_else(|error| panic!("{error}\n{script}"))
}

fn health_call(object: &Arc<Value>) -> HealthCall<'_> {
    HealthCall { object, now: now() }
}

fn health_of(script: &str, object: &Value) -> Result<HealthVerdict, Fault> {
    match load(script, EntryPoint::Health).call(&Call::Health(health_call(&Arc::new(object.clone())))) {
        Ok(Reply::Health(verdict)) => Ok(verdict),
        Ok(other) => panic!("{other:?}"),
        Err(fault) => Err(fault),
    }
}

/// Returns the fault of an `InterpretHealth` with this body.
fn fault_of(body: &str) -> Fault {
    let script = format!("function InterpretHealth(obj)\n{body}\nend");
    health_of(&script, &json!({})).expect_err(body)
}

fn kind_of_fault(body: &str) -> FaultKind {
    fault_of(body).kind
}

/// Returns the value of an expression in a script, as reported by `ReflectStatus`.
fn value_of(expression: &str, object: &Value) -> Result<Value, Fault> {
    let script =
        format!("local kube = require('kube')\nfunction ReflectStatus(obj)\n  return {{v = {expression}}}\nend");
    match interpret(
        &script,
        EntryPoint::ReflectStatus,
        Operation::ReflectStatus {
            object: &Arc::new(object.clone()),
        },
    )? {
        Interpretation::Status(Some(status)) => Ok(status.get("v").cloned().unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn interpret(script: &str, point: EntryPoint, operation: Operation<'_>) -> Result<Interpretation, Fault> {
    match load(script, point).call(&Call::Interpret(InterpretCall { operation, now: now() })) {
        Ok(Reply::Interpret(Some(interpretation))) => Ok(interpretation),
        Ok(other) => panic!("{other:?}"),
        Err(fault) => Err(fault),
    }
}
