//! Cost of one health verdict about a Deployment, with all limits on: the native rule and scripts.
//!
//! `cargo bench -p bulkhead-engine-lua`; the figures are in BENCHMARKS.md.

use std::hint::black_box;
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, Reply};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::Health;
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Bounded, Engine, Entry, Module, PluginSource};
use bulkhead_plugins_builtin::NativeHealth;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;

/// A Deployment as a member cluster reports it: 5.7 KB without white space.
const DEPLOYMENT: &str = include_str!("deployment.json");

/// Script from Karmada's documentation of application failover.
const FAILOVER: &str = "function InterpretHealth(observedObj) \
                        return observedObj.status.readyReplicas == observedObj.spec.replicas end";

/// A typical script: checks generations, all counts and conditions, and returns a reason.
const TYPICAL: &str = include_str!("typical.lua");

/// A script that reads the whole object.
const WHOLE: &str = "
    local function count(value)
        if type(value) ~= 'table' then return 1 end
        local sum = 1
        for _, member in pairs(value) do sum = sum + count(member) end
        return sum
    end
    function InterpretHealth(observedObj) return count(observedObj) > 200 end";

fn script(code: &str) -> Bounded {
    let entries = vec![Entry {
        point: EntryPoint::Health,
        object_kind: None,
    }];
    let module = Module {
        origin: "bench.lua".to_owned(),
        code: code.into(),
        entries,
    };
    let source = PluginSource::new("bench", EngineKind::Lua, vec![module]);
    Bounded::new(LuaEngine::default().load(&source).expect("the script loads").policy)
}

fn verdict(policy: &dyn Policy, object: &Arc<Value>) -> Health {
    match policy.call(&Call::Health(HealthCall {
        object,
        now: Time::from_millis(0),
    })) {
        Ok(Reply::Health(verdict)) => verdict.health,
        other => panic!("{other:?}"),
    }
}

fn health(criterion: &mut Criterion) {
    let object: Value = serde_json::from_str(DEPLOYMENT).expect("the Deployment is JSON");
    let object = Arc::new(object);
    let policies: [(&str, Box<dyn Policy>); 5] = [
        ("native rule", Box::new(NativeHealth::default())),
        (
            "lua: empty",
            Box::new(script("function InterpretHealth() return true end")),
        ),
        ("lua: application failover", Box::new(script(FAILOVER))),
        ("lua: typical", Box::new(script(TYPICAL))),
        ("lua: whole object", Box::new(script(WHOLE))),
    ];
    let text = object.to_string();
    let mut group = criterion.benchmark_group("health of a 5.7 KB Deployment");
    group.throughput(Throughput::Elements(1));
    for (name, policy) in &policies {
        assert_eq!(verdict(policy.as_ref(), &object), Health::Healthy, "{name}");
        group.bench_function(*name, |bencher| {
            bencher.iter(|| verdict(policy.as_ref(), black_box(&object)));
        });
    }
    group.finish();
    // The work of a controller for one change: from the JSON text to the verdict.
    let mut group = criterion.benchmark_group("health of a 5.7 KB Deployment with decoding");
    group.throughput(Throughput::Elements(1));
    for (name, policy) in &policies {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let object = serde_json::from_str(black_box(&text))
                    .map(Arc::new)
                    .expect("the object is JSON");
                verdict(policy.as_ref(), &object)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, health);
criterion_main!(benches);
