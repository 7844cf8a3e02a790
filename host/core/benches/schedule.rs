//! Cost of one decision: 50 replicas over clusters shaped as in real federations, by strategy and number of clusters.
//!
//! `cargo bench -p bulkhead-core --bench schedule`
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the macros of criterion have no docs; a benchmark fails by panicking"
)]

mod federation;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use federation::{binding, cluster, clusters, placements, policies, schedule};

const SIZES: [usize; 5] = [100, 500, 1000, 2000, 5000];

fn decisions(criterion: &mut Criterion) {
    let policies = policies();
    for (name, placement, modelled) in placements() {
        let mut group = criterion.benchmark_group(name);
        for size in SIZES {
            let (clusters, mut binding) = (clusters(size, modelled), binding(placement.clone()));
            group.throughput(Throughput::Elements(size as u64));
            group.bench_with_input(BenchmarkId::new("first", size), &size, |bencher, _| {
                bencher.iter(|| schedule(black_box(&binding), &clusters, &policies));
            });
            binding.spec.clusters = schedule(&binding, &clusters, &policies);
            group.bench_with_input(BenchmarkId::new("again", size), &size, |bencher, _| {
                bencher.iter(|| schedule(black_box(&binding), &clusters, &policies));
            });
        }
        group.finish();
    }
}

/// Measures the snapshot update after a change of one cluster.
fn snapshots(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    for size in [1000, 5000] {
        let before = clusters(size, true);
        let mut changed: Vec<_> = before.clusters().to_vec();
        changed[size / 2] = cluster(size / 2, true);
        group.bench_with_input(BenchmarkId::new("one-changed", size), &size, |bencher, _| {
            bencher.iter(|| before.update(black_box(changed.iter().cloned())));
        });
    }
    group.finish();
}

criterion_group!(benches, decisions, snapshots);
criterion_main!(benches);
