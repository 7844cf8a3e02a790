//! Cost of the bridge from async code to plugins, per decision.
#![allow(missing_docs, reason = "criterion's macros")]

use std::sync::Arc;
use std::time::Duration;

use bulkhead_controllers::{Lane, Pool, PoolLimits};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Builder;

/// A decision that takes no time, so that only the bridge is measured.
fn decision() -> u64 {
    std::hint::black_box(7)
}

fn bridge(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap_or_else(|_| unreachable!());
    let limits = PoolLimits::for_processors(2);
    let pool = Arc::new(Pool::start("bench", limits).unwrap_or_else(|_| unreachable!()));
    let limit = Duration::from_secs(30);
    let mut group = criterion.benchmark_group("evaluate");
    group.bench_function("inline", |bencher| bencher.iter(decision));
    group.bench_function("one at a time", |bencher| {
        bencher.iter(|| runtime.block_on(pool.run(Lane::of_work("bench"), limit, decision)));
    });
    group.bench_function("a hundred at once", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let waiting: Vec<_> = (0..100)
                    .map(|_| {
                        let pool = Arc::clone(&pool);
                        tokio::spawn(async move { pool.run(Lane::of_work("bench"), limit, decision).await })
                    })
                    .collect();
                for decision in waiting {
                    let _ = decision.await;
                }
            });
        });
    });
    group.finish();
}

criterion_group!(benches, bridge);
criterion_main!(benches);
