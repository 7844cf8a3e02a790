//! Faulty customizations at run time: every error is a typed fault, health is `Unknown`, and no lower layer answers
//! in place of the script. The native rule in the layer below would report the object as healthy.
//!
//! Tests of faulty webhooks are in `host/controllers/src/webhook/tests.rs`.

use std::sync::Arc;

use bulkhead_core::call::{HealthCall, InterpretCall, Interpretation, Operation};
use bulkhead_core::combine;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::Health;
use bulkhead_core::policy::FaultKind;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Customization, Engine, Layer, Registry, load_customizations};
use serde_json::{Value, json};

use crate::support::{Folder, root, run};

fn deployment() -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "generation": 1},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2},
    }))
}

/// Returns a registry with the built-in rules and a customization of Deployments that takes precedence.
fn registry(scripts: &[(EntryPoint, &str)]) -> Registry {
    let engine: Arc<dyn Engine> = Arc::new(LuaEngine::default());
    let registry = Registry::new(vec![Arc::clone(&engine)]);
    registry.replace(Layer::Builtins, bulkhead_plugins_builtin::all());
    let customization = Customization {
        name: "mine".to_owned(),
        origin: "mine".to_owned(),
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        scripts: scripts
            .iter()
            .map(|(point, script)| (*point, (*script).to_owned()))
            .collect(),
    };
    let loaded = load_customizations(&[customization], &|source| engine.load(source));
    registry.replace(Layer::Customizations, loaded.policies);
    registry
}

fn health(registry: &Registry, object: &Arc<Value>) -> (Health, Option<FaultKind>) {
    let call = HealthCall {
        object,
        now: Time::from_millis(0),
    };
    let outcome = combine::health(&registry.policies(), call);
    (
        outcome.health,
        outcome.diagnostics.faults.first().map(|fault| fault.fault.kind),
    )
}

#[test]
fn the_native_rule_would_say_healthy() {
    assert_eq!(health(&registry(&[]), &deployment()), (Health::Healthy, None));
}

#[test]
fn a_health_script_that_is_wrong_makes_health_unknown_with_a_typed_fault() {
    let check = |script: &str, expected: FaultKind| {
        let registry = registry(&[(EntryPoint::Health, script)]);
        assert_eq!(
            health(&registry, &deployment()),
            (Health::Unknown, Some(expected)),
            "{script}"
        );
    };
    check("function InterpretHealth(o) return o. end", FaultKind::NotLoaded);
    check("function InterpretHealth(o", FaultKind::NotLoaded);
    check("local healthy = true", FaultKind::MissingExport);
    check("function IsHealthy(o) return true end", FaultKind::MissingExport);
    check(
        "local function InterpretHealth(o) return true end",
        FaultKind::MissingExport,
    );
    check("InterpretHealth = true", FaultKind::MissingExport);
    check("function InterpretHealth(o) end", FaultKind::BadReply);
    check("function InterpretHealth(o) return nil end", FaultKind::BadReply);
    check("function InterpretHealth(o) return 'true' end", FaultKind::BadReply);
    check("function InterpretHealth(o) return 1 end", FaultKind::BadReply);
    check("function InterpretHealth(o) return {} end", FaultKind::BadReply);
    check(
        "function InterpretHealth(o) return {health = 'Fine'} end",
        FaultKind::BadReply,
    );
    check(
        "function InterpretHealth(o) return {health = 'Healthy', reason = 7} end",
        FaultKind::BadReply,
    );
    check(
        "function InterpretHealth(o) return o.status.missing.field end",
        FaultKind::Trap,
    );
    check("function InterpretHealth(o) error('no idea') end", FaultKind::Trap);
}

/// A new object, its status and its Work are events of their own, and each of them leads to a call.
#[test]
fn a_health_script_that_keeps_failing_is_recorded_once_for_each_member() {
    let file = |name: &str| std::fs::read_to_string(root().join("examples/nginx-divided").join(name)).unwrap();
    let health = file("health.yaml").replace(
        "return observedObj.status",
        "error('no idea') return observedObj.status",
    );
    assert!(health.contains("no idea"), "{health}");
    let objects = [health, file("nginx.yaml"), file("policy.yaml")].join("\n---\n");
    let scenario =
        "name: faults\nduration: 1m\nclusters: [{name: member1}, {name: member2}]\nmanifests: [objects.yaml]\n";
    let files = [("scenario.yaml", scenario), ("objects.yaml", &objects)];
    let report = run(&Folder::new("failing-health", &files).load().unwrap(), None);
    let faults = report.timeline.iter().filter(|entry| entry.what == "plugin fault");
    let mut faults: Vec<_> = faults.map(|entry| (entry.cluster.as_deref(), entry.count)).collect();
    faults.sort_unstable();
    assert_eq!(faults, [(Some("member1"), 1), (Some("member2"), 1)]);
}

/// Either the step limit or the deadline ends the script, depending on the machine.
#[test]
fn a_health_script_that_never_ends_makes_health_unknown() {
    for script in ["while true do end", "while true do pcall(error) end"] {
        let script = format!("function InterpretHealth(o) {script} end");
        let (actual, fault) = health(&registry(&[(EntryPoint::Health, &script)]), &deployment());
        assert_eq!(actual, Health::Unknown, "{script}");
        assert!(
            matches!(fault, Some(FaultKind::OutOfFuel | FaultKind::Deadline)),
            "{script}: {fault:?}"
        );
    }
}

/// As in Karmada, a script receives copies of its arguments and may modify them.
#[test]
fn changes_of_a_script_to_its_input_stay_private() {
    let script = "function InterpretHealth(o)
        local seen = o.seen == true or o.status.readyReplicas ~= 2
        o.seen = true
        o.status.readyReplicas = 0
        o.spec = nil
        return not seen
    end";
    let (registry, object) = (registry(&[(EntryPoint::Health, script)]), deployment());
    for _ in 0..3 {
        assert_eq!(health(&registry, &object), (Health::Healthy, None));
    }
    assert_eq!(object, deployment());
    let call = InterpretCall {
        operation: Operation::Replicas { object: &object },
        now: Time::from_millis(0),
    };
    let actual = combine::interpret(&registry.policies(), call).unwrap().interpretation;
    assert!(
        matches!(actual, Some(Interpretation::Replicas { replicas: 2, .. })),
        "{actual:?}"
    );
}

/// A script answers only the operation of its rule, even if it defines functions of other operations.
#[test]
fn of_two_functions_only_the_one_that_is_wanted_is_asked() {
    let script = "function InterpretHealth(o) return false end function GetReplicas(o) return 7 end";
    let (registry, object) = (registry(&[(EntryPoint::Health, script)]), deployment());
    assert_eq!(health(&registry, &object), (Health::Unhealthy, None));
    let call = InterpretCall {
        operation: Operation::Replicas { object: &object },
        now: Time::from_millis(0),
    };
    let actual = combine::interpret(&registry.policies(), call).unwrap().interpretation;
    assert!(
        matches!(actual, Some(Interpretation::Replicas { replicas: 2, .. })),
        "{actual:?}"
    );
}

#[test]
fn any_other_operation_with_a_script_that_is_wrong_is_an_error() {
    let check = |point, script: &str, expected: FaultKind| {
        let (registry, object) = (registry(&[(point, script)]), deployment());
        let operation = match point {
            EntryPoint::Replicas => Operation::Replicas { object: &object },
            EntryPoint::ReflectStatus => Operation::ReflectStatus { object: &object },
            EntryPoint::Revise => Operation::Revise {
                object: &object,
                replicas: 1,
            },
            _ => Operation::Dependencies { object: &object },
        };
        let call = InterpretCall {
            operation,
            now: Time::from_millis(0),
        };
        let actual = combine::interpret(&registry.policies(), call).map(|actual| actual.interpretation);
        assert_eq!(actual.map_err(|fault| fault.fault.kind), Err(expected), "{script}");
        // A faulty script does not affect the answers of the other rules.
        assert_eq!(health(&registry, &object), (Health::Healthy, None), "{script}");
    };
    check(
        EntryPoint::Replicas,
        "function GetReplicas(o) return 'two' end",
        FaultKind::BadReply,
    );
    check(
        EntryPoint::Replicas,
        "function GetReplicas(o) return 2, 'cpu' end",
        FaultKind::BadReply,
    );
    check(
        EntryPoint::Replicas,
        "function GetReplicas(o) return",
        FaultKind::NotLoaded,
    );
    check(
        EntryPoint::ReflectStatus,
        "function ReflectStatus(o) return nil end",
        FaultKind::BadReply,
    );
    check(
        EntryPoint::Revise,
        "function ReviseReplica(o, n) o.kind = nil return o end",
        FaultKind::BadReply,
    );
    check(
        EntryPoint::Dependencies,
        "function GetDependencies(o) return {{kind = 'Secret'}} end",
        FaultKind::BadReply,
    );
    check(
        EntryPoint::Dependencies,
        "function getDependencies(o) return {} end",
        FaultKind::MissingExport,
    );
}
