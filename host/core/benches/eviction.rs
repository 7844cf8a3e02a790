//! Cost of failover decisions, each for one binding: the due time (computed for every binding on a tainted cluster,
//! every ten seconds), the eviction itself, the check for a target, and one turn of the queue with 5,000 waiting
//! bindings.
//!
//! `cargo bench -p bulkhead-core --bench eviction`
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the macros of criterion have no docs; a benchmark fails by panicking"
)]

use std::hint::black_box;
use std::time::Duration;

use bulkhead_core::decide::eviction::taint_based::{self, EvictOptions};
use bulkhead_core::decide::eviction::{EvictionQueue, Finished, Limit, Next, PreCheck, Rate, Waiting, has_target};
use bulkhead_core::model::{Binding, Cluster, PurgeMode};
use bulkhead_core::time::Time;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

const OPTIONS: EvictOptions = EvictOptions {
    no_execute: true,
    prefer_no_execute: true,
    default_purge_mode: PurgeMode::Gracefully,
    preserve_state: false,
};
const WAITING: usize = 5_000;

fn cluster(name: &str, ready: bool) -> Cluster {
    let taints = json!([
        {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "cluster.karmada.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
    ]);
    serde_json::from_value(json!({
        "name": name,
        "spec": {"syncMode": "Push", "taints": if ready { json!([]) } else { taints }},
        "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    }))
    .unwrap()
}

/// Returns a Deployment after Karmada's detector and scheduler, with these tolerations.
fn binding(tolerations: Value) -> Binding {
    let placement = json!({
        "clusterAffinity": {"clusterNames": ["member1", "member2", "member3"]},
        "clusterTolerations": tolerations,
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    });
    serde_json::from_value(json!({
        "namespace": "default", "name": "nginx-deployment", "generation": 4,
        "labels": {"propagationpolicy.karmada.io/permanent-id": "0d2b", "resourcebinding.karmada.io/permanent-id": "71c5"},
        "annotations": {"policy.karmada.io/applied-placement": placement.to_string()},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx", "uid": "8"},
            "replicas": 9, "placement": placement,
            "replicaRequirements": {"resourceRequest": {"cpu": "100m", "memory": "64Mi"}},
            "clusters": [{"name": "member1", "replicas": 3}, {"name": "member2", "replicas": 6}],
            "schedulerName": "default-scheduler", "conflictResolution": "Abort",
        },
    }))
    .unwrap()
}

fn for_a_time() -> Value {
    json!([
        {"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "cluster.karmada.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ])
}

fn decisions(criterion: &mut Criterion) {
    let (lost, early): (_, Time) = (
        cluster("member1", false),
        serde_json::from_value(json!("2026-01-01T00:01:00Z")).unwrap(),
    );
    let late = early.plus_seconds(3_600);
    let (tolerant, plain) = (binding(for_a_time()), binding(json!([])));
    let mut group = criterion.benchmark_group("evict");
    group.bench_function("due, tolerated for a time", |bencher| {
        bencher.iter(|| taint_based::due(black_box(&tolerant).into(), black_box(&lost), OPTIONS, early));
    });
    group.bench_function("due, not tolerated", |bencher| {
        bencher.iter(|| taint_based::due(black_box(&plain).into(), black_box(&lost), OPTIONS, late));
    });
    group.bench_function("decide, evicted", |bencher| {
        bencher.iter(|| taint_based::decide(black_box(&tolerant).into(), Some(black_box(&lost)), OPTIONS, late));
    });
    let placement = taint_based::applied_placement(&plain).unwrap();
    let clusters: Vec<_> = (1..=200).map(|n| cluster(&format!("member{n}"), n > 1)).collect();
    group.bench_function("has a target, 200 clusters", |bencher| {
        bencher.iter(|| {
            has_target(
                PreCheck::Feasible,
                black_box(&plain.spec),
                &placement,
                "member1",
                black_box(&clusters),
                late,
            )
        });
    });
    group.finish();
}

fn queue(criterion: &mut Criterion) {
    let limit = |_: &str| Limit {
        global: Rate::per_second(1e9),
        group: None,
        cluster: None,
    };
    let full = || {
        let mut queue = EvictionQueue::new(Some(Duration::from_mins(10)));
        for key in 0..WAITING {
            let waiting = Waiting {
                cluster: "member1".to_owned(),
                priority: 0.into(),
                not_before: Duration::ZERO,
            };
            queue.put(key, waiting, Duration::ZERO);
        }
        queue
    };
    let mut group = criterion.benchmark_group("queue");
    group.bench_function("take, charge and finish, 5,000 waiting", |bencher| {
        bencher.iter_batched_ref(
            full,
            |queue| {
                let now = Duration::from_secs(1);
                let Next::Take(key) = queue.next(now, limit) else {
                    panic!("nothing is open")
                };
                let slot = queue.charge("member1", &limit(""), now);
                queue.settle(&slot, "member1", &limit(""), now);
                queue.finish(&key, Finished::Done, now);
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("put again, 5,000 waiting", |bencher| {
        let mut queue = full();
        bencher.iter(|| {
            let waiting = Waiting {
                cluster: "member1".to_owned(),
                priority: 0.into(),
                not_before: Duration::ZERO,
            };
            queue.put(black_box(17), waiting, Duration::ZERO);
        });
    });
    group.finish();
}

criterion_group!(benches, decisions, queue);
criterion_main!(benches);
