//! A seed determines the outcome of a run.

use bulkhead_simulator::render::{self, TextOptions};

use crate::support::{example, run};

const RUNS: usize = 100;

fn outputs(name: &str, seed: u64) -> (String, String, String) {
    let report = run(&example(name), Some(seed));
    let mut text = String::new();
    render::text(
        &report,
        &mut text,
        TextOptions {
            width: 120,
            verbose: true,
        },
    )
    .unwrap();
    (text, render::json(&report), render::html(&report))
}

#[test]
fn a_hundred_runs_with_one_seed_give_the_same_bytes() {
    let first = outputs("nginx-divided", 7);
    for run in 1..RUNS {
        assert!(outputs("nginx-divided", 7) == first, "run {run} differs from the first");
    }
}

#[test]
fn another_seed_gives_another_timing() {
    assert_ne!(outputs("nginx-divided", 1).0, outputs("nginx-divided", 2).0);
}
