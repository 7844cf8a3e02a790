//! Control plane in memory with the exported objects, and the controllers that decide about a failover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bulkhead_apiserver as apiserver;
use bulkhead_apiserver::ApiServer;
use bulkhead_controllers::{Components, Manager};
use bulkhead_core::decide::cluster_ready::Probe;
use bulkhead_core::journal::Journal;
use bulkhead_core::model::set_condition;
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;
use tokio::time::Instant;

use super::cluster_status::change_status;
use super::end::{self, Remaining};
use super::observe::{Observer, Recorder};
use super::room;
use super::{Answer, Export, Question, Unplaced};
use crate::control_plane::{self, RECORDS_MAX};

/// Controllers that decide about a failover. The others would ask member clusters, which do not exist here.
const CONTROLLERS: [&str; 3] = ["clustertaintpolicy", "taintManager", "scheduler"];
/// Interval at which the end is looked for.
const STEP: Duration = Duration::from_secs(10);
/// Time without a change after which the rehearsal ends unless a toleration or pause is still to end: longer than the
/// windows of taint policies.
const SETTLED: Duration = Duration::from_mins(30);

/// Simulates a failover. Must not be called from an async context.
///
/// # Errors
///
/// A cluster in `down` is not in the export.
pub fn play(export: Export, registry: Arc<Registry>, question: &Question) -> anyhow::Result<Answer> {
    check_names(&export, &question.down)?;
    control_plane::virtual_time()?.block_on(async { Rehearsal::start(export, registry, question)?.run().await })
}

fn check_names(export: &Export, down: &[String]) -> anyhow::Result<()> {
    let names: Vec<_> = export.clusters.iter().map(kube::ResourceExt::name_any).collect();
    for name in down {
        if !names.contains(name) {
            let known: Vec<_> = names.iter().take(10).map(String::as_str).collect();
            bail!(
                "--down {name}: there is no such cluster in the export; there are {}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

struct Rehearsal<'a> {
    question: &'a Question,
    hub: ApiServer,
    components: Components,
    observer: Observer,
    /// Replicas of each cluster before the loss.
    before: BTreeMap<String, i64>,
    /// Start of the loss.
    start: Instant,
    _manager: Manager,
}

impl<'a> Rehearsal<'a> {
    fn start(export: Export, registry: Arc<Registry>, question: &'a Question) -> anyhow::Result<Self> {
        let start = Time::from_millis(export.newest_ms()).plus_seconds(1);
        let clock = apiserver::Clock::new(start.timestamp());
        let flags = &question.flags;
        let before = end::replicas(export.specs());
        let hub = control_plane::server(0, clock.clone(), flags, Vec::new());
        control_plane::restore(&hub, export.contents(start))?;
        let (recorder, gains) = Recorder::new(start);
        let journal = Journal::with_sink(RECORDS_MAX, 0, recorder.sink());
        let components = control_plane::components(&hub, clock, registry, journal, flags);
        let manager = Manager::watch(components.clone());
        let observer = recorder.observe(&components.stores);
        manager.spawn("room of clusters", room::take(hub.clone(), gains));
        for name in CONTROLLERS {
            manager.start_controller(name);
        }
        Ok(Self {
            question,
            before,
            hub,
            components,
            observer,
            start: Instant::now(),
            _manager: manager,
        })
    }

    async fn run(self) -> anyhow::Result<Answer> {
        let flags = &self.question.flags;
        let lost = flags.cluster_failure_threshold.0;
        let back = self
            .question
            .lasts
            .map(|lasts| lasts.0 + flags.cluster_success_threshold.0);
        let mut changes = [(lost, Probe::Unreachable)]
            .into_iter()
            .chain(back.map(|back| (back.max(lost), Probe::Ready)))
            .peekable();
        let horizon = self.question.horizon.0;
        let mut now = Duration::ZERO;
        loop {
            tokio::time::sleep_until(self.start + now).await;
            while let Some((_, probe)) = changes.next_if(|(at, _)| *at <= now) {
                self.set_ready(probe)?;
            }
            let remaining =
                (now >= horizon || self.is_settled(changes.peek().is_none(), now)).then(|| self.remaining());
            if let Some(remaining) = remaining.filter(|remaining| now >= horizon || !remaining.changes_with_time) {
                return Ok(self.end(remaining));
            }
            let next = changes.peek().map_or(horizon, |(at, _)| *at);
            now = (now + STEP).min(next).min(horizon);
        }
    }

    /// True if nothing has changed for a long time.
    fn is_settled(&self, all_happened: bool, now: Duration) -> bool {
        all_happened && now > self.observer.changed().saturating_add(SETTLED)
    }

    /// Sets the Ready condition of the lost clusters, as probes of this kind for the time of a threshold do.
    fn set_ready(&self, probe: Probe) -> anyhow::Result<()> {
        self.observer.set_changed();
        let at = self.components.clock.now();
        for name in &self.question.down {
            change_status(&self.hub, name, |cluster| {
                set_condition(&mut cluster.status.conditions, probe.condition(at));
            })?;
        }
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        end::remaining(&self.components)
    }

    fn end(self, remaining: Remaining) -> Answer {
        let clusters = end::clusters(&self.components.stores);
        let bindings = end::bindings(&self.components.stores);
        let after = end::replicas(bindings.iter().map(|binding| &binding.spec));
        let is_down = |name: &String| self.question.down.contains(name);
        let load = clusters
            .iter()
            .map(|cluster| super::Load {
                cluster: cluster.name.clone(),
                down: is_down(&cluster.name),
                before: self.before.get(&cluster.name).copied().unwrap_or(0),
                after: after.get(&cluster.name).copied().unwrap_or(0),
            })
            .collect();
        let no_cluster_left = clusters
            .iter()
            .all(|cluster| is_down(&cluster.name) || !cluster.is_ready());
        let (moves, taints, mut nowhere) = self.observer.end();
        let evicted: BTreeSet<_> = moves.iter().map(|moved| moved.binding.as_str()).collect();
        let unmanaged = end::unmanaged(&self.components.stores).into_iter();
        nowhere.extend(
            unmanaged
                .filter(|binding| evicted.contains(binding.as_str()))
                .map(|binding| Unplaced {
                    binding,
                    why: "it belongs to no policy, so no scheduler places it".to_owned(),
                }),
        );
        Answer {
            last_move_ms: moves.last().map(|last| last.at_ms),
            moves,
            stays: remaining.stays,
            nowhere,
            taints,
            load,
            waiting: remaining.waiting,
            no_cluster_left,
        }
    }
}
