//! `bulkhead simulate --seeds N`: runs with randomly injected faults that check the invariants.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bulkhead::render;
use bulkhead::report::Violation;
use bulkhead::simulation::trial::{self, Base, Failure, Sort, Sweep, TrialOptions, Trials};
use bulkhead_plugin::Engine;
use clap::Args;

#[derive(Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct TrialArguments {
    /// Run the scenario this many times, each time with different random faults, and check the invariants instead of
    /// the scenario's expectations. The first failure is minimized and written to a scenario file beside the
    /// scenario.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["journal", "report", "explain"])]
    seeds: Option<u64>,

    /// Instead of a scenario, generate a federation for each seed, with random policies, workloads, settings and
    /// plugins. A failing scenario is written to this directory.
    #[arg(long, value_name = "DIR", requires = "seeds", conflicts_with = "scenario")]
    random: Option<PathBuf>,

    /// Write the generated scenarios and their faults to the directory without running them.
    #[arg(long, requires = "random")]
    write_only: bool,

    /// Faults to inject: `all`, or a list such as cluster-loss,flap,crash-after-write.
    #[arg(long, value_name = "all|LIST", default_value = "all", value_parser = parse)]
    faults: Faults,

    /// Run the scenario twice for each of its writes, with all controllers crashing right before and right after
    /// that write.
    #[arg(long, conflicts_with_all = ["seeds", "journal", "report", "explain"])]
    crash_at_every_write: bool,

    /// Number of parallel runs; defaults to the number of processors.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

#[derive(Clone)]
struct Faults(Vec<Sort>);

fn parse(list: &str) -> Result<Faults, String> {
    Sort::parse(list).map(Faults)
}

/// Kind of trial requested in place of a single run.
pub(crate) enum Trial {
    Seeds(TrialOptions),
    Files(TrialOptions, PathBuf),
    Sweep { file: PathBuf, engines: Vec<Arc<dyn Engine>>, threads: usize },
}

impl TrialArguments {
    /// Returns the trial that the arguments request, if any. `file` is the scenario.
    pub(crate) fn trial(
        &self,
        file: Option<&Path>,
        seed: Option<u64>,
        engines: impl FnOnce() -> anyhow::Result<Vec<Arc<dyn Engine>>>,
    ) -> anyhow::Result<Option<Trial>> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.threads.map_or(processors, usize::from);
        let base = match (&self.random, file) {
            (Some(folder), _) => Base::Random(folder.clone()),
            (None, Some(file)) => Base::Scenario(file.to_path_buf()),
            (None, None) => return Ok(None),
        };
        if let (true, Some(file)) = (self.crash_at_every_write, file) {
            return Ok(Some(Trial::Sweep { file: file.to_path_buf(), engines: engines()?, threads }));
        }
        let Some(seeds) = self.seeds else { return Ok(None) };
        let options = TrialOptions {
            sorts: self.faults.0.clone(),
            threads,
            ..TrialOptions::new(base, seed.unwrap_or_default(), seeds, engines()?)
        };
        Ok(Some(match &self.random {
            Some(folder) if self.write_only => Trial::Files(options, folder.clone()),
            _ => Trial::Seeds(options),
        }))
    }
}

/// Runs the trial and prints its result. Returns true if every invariant held.
pub(crate) fn run(trial: &Trial, json: bool) -> anyhow::Result<bool> {
    let mut out = anstream::stdout().lock();
    match trial {
        Trial::Seeds(options) => {
            if let Base::Random(folder) = &options.base {
                std::fs::create_dir_all(folder)?;
            }
            let trials = trial::run(options, progress(options.seeds, json))?;
            clear_progress(json)?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&trials)?)?;
            } else {
                told(&mut out, &trials)?;
            }
            Ok(trials.failure.is_none())
        }
        Trial::Files(options, folder) => {
            std::fs::create_dir_all(folder)?;
            for seed in options.first_seed..options.first_seed.saturating_add(options.seeds) {
                let file = folder.join(format!("random-{seed}.yaml"));
                trial::write(options, seed, &file)?;
                writeln!(out, "{}", file.display())?;
            }
            Ok(true)
        }
        Trial::Sweep { file, engines, threads } => {
            let sweep = trial::sweep(file, engines, *threads)?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&sweep)?)?;
            } else {
                swept(&mut out, &sweep)?;
            }
            Ok(sweep.broken.is_empty())
        }
    }
}

fn shows_progress(json: bool) -> bool {
    std::io::stderr().is_terminal() && !json
}

fn progress(total: u64, json: bool) -> impl Fn(u64) + Sync {
    let shows = shows_progress(json);
    move |made| {
        if shows {
            let _ = write!(anstream::stderr(), "\r{made} of {total} seeds\x1b[K");
        }
    }
}

fn clear_progress(json: bool) -> std::io::Result<()> {
    if shows_progress(json) { write!(anstream::stderr(), "\r\x1b[K") } else { Ok(()) }
}

fn told(out: &mut impl Write, trials: &Trials) -> std::io::Result<()> {
    let Trials { seeds, troubles, decisions, failure } = trials;
    let total: u64 = troubles.values().sum();
    let sorts: Vec<_> = troubles.iter().map(|(sort, count)| format!("{sort} {count}")).collect();
    writeln!(out, "{seeds} seeds, {total} disturbances, {decisions} decisions recorded")?;
    writeln!(out, "  {}", sorts.join(", "))?;
    let Some(Failure { seed, violations, parts: (before, after), file }) = failure else {
        return writeln!(out, "every invariant held");
    };
    writeln!(out, "seed {seed} broke an invariant; {after} of {before} parts of the scenario reproduce it:")?;
    for violation in violations {
        writeln!(out, "  {}", line(violation))?;
    }
    writeln!(out, "commit: {}", commit())?;
    match file {
        Some(file) => writeln!(out, "reproduce it: bulkhead simulate {}", file.display()),
        None => Ok(()),
    }
}

fn swept(out: &mut impl Write, sweep: &Sweep) -> std::io::Result<()> {
    let Sweep { writes, crashes, broken } = sweep;
    writeln!(out, "{crashes} crashes, before and after each of {writes} writes")?;
    for (write, kind, violation) in broken {
        writeln!(out, "  {kind}, after {write} writes: {}", line(violation))?;
    }
    if broken.is_empty() { writeln!(out, "every invariant held") } else { writeln!(out, "commit: {}", commit()) }
}

fn line(violation: &Violation) -> String {
    format!("{} at {}: {}", violation.invariant, render::duration(violation.at_ms.max(0)), violation.seen)
}

/// Returns the commit of the working directory's repository, which during development is the commit of the program.
fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned());
    text.unwrap_or_else(|| format!("not known; this is version {}", env!("CARGO_PKG_VERSION")))
}
