//! Misbehaving components are contained, and components that do not load report the cause.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod wasi;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{Call, EvictionCheckCall, EvictionVerdict, Reply, ScoreCall};
use bulkhead_core::manifest::Budget;
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::policy::{EngineKind, FaultKind, Policy};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::{Engine, LoadError, LoadStage, Module, PluginSource};
use serde_json::{Value, json};

fn source(code: Vec<u8>, config: Value, budget: Budget) -> PluginSource {
    let module = Module {
        origin: "test.wasm".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    PluginSource {
        config,
        budget,
        ..PluginSource::new("test", EngineKind::Wasm, vec![module])
    }
}

fn load(code: Vec<u8>, config: Value, budget: Budget) -> Result<Arc<dyn Policy>, LoadError> {
    WasmEngine::new(Default::default())
        .unwrap()
        .load(&source(code, config, budget))
        .map(|loaded| loaded.policy)
}

fn guest(name: &str) -> Vec<u8> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf();
    let file = root.join("target/guests").join(format!("{name}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", file.display()))
}

fn ask(policy: &dyn Policy, binding: &Binding) -> Result<EvictionVerdict, FaultKind> {
    let task = GracefulEvictionTask {
        from_cluster: "member1".to_owned(),
        ..GracefulEvictionTask::default()
    };
    let observed = &binding.status.aggregated_status;
    let call = EvictionCheckCall {
        binding,
        task: &task,
        observed,
        now: Time::from_millis(0),
    };
    match policy.call(&Call::EvictionCheck(call)) {
        Ok(Reply::EvictionCheck(verdict)) => Ok(verdict),
        Ok(reply) => panic!("a {} reply", reply.kind()),
        Err(fault) => Err(fault.kind),
    }
}

fn binding() -> Binding {
    serde_json::from_value(json!({
        "namespace": "default",
        "name": "nginx-deployment",
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            "replicas": 3,
            "clusters": [{"name": "member2", "replicas": 3}],
        },
        "status": {"aggregatedStatus": [
            {"clusterName": "member1", "applied": true, "status": {"availableReplicas": 1}},
            {"clusterName": "member2", "applied": true, "status": {"availableReplicas": 2}},
        ]},
    }))
    .unwrap()
}

/// Calls the guest that misbehaves in the configured way.
fn misbehaving(how: &str, budget: Budget) -> Result<EvictionVerdict, FaultKind> {
    let policy = load(guest("misbehaving"), json!({ "how": how }), budget).unwrap();
    ask(&*policy, &binding())
}

#[test]
fn a_guest_that_misbehaves_is_a_fault_of_the_right_kind() {
    let check = |how, expected| {
        assert_eq!(misbehaving(how, Budget::default()), Err(expected), "{how}");
    };
    check("loops", FaultKind::OutOfFuel);
    check("recurses", FaultKind::Trap);
    check("panics", FaultKind::Trap);
    check("fails", FaultKind::GuestError);
}

#[test]
fn memory_is_limited() {
    let budget = Budget {
        memory_bytes: 4 << 20,
        ..Budget::default()
    };
    assert_eq!(misbehaving("eats-memory", budget), Err(FaultKind::Memory));
}

#[test]
fn the_wall_clock_stops_what_has_fuel_left() {
    let budget = Budget {
        steps: u64::MAX,
        wall_clock_ms: 50,
        ..Budget::default()
    };
    assert_eq!(misbehaving("loops", budget), Err(FaultKind::Deadline));
}

#[test]
fn a_reply_that_is_too_large_does_not_cross() {
    let budget = Budget {
        reply_bytes: 64 << 10,
        ..Budget::default()
    };
    let fault = misbehaving("answers-at-length", budget).unwrap_err();
    assert!(
        matches!(fault, FaultKind::BadReply | FaultKind::Memory | FaultKind::Trap),
        "{fault:?}"
    );
}

#[test]
fn no_state_survives_a_call() {
    let policy = load(guest("misbehaving"), json!({"how": "counts"}), Budget::default()).unwrap();
    let first = ask(&*policy, &binding());
    assert!(
        matches!(&first, Ok(EvictionVerdict::Hold { reason, .. }) if reason.message == "call 1"),
        "{first:?}"
    );
    assert_eq!(ask(&*policy, &binding()), first);
}

#[test]
fn the_examples_decide_from_what_they_are_handed() {
    let freeze = load(
        guest("hold-during-freeze"),
        json!({"namespaces": ["default"]}),
        Budget::default(),
    )
    .unwrap();
    assert!(
        matches!(ask(&*freeze, &binding()), Ok(EvictionVerdict::Hold { reason, .. }) if reason.code == "ChangeFreeze")
    );
    let elsewhere = load(
        guest("hold-during-freeze"),
        json!({"namespaces": ["prod"]}),
        Budget::default(),
    )
    .unwrap();
    assert_eq!(ask(&*elsewhere, &binding()), Ok(EvictionVerdict::Abstain));
    let cover = load(guest("release-when-replicas-cover"), Value::Null, Budget::default()).unwrap();
    let held = ask(&*cover, &binding());
    assert!(
        matches!(
            held,
            Ok(EvictionVerdict::Hold {
                recheck_after_s: Some(10),
                ..
            })
        ),
        "{held:?}"
    );
    let mut moved = binding();
    moved.status.aggregated_status[1].status = Some(json!({"availableReplicas": 3}));
    assert!(matches!(ask(&*cover, &moved), Ok(EvictionVerdict::Release(_))));
}

#[test]
fn what_does_not_load_says_at_which_stage_and_why() {
    let check = |code: Vec<u8>, config: Value, stage, words: &[&str]| {
        let error = load(code, config, Budget::default()).err().unwrap();
        assert_eq!(error.stage, stage, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "no {word:?} in: {error}");
        }
    };
    let text = |text: &str| wat::parse_str(text).unwrap();
    check(
        b"no wasm".to_vec(),
        Value::Null,
        LoadStage::Inspected,
        &["not WebAssembly", "test.wasm"],
    );
    check(
        text("(module)"),
        Value::Null,
        LoadStage::Inspected,
        &["core module", "component"],
    );
    check(
        text("(component)"),
        Value::Null,
        LoadStage::Inspected,
        &["does not export bulkhead:policy/plugin@0.1.0"],
    );
    let wasi = r#"(component (import "wasi:http/types@0.2.0" (instance)))"#;
    check(
        text(wasi),
        Value::Null,
        LoadStage::Inspected,
        &["imports wasi:http/types@0.2.0", "bulkhead:policy@0.1.0"],
    );
    let newer = r#"(component (import "bulkhead:policy/object@0.9.0" (instance)))"#;
    check(
        text(newer),
        Value::Null,
        LoadStage::Inspected,
        &["imports bulkhead:policy/object@0.9.0"],
    );
    let config = json!({"namespace": "default"});
    check(
        guest("hold-during-freeze"),
        config,
        LoadStage::Configured,
        &["config: ", "namespace"],
    );
    let mut torn = guest("hold-during-freeze");
    torn.truncate(torn.len() / 2);
    check(torn, Value::Null, LoadStage::Compiled, &["test.wasm"]);
}

#[test]
fn clusters_cross_in_order_and_scores_come_back_in_it() {
    let policy = load(guest("prefer-region"), json!({"region": "eu-west"}), Budget::default()).unwrap();
    let cluster = |(name, region): (&str, &str)| {
        let value = json!({"name": name, "spec": {"syncMode": "Push", "region": region}});
        Arc::new(serde_json::from_value(value).unwrap())
    };
    let clusters = ClusterSnapshot::new([("a", "us-east"), ("b", "eu-west"), ("c", "")].map(cluster));
    let call = ScoreCall {
        binding: &binding(),
        clusters: clusters.present(),
        now: Time::from_millis(0),
    };
    assert_eq!(policy.call(&Call::Score(call)), Ok(Reply::Score(vec![0, 100, 0])));
}

#[test]
fn what_was_observed_counts_more_than_what_the_binding_says() {
    let cover = load(guest("release-when-replicas-cover"), Value::Null, Budget::default()).unwrap();
    let (binding, task) = (binding(), GracefulEvictionTask::default());
    let mut observed = binding.status.aggregated_status.clone();
    observed[1].status = Some(json!({"availableReplicas": 3}));
    let call = EvictionCheckCall {
        binding: &binding,
        task: &task,
        observed: &observed,
        now: Time::from_millis(0),
    };
    let verdict = cover.call(&Call::EvictionCheck(call));
    assert!(
        matches!(verdict, Ok(Reply::EvictionCheck(EvictionVerdict::Release(_)))),
        "{verdict:?}"
    );
}
