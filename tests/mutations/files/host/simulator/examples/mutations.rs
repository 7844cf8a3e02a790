//! Activates one deliberate mistake after the other, and reports the seed in which the simulation finds it.
//!
//! `cargo xtask mutations [--seeds NUMBER] [--only NAME] [--at-least NUMBER]` builds and runs it. Every mistake gets the
//! same seeds, from the first on, until a promise breaks. Exits with code 1 if fewer mistakes are found than required.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bulkhead_core::mutation::Mutation;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::Engine;
use bulkhead_simulator::trial::{self, Base, TrialOptions, Trials};
use clap::Parser;

/// Find deliberate mistakes.
#[derive(Parser)]
struct Arguments {
    /// Maximum number of seeds for each mistake.
    #[arg(long, default_value_t = 400)]
    seeds: u64,
    /// Only mistakes with one of these in their name.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Number of concurrent runs.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Number of mistakes that must be found; all by default.
    #[arg(long, value_name = "NUMBER")]
    at_least: Option<usize>,
    /// Scenario file to run instead of random federations.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Print the violations.
    #[arg(short, long)]
    verbose: bool,
}

fn search(arguments: &Arguments, engines: &[Arc<dyn Engine>], mutation: Mutation) -> anyhow::Result<Trials> {
    let base = arguments.scenario.clone().map_or_else(|| Base::Random(PathBuf::from("target")), Base::Scenario);
    let options = TrialOptions {
        threads: arguments.threads,
        shrinks: false,
        always_twice: mutation == Mutation::LeftToChance,
        mutation: Some(mutation),
        ..TrialOptions::new(base, 1, arguments.seeds, engines.to_vec())
    };
    trial::run(&options, |_| {})
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let engines: Vec<Arc<dyn Engine>> = vec![Arc::new(LuaEngine::default())];
    let only: Vec<_> = arguments.only.iter().map(|name| name.to_lowercase()).collect();
    let is_wanted = |mutation: &Mutation| {
        let name = format!("{mutation:?}").to_lowercase();
        only.is_empty() || only.iter().any(|only| name.contains(only.as_str()))
    };
    let wanted: Vec<_> = Mutation::ALL.into_iter().filter(is_wanted).collect();
    println!("| mistake | promise that breaks | seeds | time |\n| --- | --- | --- | --- |");
    let mut found = 0;
    for mutation in &wanted {
        let start = Instant::now();
        let trials = search(&arguments, &engines, *mutation)?;
        let took = start.elapsed().as_secs_f64();
        let Some(failure) = trials.failure else {
            println!("| {mutation:?} | none | {} | {took:.0} s |", trials.seeds);
            continue;
        };
        found += 1;
        let broken = failure.violations.first().map_or("", |violation| violation.invariant);
        println!("| {mutation:?} | {broken} | {} | {took:.1} s |", failure.seed);
        if arguments.verbose {
            failure.violations.iter().for_each(|violation| println!("  {}: {}", violation.invariant, violation.seen));
        }
    }
    println!("\n{found} of {} mistakes found in at most {} seeds each", wanted.len(), arguments.seeds);
    let needed = arguments.at_least.unwrap_or(wanted.len());
    Ok(if found >= needed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
