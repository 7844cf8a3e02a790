//! Cost of the native rules of the resource interpreter.
//!
//! `cargo bench -p bulkhead-plugins-builtin`; the figures are in BENCHMARKS.md.

use std::hint::black_box;
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::model::{AggregatedStatusItem, Health};
use bulkhead_core::policy::Policy;
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::{NativeHealth, NativeInterpreter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};

/// A Deployment as a member cluster reports it: 5.7 KB without white space.
const DEPLOYMENT: &str = include_str!("../../../host/engine-lua/benches/deployment.json");
/// Clusters whose statuses are aggregated.
const CLUSTERS: usize = 100;

fn now() -> Time {
    Time::from_millis(1_767_225_600_000)
}

fn health_of(policy: &NativeHealth, object: &Arc<Value>) -> Health {
    match policy.call(&Call::Health(HealthCall { object, now: now() })) {
        Ok(Reply::Health(verdict)) => verdict.health,
        other => panic!("{other:?}"),
    }
}

fn health(criterion: &mut Criterion) {
    let value: Value = serde_json::from_str(DEPLOYMENT).expect("the object is JSON");
    let text = value.to_string();
    let (policy, object) = (NativeHealth::default(), Arc::new(value));
    assert_eq!(health_of(&policy, &object), Health::Healthy);
    let mut group = criterion.benchmark_group("native health of a 5.7 KB Deployment");
    // Criterion reports the throughput in checks per second on one core.
    group.throughput(Throughput::Elements(1));
    group.bench_function("decoded", |bencher| {
        bencher.iter(|| health_of(&policy, black_box(&object)));
    });
    group.bench_function("with decoding", |bencher| {
        bencher.iter(|| {
            let object = serde_json::from_str(black_box(&text))
                .map(Arc::new)
                .expect("the object is JSON");
            health_of(&policy, &object)
        });
    });
    group.finish();
}

fn aggregation(criterion: &mut Criterion) {
    let object: Arc<Value> = Arc::new(serde_json::from_str(DEPLOYMENT).expect("the object is JSON"));
    let item = |index: usize| AggregatedStatusItem {
        cluster_name: format!("member{index}"),
        status: Some(json!({
            "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "generation": 2,
            "observedGeneration": 2, "resourceTemplateGeneration": 1,
        })),
        applied: true,
        ..AggregatedStatusItem::default()
    };
    let items: Vec<_> = (0..CLUSTERS).map(item).collect();
    let policy = NativeInterpreter::default();
    criterion.bench_function("native AggregateStatus of a Deployment over 100 clusters", |bencher| {
        bencher.iter(|| {
            let operation = Operation::AggregateStatus {
                object: black_box(&object),
                items: black_box(&items),
            };
            match policy.call(&Call::Interpret(InterpretCall { operation, now: now() })) {
                Ok(Reply::Interpret(Some(Interpretation::Object(object)))) => object,
                other => panic!("{other:?}"),
            }
        });
    });
}

criterion_group!(benches, health, aggregation);
criterion_main!(benches);
