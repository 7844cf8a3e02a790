//! `bulkhead simulate --seeds N`: runs with randomly injected faults that check the invariants.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_plugin::Engine;
use bulkhead_simulator::render;
use bulkhead_simulator::report::Violation;
use bulkhead_simulator::trial::{self, Base, DisruptionKind, Failure, Sweep, TrialOptions, Trials};
use clap::Args;

use crate::output::Format;
use crate::version;

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
    #[arg(long, value_name = "all|LIST", default_value = "all", value_parser = parse, long_help = faults_help())]
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
struct Faults(Vec<DisruptionKind>);

fn faults_help() -> String {
    let names: Vec<_> = DisruptionKind::all().into_iter().map(DisruptionKind::as_str).collect();
    format!("Faults to inject: `all`, or a list of {}", names.join(", "))
}

fn parse(list: &str) -> Result<Faults, String> {
    DisruptionKind::parse(list).map(Faults)
}

/// Kind of trial requested in place of a single run.
pub(crate) enum Trial {
    Seeds(TrialOptions),
    Files(TrialOptions, PathBuf),
    Sweep {
        file: PathBuf,
        engines: Vec<Arc<dyn Engine>>,
        threads: usize,
    },
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
            return Ok(Some(Trial::Sweep {
                file: file.to_path_buf(),
                engines: engines()?,
                threads,
            }));
        }
        let Some(seeds) = self.seeds else { return Ok(None) };
        let options = TrialOptions {
            kinds: self.faults.0.clone(),
            threads,
            ..TrialOptions::new(base, seed.unwrap_or_default(), seeds, engines()?)
        };
        Ok(Some(match &self.random {
            Some(folder) if self.write_only => Trial::Files(options, folder.clone()),
            _ => Trial::Seeds(options),
        }))
    }
}

/// Creates the directory of `--random`.
fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!(
            "--random {}: cannot create this directory for generated scenarios",
            folder.display()
        )
    })
}

/// Runs the trial and prints its result. Returns true if every invariant held.
pub(crate) fn run(trial: &Trial, format: Format) -> anyhow::Result<bool> {
    match trial {
        Trial::Seeds(options) => {
            if let Base::Random(folder) = &options.base {
                make(folder)?;
            }
            let trials = trial::run(options, progress(options.seeds, format))?;
            clear_progress(format)?;
            format.print(|| text_of_trials(&trials), &trials)?;
            Ok(trials.failure.is_none())
        }
        Trial::Files(options, folder) => {
            make(folder)?;
            let mut files = Vec::new();
            for seed in options.first_seed..options.first_seed.saturating_add(options.seeds) {
                let file = folder.join(format!("random-{seed}.yaml"));
                trial::write(options, seed, &file)?;
                files.push(file);
            }
            format.print(|| text_of_files(&files), &files)?;
            Ok(true)
        }
        Trial::Sweep { file, engines, threads } => {
            let sweep = trial::sweep(file, engines, *threads)?;
            format.print(|| text_of_sweep(&sweep), &sweep)?;
            Ok(sweep.broken.is_empty())
        }
    }
}

fn shows_progress(format: Format) -> bool {
    std::io::stderr().is_terminal() && format == Format::Text
}

fn progress(total: u64, format: Format) -> impl Fn(u64) + Sync {
    let shows = shows_progress(format);
    move |made| {
        if shows {
            let _ = write!(anstream::stderr(), "\r{made} of {total} seeds\x1b[K");
        }
    }
}

fn clear_progress(format: Format) -> std::io::Result<()> {
    if shows_progress(format) {
        write!(anstream::stderr(), "\r\x1b[K")
    } else {
        Ok(())
    }
}

fn text_of_trials(trials: &Trials) -> String {
    let Trials {
        seeds,
        disruptions,
        decisions,
        failure,
    } = trials;
    let total: u64 = disruptions.values().sum();
    let kinds: Vec<_> = disruptions
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let mut lines = vec![
        format!("{seeds} seeds, {total} disturbances, {decisions} decisions recorded"),
        format!("  {}", kinds.join(", ")),
    ];
    match failure {
        None => lines.push("every invariant held".to_owned()),
        Some(Failure {
            seed,
            violations,
            parts: (before, after),
            file,
        }) => {
            lines.push(format!(
                "seed {seed} broke an invariant; {after} of {before} parts of the scenario reproduce it:"
            ));
            lines.extend(violations.iter().map(|violation| format!("  {}", line(violation))));
            lines.push(format!("commit: {}", version::commit()));
            lines.extend(
                file.iter()
                    .map(|file| format!("reproduce it: bulkhead simulate {}", file.display())),
            );
        }
    }
    lines.join("\n") + "\n"
}

fn text_of_files(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join("\n") + "\n"
}

fn text_of_sweep(sweep: &Sweep) -> String {
    let Sweep {
        writes,
        crashes,
        broken,
    } = sweep;
    let mut lines = vec![format!("{crashes} crashes, before and after each of {writes} writes")];
    lines.extend(
        broken
            .iter()
            .map(|(write, kind, violation)| format!("  {kind}, after {write} writes: {}", line(violation))),
    );
    lines.push(if broken.is_empty() {
        "every invariant held".to_owned()
    } else {
        format!("commit: {}", version::commit())
    });
    lines.join("\n") + "\n"
}

fn line(violation: &Violation) -> String {
    format!(
        "{} at {}: {}",
        violation.invariant,
        render::duration(violation.at_ms.max(0)),
        violation.seen
    )
}
