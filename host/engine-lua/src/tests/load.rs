use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Capability, EngineKind, FaultKind};
use bulkhead_plugin::{Engine, Entry, LoadStage, Module};
use serde_json::json;

use super::{health_call, load, source, try_load};
use crate::{LuaEngine, Options};

fn check_error(script: &str, stage: LoadStage, message: &str) {
    let Err(error) = try_load(script, EntryPoint::Health) else {
        panic!("loaded {script}")
    };
    assert_eq!((error.stage, error.message.as_str()), (stage, message), "{script}");
    assert_eq!((error.plugin.as_str(), error.origin.as_str()), ("test", "test.lua"));
}

#[test]
fn syntax_errors_carry_origin_and_line() {
    let script = "function InterpretHealth(obj)\n  return obj.\nend";
    let message = "test.lua:3: Expected identifier, got 'end'";
    check_error(script, LoadStage::Compiled, message);
}

#[test]
fn a_promised_function_must_be_there() {
    let absent = "the script defines no global function InterpretHealth";
    check_error(
        "local function InterpretHealth(obj) return true end",
        LoadStage::Inspected,
        absent,
    );
    check_error(
        "-- function InterpretHealth(obj) return true end",
        LoadStage::Inspected,
        absent,
    );
    let near = "the script defines no global function InterpretHealth; is InterpretHealt meant?";
    check_error(
        "function InterpretHealt(obj) return true end",
        LoadStage::Inspected,
        near,
    );
    check_error(
        "InterpretHealth = 1",
        LoadStage::Inspected,
        "InterpretHealth is a number, not a function",
    );
}

#[test]
fn the_top_level_runs_under_the_budget() {
    check_error("\nerror('boom')", LoadStage::Inspected, "test.lua:2: boom");
    check_error(
        "hs = {}\nif obj.status ~= nil then\n  hs.status = 'Healthy'\nend\nreturn hs",
        LoadStage::Inspected,
        "test.lua:2: attempt to index nil with 'status': obj is not defined; scripts of Argo CD need the dialect argo",
    );
    check_error(
        "while true do end",
        LoadStage::Inspected,
        "test.lua:1: used up its 100000 steps",
    );
}

#[test]
fn long_scripts_and_scripts_for_nothing_are_refused() {
    let engine = LuaEngine::new(Options {
        script_bytes_max: 10,
        ..Options::default()
    });
    let error = engine
        .load(&source("function InterpretHealth() end", &[EntryPoint::Health]))
        .err()
        .unwrap();
    assert_eq!(error.message, "the script has 30 bytes, at most 10 are allowed");
    let error = LuaEngine::default().load(&source("", &[])).err().unwrap();
    assert!(
        error.message.contains("known global functions: InterpretHealth, "),
        "{error}"
    );
}

#[test]
fn functions_are_found_when_none_is_promised() {
    let script = "function InterpretHealth(obj) return true end\nfunction GetReplicas(obj) return 1 end";
    let mut source = source(script, &[]);
    source.object_kinds = vec![("example.io/v1".to_owned(), "Game".to_owned())];
    let loaded = LuaEngine::default().load(&source).unwrap();
    let on = |kind| Capability::on(kind, "example.io/v1", "Game");
    assert_eq!(
        loaded.policy.capabilities(),
        [on(CallKind::Health), on(CallKind::Interpret)]
    );
}

#[test]
fn a_script_that_changes_taints_has_to_declare_them() {
    let mut source = source("function ClusterTaint(cluster, now) return {} end", &[]);
    source.taint_keys.clear();
    let error = LuaEngine::default().load(&source).err().unwrap();
    assert_eq!(error.stage, LoadStage::Described);
    assert!(error.message.contains("taintKeys"), "{error}");
}

#[test]
fn a_configuration_has_to_fit_the_schema() {
    let mut source = source("function InterpretHealth(obj) return true end", &[]);
    source.config = json!({"limit": "high"});
    assert!(LuaEngine::default().load(&source).is_ok());
    source.config_schema = Some(json!({"properties": {"limit": {"type": "integer"}}}));
    let error = LuaEngine::default().load(&source).err().unwrap();
    assert_eq!(error.stage, LoadStage::Configured);
    assert!(error.message.contains("config/limit"), "{error}");
}

#[test]
fn the_id_identifies_the_code() {
    let id = |script: &str| load(script, EntryPoint::Health).id().clone();
    let (one, other) = (
        "function InterpretHealth() return true end",
        "function InterpretHealth() return false end",
    );
    assert_eq!((id(one).name.as_str(), id(one).engine), ("test", EngineKind::Lua));
    assert_eq!(id(one).version.len(), 12);
    assert_eq!(id(one), id(one));
    assert_ne!(id(one).version, id(other).version);
}

#[test]
fn the_kind_of_object_decides_which_script_answers() {
    let module = |kind: &str, healthy: bool| Module {
        origin: format!("{kind}.lua"),
        code: format!("function InterpretHealth(obj) return {healthy} end").into(),
        entries: vec![Entry {
            point: EntryPoint::Health,
            object_kind: Some(("v1".to_owned(), kind.to_owned())),
        }],
    };
    let mut source = source("", &[]);
    source.modules = vec![module("A", true), module("B", false), module("A", false)];
    let policy = LuaEngine::default().load(&source).unwrap().policy;
    let on = |kind: &str| Capability::on(CallKind::Health, "v1", kind);
    assert_eq!(policy.capabilities(), [on("A"), on("B")]);
    let health = |kind: &str| {
        let object = Arc::new(json!({"apiVersion": "v1", "kind": kind}));
        policy
            .call(&Call::Health(health_call(&object)))
            .map_err(|fault| fault.kind)
            .map(|reply| match reply {
                Reply::Health(verdict) => verdict.health,
                other => panic!("{other:?}"),
            })
    };
    assert_eq!(health("A"), Ok(Health::Healthy));
    assert_eq!(health("B"), Ok(Health::Unhealthy));
    assert_eq!(health("C"), Err(FaultKind::MissingExport));
}

#[test]
fn configuration_is_a_global() {
    let mut source = source(
        "function InterpretHealth() return config.limit == 3 end",
        &[EntryPoint::Health],
    );
    source.config = json!({"limit": 3});
    let policy = LuaEngine::default().load(&source).unwrap().policy;
    let Ok(Reply::Health(verdict)) = policy.call(&Call::Health(health_call(&Arc::new(json!({}))))) else {
        panic!("no health");
    };
    assert_eq!(verdict.health, Health::Healthy);
}
