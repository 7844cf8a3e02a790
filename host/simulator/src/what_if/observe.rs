//! Moves and taints, observed while the controllers work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ResourceBinding};
use bulkhead_controllers::Stores;
use bulkhead_core::journal::{Decision, DecisionRecord, Record, Sink};
use bulkhead_core::model::{Taint, TargetCluster};
use bulkhead_core::time::Time;
use bulkhead_runtime::store::{Change, Store, Subscription};
use kube::ResourceExt as _;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::room::Gain;
use super::{Move, TaintChange, Unplaced};

/// Observer of decisions and of the objects that they change.
pub(super) struct Observer {
    state: Arc<Mutex<State>>,
    _clusters: Subscription<Cluster>,
    _bindings: Subscription<ResourceBinding>,
    _cluster_bindings: Subscription<ClusterResourceBinding>,
}

struct State {
    /// Wall time of the loss.
    start: Time,
    /// The same on the monotonic clock.
    started: Instant,
    /// Time of the last change, from the loss.
    changed: Duration,
    /// Recorded evictions that are not visible in their binding yet, by binding and cluster.
    evicted: BTreeMap<(String, String), (Time, String)>,
    /// Errors of the scheduler, by binding.
    unplaced: BTreeMap<String, String>,
    moves: Vec<Move>,
    /// Index of the last move of each binding.
    last: BTreeMap<String, usize>,
    taints: Vec<TaintChange>,
    gains: UnboundedSender<Gain>,
}

/// Sink that keeps the evictions and the errors of the scheduler.
struct Decisions(Arc<Mutex<State>>);

/// Recorder of decisions, from which the observer starts as soon as there are stores to watch.
pub(super) struct Recorder(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Recorder {
    /// Creates the recorder at the moment of the loss, with the channel that receives the gains of clusters.
    pub(super) fn new(start: Time) -> (Self, UnboundedReceiver<Gain>) {
        let (gains, received) = mpsc::unbounded_channel();
        let state = State {
            start,
            started: Instant::now(),
            changed: Duration::ZERO,
            evicted: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            moves: Vec::new(),
            last: BTreeMap::new(),
            taints: Vec::new(),
            gains,
        };
        (Self(Arc::new(Mutex::new(state))), received)
    }

    /// Returns the sink for the journal.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        Box::new(Decisions(Arc::clone(&self.0)))
    }

    /// Watches clusters and bindings.
    pub(super) fn observe(self, stores: &Stores) -> Observer {
        let state = Arc::clone(&self.0);
        let clusters = stores.clusters.subscribe(move |change| {
            if let Change::Updated { old, new } = change {
                lock(&state).cluster_changed(old, new);
            }
        });
        Observer {
            _clusters: clusters,
            _bindings: watch(&stores.bindings, &self.0),
            _cluster_bindings: watch(&stores.cluster_bindings, &self.0),
            state: self.0,
        }
    }
}

fn watch<B: AnyBinding>(store: &Store<B>, state: &Arc<Mutex<State>>) -> Subscription<B> {
    let state = Arc::clone(state);
    store.subscribe(move |change| {
        if let Change::Updated { old, new } = change {
            lock(&state).binding_changed(old.as_ref(), new.as_ref());
        }
    })
}

impl Observer {
    /// Notes a change that the question itself makes.
    pub(super) fn set_changed(&self) {
        let mut state = lock(&self.state);
        state.changed = state.started.elapsed();
    }

    /// Returns the time of the last change, from the loss.
    pub(super) fn changed(&self) -> Duration {
        lock(&self.state).changed
    }

    /// Returns the moves and the taints in order of time, and the workloads that were evicted and have no other
    /// placement.
    pub(super) fn end(self) -> (Vec<Move>, Vec<TaintChange>, Vec<Unplaced>) {
        let mut state = lock(&self.state);
        let unplaced = std::mem::take(&mut state.unplaced).into_iter();
        let unplaced = unplaced
            .filter(|(binding, _)| state.last.contains_key(binding))
            .map(|(binding, why)| Unplaced { binding, why })
            .collect();
        (
            std::mem::take(&mut state.moves),
            std::mem::take(&mut state.taints),
            unplaced,
        )
    }
}

impl Sink for Decisions {
    fn keep(&self, record: &Record, _: Option<&Arc<DecisionRecord>>) {
        let (entry, mut state) = (&record.entry, lock(&self.0));
        let binding = entry.subject.key();
        let reason = &entry.attribution.reason;
        match (entry.decision, &entry.cluster) {
            (Decision::Evicted, Some(cluster)) => {
                let eviction = (entry.at, reason.to_string());
                state.evicted.insert((binding, cluster.clone()), eviction);
            }
            (Decision::NotScheduled, _) => {
                state.unplaced.insert(binding, reason.message.clone());
            }
            (Decision::Scheduled, _) => {
                state.unplaced.remove(&binding);
            }
            _ => {}
        }
    }

    /// The eviction is recorded again when it is repeated.
    fn abandon(&self, _: u64) {}

    fn keeps_decision_records(&self) -> bool {
        false
    }
}

/// Returns the replicas by which a binding has more on each cluster in `new` than in `old`.
fn more(old: &[TargetCluster], new: &[TargetCluster]) -> BTreeMap<String, i32> {
    let before = |name: &str| old.iter().find(|target| target.name == name);
    let more = |target: &TargetCluster| match before(&target.name) {
        None => Some(target.replicas),
        Some(before) => Some(target.replicas - before.replicas).filter(|more| *more > 0),
    };
    new.iter()
        .filter_map(|target| Some((target.name.clone(), more(target)?)))
        .collect()
}

impl State {
    fn cluster_changed(&mut self, old: &Cluster, new: &Cluster) {
        let at_ms = millis(self.started.elapsed());
        let is_in = |taints: &[Taint], taint: &Taint| {
            taints
                .iter()
                .any(|other| (&other.key, &other.effect) == (&taint.key, &taint.effect))
        };
        let (old, name, new) = (&old.spec.taints, new.name_any(), &new.spec.taints);
        let removed = old.iter().filter(|taint| !is_in(new, taint)).map(|taint| ('-', taint));
        let added = new.iter().filter(|taint| !is_in(old, taint)).map(|taint| ('+', taint));
        for (sign, taint) in removed.chain(added) {
            self.changed = self.started.elapsed();
            self.taints.push(TaintChange {
                at_ms,
                cluster: name.clone(),
                change: format!("{sign}{}:{}", taint.key, taint.effect.as_str()),
            });
        }
    }

    fn binding_changed<B: AnyBinding>(&mut self, old: &B, new: &B) {
        let (before, after) = (&old.spec().clusters, &new.spec().clusters);
        if before == after {
            return;
        }
        self.changed = self.started.elapsed();
        let model = new.to_model();
        let binding = model.key();
        let (to, mut shrunk) = (more(before, after), more(after, before));
        let targets = to
            .iter()
            .map(|(name, replicas)| TargetCluster::new(name.clone(), *replicas))
            .collect();
        // The receiver lives as long as the controllers.
        let _ = self.gains.send(Gain {
            binding: model,
            targets,
        });
        let left = before
            .iter()
            .filter(|target| !after.iter().any(|other| other.name == target.name));
        for target in left {
            let Some((at, reason)) = self.evicted.remove(&(binding.clone(), target.name.clone())) else {
                continue;
            };
            shrunk.remove(&target.name);
            self.last.insert(binding.clone(), self.moves.len());
            self.moves.push(Move {
                at_ms: u64::try_from(at.millis_since(self.start)).unwrap_or(0),
                binding: binding.clone(),
                from: target.name.clone(),
                leaving: target.replicas,
                to: BTreeMap::new(),
                shrunk: BTreeMap::new(),
                reason,
            });
        }
        self.placed(&binding, to, shrunk);
    }

    /// Adds a new placement to the last move of a binding. A binding that was not evicted has none.
    fn placed(&mut self, binding: &str, to: BTreeMap<String, i32>, shrunk: BTreeMap<String, i32>) {
        let last = self.last.get(binding).and_then(|index| self.moves.get_mut(*index));
        if let Some(last) = last {
            add(&mut last.to, to);
            add(&mut last.shrunk, shrunk);
        }
    }
}

fn add(sums: &mut BTreeMap<String, i32>, more: BTreeMap<String, i32>) {
    for (cluster, replicas) in more {
        let sum = sums.entry(cluster).or_default();
        *sum = sum.saturating_add(replicas);
    }
}
