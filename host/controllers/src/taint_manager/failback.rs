//! Home clusters that have recovered → evictions from the clusters that stand in for them.
//!
//! Off unless `enable-failback` is set. Returns go through the common queue of evictions and respect all its rates.
//! The flag `failback-concurrency` limits the workloads that return at the same time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_api::{Cluster, ClusterResourceBinding, ResourceBinding};
use bulkhead_core::decide::eviction::{EvictionPause, Priority, Waiting};
use bulkhead_core::decide::failback::{self, FailbackPlan, FailbackSnapshot, HOME, STABLE, Stability, stability};
use bulkhead_core::decide::reasons::REASON_FAILBACK;
use bulkhead_core::journal::{DecisionInput, plan};
use bulkhead_core::model;
use bulkhead_core::time::Time;
use bulkhead_runtime::controller::{self, AFTER_CONFLICT, Action, Error};
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::evict::{Judged, PlannedEviction};
use super::ordering::Ordering;
use super::{Cause, Dependencies, Eviction, NAME, RESCAN, TaintManager};
use crate::binding_kind::Binding;
use crate::decision_recorder::DecisionInputs;

/// Settings, and returns in progress.
pub(super) struct Failback {
    pub(super) settings: Option<Settings>,
    /// Bindings whose return was decided, with the generation from which on the store shows its progress.
    starting_returns: Mutex<BTreeMap<Key, i64>>,
}

#[derive(Clone, Copy)]
pub(super) struct Settings {
    window_s: i64,
    concurrency: usize,
}

/// Inputs of the decisions about all bindings.
struct View {
    clusters: BTreeMap<String, Arc<model::Cluster>>,
    stable: BTreeMap<String, Stability>,
    pauses: Vec<EvictionPause>,
    now: Time,
}

impl Failback {
    /// Creates the state from the flags. Failback is off unless taints evict, because nothing else is returned.
    pub(super) fn new(deps: &Dependencies, evicts: bool) -> Self {
        let flags = &deps.flags;
        let settings = Settings {
            window_s: flags.failback_stabilization_window.as_secs(),
            concurrency: flags.failback_concurrency,
        };
        Self {
            settings: (evicts && flags.enable_failback).then_some(settings),
            starting_returns: Mutex::default(),
        }
    }

    /// True if home clusters have to be remembered.
    pub(super) fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    /// Forgets a return whose write failed.
    pub(super) fn return_failed(&self, binding: &Key) {
        self.starting_returns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(binding);
    }
}

/// Returns the clusters that get more replicas than before.
fn receivers<'a>(before: &model::BindingSpec, after: &'a model::BindingSpec) -> Vec<&'a str> {
    let assigned = |name: &str| {
        let target = before.clusters.iter().find(|target| target.name == name);
        target.map_or(-1, |target| target.replicas)
    };
    let grows = |target: &&model::TargetCluster| target.replicas > assigned(&target.name);
    after
        .clusters
        .iter()
        .filter(grows)
        .map(|target| target.name.as_str())
        .collect()
}

fn is_returning(spec: &model::BindingSpec) -> bool {
    spec.graceful_eviction_tasks
        .iter()
        .any(|task| task.reason == REASON_FAILBACK)
}

fn remembered(cluster: &Cluster) -> Option<Stability> {
    cluster
        .annotations()
        .get(STABLE)
        .and_then(|text| serde_json::from_str(text).ok())
}

impl TaintManager {
    /// Tracks the stability of clusters and queues returns until the future is dropped. Returns at once if failback
    /// is off.
    pub(super) async fn run_failback(self: &Arc<Self>) {
        let Some(settings) = self.failback.settings else { return };
        let stores = &self.deps.stores;
        let queue: Arc<WorkQueue<Key>> = Arc::default();
        let changed = Arc::clone(&queue);
        let _clusters = stores.clusters.subscribe(move |change| {
            if !matches!(change, Change::Deleted(_)) {
                changed.add(Key::of(change.object()));
            }
        });
        let keep = {
            let manager = Arc::clone(self);
            move |key| {
                let manager = Arc::clone(&manager);
                async move { manager.keep_stability(&key).await }
            }
        };
        let keeping = controller::run(
            queue,
            1,
            keep,
            self.deps.failures.counter(NAME, |key: &Key| key.named("Cluster")),
        );
        let scanning = async {
            loop {
                self.scan_homes(settings).await;
                tokio::time::sleep(RESCAN).await;
            }
        };
        futures::join!(keeping, scanning);
    }

    pub(super) async fn keep_stability(&self, key: &Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(cluster) = deps.stores.clusters.get(key) else {
            return Ok(Action::Wait);
        };
        let known = remembered(&cluster);
        let stable = stability(&cluster.to_model(), known.as_ref(), deps.clock.now());
        if stable == known {
            return Ok(Action::Wait);
        }
        let text = stable.map_or(Value::Null, |stable| Value::String(json!(stable).to_string()));
        let patch = json!({"metadata": {"annotations": {STABLE: text}}});
        let operation = Error::api(format!("recording the stability of Cluster {key}"));
        deps.writers
            .clusters()
            .patch_if_unchanged(&cluster, patch)
            .await
            .map_err(operation)?;
        Ok(Action::Wait)
    }

    fn view(&self) -> View {
        let (stores, now) = (&self.deps.stores, self.deps.clock.now());
        let mut stable = BTreeMap::new();
        for cluster in stores.clusters.list() {
            let seen = stability(&cluster.to_model(), remembered(&cluster).as_ref(), now);
            stable.extend(seen.map(|seen| (cluster.name_any(), seen)));
        }
        View {
            clusters: self
                .clusters
                .all()
                .into_iter()
                .map(|cluster| (cluster.name.clone(), cluster))
                .collect(),
            stable,
            pauses: stores
                .eviction_pauses
                .list()
                .iter()
                .map(|pause| pause.to_model())
                .collect(),
            now,
        }
    }

    /// Queues the returns that may start, the most important first, up to the allowed number.
    pub(super) async fn scan_homes(&self, settings: Settings) {
        let view = self.view();
        let order = Ordering::new(&self.deps);
        let mut ready = self.scan_kind::<ResourceBinding>(&view, settings, &order).await;
        ready.extend(self.scan_kind::<ClusterResourceBinding>(&view, settings, &order).await);
        ready.sort_by(|(priority, eviction), (other_priority, other)| {
            (Reverse(priority), eviction).cmp(&(Reverse(other_priority), other))
        });
        let queued: BTreeSet<_> = {
            let queue = self.queue();
            let items = queue.items().filter(|(eviction, _)| eviction.cause == Cause::Failback);
            items.map(|(eviction, _)| eviction.binding.clone()).collect()
        };
        let free = settings.concurrency.saturating_sub(self.returns_in_progress(&queued));
        let now = self.now();
        for (priority, eviction) in ready
            .into_iter()
            .filter(|(_, item)| !queued.contains(&item.binding))
            .take(free)
        {
            let waiting = Waiting {
                cluster: eviction.cluster.clone(),
                priority,
                not_before: now,
            };
            self.queue().put(eviction, waiting, now);
        }
        self.changed.notify_one();
    }

    /// Returns the workloads that may return, with their priorities. Removes remembered homes that are of no use any
    /// more.
    async fn scan_kind<B: Binding>(
        &self,
        view: &View,
        settings: Settings,
        order: &Ordering,
    ) -> Vec<(Priority, Eviction)> {
        let mut ready = Vec::new();
        for binding in B::store(&self.deps.stores).list() {
            if !binding.annotations().contains_key(HOME) {
                continue;
            }
            let key = Key::of(&*binding);
            let eviction = |cluster: &str| {
                let cluster = cluster.to_owned();
                Eviction {
                    cluster,
                    binding: key.clone(),
                    cause: Cause::Failback,
                }
            };
            match plan_of(&*binding, view, settings) {
                FailbackPlan::Rest => {}
                FailbackPlan::Forget(_) => self.forget(&*binding).await,
                // A home that is not healthy, or a move in progress, is recorded already.
                FailbackPlan::Wait { attribution, .. } => {
                    let says_more = ["Stabilizing", "EvictionPaused", "SeveralStandIns"];
                    let away = binding.spec().clusters.first();
                    if let Some(away) = away.filter(|_| says_more.contains(&attribution.reason.code.as_str())) {
                        self.note_wait(&eviction(&away.name), attribution, None);
                    }
                }
                FailbackPlan::Return(back) => {
                    let priority = self.priority(&*binding, &back.task.from_cluster, order).await;
                    ready.push((priority, eviction(&back.task.from_cluster)));
                }
            }
        }
        ready
    }

    async fn forget<B: Binding>(&self, binding: &B) {
        let key = Key::of(binding);
        self.waits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|eviction, _| eviction.cause != Cause::Failback || eviction.binding != key);
        let patch = json!({"metadata": {"annotations": {HOME: null}}});
        if let Err(error) = B::writer(&self.deps.bindings, binding)
            .patch_despite_status(binding, patch)
            .await
        {
            let operation = format!("removing the home record of {} {key}", B::kind(&()));
            self.deps.failures.count(NAME, &Error::api(operation)(error));
        }
    }

    /// Returns the number of workloads that are returning or about to. `queued` are those in the queue.
    fn returns_in_progress(&self, queued: &BTreeSet<Key>) -> usize {
        let stores = &self.deps.stores;
        let mut keys = queued.clone();
        let namespaced = stores.bindings.list();
        keys.extend(
            namespaced
                .iter()
                .filter(|binding| is_returning(&binding.spec))
                .map(|binding| Key::of(&**binding)),
        );
        let scoped = stores.cluster_bindings.list();
        keys.extend(
            scoped
                .iter()
                .filter(|binding| is_returning(&binding.spec))
                .map(|binding| Key::of(&**binding)),
        );
        let mut starting_returns = self
            .failback
            .starting_returns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        starting_returns.retain(|key, generation| {
            let seen = if key.namespace.is_empty() {
                stores
                    .cluster_bindings
                    .get(key)
                    .and_then(|binding| binding.metadata.generation)
            } else {
                stores.bindings.get(key).and_then(|binding| binding.metadata.generation)
            };
            seen.is_some_and(|seen| seen < *generation)
        });
        keys.extend(starting_returns.keys().cloned());
        keys.len()
    }

    /// Decides from current data if a workload returns. One that may not leaves the queue; the next scan queues it
    /// again when it may.
    pub(super) fn judge_return<B: Binding>(self: &Arc<Self>, eviction: &Eviction) -> Judged {
        let Some(settings) = self.failback.settings else {
            return Judged::Unneeded;
        };
        let Some(binding) = B::store(&self.deps.stores).get(&eviction.binding) else {
            return Judged::Unneeded;
        };
        let (view, recorder) = (self.view(), self.deps.log.without_policies());
        let plan = plan_of(&*binding, &view, settings);
        let FailbackPlan::Return(back) = &plan else {
            return Judged::Unneeded;
        };
        if back.task.from_cluster != eviction.cluster {
            return Judged::Unneeded;
        }
        let Some(lock) = B::store(&self.deps.stores).try_lock_object(&eviction.binding) else {
            return Judged::Later(AFTER_CONFLICT);
        };
        let generation = binding.meta().generation.unwrap_or_default() + 1;
        let mut starting_returns = self
            .failback
            .starting_returns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        starting_returns.insert(eviction.binding.clone(), generation);
        drop(starting_returns);
        let homes = receivers(binding.spec(), &back.spec);
        let effect = format!(
            "it returns to {}; this copy stays until the new one is healthy",
            homes.join(", ")
        );
        let failback::Return {
            spec,
            home,
            attribution,
            ..
        } = (**back).clone();
        let decision_record = recorder.finish(|| DecisionInputs {
            trigger: "the failback reached the head of the eviction queue, and the home clusters are ready",
            now: view.now,
            input: DecisionInput::Failback {
                binding: Arc::new(binding.to_model()),
                stable: view.stable,
                pauses: view.pauses,
                window_s: settings.window_s,
            },
            clusters: view.clusters.into_values().collect(),
            plan: plan::failback(&plan),
        });
        let planned = PlannedEviction {
            spec,
            attribution,
            effect,
            home: Some(home),
            decision_record,
        };
        let (manager, cluster) = (Arc::clone(self), eviction.cluster.clone());
        Judged::Evict(Box::pin(async move {
            manager.write(lock, &*binding, &cluster, planned).await
        }))
    }
}

fn plan_of<B: Binding>(binding: &B, view: &View, settings: Settings) -> FailbackPlan {
    failback::decide(FailbackSnapshot {
        binding: &binding.to_model(),
        clusters: &view.clusters,
        stable: &view.stable,
        pauses: &view.pauses,
        window_s: settings.window_s,
        now: view.now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_keeps_a_part_and_gets_the_rest_receives_a_return() {
        let target = |(name, replicas): (&str, i32)| model::TargetCluster::new(name, replicas);
        let spec = |targets: &[(&str, i32)]| model::BindingSpec {
            clusters: targets.iter().copied().map(target).collect(),
            ..model::BindingSpec::default()
        };
        let before = spec(&[("member4", 1), ("member5", 1), ("member6", 1)]);
        assert_eq!(
            receivers(&before, &spec(&[("member5", 2), ("member6", 1)])),
            ["member5"]
        );
        assert_eq!(
            receivers(&before, &spec(&[("member1", 0), ("member6", 1)])),
            ["member1"]
        );
    }
}
