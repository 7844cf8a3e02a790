//! `bulkhead simulate SCENARIO --seeds N`: something else goes wrong each time, and what must hold is looked at.

use std::io::{IsTerminal, Write};
use std::path::Path;

use bulkhead::render;
use bulkhead::scenario::Loaded;
use bulkhead::simulation::trial::{self, Sort, TrialOptions, Trials};
use clap::Args;

use crate::engines::EngineArguments;

#[derive(Args)]
#[command(next_help_heading = "Faults")]
pub(crate) struct TrialArguments {
    /// Run the scenario so many times, with something else going wrong each time, and check the promises that hold
    /// whatever goes wrong, in place of what the scenario expects. The first failure is made as small as it goes and
    /// written to a scenario file beside the scenario.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["journal", "report", "explain"])]
    seeds: Option<u64>,

    /// What may go wrong: `all`, or a list such as cluster-loss,flap,crash-after-write.
    #[arg(long, value_name = "all|LIST", default_value = "all", requires = "seeds", value_parser = parse)]
    faults: Faults,

    /// How many runs at a time; the default is one for each processor.
    #[arg(long, value_name = "NUMBER", requires = "seeds", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

#[derive(Clone)]
struct Faults(Vec<Sort>);

fn parse(list: &str) -> Result<Faults, String> {
    Sort::parse(list).map(Faults)
}

impl TrialArguments {
    /// Which trials to make; none if nobody asked for any.
    pub(crate) fn options(
        &self,
        file: &Path,
        scenario: &Loaded,
        engines: &EngineArguments,
    ) -> anyhow::Result<Option<TrialOptions>> {
        let Some(seeds) = self.seeds else { return Ok(None) };
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Some(TrialOptions {
            first_seed: scenario.seed,
            seeds,
            sorts: self.faults.0.clone(),
            engines: engines.start(scenario.flags.pod_detail())?,
            file: file.to_path_buf(),
            threads: self.threads.map_or(processors, usize::from),
        }))
    }
}

/// Makes the trials and prints what they came to. Returns whether every promise held.
pub(crate) fn run(scenario: &Loaded, options: &TrialOptions, json: bool) -> anyhow::Result<bool> {
    let shows_progress = std::io::stderr().is_terminal() && !json;
    let total = options.seeds;
    let trials = trial::run(scenario, options, |made| {
        if shows_progress {
            let _ = write!(anstream::stderr(), "\r{made} of {total} seeds\x1b[K");
        }
    })?;
    if shows_progress {
        let _ = write!(anstream::stderr(), "\r\x1b[K");
    }
    let mut out = anstream::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&trials)?)?;
    } else {
        print(&mut out, &trials)?;
    }
    Ok(trials.failure.is_none())
}

fn print(out: &mut impl Write, trials: &Trials) -> std::io::Result<()> {
    let Trials { seeds, troubles, decisions, failure } = trials;
    let total: u64 = troubles.values().sum();
    let sorts: Vec<_> = troubles.iter().map(|(sort, count)| format!("{sort} {count}")).collect();
    writeln!(out, "{seeds} seeds, {total} things went wrong, {decisions} decisions recorded")?;
    writeln!(out, "  {}", sorts.join(", "))?;
    let Some(failure) = failure else { return writeln!(out, "every promise held") };
    let (before, after) = failure.troubles;
    writeln!(out, "seed {} broke a promise; {after} of {before} things that went wrong are enough:", failure.seed)?;
    for violation in &failure.violations {
        let at = render::duration(violation.at_ms.max(0));
        writeln!(out, "  {} at {at}: {}", violation.invariant, violation.seen)?;
    }
    writeln!(out, "see it again: bulkhead simulate {}", failure.file.display())
}
