//! Time and additional memory for rescheduling 100,000 bindings over 1,000 clusters, with two decisions in parallel.
//!
//! `cargo bench -p bulkhead-core --bench fleet`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails by panicking"
)]

mod federation;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use bulkhead_core::model::Binding;
use federation::{binding, clusters, placements, policies, schedule};

const BINDINGS: usize = 100_000;
const CLUSTERS: usize = 1_000;
const THREADS: usize = 2;
/// Number of rounds over all bindings. Memory must not grow between rounds.
const ROUNDS: usize = 3;

/// Returns resident memory and its peak so far, in KiB.
fn memory() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn main() {
    let (snapshot, policies) = (clusters(CLUSTERS, true), policies());
    let placements = placements();
    let mut bindings: Vec<Binding> = (0..BINDINGS)
        .map(|index| {
            let mut binding = binding(placements[index % placements.len()].1.clone());
            binding.name = format!("app-{index}-deployment");
            binding.spec.resource.name = format!("app-{index}");
            binding.spec.resource.uid = format!("uid-{index}");
            binding
        })
        .collect();
    println!(
        "{BINDINGS} bindings over {CLUSTERS} clusters with resource models, {THREADS} at a time, placements in turn"
    );
    println!("before: {} MiB resident", memory().0 / 1024);
    for round in 1..=ROUNDS {
        let (started, placed) = (Instant::now(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for part in bindings.chunks_mut(BINDINGS.div_ceil(THREADS)) {
                let (snapshot, policies, placed) = (&snapshot, &policies, &placed);
                scope.spawn(move || {
                    for binding in part {
                        let targets = schedule(binding, snapshot, policies);
                        placed.fetch_add(usize::from(!targets.is_empty()), Ordering::Relaxed);
                        // The next round starts from short results. Long ones, 950 clusters for Duplicated, would add
                        // gigabytes of memory that do not belong to the scheduler.
                        if targets.len() <= 20 {
                            binding.spec.clusters = targets;
                        }
                    }
                });
            }
        });
        let (resident, peak) = memory();
        println!(
            "round {round}: {:.1} s, {} placed, {} MiB resident, {} MiB at most",
            started.elapsed().as_secs_f64(),
            placed.load(Ordering::Relaxed),
            resident / 1024,
            peak / 1024
        );
    }
}
