//! Conformance suite on every example plugin and every built-in policy, with each engine.

use std::fs;
use std::sync::Arc;

use bulkhead_conformance::{Case, Subject, read_cases, run, smoke};
use bulkhead_core::call::Reply;
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::{EngineKind, Fault, Policy};
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::{Bounded, Engine, Entry, LoadError, Module, PluginSource};
use bulkhead_plugins_builtin::{FailoverEviction, NativeHealth, ResourceHealth};
use serde_json::{Value, json};

use crate::support::root;

fn bounded(policy: Arc<dyn Policy>) -> Arc<dyn Policy> {
    Arc::new(Bounded::new(policy))
}

fn source(name: &str, engine: EngineKind, module: Module, config: &Value) -> PluginSource {
    PluginSource {
        config: config.clone(),
        ..PluginSource::new(name, engine, vec![module])
    }
}

fn wasm_engine() -> WasmEngine {
    WasmEngine::new(Default::default()).unwrap()
}

/// Returns the plugin source of an example's component. `cargo xtask guests` builds the component.
fn component(name: &str, config: &Value) -> PluginSource {
    let file = root().join("target/guests").join(format!("{name}.wasm"));
    let code = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", file.display()));
    source(
        name,
        EngineKind::Wasm,
        Module {
            origin: format!("{name}.wasm"),
            code: code.into(),
            entries: Vec::new(),
        },
        config,
    )
}

/// Loads the component of an example.
fn wasm(engine: &WasmEngine, name: &str, config: &Value) -> Result<Arc<dyn Policy>, LoadError> {
    engine
        .load(&component(name, config))
        .map(|loaded| bounded(loaded.policy))
}

/// Loads the script of an example.
fn lua(name: &str, point: EntryPoint, object_kind: Option<(&str, &str)>) -> Arc<dyn Policy> {
    let file = root().join("examples/plugins").join(name).join(format!("{name}.lua"));
    let code = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let object_kind = object_kind.map(|(api_version, kind)| (api_version.to_owned(), kind.to_owned()));
    let module = Module {
        origin: format!("{name}.lua"),
        code: code.into(),
        entries: vec![Entry { point, object_kind }],
    };
    bounded(
        LuaEngine::default()
            .load(&source(name, EngineKind::Lua, module, &Value::Null))
            .unwrap()
            .policy,
    )
}

fn cases(file: &str) -> Vec<Case> {
    read_cases(&root().join("plugins/conformance/cases").join(file)).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_passes(subject: &Subject<'_>, cases: &[Case]) {
    let report = run(subject, cases);
    assert!(report.passed(), "{report}");
    assert_eq!(smoke(subject.policy()), Ok(()), "{}", report.plugin);
}

/// Asserts that every policy passes the cases and all laws, and that all policies give identical answers to the
/// cases.
fn assert_alike(policies: &[Arc<dyn Policy>], file: &str) {
    let cases = cases(file);
    assert!(cases.len() >= 8, "only {} cases", cases.len());
    let engines: Vec<_> = policies.iter().map(|policy| policy.id().engine).collect();
    assert_eq!(engines, [EngineKind::Builtin, EngineKind::Wasm, EngineKind::Lua]);
    for policy in policies {
        assert_passes(&Subject::new(&**policy, Budget::default()), &cases);
    }
    for case in &cases {
        let answers = policies
            .iter()
            .map(|policy| case.call.with_call(|call| policy.call(call)));
        let answers: Vec<Result<Reply, Fault>> = answers.collect();
        assert!(
            answers.windows(2).all(|pair| pair[0] == pair[1]),
            "{}: {answers:#?}",
            case.name
        );
    }
}

#[test]
fn a_health_interpreter_gives_the_same_verdicts_built_in_as_a_component_and_as_a_script() {
    let name = "deployment-health";
    let component = wasm(&wasm_engine(), name, &Value::Null).unwrap();
    let script = lua(name, EntryPoint::Health, Some(("apps/v1", "Deployment")));
    assert_alike(
        &[bounded(Arc::new(NativeHealth::default())), component, script],
        "deployment-health.yaml",
    );
}

#[test]
fn an_eviction_check_gives_the_same_verdicts_built_in_as_a_component_and_as_a_script() {
    let name = "release-when-healthy";
    let component = wasm(&wasm_engine(), name, &Value::Null).unwrap();
    let script = lua(name, EntryPoint::EvictionCheck, None);
    assert_alike(
        &[bounded(Arc::new(ResourceHealth::default())), component, script],
        "resource-health.yaml",
    );
}

#[test]
fn every_built_in_policy_holds_to_the_laws() {
    let mut policies = bulkhead_plugins_builtin::all();
    policies.push(Arc::new(FailoverEviction::new(300)));
    for policy in policies {
        assert_passes(&Subject::new(&*bounded(policy), Budget::default()), &[]);
    }
}

/// Returns the JSON Schema of an example's configuration, extracted from its source: a loaded policy does not expose
/// it.
fn config_schema(name: &str) -> Option<Value> {
    let file = root().join("examples/plugins").join(name).join("src/lib.rs");
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (_, schema) = source.split_once("CONFIG_SCHEMA: &'static str = r#\"")?;
    let (schema, _) = schema.split_once("\"#;").unwrap();
    Some(serde_json::from_str(schema).unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[test]
fn every_example_holds_to_the_laws() {
    let engine = wasm_engine();
    let folders = fs::read_dir(root().join("examples/plugins"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let names = folders.filter(|folder| folder.join("Cargo.toml").is_file());
    let names: Vec<_> = names
        .map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    let mut failures = Vec::new();
    for name in names.iter().filter(|name| *name != "misbehaving") {
        let schema = config_schema(name);
        // The last example sets the most options.
        let example = schema
            .as_ref()
            .and_then(|schema| schema["examples"].as_array()?.last().cloned());
        let policy = wasm(&engine, name, &example.unwrap_or_default()).unwrap();
        let again = |config: &Value| wasm(&engine, name, config);
        let keys = ["example.io/unreachable".to_owned()];
        let mut subject = Subject::new(&*policy, Budget::default())
            .with_loader(&again)
            .with_taint_keys(&keys);
        if let Some(schema) = &schema {
            subject = subject.with_config_schema(schema);
        }
        let report = run(&subject, &[]);
        let schema_checked = report
            .checks
            .iter()
            .any(|check| check.kind.is_none() && !check.skipped());
        assert_eq!(schema_checked, schema.is_some(), "{report}");
        failures.extend((!report.passed()).then(|| report.to_string()));
        failures.extend(smoke(&*policy).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_example_that_misbehaves_is_found_out() {
    let engine = wasm_engine();
    for how in ["loops", "panics", "recurses", "eats-memory"] {
        let budget = Budget {
            steps: 200_000,
            ..Budget::default()
        };
        let source = PluginSource {
            budget,
            ..component("misbehaving", &json!({ "how": how }))
        };
        let policy = bounded(engine.load(&source).unwrap().policy);
        assert!(!run(&Subject::new(&*policy, budget), &[]).passed(), "{how}");
        assert!(smoke(&*policy).is_err(), "{how}");
    }
}
