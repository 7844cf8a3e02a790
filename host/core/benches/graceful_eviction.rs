//! Cost of assessing a graceful eviction task and of checking an application, by number of target clusters.
//!
//! `cargo bench -p bulkhead-core --bench graceful_eviction`
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the macros of criterion have no docs; a benchmark fails by panicking"
)]

use std::hint::black_box;
use std::sync::Arc;

use bulkhead_core::decide::application_failover::{self, FailoverOptions, FailoverSnapshot};
use bulkhead_core::decide::eviction::PreCheck;
use bulkhead_core::decide::graceful_eviction::{self, CONFIRMED, GracefulEvictionOptions, GracefulEvictionSnapshot};
use bulkhead_core::model::{Binding, Cluster};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::ResourceHealth;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

const SIZES: [usize; 4] = [10, 50, 200, 1000];

/// Returns a binding on this many clusters. All are healthy except the last one, so that all of them have to be
/// checked.
fn binding(clusters: usize) -> Binding {
    let name = |index: usize| format!("member-{index:04}");
    let targets: Vec<_> = (0..clusters)
        .map(|index| json!({"name": name(index), "replicas": 2}))
        .collect();
    let item = |index: usize| {
        let health = if index + 1 == clusters { "Unhealthy" } else { "Healthy" };
        json!({"clusterName": name(index), "applied": true, "health": health, "status": {"readyReplicas": 2}})
    };
    serde_json::from_value(json!({
        "namespace": "default", "name": "nginx-deployment", "generation": 3,
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"},
            "replicas": 2 * clusters, "clusters": targets, "propagateDeps": true,
            "failover": {"application": {"decisionConditions": {"tolerationSeconds": 300}, "gracePeriodSeconds": 600}},
            "gracefulEvictionTasks": [{
                "fromCluster": "lost", "purgeMode": "Gracefully", "replicas": 2, "reason": "TaintUntolerated",
                "producer": "TaintManager", "creationTimestamp": "1970-01-01T00:00:00Z",
            }],
        },
        "status": {"schedulerObservedGeneration": 3, "aggregatedStatus": (0..clusters).map(item).collect::<Vec<_>>()},
    }))
    .unwrap()
}

fn assess(criterion: &mut Criterion) {
    let policies = PolicySet::new(vec![Arc::new(ResourceHealth::default()) as Arc<dyn Policy>]);
    let mut group = criterion.benchmark_group("assess");
    for size in SIZES {
        let binding = binding(size);
        let options = GracefulEvictionOptions::default();
        let snapshot = GracefulEvictionSnapshot {
            binding: &binding,
            sources: &[],
            unconfirmed: &CONFIRMED,
            options,
            now: Time::from_millis(60_000),
        };
        group.throughput(Throughput::Elements(size as u64));
        group.bench_with_input(BenchmarkId::from_parameter(size), &snapshot, |bencher, snapshot| {
            bencher.iter(|| black_box(graceful_eviction::decide(black_box(*snapshot), &policies)));
        });
    }
    group.finish();
}

fn look_at_application(criterion: &mut Criterion) {
    let options = FailoverOptions {
        graceful_eviction: true,
        preserve_state: false,
        pre_check: Some(PreCheck::Feasible),
    };
    let clusters: [Cluster; 0] = [];
    let mut group = criterion.benchmark_group("application");
    for size in SIZES {
        let binding = binding(size);
        group.throughput(Throughput::Elements(size as u64));
        group.bench_with_input(BenchmarkId::from_parameter(size), &binding, |bencher, binding| {
            let now = Time::from_millis(60_000);
            let snapshot = || FailoverSnapshot {
                binding,
                producer: "p",
                options,
                pauses: &[],
                clusters: &clusters,
                now,
            };
            bencher.iter(|| black_box(application_failover::decide(black_box(snapshot()))));
        });
    }
    group.finish();
}

criterion_group!(benches, assess, look_at_application);
criterion_main!(benches);
