//! The same scenario over and over, with something else going wrong each time.
//!
//! A trial is a scenario, a seed and what goes wrong. Everything that goes wrong is over at a moment that leaves time
//! for timers to run out; then the promises of the liveness kind are looked at. What breaks one is made smaller and
//! written to a file that `bulkhead simulate` runs as it is.

mod generate;
mod shrink;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::Engine;
use serde::Serialize;

use super::{Detail, RunOptions};
use crate::report::Violation;
use crate::scenario::faults::FaultKind;
use crate::scenario::{ClusterState, EventAction, Loaded, LoadedEvent};

/// Until when things go wrong.
const TROUBLE: GoDuration = GoDuration::from_secs(8 * 60);
/// How long everything is well afterwards, on top of the longest timer.
const QUIET: GoDuration = GoDuration::from_secs(5 * 60);

/// A sort of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A member cluster cannot be reached for a time.
    ClusterLoss,
    /// A member cluster says that it is not ready for a time.
    ClusterUnready,
    /// A member cluster goes and comes several times.
    Flap,
    /// A fault of the control plane or of the controllers.
    Fault(FaultKind),
}

impl Sort {
    /// Every sort.
    pub fn all() -> Vec<Self> {
        let faults = FaultKind::ALL.into_iter().map(Self::Fault);
        [Self::ClusterLoss, Self::ClusterUnready, Self::Flap].into_iter().chain(faults).collect()
    }

    /// The spelling used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterLoss => "cluster-loss",
            Self::ClusterUnready => "cluster-unready",
            Self::Flap => "flap",
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
pub(crate) struct Trouble {
    sort: Sort,
    events: Vec<LoadedEvent>,
}

/// Which trials to make.
pub struct TrialOptions {
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// What may go wrong.
    pub sorts: Vec<Sort>,
    /// Engines that plugins may use.
    pub engines: Vec<Arc<dyn Engine>>,
    /// The file of the scenario, which files with failures are written beside.
    pub file: PathBuf,
    /// How many trials are made at a time, at least 1.
    pub threads: usize,
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
    /// How many things went wrong at first, and how many were enough.
    pub troubles: (usize, usize),
    /// A scenario that shows it.
    pub file: PathBuf,
}

/// What one trial came to.
struct Outcome {
    violations: Vec<Violation>,
    decisions: u64,
    /// Everything that was decided, for comparison.
    told: String,
}

/// Makes trials until one breaks a promise or all are made. `progress` is told how many were made.
///
/// # Errors
///
/// The scenario cannot run, or a file cannot be written.
pub fn run(scenario: &Loaded, options: &TrialOptions, progress: impl Fn(u64) + Sync) -> anyhow::Result<Trials> {
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
                let troubles = troubles(scenario, options, seed);
                let mut outcome = attempt(scenario, &options.engines, seed, &troubles)?;
                // The same again now and then: it must come out the same.
                if index % 50 == 0 && attempt(scenario, &options.engines, seed, &troubles)?.told != outcome.told {
                    let seen = "the same seed gave other decisions the second time".to_owned();
                    outcome.violations.push(Violation { invariant: "S8", at_ms: 0, seen });
                }
                trials.seeds += 1;
                trials.decisions += outcome.decisions;
                for trouble in &troubles {
                    *trials.troubles.entry(trouble.sort.as_str()).or_default() += 1;
                }
                progress(next.load(Ordering::Relaxed).min(options.seeds));
                if !outcome.violations.is_empty() {
                    stop.store(true, Ordering::Relaxed);
                    failed = Some((seed, troubles, outcome.violations));
                }
            }
            anyhow::Ok((trials, failed))
        };
        let workers: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let mut all = Trials::default();
    let mut failures = Vec::new();
    for (trials, failed) in results {
        all.seeds += trials.seeds;
        all.decisions += trials.decisions;
        for (sort, count) in trials.troubles {
            *all.troubles.entry(sort).or_default() += count;
        }
        failures.extend(failed);
    }
    failures.sort_by_key(|(seed, ..)| *seed);
    if let Some((seed, troubles, violations)) = failures.into_iter().next() {
        all.failure = Some(shrink::shrink(scenario, options, seed, troubles, violations)?);
    }
    Ok(all)
}

fn troubles(scenario: &Loaded, options: &TrialOptions, seed: u64) -> Vec<Trouble> {
    let clusters: Vec<_> = scenario.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    generate::troubles(seed, &options.sorts, &clusters, TROUBLE)
}

/// The scenario with what goes wrong, and an end that leaves time for every timer.
fn staged(scenario: &Loaded, troubles: &[Trouble]) -> Loaded {
    let mut staged = scenario.clone();
    staged.invariants = true;
    staged.expectations.clear();
    let last = scenario.events.iter().map(|event| event.at).max().unwrap_or_default();
    let well = GoDuration(TROUBLE.0.max(last.0) + std::time::Duration::from_mins(1));
    staged.events.extend(troubles.iter().flat_map(|trouble| trouble.events.iter().cloned()));
    for cluster in &scenario.clusters {
        let action = EventAction::ClusterState(cluster.name.clone(), ClusterState::Recover);
        staged.events.push(LoadedEvent { at: well, action });
        staged
            .events
            .push(LoadedEvent { at: well, action: EventAction::FailureModes(cluster.name.clone(), Vec::new()) });
    }
    staged.events.sort_by_key(|event| event.at);
    let flags = &scenario.flags;
    let timers = flags.graceful_eviction_timeout.0 + flags.failover_eviction_timeout.0;
    staged.duration = GoDuration(well.0 + QUIET.0 + timers);
    staged
}

fn attempt(scenario: &Loaded, engines: &[Arc<dyn Engine>], seed: u64, troubles: &[Trouble]) -> anyhow::Result<Outcome> {
    let options = RunOptions {
        seed: Some(seed),
        engines: engines.to_vec(),
        detail: Detail::Everything,
        explain: None,
        sink: None,
        progress: None,
    };
    let report = super::run(&staged(scenario, troubles), options)?.report;
    let told = serde_json::to_string(&report.timeline)?;
    Ok(Outcome { violations: report.violations, decisions: report.totals.decisions, told })
}

/// Where a failure of a seed is written: beside the scenario.
fn failure_file(scenario: &Path, seed: u64) -> PathBuf {
    let stem = scenario.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    scenario.with_file_name(format!("{stem}-seed-{seed}.yaml"))
}
