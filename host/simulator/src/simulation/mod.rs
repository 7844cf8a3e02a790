//! Execution of scenarios on virtual time.

mod checks;
mod expect;
mod explain;
mod faulty_plugin;
mod federation;
mod inject;
mod invariants;
mod member;
mod observe;
mod report_only_process;
mod rows;
mod timeline;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::journal::Sink;
use bulkhead_emulator::ClusterState;
use bulkhead_plugin::Engine;
use serde_json::Value;

use crate::control_plane;
use crate::origin::Origin;
use crate::report::{EntrySource, Report, TimelineEntry, Tone};
use crate::scenario::faults::{FaultKind, FaultSpec};
use crate::scenario::{EventAction, Loaded, LoadedEvent, ManifestObject, ObjectSpec};
use expect::Watched;
use federation::{Federation, PluginObserver, Start};
use inject::Injector;
use invariants::{Inspector, Observed};
use observe::Observer;
pub use timeline::Detail;

/// Sampling interval of the member clusters and of expectations over a period.
const SAMPLE: Duration = Duration::from_secs(1);

/// Maximum delay of a request by a fault that waits for its request.
const PENDING_MAX: Duration = Duration::from_secs(40);

/// Pause before a write of a person that failed is made again.
const ACT_PAUSE: Duration = Duration::from_secs(2);

/// Options of a run.
pub struct RunOptions {
    /// Random seed; the scenario's own if absent.
    pub seed: Option<u64>,
    /// Engines for plugins.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Level of detail of the timeline.
    pub detail: Detail,
    /// Key of a binding to explain.
    pub explain: Option<String>,
    /// Additional sink for decisions.
    pub sink: Option<Box<dyn Sink>>,
    /// Progress callback, called with the elapsed virtual time and the total duration.
    pub progress: Option<Box<dyn Fn(GoDuration, GoDuration)>>,
    /// True if the process ends soon after the run. The operating system then frees the memory of the federation, which
    /// is millions of small objects.
    pub is_last: bool,
}

/// Result of a run.
pub struct Finished {
    /// Report of the run.
    pub report: Report,
    /// Explanation of the selected binding, as text.
    pub explanation: Option<String>,
    /// Explanation of the selected binding, as data.
    pub explanation_data: Option<Value>,
}

/// Runs a scenario to its end, on a separate runtime with virtual time. The result does not depend on the machine.
pub fn run(scenario: &Loaded, options: RunOptions) -> anyhow::Result<Finished> {
    let (runtime, is_last) = (control_plane::virtual_time()?, options.is_last);
    let finished = runtime.block_on(simulate(scenario, options));
    if is_last {
        std::mem::forget(runtime);
    }
    finished
}

async fn simulate(scenario: &Loaded, mut options: RunOptions) -> anyhow::Result<Finished> {
    let seed = options.seed.unwrap_or(scenario.seed);
    let inspector = scenario.invariants.then(Inspector::default);
    let observer = inspector
        .clone()
        .map(|inspector| Box::new(inspector) as Box<dyn PluginObserver>);
    let sink = match (&inspector, options.sink.take()) {
        (Some(inspector), sink) => Some(inspector.sink(sink)),
        (None, sink) => sink,
    };
    let beginning = Start {
        seed,
        engines: options.engines,
        explain: options.explain.clone(),
        sink,
        observer,
    };
    let mut federation = Federation::start(scenario, beginning).await?;
    federation.load_plugins(&scenario.plugins)?;
    federation.check_plugins(&scenario.events)?;
    let start = federation.now();
    let mut run = Run::new(scenario, &federation);
    let mut observed = inspector
        .as_ref()
        .and_then(|inspector| Observed::new(&federation, inspector.clone(), has_plugin_faults(&scenario.events)));
    apply_manifests(scenario, &federation).await?;
    let mut events = scenario.events.iter().peekable();
    let end = scenario.duration;
    let mut at = GoDuration::default();
    loop {
        run.wait_until(at).await;
        run.observer.sample(at);
        run.note_crash(at);
        if let Some(observed) = &mut observed {
            run.look(observed, &federation, at);
        }
        run.check_expectations(&federation, at, end).await?;
        if at >= end {
            break;
        }
        run.restore(&mut federation, at);
        run.act(&federation, at).await?;
        run.lose_targets(&mut federation, at);
        while let Some(event) = events.next_if(|event| event.at <= at) {
            run.inject(&mut federation, event).await?;
        }
        if let Some(observed) = &observed {
            observed.sample(&federation);
        }
        if let Some(progress) = &options.progress {
            progress(at, end);
        }
        at = run.next_moment(at, end, events.peek().map(|event| event.at));
    }
    run.check_acts()?;
    if let Some(observed) = &observed {
        observed.end(&federation, end);
    }
    let violations = inspector
        .map(|inspector| inspector.violations(start.as_millis()))
        .unwrap_or_default();
    let records = timeline::taken(federation.journal());
    let chain = options
        .explain
        .as_ref()
        .map(|binding| (explain::chain(&records, binding), binding));
    let explanation = chain
        .as_ref()
        .map(|(chain, binding)| explain::text(chain, binding, start));
    let explanation_data = chain.map(|(chain, binding)| explain::data(&chain, binding));
    let mut others = run.injected;
    others.extend(run.observer.take_entries());
    let report = Report {
        scenario: scenario.name.clone(),
        description: scenario.description.clone(),
        origin: Origin::of_scenario(scenario),
        seed,
        duration_ms: federation.now().millis_since(start),
        clusters: rows::cluster_rows(&federation, &run.observer, &records, start),
        timeline: timeline::build(&records, others, start, options.detail),
        placements: rows::placement_rows(&federation).await?,
        plugins: rows::plugin_rows(&federation),
        expectations: run.watched.iter().map(Watched::row).collect(),
        violations,
        totals: rows::totals(&federation),
        retries: rows::retry_rows(&federation),
        writes: rows::write_rows(&federation),
    };
    if options.is_last {
        std::mem::forget(federation);
    }
    Ok(Finished {
        report,
        explanation,
        explanation_data,
    })
}

/// Creates the objects of a scenario.
async fn apply_manifests(scenario: &Loaded, federation: &Federation) -> anyhow::Result<()> {
    for manifest in &scenario.manifests {
        let is_applied = federation.apply(manifest).await?;
        anyhow::ensure!(
            is_applied,
            manifest.origin.problem("", "the control plane refuses writes")
        );
    }
    Ok(())
}

/// State of a run.
struct Run {
    clock_start: tokio::time::Instant,
    watched: Vec<Watched>,
    injected: Vec<TimelineEntry>,
    observer: Observer,
    /// Scheduled follow-up actions, by time.
    later: Vec<(GoDuration, Later)>,
    injector: Injector,
    /// End of the latest disturbance of the controllers, if not yet reported to the invariants.
    disturbed_until: Option<GoDuration>,
    /// Period in which controllers cannot observe the member clusters, if not yet reported to the invariants.
    blind_for: Option<GoDuration>,
    /// Target losses that wait for an eviction.
    target_losses: Vec<FaultSpec>,
    /// Clusters whose taints a person replaced, if not yet reported to the invariants.
    taints_replaced: Vec<String>,
    /// Writes of people that are still to be made, in order, each from its moment on.
    acts: VecDeque<(GoDuration, Act)>,
}

/// A write of a person to the control plane.
enum Act {
    Apply(ManifestObject),
    Delete(ObjectSpec),
    /// Requests the rescheduling of a binding.
    Reschedule(String),
}

/// Scheduled follow-up action.
enum Later {
    /// Starts a killed controller, or all of them.
    Start(String),
    /// Restores the connection of a member cluster to its peers.
    Peers(String),
    /// Makes a member cluster reachable again.
    Recover(String),
    /// Makes a member cluster unreachable for a duration.
    Lose(String, GoDuration),
}

/// Returns true if an event makes a plugin fail.
fn has_plugin_faults(events: &[LoadedEvent]) -> bool {
    let fails = |event: &LoadedEvent| matches!(&event.action, EventAction::Fault(fault) if fault.kind.is_of_plugins());
    events.iter().any(fails)
}

impl Run {
    fn new(scenario: &Loaded, federation: &Federation) -> Self {
        Self {
            clock_start: tokio::time::Instant::now(),
            watched: scenario
                .expectations
                .iter()
                .map(|(line, e)| Watched::new(*line, e.clone()))
                .collect(),
            injected: Vec::new(),
            observer: Observer::new(federation),
            later: Vec::new(),
            injector: Injector::new(federation, has_plugin_faults(&scenario.events)),
            disturbed_until: None,
            blind_for: None,
            target_losses: Vec::new(),
            taints_replaced: Vec::new(),
            acts: VecDeque::new(),
        }
    }

    async fn wait_until(&self, at: GoDuration) {
        tokio::time::sleep_until(self.clock_start + at.0).await;
    }

    /// Returns the time of the next sample, event, follow-up action or expectation, whichever is first.
    fn next_moment(&self, at: GoDuration, end: GoDuration, event: Option<GoDuration>) -> GoDuration {
        let sample = GoDuration(at.0 + SAMPLE);
        let later = self
            .later
            .iter()
            .map(|(at, _)| *at)
            .chain(self.acts.front().map(|(at, _)| *at));
        let expectations = self.watched.iter().filter_map(|watched| watched.moment(end));
        let moments = event.into_iter().chain(later).chain(expectations);
        moments.filter(|moment| *moment > at).fold(sample, Ord::min).min(end)
    }

    fn restore(&mut self, federation: &mut Federation, at: GoDuration) {
        let (due, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|(due, _)| *due <= at);
        self.later = later;
        let due: Vec<(GoDuration, Later)> = due;
        for (_, what) in due {
            match what {
                Later::Start(controller) => {
                    federation.start_controllers(&controller);
                    self.note(at, Tone::Neutral, None, "started", &format!("controller {controller}"));
                }
                Later::Lose(cluster, lasts) => {
                    self.note(
                        at,
                        Tone::Bad,
                        Some(&cluster),
                        "becomes unreachable",
                        "an eviction moves something there",
                    );
                    federation.set_state(&cluster, ClusterState::Unreachable);
                    self.later.push((GoDuration(at.0 + lasts.0), Later::Recover(cluster)));
                }
                Later::Recover(cluster) => {
                    federation.set_state(&cluster, ClusterState::Recover);
                    self.note(at, Tone::Good, Some(&cluster), "recovers", "");
                }
                Later::Peers(cluster) => {
                    federation.set_peerless(&cluster, false);
                    self.note(at, Tone::Good, Some(&cluster), "reaches its peers again", "");
                }
            }
        }
    }

    /// Makes the writes of people that are due, one after the other. A write that fails for a reason that passes is made
    /// again later, and those after it wait.
    async fn act(&mut self, federation: &Federation, at: GoDuration) -> anyhow::Result<()> {
        while let Some((_, act)) = self.acts.pop_front_if(|(due, _)| *due <= at) {
            let is_done = match &act {
                Act::Apply(object) => federation.apply(object).await?,
                Act::Delete(object) => federation.delete(object).await?,
                Act::Reschedule(binding) => federation.reschedule(binding).await?,
            };
            match act {
                act if !is_done => self.acts.push_front((GoDuration(at.0 + ACT_PAUSE), act)),
                Act::Apply(object) => self.taints_replaced.extend(object.cluster_with_replaced_taints()),
                Act::Delete(_) | Act::Reschedule(_) => {}
            }
        }
        Ok(())
    }

    /// Assigns each pending target loss to a target of an eviction in progress, as soon as there is one.
    fn lose_targets(&mut self, federation: &mut Federation, at: GoDuration) {
        if self.target_losses.is_empty() {
            return;
        }
        let lost = |later: &(GoDuration, Later)| match &later.1 {
            Later::Lose(cluster, _) | Later::Recover(cluster) => Some(cluster.clone()),
            Later::Start(_) | Later::Peers(_) => None,
        };
        let lost: Vec<_> = self.later.iter().filter_map(lost).collect();
        let mut targets = federation
            .targets_of_evictions()
            .into_iter()
            .filter(|target| !lost.contains(target));
        self.target_losses.retain(|fault| {
            let Some(target) = targets.next() else { return true };
            let moment = GoDuration(at.0 + Duration::from_secs(fault.after.unwrap_or(0)));
            self.later
                .push((moment, Later::Lose(target, fault.for_.unwrap_or_default())));
            false
        });
    }

    /// Schedules the restart of controllers that a request killed.
    fn note_crash(&mut self, at: GoDuration) {
        if let Some(away) = self.injector.died() {
            self.note(
                at,
                Tone::Bad,
                None,
                "killed",
                &format!("all controllers, back after {away}"),
            );
            self.disturbed_until = Some(GoDuration(at.0 + away.0));
            self.blind_for = Some(away);
            self.later
                .push((GoDuration(at.0 + away.0), Later::Start("*".to_owned())));
        }
    }

    fn note(&mut self, at: GoDuration, tone: Tone, cluster: Option<&str>, what: &str, effect: &str) {
        self.injected.push(TimelineEntry {
            at_ms: i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX),
            source: EntrySource::Injected,
            tone,
            cluster: cluster.map(str::to_owned),
            object: None,
            what: what.to_owned(),
            effect: effect.to_owned(),
            reason: String::new(),
            why: String::new(),
            plugin: None,
            controller: None,
            count: 1,
        });
    }

    async fn inject(&mut self, federation: &mut Federation, event: &LoadedEvent) -> anyhow::Result<()> {
        let at = event.at;
        match &event.action {
            EventAction::ClusterState(cluster, state) => {
                let (what, tone) = match state {
                    ClusterState::Unreachable => ("becomes unreachable", Tone::Bad),
                    ClusterState::ReadyzFailing => ("/readyz starts to answer 500", Tone::Bad),
                    ClusterState::ReadyzDegraded => ("/readyz starts to answer 202", Tone::Bad),
                    ClusterState::Recover => ("recovers", Tone::Good),
                };
                self.note(at, tone, Some(cluster), what, "");
                federation.set_state(cluster, *state);
                // A person who raced a controller leaves nothing behind that would keep workloads away.
                if *state == ClusterState::Recover && federation.person().untaint(cluster) {
                    self.taints_replaced.push(cluster.clone());
                }
            }
            EventAction::FailureModes(cluster, modes) => {
                let effect: Vec<_> = modes.iter().map(member::describe).collect();
                let (what, tone) = if modes.is_empty() {
                    ("workloads are healthy again", Tone::Good)
                } else {
                    ("workloads fail", Tone::Bad)
                };
                self.note(at, tone, Some(cluster), what, &effect.join(", "));
                federation.set_failures(cluster, modes);
            }
            EventAction::Apply(file, objects) => {
                self.note(at, Tone::Neutral, None, "applied", file);
                self.acts
                    .extend(objects.iter().map(|object| (at, Act::Apply(object.clone()))));
                self.act(federation, at).await?;
            }
            EventAction::Delete(object) => {
                self.note(
                    at,
                    Tone::Neutral,
                    None,
                    "deleted",
                    &format!("{} {}", object.kind, object.name),
                );
                self.acts.push_back((at, Act::Delete(object.clone())));
                self.act(federation, at).await?;
            }
            EventAction::Reschedule(binding) => {
                self.note(at, Tone::Neutral, None, "rescheduling requested", binding);
                self.acts.push_back((at, Act::Reschedule(binding.clone())));
                self.act(federation, at).await?;
            }
            EventAction::KillController(controller, away) => {
                self.note(
                    at,
                    Tone::Bad,
                    None,
                    "killed",
                    &format!("controller {controller}, back after {away}"),
                );
                self.disturbed_until = Some(GoDuration(at.0 + away.0));
                self.blind_for = Some(*away);
                federation.stop_controllers(controller);
                if away.0.is_zero() {
                    federation.start_controllers(controller);
                } else {
                    self.later
                        .push((GoDuration(at.0 + away.0), Later::Start(controller.clone())));
                }
            }
            EventAction::Fault(fault) => {
                self.note(at, Tone::Bad, fault.cluster.as_deref(), "goes wrong", &fault.describe());
                self.injector.inject(federation, fault);
                let lasts = fault.for_.unwrap_or_default();
                if !fault.kind.is_of_plugins() || fault.kind == FaultKind::SluggishPlugin {
                    self.disturbed_until = Some(GoDuration(at.0 + lasts.0));
                }
                if fault.kind.hides_members() {
                    self.blind_for = self.blind_for.max(Some(lasts));
                }
                if fault.kind == FaultKind::TargetLoss {
                    self.target_losses.push(fault.clone());
                }
                if let (FaultKind::PeerPartition, Some(peer), Some(lasts)) = (fault.kind, &fault.peer, fault.for_) {
                    self.later
                        .push((GoDuration(at.0 + lasts.0), Later::Peers(peer.clone())));
                }
            }
            EventAction::Plugins(plugins) => {
                let names: Vec<_> = plugins.iter().map(|plugin| plugin.manifest.name.as_str()).collect();
                let names = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                self.note(at, Tone::Neutral, None, "plugins are now", &names);
                federation.load_plugins(plugins)?;
            }
        }
        Ok(())
    }
}
