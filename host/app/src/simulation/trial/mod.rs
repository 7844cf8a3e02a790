//! The same scenario over and over, or one random federation after the other, with something else going wrong each time.
//!
//! A trial is a scenario, a seed and what goes wrong. Everything that goes wrong is over at a moment that leaves time
//! for timers to run out; then the promises of the liveness kind are looked at. What breaks one is made smaller and
//! written to a file that `bulkhead simulate` runs as it is.
//!
//! Start reading at `draft`, the form that trials have; what goes wrong is in `generate`, federations are made in
//! `random`.

mod dice;
mod draft;
mod generate;
mod random;
mod shrink;
mod sweep;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::mutation::Mutation;
use bulkhead_plugin::Engine;
use serde::Serialize;
use serde_json::Value;

use super::{Detail, RunOptions};
use crate::report::Violation;
use crate::scenario::faults::{FaultKind, RESOURCES};
use draft::Draft;
pub use sweep::{Sweep, sweep};

/// One seed in so many is run twice, and must come out the same.
const TWICE: u64 = 50;

/// Faults that still break promises, so that trials leave them out. Scenarios can name them.
const UNSOLVED: [FaultKind; 7] = [
    FaultKind::ClockStepAhead,
    FaultKind::ClockStepBack,
    FaultKind::Recreate,
    FaultKind::Rejoin,
    FaultKind::SluggishPlugin,
    FaultKind::TargetLoss,
    FaultKind::WriteOutage,
];

/// A sort of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A member cluster cannot be reached for a time.
    ClusterLoss,
    /// A member cluster says that it is not ready for a time.
    ClusterUnready,
    /// No member cluster can be reached for a time: it is the control plane that is cut off.
    AllLost,
    /// A member cluster goes and comes several times.
    Flap,
    /// A workload fails in one member cluster for a time.
    ApplicationFailure,
    /// A member cluster cannot be reached for a moment, shorter than any threshold, in which another process takes over.
    BlipAtTakeover,
    /// A fault of the control plane or of the controllers.
    Fault(FaultKind),
}

impl Sort {
    /// Every sort.
    pub fn all() -> Vec<Self> {
        let faults = FaultKind::ALL.into_iter().filter(|kind| !UNSOLVED.contains(kind)).map(Self::Fault);
        let others = [
            Self::ClusterLoss,
            Self::ClusterUnready,
            Self::AllLost,
            Self::Flap,
            Self::ApplicationFailure,
            Self::BlipAtTakeover,
        ];
        others.into_iter().chain(faults).collect()
    }

    /// The spelling used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterLoss => "cluster-loss",
            Self::ClusterUnready => "cluster-unready",
            Self::AllLost => "all-lost",
            Self::Flap => "flap",
            Self::ApplicationFailure => "application-failure",
            Self::BlipAtTakeover => "blip-at-takeover",
            Self::Fault(kind) => kind.as_str(),
        }
    }

    /// The sorts that a list names; `all` is every one.
    ///
    /// # Errors
    ///
    /// A name that there is none of; the message has the names.
    pub fn parse(list: &str) -> Result<Vec<Self>, String> {
        if list == "all" {
            return Ok(Self::all());
        }
        let sort = |name: &str| {
            Self::all().into_iter().find(|sort| sort.as_str() == name).ok_or_else(|| {
                let known: Vec<_> = Self::all().into_iter().map(Self::as_str).collect();
                format!("there is no fault {name:?}; there are all, {}", known.join(", "))
            })
        };
        list.split(',').map(str::trim).map(sort).collect()
    }
}

/// One thing that goes wrong, and is put right again.
#[derive(Clone, Debug)]
struct Trouble {
    sort: Sort,
    at: GoDuration,
    /// As they are written.
    events: Vec<Value>,
}

/// What trials are made of.
#[derive(Clone, Debug)]
pub enum Base {
    /// A scenario file. Failures are written beside it.
    Scenario(PathBuf),
    /// A random federation for each seed. Failures are written to this folder.
    Random(PathBuf),
}

/// Which trials to make.
pub struct TrialOptions {
    /// What they are made of.
    pub base: Base,
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// What may go wrong.
    pub sorts: Vec<Sort>,
    /// Engines that plugins may use.
    pub engines: Vec<Arc<dyn Engine>>,
    /// How many trials are made at a time, at least 1.
    pub threads: usize,
    /// Whether a failure is made smaller and written to a file.
    pub shrinks: bool,
    /// Whether every seed is run twice and must come out the same, and not only one in fifty.
    pub always_twice: bool,
    /// A mistake to make; only builds for that have any.
    pub mutation: Option<Mutation>,
}

impl TrialOptions {
    /// The trials of these seeds with everything that can go wrong, one at a time.
    pub fn new(base: Base, first_seed: u64, seeds: u64, engines: Vec<Arc<dyn Engine>>) -> Self {
        let (sorts, threads, shrinks) = (Sort::all(), 1, true);
        Self { base, first_seed, seeds, sorts, engines, threads, shrinks, always_twice: false, mutation: None }
    }
}

/// What trials came to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trials {
    /// How many were made.
    pub seeds: u64,
    /// How often each sort of trouble was made.
    pub troubles: BTreeMap<&'static str, u64>,
    /// Decisions that were recorded and replayed.
    pub decisions: u64,
    /// The first seed that broke a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A seed that broke a promise.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What was broken, with as little going wrong as was found to be enough.
    pub violations: Vec<Violation>,
    /// How many parts the scenario had at first, and how many are enough: clusters, objects, settings, events.
    pub parts: (usize, usize),
    /// A scenario that shows it, if it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// What one trial came to.
struct Outcome {
    violations: Vec<Violation>,
    decisions: u64,
    /// Writes of the objects that controllers share.
    shared_writes: u64,
    /// Everything that was decided, for comparison.
    told: String,
}

impl Outcome {
    /// Of a run that did not come to its end.
    fn unable(error: &anyhow::Error) -> Self {
        let seen = format!("the federation cannot run: {error:#}");
        let violations = vec![Violation { invariant: "L2", at_ms: 0, seen }];
        Self { violations, decisions: 0, shared_writes: 0, told: String::new() }
    }
}

/// A trial that broke a promise.
type Failed = (u64, Draft, Vec<Violation>);

/// Makes trials until one breaks a promise or all are made. `progress` is told how many were made.
///
/// # Errors
///
/// The scenario cannot run, or a file cannot be written.
pub fn run(options: &TrialOptions, progress: impl Fn(u64) + Sync) -> anyhow::Result<Trials> {
    let base = match &options.base {
        Base::Scenario(path) => Some(Draft::read(path)?),
        Base::Random(_) => None,
    };
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let results = std::thread::scope(|scope| {
        let worker = || {
            make(options.mutation);
            let (mut trials, mut failed) = (Trials::default(), None);
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= options.seeds {
                    break;
                }
                let seed = options.first_seed.saturating_add(index);
                let draft = draft(base.as_ref(), options, seed)?;
                let outcome = trial(&draft, options, index)?;
                trials.count(&draft, &outcome);
                progress(next.load(Ordering::Relaxed).min(options.seeds));
                if !outcome.violations.is_empty() {
                    stop.store(true, Ordering::Relaxed);
                    failed = Some((seed, draft, outcome.violations));
                }
            }
            anyhow::Ok((trials, failed))
        };
        let workers: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect::<anyhow::Result<Vec<(Trials, Option<Failed>)>>>()
    })?;
    let mut all = Trials::default();
    let mut failures = Vec::new();
    for (trials, failed) in results {
        all.add(trials);
        failures.extend(failed);
    }
    failures.sort_by_key(|(seed, ..)| *seed);
    if let Some(failed) = failures.into_iter().next() {
        make(options.mutation);
        all.failure = Some(shrink::failure(options, failed)?);
        make(None);
    }
    Ok(all)
}

#[cfg(feature = "mutations")]
fn make(mutation: Option<Mutation>) {
    bulkhead_core::mutation::make(mutation);
}

/// A build without mistakes makes none.
#[cfg(not(feature = "mutations"))]
fn make(_: Option<Mutation>) {}

impl Trials {
    fn count(&mut self, draft: &Draft, outcome: &Outcome) {
        self.seeds += 1;
        self.decisions += outcome.decisions;
        for trouble in &draft.troubles {
            *self.troubles.entry(trouble.sort.as_str()).or_default() += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.decisions += other.decisions;
        for (sort, count) in other.troubles {
            *self.troubles.entry(sort).or_default() += count;
        }
    }
}

fn draft(base: Option<&Draft>, options: &TrialOptions, seed: u64) -> anyhow::Result<Draft> {
    let draft = match (base, &options.base) {
        (Some(base), _) => base.clone(),
        (None, Base::Random(folder) | Base::Scenario(folder)) => random::draft(seed, &folder.join("random.yaml")),
    };
    draft.with(seed, |targets, timing| generate::troubles(seed, &options.sorts, targets, timing))
}

/// Runs a trial, now and then twice: it must come out the same.
fn trial(draft: &Draft, options: &TrialOptions, index: u64) -> anyhow::Result<Outcome> {
    let mut outcome = match attempt(draft, &options.engines) {
        // A federation that was made to run and does not is as broken as one that does not recover.
        Err(error) if matches!(options.base, Base::Random(_)) => return Ok(Outcome::unable(&error)),
        outcome => outcome?,
    };
    let twice = options.always_twice || index.is_multiple_of(TWICE);
    if twice && outcome.violations.is_empty() && attempt(draft, &options.engines)?.told != outcome.told {
        let seen = "the same seed gave other decisions the second time".to_owned();
        outcome.violations.push(Violation { invariant: "S8", at_ms: 0, seen });
    }
    Ok(outcome)
}

fn attempt(draft: &Draft, engines: &[Arc<dyn Engine>]) -> anyhow::Result<Outcome> {
    let options = RunOptions {
        seed: None,
        engines: engines.to_vec(),
        detail: Detail::Everything,
        explain: None,
        sink: None,
        progress: None,
    };
    let report = super::run(&draft.load()?, options)?.report;
    let told = serde_json::to_string(&report.timeline)?;
    let shared = |row: &&crate::report::WriteRow| RESOURCES.iter().any(|plural| row.resource.starts_with(plural));
    let shared_writes = report.writes.iter().filter(shared).map(|row| row.count).sum();
    Ok(Outcome { violations: report.violations, decisions: report.totals.decisions, shared_writes, told })
}

/// Where a failure of a seed is written.
fn failure_file(base: &Base, seed: u64) -> PathBuf {
    match base {
        Base::Scenario(path) => {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            path.with_file_name(format!("{stem}-seed-{seed}.yaml"))
        }
        Base::Random(folder) => Path::new(folder).join(format!("random-seed-{seed}.yaml")),
    }
}

/// Writes the random federation of a seed, with what goes wrong, to a file that `bulkhead simulate` runs.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(options: &TrialOptions, seed: u64, to: &Path) -> anyhow::Result<()> {
    draft(None, options, seed)?.write(to)
}
