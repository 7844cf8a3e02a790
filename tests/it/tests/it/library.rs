//! Precedence of the bundled interpreters among the other layers.

use std::fs;
use std::sync::Arc;

use bulkhead_conformance::cases::one;
use bulkhead_conformance::{Case, Subject, read_cases};
use bulkhead_core::call::{Call, CallKind, HealthCall, HealthVerdict, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::combine;
use bulkhead_core::manifest::Budget;
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::{Engine, Layer, Module, PluginSource, Registry};
use bulkhead_plugins_lua::{KINDS, customization};
use serde_json::{Value, json};

use crate::support::root;

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
    let health = || {
        combine::health(
            &registry.policies(),
            HealthCall {
                object: &object,
                now: now(),
            },
        )
    };
    assert_eq!(
        (health().health, health().attribution.reason.code.as_str()),
        (Health::Unhealthy, "ReplicasUnavailable")
    );
    let status = || {
        let call = InterpretCall {
            operation: Operation::ReflectStatus { object: &object },
            now: now(),
        };
        combine::interpret(&registry.policies(), call).unwrap().interpretation
    };
    let reflected = |status: Value| Some(Interpretation::Status(Some(status)));
    let fields = json!({"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 1, "generation": 1});
    assert_eq!(
        status(),
        reflected(fields),
        "the native rule would copy the whole status"
    );

    let text = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: mine}\n\
                spec:\n  target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}\n  customizations:\n    \
                healthInterpretation:\n      luaScript: function InterpretHealth(obj) return true end\n";
    let mine = customization::source(&customization::parse("mine.yaml", text).unwrap(), "mine.yaml");
    registry.replace(Layer::Customizations, vec![registry.load(&mine).unwrap().policy]);
    assert_eq!(health().health, Health::Healthy);
    // Rules are selected per operation, and the customization has no other rule.
    assert!(status().is_some());
}

/// Returns the interpretation of an operation by all levels.
fn interpretation(registry: &Registry, operation: Operation<'_>) -> Option<Interpretation> {
    let call = InterpretCall { operation, now: now() };
    combine::interpret(&registry.policies(), call).unwrap().interpretation
}

/// Replaces the customizations with one of a single rule; none without a script.
fn customize(registry: &Registry, (api_version, kind): (&str, &str), rule: &str, script: Option<&str>) {
    let policy = |script: &str| {
        let text = format!(
            "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{name: mine}}\n\
             spec:\n  target: {{apiVersion: {api_version}, kind: {kind}}}\n  customizations:\n    {rule}:\n      \
             luaScript: {script:?}\n"
        );
        let source = customization::source(&customization::parse("mine.yaml", &text).unwrap(), "mine.yaml");
        registry.load(&source).unwrap().policy
    };
    registry.replace(Layer::Customizations, script.map(policy).into_iter().collect());
}

#[test]
fn replaced_customizations_answer_the_next_call() {
    let registry = registry();
    let deployment = Arc::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
    }));
    let check = |script: Option<&str>, expected: i32| {
        customize(&registry, ("apps/v1", "Deployment"), "replicaResource", script);
        match interpretation(&registry, Operation::Replicas { object: &deployment }) {
            Some(Interpretation::Replicas { replicas, .. }) => assert_eq!(replicas, expected, "{script:?}"),
            other => panic!("{other:?}"),
        }
    };
    check(None, 2);
    check(Some("function GetReplicas(o) return 40 end"), 40);
    check(Some("function GetReplicas(o) return o.spec.replicas + 39 end"), 41);
    check(None, 2);
}

#[test]
fn the_first_level_with_a_rule_gives_the_components() {
    let registry = registry();
    let cluster = Arc::new(json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "x"},
        "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h"}]}}}},
    }));
    let names = || match interpretation(&registry, Operation::Components { object: &cluster }) {
        Some(Interpretation::Components(components)) => components
            .into_iter()
            .map(|component| component.name)
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(names(), ["ray-head"]);
    let kind = ("ray.io/v1", "RayCluster");
    customize(
        &registry,
        kind,
        "componentResource",
        Some("function GetComponents(o) return {{name = 'mine'}} end"),
    );
    assert_eq!(names(), ["mine"]);
    // Nil is an answer as well, so that the library is not called.
    customize(
        &registry,
        kind,
        "componentResource",
        Some("function GetComponents(o) return nil end"),
    );
    assert_eq!(names(), Vec::<String>::new());
    // No native rule gives components.
    let deployment = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}}));
    assert_eq!(
        interpretation(&registry, Operation::Components { object: &deployment }),
        None
    );
}

#[test]
fn kinds_of_kubernetes_are_left_to_the_native_rules() {
    let deployment = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}));
    let health = combine::health(
        &registry().policies(),
        HealthCall {
            object: &deployment,
            now: now(),
        },
    );
    assert_eq!(health.attribution.policy.unwrap().name, "NativeHealth");
}

/// All interpreters of a registry as a single policy, with the answers that a controller receives.
struct AllInterpreters {
    id: PolicyId,
    capabilities: [Capability; 2],
    policies: PolicySet,
}

impl AllInterpreters {
    fn new(registry: &Registry) -> Self {
        Self {
            id: PolicyId::builtin("Together"),
            capabilities: [Capability::any(CallKind::Health), Capability::any(CallKind::Interpret)],
            policies: PolicySet::clone(&registry.policies()),
        }
    }
}

impl Policy for AllInterpreters {
    fn id(&self) -> &PolicyId {
        &self.id
    }
    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }
    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::Health(call) => {
                let outcome = combine::health(&self.policies, call.clone());
                match outcome.diagnostics.faults.into_iter().next() {
                    Some(fault) => Err(fault.fault),
                    None => Ok(Reply::Health(HealthVerdict {
                        health: outcome.health,
                        reason: outcome.attribution.reason,
                    })),
                }
            }
            Call::Interpret(call) => match combine::interpret(&self.policies, call.clone()) {
                Ok(outcome) => Ok(Reply::Interpret(outcome.interpretation)),
                Err(fault) => Err(fault.fault),
            },
            _ => Err(Fault::new(FaultKind::Unsupported, "interpreters only")),
        }
    }
}

/// Installs the component of an example that interprets Games in the plugin layer, which has the highest precedence.
fn install_component(registry: &Registry) {
    let file = root().join("target/guests/game-interpreter.wasm");
    let code = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", file.display()));
    let module = Module {
        origin: "game-interpreter.wasm".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    let source = PluginSource::new("game-interpreter", EngineKind::Wasm, vec![module]);
    let engine = WasmEngine::new(Default::default()).unwrap();
    registry.replace(Layer::Plugins, vec![engine.load(&source).unwrap().policy]);
}

/// Returns the outcomes of the cases of every kind in the library.
fn outcomes(registry: &Registry) -> Vec<(String, String, bool)> {
    let together = AllInterpreters::new(registry);
    let subject = Subject::new(&together, Budget::default());
    let of_kind = |kind: &bulkhead_plugins_lua::Kind| {
        let file = root().join("plugins/lua").join(kind.folder()).join("cases_test.yaml");
        let cases: Vec<Case> = read_cases(&file).unwrap_or_else(|error| panic!("{error}"));
        let outcome = |case: &Case| {
            let check = one(&subject, case);
            (
                format!("{}: {}", kind.folder(), check.name),
                format!("{:?}", check.outcome),
                check.failed(),
            )
        };
        cases.iter().map(outcome).collect::<Vec<_>>()
    };
    KINDS.iter().flat_map(of_kind).collect()
}

#[test]
fn the_library_answers_the_same_with_a_component_beside_it() {
    let alone = registry();
    let outcomes_alone = outcomes(&alone);
    let failed: Vec<_> = outcomes_alone.iter().filter(|(.., failed)| *failed).collect();
    assert!(
        failed.is_empty() && outcomes_alone.len() > 350,
        "{} cases: {failed:?}",
        outcomes_alone.len()
    );
    let beside = registry();
    install_component(&beside);
    assert_eq!(outcomes(&beside), outcomes_alone);
}

#[test]
fn a_component_comes_before_customizations_and_leaves_them_what_it_does_not_answer() {
    let registry = registry();
    let game = Arc::new(json!({
        "apiVersion": "example.io/v1", "kind": "Game", "spec": {"rooms": 2}, "status": {"phase": "Running", "openRooms": 2},
    }));
    let text = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: mine}\n\
                spec:\n  target: {apiVersion: example.io/v1, kind: Game}\n  customizations:\n    \
                healthInterpretation:\n      luaScript: function InterpretHealth(obj) return false end\n";
    let mine = customization::source(&customization::parse("mine.yaml", text).unwrap(), "mine.yaml");
    registry.replace(Layer::Customizations, vec![registry.load(&mine).unwrap().policy]);
    let health = || {
        let outcome = combine::health(
            &registry.policies(),
            HealthCall {
                object: &game,
                now: now(),
            },
        );
        (outcome.health, outcome.attribution.policy.map(|policy| policy.engine))
    };
    assert_eq!(health(), (Health::Unhealthy, Some(EngineKind::Lua)));
    install_component(&registry);
    assert_eq!(health(), (Health::Healthy, Some(EngineKind::Wasm)));
    // The component does not handle CloneSets, so the library still answers for them.
    let clone_set = clone_set();
    let outcome = combine::health(
        &registry.policies(),
        HealthCall {
            object: &clone_set,
            now: now(),
        },
    );
    assert_eq!(
        outcome.attribution.policy.map(|policy| policy.engine),
        Some(EngineKind::Lua)
    );
}
