//! State of the federation at a time, computed from the rows until then.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bulkhead_controllers::QueuedEviction;
use bulkhead_core::journal::{Decision, Limits, Subject};
use bulkhead_core::time::Time;
use bulkhead_simulator::recorded::queued::with_queue;
use bulkhead_simulator::recorded::waiting::{Waiting, waiting};

use crate::history::{ClusterState, History, Row};

/// Period over which evictions are counted, in milliseconds.
const RECENT_MS: i64 = 60_000;

/// State at a time.
pub struct Federation<'a> {
    /// Time of the state.
    pub at: Time,
    /// Member clusters, in order of name.
    pub clusters: Vec<ClusterNow<'a>>,
    /// Bindings that exist, as far as known.
    pub bindings: BTreeMap<&'a Subject, BindingNow<'a>>,
    /// Number of evictions in the minute before.
    pub recent: usize,
    /// Eviction rates; `None` before the first eviction.
    pub limits: Option<&'a Limits>,
}

/// Member cluster at a time.
pub struct ClusterNow<'a> {
    /// Name.
    pub name: &'a str,
    /// State.
    pub state: &'a ClusterState,
    /// Number of bindings that are placed on it.
    pub placed: usize,
    /// Number of bindings that leave it.
    pub leaving: usize,
}

/// Binding at a time.
#[derive(Default)]
pub struct BindingNow<'a> {
    /// Its last decision.
    pub last: Option<&'a Row>,
    /// Last placement, as the scheduler recorded it; empty without one.
    pub placement: &'a str,
    /// Evictions under way, by cluster.
    pub leaving: BTreeMap<&'a str, &'a Row>,
}

impl<'a> BindingNow<'a> {
    /// Returns the binding that these rows are about, after the last of them; `None` if it does not exist.
    pub fn of(rows: &[&'a Row]) -> Option<Self> {
        let mut bindings = Bindings::new();
        for row in rows.iter().filter(|row| row.is_taken()) {
            follow(&mut bindings, row);
        }
        bindings.into_values().next().map(|(_, binding)| binding)
    }

    /// Returns the clusters of the placement.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        targets(self.placement)
    }

    /// Returns true if the binding is placed on a cluster.
    pub fn is_on(&self, cluster: &str) -> bool {
        self.clusters().any(|name| name == cluster)
    }
}

/// Returns the clusters of a placement such as `m1:2, m2:1`.
fn targets(placement: &str) -> impl Iterator<Item = &str> {
    let targets = placement.split(", ").filter(|target| !target.is_empty());
    targets.map(|target| target.rsplit_once(':').map_or(target, |(cluster, _)| cluster))
}

impl<'a> Federation<'a> {
    /// Returns the state at a time. Without a time, the last known one; `now` is its time.
    pub fn at(history: &'a History, time: Option<Time>, now: Time) -> Self {
        let (rows, at) = (history.until(time), time.unwrap_or(now));
        let (mut bindings, mut recent) = (Bindings::new(), 0);
        for row in rows.iter().filter(|row| row.is_taken()) {
            if row.decision == Decision::Evicted && at.as_millis() - row.order_ms < RECENT_MS {
                recent += 1;
            }
            follow(&mut bindings, row);
        }
        let bindings: BTreeMap<_, _> = bindings.into_values().collect();
        let (mut placed, mut leaving) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
        for binding in bindings.values() {
            for cluster in targets(binding.placement) {
                *placed.entry(cluster).or_default() += 1;
            }
            for cluster in binding.leaving.keys() {
                *leaving.entry(cluster).or_default() += 1;
            }
        }
        let cluster = |(name, state)| ClusterNow {
            name,
            state,
            placed: placed.get(name).copied().unwrap_or_default(),
            leaving: leaving.get(name).copied().unwrap_or_default(),
        };
        Self {
            at,
            clusters: history.clusters().at(time).map(cluster).collect(),
            bindings,
            recent,
            limits: history.limits(time),
        }
    }

    /// Returns the evictions under way: binding, cluster and the record of the eviction, oldest first.
    pub fn evictions(&self) -> Vec<(&'a Subject, &'a str, &'a Row)> {
        let of_binding = |(subject, binding): (&&'a Subject, &BindingNow<'a>)| {
            let subject: &'a Subject = subject;
            let leaving: Vec<_> = binding
                .leaving
                .iter()
                .map(|(cluster, row)| (subject, *cluster, *row))
                .collect();
            leaving
        };
        let mut evictions: Vec<_> = self.bindings.iter().flat_map(of_binding).collect();
        evictions.sort_by_key(|(_, _, row)| row.order_ms);
        evictions
    }
}

/// Bindings by the addresses of their subjects, which all rows of an index share.
type Bindings<'a> = HashMap<*const Subject, (&'a Subject, BindingNow<'a>)>;

/// Takes the effect of a row on its binding.
fn follow<'a>(bindings: &mut Bindings<'a>, row: &'a Row) {
    let subject = &*row.subject;
    if !subject.is_binding() {
        return;
    }
    let address = Arc::as_ptr(&row.subject);
    if row.decision == Decision::Unbound {
        bindings.remove(&address);
        return;
    }
    let (_, binding) = bindings
        .entry(address)
        .or_insert_with(|| (subject, BindingNow::default()));
    binding.last = Some(row);
    let cluster = row.cluster.as_deref();
    match (row.decision, cluster) {
        (Decision::Scheduled, _) => binding.placement = &row.effect,
        (Decision::Evicted, Some(cluster)) => drop(binding.leaving.insert(cluster, row)),
        (Decision::Released | Decision::CalledOff | Decision::Withdrawn, Some(cluster)) => {
            binding.leaving.remove(cluster);
        }
        _ => {}
    }
}

/// Returns what waits after these rows. The queue of the leader adds tolerations and rates, which have no record.
pub fn waits<'a>(rows: impl Iterator<Item = &'a Row>, queued: Option<&[QueuedEviction]>, now: Time) -> Vec<Waiting> {
    let waits = waiting(rows.filter_map(|row| row.event()));
    match queued {
        Some(queued) => with_queue(waits, queued, now),
        None => waits,
    }
}
