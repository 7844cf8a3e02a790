//! Randomized trials of one scenario, or of random federations, with different faults in each run.
//!
//! A trial is a scenario, a seed and a list of faults. All faults end early enough for timers to expire; then the
//! liveness invariants are checked. A failing trial is minimized and written to a file that `bulkhead simulate` runs
//! unchanged.
//!
//! Start reading at `draft`, the representation of trials; faults are generated in `generate`, federations in
//! `random`.

mod draft;
mod generate;
mod random;
mod seeded_rng;
mod shrink;
mod sweep;
mod timing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::Engine;
use serde::Serialize;
use serde_json::Value;

use crate::report::Violation;
use crate::scenario::faults::{FaultKind, RESOURCES};
use crate::simulation::{self, Detail, RunOptions};
use draft::Draft;
pub use sweep::{Sweep, sweep};

/// Number of seeds of which one is run twice, to check that the results are identical.
const TWICE: u64 = 50;

/// Kind of disruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisruptionKind {
    /// A member cluster is unreachable for a time.
    ClusterLoss,
    /// A member cluster reports not ready for a time.
    ClusterUnready,
    /// All member clusters are unreachable for a time, as when the control plane is partitioned.
    AllLost,
    /// A member cluster becomes unreachable and recovers several times.
    Flap,
    /// A workload fails in one member cluster for a time.
    ApplicationFailure,
    /// A member cluster is unreachable for a time below every threshold, during a change of leaders.
    BlipAtTakeover,
    /// A fault of the control plane or of the controllers.
    Fault(FaultKind),
}

impl DisruptionKind {
    /// Returns every kind.
    pub fn all() -> Vec<Self> {
        let faults = FaultKind::ALL.into_iter().map(Self::Fault);
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

    /// Returns the name used on the command line.
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

    /// Parses a list of kinds; `all` stands for every kind.
    ///
    /// # Errors
    ///
    /// A name is unknown; the message lists the known names.
    pub fn parse(list: &str) -> Result<Vec<Self>, String> {
        if list == "all" {
            return Ok(Self::all());
        }
        let kind = |name: &str| {
            Self::all()
                .into_iter()
                .find(|kind| kind.as_str() == name)
                .ok_or_else(|| {
                    let known: Vec<_> = Self::all().into_iter().map(Self::as_str).collect();
                    format!("there is no fault {name:?}; there are all, {}", known.join(", "))
                })
        };
        list.split(',').map(str::trim).map(kind).collect()
    }
}

/// Generated disruption, including the events that end it.
#[derive(Clone, Debug)]
struct Disruption {
    kind: DisruptionKind,
    at: GoDuration,
    /// Events as scenario data.
    events: Vec<Value>,
}

/// Base of the trials.
#[derive(Clone, Debug)]
pub enum Base {
    /// Scenario file. Failures are written beside it.
    Scenario(PathBuf),
    /// Random federation for each seed. Failures are written to this directory.
    Random(PathBuf),
}

/// Options of the trials.
pub struct TrialOptions {
    /// Base of the trials.
    pub base: Base,
    /// First seed.
    pub first_seed: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Kinds of disruption to generate.
    pub kinds: Vec<DisruptionKind>,
    /// Engines for plugins.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Number of parallel trials, at least 1.
    pub threads: usize,
    /// True to minimize a failure and write it to a file.
    pub shrinks: bool,
    /// True to run every seed twice and compare the results, instead of one seed in fifty.
    pub always_twice: bool,
}

impl TrialOptions {
    /// Creates options for these seeds with every kind of disruption and one trial at a time.
    pub fn new(base: Base, first_seed: u64, seeds: u64, engines: Vec<Arc<dyn Engine>>) -> Self {
        let (kinds, threads, shrinks) = (DisruptionKind::all(), 1, true);
        Self {
            base,
            first_seed,
            seeds,
            kinds,
            engines,
            threads,
            shrinks,
            always_twice: false,
        }
    }
}

/// Result of the trials.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trials {
    /// Number of completed trials.
    pub seeds: u64,
    /// Number of generated disruptions per kind.
    pub disruptions: BTreeMap<&'static str, u64>,
    /// Number of decisions recorded and replayed.
    pub decisions: u64,
    /// First seed that violated an invariant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Seed that violated an invariant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Value of the seed.
    pub seed: u64,
    /// Violations of the minimized scenario.
    pub violations: Vec<Violation>,
    /// Number of parts of the scenario before and after minimization: clusters, objects, settings, events.
    pub parts: (usize, usize),
    /// Scenario that reproduces the failure, if it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// Result of one trial.
struct Outcome {
    violations: Vec<Violation>,
    decisions: u64,
    /// Number of writes to objects that controllers share.
    shared_writes: u64,
    /// Serialized timeline, for comparison of two runs.
    timeline: String,
}

impl Outcome {
    /// Creates the result of a run that failed with an error.
    fn unable(error: &anyhow::Error) -> Self {
        let seen = format!("the federation cannot run: {error:#}");
        let violations = vec![Violation {
            invariant: "L2",
            at_ms: 0,
            seen,
        }];
        Self {
            violations,
            decisions: 0,
            shared_writes: 0,
            timeline: String::new(),
        }
    }
}

/// Trial that violated an invariant.
type Failed = (u64, Draft, Vec<Violation>);

/// Runs trials until one violates an invariant or all are done. `progress` receives the number of started trials.
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
        workers
            .into_iter()
            .map(join)
            .collect::<anyhow::Result<Vec<(Trials, Option<Failed>)>>>()
    })?;
    let mut all = Trials::default();
    let mut failures = Vec::new();
    for (trials, failed) in results {
        all.add(trials);
        failures.extend(failed);
    }
    failures.sort_by_key(|(seed, ..)| *seed);
    if let Some(failed) = failures.into_iter().next() {
        all.failure = Some(shrink::failure(options, failed)?);
    }
    Ok(all)
}

impl Trials {
    fn count(&mut self, draft: &Draft, outcome: &Outcome) {
        self.seeds += 1;
        self.decisions += outcome.decisions;
        for disruption in &draft.disruptions {
            *self.disruptions.entry(disruption.kind.as_str()).or_default() += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.decisions += other.decisions;
        for (kind, count) in other.disruptions {
            *self.disruptions.entry(kind).or_default() += count;
        }
    }
}

fn draft(base: Option<&Draft>, options: &TrialOptions, seed: u64) -> anyhow::Result<Draft> {
    let draft = match (base, &options.base) {
        (Some(base), _) => base.clone(),
        (None, Base::Random(folder) | Base::Scenario(folder)) => random::draft(seed, &folder.join("random.yaml")),
    };
    draft.with(seed, |targets, timing| {
        generate::disruptions(seed, &options.kinds, targets, timing)
    })
}

/// Runs a trial, and for some seeds a second time to compare the results.
fn trial(draft: &Draft, options: &TrialOptions, index: u64) -> anyhow::Result<Outcome> {
    let mut outcome = match attempt(draft, &options.engines) {
        // A generated federation that fails to run counts as a violation.
        Err(error) if matches!(options.base, Base::Random(_)) => return Ok(Outcome::unable(&error)),
        outcome => outcome?,
    };
    let twice = options.always_twice || index.is_multiple_of(TWICE);
    if twice && outcome.violations.is_empty() && attempt(draft, &options.engines)?.timeline != outcome.timeline {
        let seen = "the same seed gave other decisions the second time".to_owned();
        outcome.violations.push(Violation {
            invariant: "S8",
            at_ms: 0,
            seen,
        });
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
        is_last: false,
    };
    let report = simulation::run(&draft.load()?, options)?.report;
    let timeline = serde_json::to_string(&report.timeline)?;
    let shared = |row: &&crate::report::WriteRow| RESOURCES.iter().any(|plural| row.resource.starts_with(plural));
    let shared_writes = report.writes.iter().filter(shared).map(|row| row.count).sum();
    Ok(Outcome {
        violations: report.violations,
        decisions: report.totals.decisions,
        shared_writes,
        timeline,
    })
}

/// Returns the path for the failure of a seed.
fn failure_file(base: &Base, seed: u64) -> PathBuf {
    match base {
        Base::Scenario(path) => {
            let stem = path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default();
            path.with_file_name(format!("{stem}-seed-{seed}.yaml"))
        }
        Base::Random(folder) => Path::new(folder).join(format!("random-seed-{seed}.yaml")),
    }
}

/// Writes the random federation of a seed, with its faults, to a scenario file.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(options: &TrialOptions, seed: u64, to: &Path) -> anyhow::Result<()> {
    draft(None, options, seed)?.write(to)
}
