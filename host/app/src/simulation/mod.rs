//! Runs a scenario on virtual time.

mod expect;
mod explain;
mod federation;
mod inject;
mod invariants;
mod member;
mod observe;
mod timeline;
pub mod trial;
mod witness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::{AnyBinding, Work};
use bulkhead_controllers::Failure;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_controlplane::Answer;
use bulkhead_core::decide::evict::applied_placement;
use bulkhead_core::journal::Sink;
use bulkhead_core::model::ConditionStatus;
use bulkhead_core::names;
use bulkhead_core::time::Time;
use bulkhead_plugin::Engine;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::Value;

use crate::report::{
    ClusterRow, EntrySource, PlacementRow, PluginRow, Report, RetryRow, TimelineEntry, Tone, Totals, WriteRow,
};
use crate::scenario::faults::FaultKind;
use crate::scenario::{ClusterState, EventAction, Loaded, LoadedEvent};
use expect::Watched;
use federation::{Federation, Start};
use inject::Injector;
use invariants::{Inspector, Observed};
use observe::Observer;
pub use timeline::Detail;

/// How often expectations that must hold all the time, and the member clusters, are looked at.
const SAMPLE: Duration = Duration::from_secs(1);

/// How long a fault that waits for its request may hold one up.
const PENDING_MAX: Duration = Duration::from_secs(40);

/// How to run a scenario.
pub struct RunOptions {
    /// Seed of everything random; absent is the scenario's own.
    pub seed: Option<u64>,
    /// Engines that plugins may use.
    pub engines: Vec<Arc<dyn Engine>>,
    /// How much the timeline shows.
    pub detail: Detail,
    /// Key of a binding to explain.
    pub explain: Option<String>,
    /// Where decisions go besides the report.
    pub sink: Option<Box<dyn Sink>>,
    /// Called now and then with the virtual time that has passed and the whole duration.
    pub progress: Option<Box<dyn Fn(GoDuration, GoDuration)>>,
}

/// What a run gives.
pub struct Finished {
    /// The outcome.
    pub report: Report,
    /// The chain of reasons behind the binding that was to be explained, as text.
    pub explanation: Option<String>,
    /// The same as data.
    pub explanation_data: Option<Value>,
}

/// Runs a scenario to its end, on a runtime of its own with virtual time. Nothing in it depends on the machine.
pub fn run(scenario: &Loaded, options: RunOptions) -> anyhow::Result<Finished> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("starting the runtime")?;
    runtime.block_on(simulate(scenario, options))
}

async fn simulate(scenario: &Loaded, mut options: RunOptions) -> anyhow::Result<Finished> {
    let seed = options.seed.unwrap_or(scenario.seed);
    let inspector = scenario.invariants.then(Inspector::default);
    let sink = options.sink.take();
    let sink = if let Some(inspector) = &inspector { Some(inspector.sink(sink)) } else { sink };
    let mut federation = {
        let (engines, explain) = (options.engines, options.explain.clone());
        Federation::start(scenario, Start { seed, engines, explain, sink }).await?
    };
    federation.load_plugins(&scenario.plugins)?;
    federation.check_plugins(&scenario.events)?;
    let start = federation.now();
    let mut run = Run {
        clock_start: tokio::time::Instant::now(),
        watched: scenario.expectations.iter().map(|(line, e)| Watched::new(*line, e.clone())).collect(),
        injected: Vec::new(),
        observer: Observer::new(&federation),
        later: Vec::new(),
        injector: Injector::new(&federation, sabotages(&scenario.events)),
        disturbed_until: None,
    };
    let mut observed = inspector.as_ref().and_then(|inspector| Observed::new(&federation, inspector.clone()));
    for manifest in &scenario.manifests {
        federation.apply(manifest).await?;
    }
    let mut events = scenario.events.iter().peekable();
    let end = scenario.duration;
    let mut at = GoDuration::default();
    loop {
        run.wait_until(at).await;
        run.observer.sample(at);
        run.note_crash(at);
        if let Some(observed) = &mut observed {
            // A fault that waits for its request may strike at any time, and hold one up for as long as it lasts.
            let waits = (federation.hub().faults_pending_total() > 0).then_some(GoDuration(at.0 + PENDING_MAX));
            if let Some(until) = run.disturbed_until.take().into_iter().chain(waits).max() {
                observed.disturbed(until);
            }
            observed.look(&federation, &run.observer, at);
        }
        for watched in &mut run.watched {
            if watched.covers(at) || watched.moment(end) == Some(at) {
                watched.look(&federation, at).await?;
            }
        }
        if at >= end {
            break;
        }
        run.put_right(&federation, at);
        while let Some(event) = events.next_if(|event| event.at <= at) {
            run.inject(&mut federation, event).await?;
        }
        if let Some(progress) = &options.progress {
            progress(at, end);
        }
        at = run.next_moment(at, end, events.peek().map(|event| event.at));
    }
    if let Some(observed) = &observed {
        observed.end(&federation, end);
    }
    let violations = inspector.map(|inspector| inspector.violations(start.as_millis())).unwrap_or_default();
    let records = timeline::taken(federation.journal());
    let (explanation, explanation_data) = match &options.explain {
        None => (None, None),
        Some(binding) => {
            let chain = explain::chain(&records, binding);
            (Some(explain::text(&chain, binding, start)), Some(explain::data(&chain, binding)))
        }
    };
    let mut others = run.injected;
    others.extend(run.observer.take_entries());
    let report = Report {
        scenario: scenario.name.clone(),
        description: scenario.description.clone(),
        seed,
        duration_ms: federation.now().millis_since(start),
        clusters: cluster_rows(&federation, &run.observer, &records, start),
        timeline: timeline::build(&records, others, start, options.detail),
        placements: placement_rows(&federation).await?,
        plugins: plugin_rows(&federation),
        expectations: run.watched.iter().map(Watched::row).collect(),
        violations,
        totals: totals(&federation),
        retries: retry_rows(&federation),
        writes: write_rows(&federation),
    };
    Ok(Finished { report, explanation, explanation_data })
}

/// The moving parts of a run.
struct Run {
    clock_start: tokio::time::Instant,
    watched: Vec<Watched>,
    injected: Vec<TimelineEntry>,
    observer: Observer,
    /// What is put right again, with the moment.
    later: Vec<(GoDuration, Later)>,
    injector: Injector,
    /// Until when something is wrong with the controllers, if that is news.
    disturbed_until: Option<GoDuration>,
}

/// Something that is put right again.
enum Later {
    /// A killed controller comes back, or all of them.
    Start(String),
    /// What runs in a member cluster reaches its peers again.
    Peers(String),
}

/// Whether a plugin is to fail at some time.
fn sabotages(events: &[LoadedEvent]) -> bool {
    let fails = |event: &LoadedEvent| matches!(&event.action, EventAction::Fault(fault) if fault.kind.is_of_plugins());
    events.iter().any(fails)
}

impl Run {
    async fn wait_until(&self, at: GoDuration) {
        tokio::time::sleep_until(self.clock_start + at.0).await;
    }

    /// The next sample, event, restart or expectation, whichever is first.
    fn next_moment(&self, at: GoDuration, end: GoDuration, event: Option<GoDuration>) -> GoDuration {
        let sample = GoDuration(at.0 + SAMPLE);
        let later = self.later.iter().map(|(at, _)| *at);
        let expectations = self.watched.iter().filter_map(|watched| watched.moment(end));
        let moments = event.into_iter().chain(later).chain(expectations);
        moments.filter(|moment| *moment > at).fold(sample, Ord::min).min(end)
    }

    fn put_right(&mut self, federation: &Federation, at: GoDuration) {
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(due, _)| *due <= at);
        self.later = later;
        let due: Vec<(GoDuration, Later)> = due;
        for (_, what) in due {
            match what {
                Later::Start(controller) => {
                    federation.start_controllers(&controller);
                    self.note(at, Tone::Neutral, None, "started", &format!("controller {controller}"));
                }
                Later::Peers(cluster) => {
                    federation.set_peerless(&cluster, false);
                    self.note(at, Tone::Good, Some(&cluster), "reaches its peers again", "");
                }
            }
        }
    }

    /// Controllers that a request killed come back after their time.
    fn note_crash(&mut self, at: GoDuration) {
        if let Some(away) = self.injector.died() {
            self.note(at, Tone::Bad, None, "killed", &format!("all controllers, back after {away}"));
            self.disturbed_until = Some(GoDuration(at.0 + away.0));
            self.later.push((GoDuration(at.0 + away.0), Later::Start("*".to_owned())));
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
            }
            EventAction::FailureModes(cluster, modes) => {
                let effect: Vec<_> = modes.iter().map(member::describe).collect();
                let (what, tone) = if modes.is_empty() {
                    ("workloads are well again", Tone::Good)
                } else {
                    ("workloads fail", Tone::Bad)
                };
                self.note(at, tone, Some(cluster), what, &effect.join(", "));
                federation.set_failures(cluster, modes);
            }
            EventAction::Apply(file, objects) => {
                self.note(at, Tone::Neutral, None, "applied", file);
                for object in objects {
                    federation.apply(object).await?;
                }
            }
            EventAction::Delete(object) => {
                self.note(at, Tone::Neutral, None, "deleted", &format!("{} {}", object.kind, object.name));
                federation.delete(object).await?;
            }
            EventAction::KillController(controller, away) => {
                self.note(at, Tone::Bad, None, "killed", &format!("controller {controller}, back after {away}"));
                self.disturbed_until = Some(GoDuration(at.0 + away.0));
                federation.stop_controllers(controller);
                if away.0.is_zero() {
                    federation.start_controllers(controller);
                } else {
                    self.later.push((GoDuration(at.0 + away.0), Later::Start(controller.clone())));
                }
            }
            EventAction::Fault(fault) => {
                self.note(at, Tone::Bad, fault.cluster.as_deref(), "goes wrong", &fault.describe());
                self.injector.inject(federation, fault);
                if !fault.kind.is_of_plugins() {
                    self.disturbed_until = Some(GoDuration(at.0 + fault.for_.unwrap_or_default().0));
                }
                if let (FaultKind::PeerPartition, Some(peer), Some(lasts)) = (fault.kind, &fault.peer, fault.for_) {
                    self.later.push((GoDuration(at.0 + lasts.0), Later::Peers(peer.clone())));
                }
            }
            EventAction::Plugins(plugins) => {
                let names: Vec<_> = plugins.iter().map(|plugin| plugin.manifest.name.as_str()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                self.note(at, Tone::Neutral, None, "plugins are now", &names);
                federation.load_plugins(plugins)?;
            }
        }
        Ok(())
    }
}

fn cluster_rows(
    federation: &Federation,
    observer: &Observer,
    records: &[bulkhead_core::journal::Record],
    start: Time,
) -> Vec<ClusterRow> {
    let end_ms = federation.now().millis_since(start);
    let row = |cluster: &Arc<bulkhead_api::Cluster>| {
        let model = cluster.to_model();
        let mut not_ready_ms = Vec::new();
        let mut since = None;
        let changes = records.iter().filter(|record| {
            record.entry.decision == bulkhead_core::journal::Decision::ReadyChanged
                && record.entry.subject.name == model.name
                && record.entry.at >= start
        });
        for change in changes {
            let at = change.entry.at.millis_since(start);
            if change.entry.effect == "True" {
                not_ready_ms.extend(since.take().map(|since| (since, at)));
            } else {
                since.get_or_insert(at);
            }
        }
        not_ready_ms.extend(since.map(|since| (since, end_ms)));
        ClusterRow {
            sync_mode: format!("{:?}", model.spec.sync_mode),
            region: model.spec.region.clone(),
            ready: model.ready().map_or(ConditionStatus::Unknown, |ready| ready.status).as_str().to_owned(),
            taints: model.spec.taints.iter().map(ToString::to_string).collect(),
            not_ready_ms,
            ready_replicas: observer.ready_replicas(&model.name),
            name: model.name,
        }
    };
    federation.context().stores.clusters.list().iter().map(row).collect()
}

async fn placement_rows(federation: &Federation) -> anyhow::Result<Vec<PlacementRow>> {
    let works = Api::<Work>::all(federation.client()).list(&ListParams::default()).await?;
    let mut waiting: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for work in works.items.iter().filter(|work| work.metadata.deletion_timestamp.is_some()) {
        let namespace = work.namespace().unwrap_or_default();
        let cluster = names::cluster_of_execution_namespace(&namespace).unwrap_or_default().to_owned();
        waiting.entry(work.name_any()).or_default().push(cluster);
    }
    let stores = &federation.context().stores;
    let mut rows: Vec<_> = stores.bindings.list().iter().map(|binding| placement_row(&**binding, &waiting)).collect();
    rows.extend(stores.cluster_bindings.list().iter().map(|binding| placement_row(&**binding, &waiting)));
    Ok(rows)
}

fn placement_row<B: AnyBinding>(binding: &B, waiting: &BTreeMap<String, Vec<String>>) -> PlacementRow {
    let spec = binding.spec();
    let model = binding.to_model();
    let health = binding.status().aggregated_status.iter();
    let work = names::work_name(&spec.resource.kind, &spec.resource.name, &spec.resource.namespace);
    let unplaced = applied_placement(&model).is_none();
    PlacementRow {
        binding: model.key(),
        resource: spec.resource.to_string(),
        replicas: spec.replicas,
        clusters: if unplaced {
            BTreeMap::new()
        } else {
            spec.clusters.iter().map(|target| (target.name.clone(), target.replicas)).collect()
        },
        health: health.filter_map(|item| Some((item.cluster_name.clone(), item.health?.as_str().to_owned()))).collect(),
        evicting_from: spec.graceful_eviction_tasks.iter().map(|task| task.from_cluster.clone()).collect(),
        waiting_in: waiting.get(&work).cloned().unwrap_or_default(),
    }
}

fn plugin_rows(federation: &Federation) -> Vec<PluginRow> {
    let report = federation.context().registry.report();
    let row = |plugin: bulkhead_plugin::PluginReport| PluginRow {
        name: plugin.id.name,
        version: plugin.id.version,
        engine: plugin.id.engine.as_str().to_owned(),
        calls: plugin.counts.calls,
        faults: plugin.counts.faults,
    };
    report.into_iter().map(row).collect()
}

fn retry_rows(federation: &Federation) -> Vec<RetryRow> {
    let counts = federation.context().failures.counts();
    let mut rows: Vec<_> = counts
        .into_iter()
        .map(|Failure { controller, text: error, count, .. }| RetryRow { controller, error, count })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

fn write_rows(federation: &Federation) -> Vec<WriteRow> {
    let writes = federation.hub().writes().into_iter();
    let row = |(answer, count): (Answer, u64)| WriteRow {
        resource: answer.resource,
        verb: answer.verb.as_str().to_owned(),
        code: answer.code,
        count,
    };
    writes.map(row).collect()
}

fn totals(federation: &Federation) -> Totals {
    let budget = federation.context().scheduler_budget.usage();
    let sum = |requests: BTreeMap<String, u64>| requests.values().sum::<u64>();
    Totals {
        decisions: federation.journal().recorded(),
        scheduler_writes: budget.writes,
        scheduler_writes_delayed: budget.delayed,
        scheduler_write_wait_max_ms: u64::try_from(budget.longest_wait.as_millis()).unwrap_or(u64::MAX),
        control_plane_requests: sum(federation.hub().requests()),
        member_requests: federation.member_clusters().map(|(_, member)| sum(member.server().requests())).sum(),
    }
}
