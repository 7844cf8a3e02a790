//! Where the interpreters that come with the program stand among the others.

use std::sync::Arc;

use bulkhead_core::call::{HealthCall, InterpretCall, Interpretation, Operation};
use bulkhead_core::combine;
use bulkhead_core::model::Health;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Engine, Layer, Registry};
use bulkhead_plugins_lua::customization;
use serde_json::{Value, json};

fn now() -> Time {
    Time::from_millis(0)
}

fn clone_set() -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"generation": 1},
        "spec": {"replicas": 2, "template": {"spec": {"containers": []}}},
        "status": {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 1, "other": true},
    }))
}

fn registry() -> Registry {
    let engine: Arc<dyn Engine> = Arc::new(LuaEngine::default());
    let registry = Registry::new(vec![Arc::clone(&engine)]);
    registry.replace(Layer::Library, bulkhead_plugins_lua::policies(&engine));
    registry.replace(Layer::Builtins, bulkhead_plugins_builtin::all());
    registry
}

#[test]
fn a_customization_comes_before_the_library_and_the_library_before_the_native_rules() {
    let (registry, object) = (registry(), clone_set());
    let health = || combine::health(&registry.policies(), HealthCall { object: &object, now: now() });
    assert_eq!((health().health, health().because.reason.code.as_str()), (Health::Unhealthy, "ReplicasUnavailable"));
    let status = || {
        let call = InterpretCall { operation: Operation::ReflectStatus { object: &object }, now: now() };
        combine::interpret(&registry.policies(), call).unwrap().interpretation
    };
    let reflected = |status: Value| Some(Interpretation::Status(Some(status)));
    let fields = json!({"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 1, "generation": 1});
    assert_eq!(status(), reflected(fields), "the native rule would copy the whole status");

    let text = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: mine}\n\
                spec:\n  target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}\n  customizations:\n    \
                healthInterpretation:\n      luaScript: function InterpretHealth(obj) return true end\n";
    let mine = customization::source(&customization::parse("mine.yaml", text).unwrap(), "mine.yaml");
    registry.replace(Layer::Customizations, vec![registry.load(&mine).unwrap().policy]);
    assert_eq!(health().health, Health::Healthy);
    // Selection is by operation: the customization has no other rule.
    assert!(status().is_some());
}

#[test]
fn kinds_of_kubernetes_are_left_to_the_native_rules() {
    let deployment = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}));
    let health = combine::health(&registry().policies(), HealthCall { object: &deployment, now: now() });
    assert_eq!(health.because.policy.unwrap().name, "NativeHealth");
}
