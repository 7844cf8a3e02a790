//! Progress of each `ClusterDrain`.
//!
//! The drain itself is a taint (`plugins/builtin/src/cluster_drains.rs`) and the eviction queue. So it respects all
//! rates, waits for pauses, and continues after a restart without any memory of its own.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::{AnyBinding, ClusterDrain};
use bulkhead_core::model::{ClusterDrainStatus, DrainPhase};
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Store};
use kube::{Api, Client};

use crate::stores::Stores;
use crate::writers::writer;

const NAME: &str = "cluster-drain-controller";
/// Interval of status updates.
const REFRESH: Duration = Duration::from_secs(5);

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) hub: Client,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let drains = Arc::clone(&queue);
    let _drains = deps.stores.cluster_drains.subscribe(move |change| {
        if !matches!(change, Change::Deleted(_)) {
            drains.add(Key::of(change.object()));
        }
    });
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), key)
    };
    controller::run(
        queue,
        1,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("ClusterDrain")),
    )
    .await;
}

async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    let Some(drain) = deps.stores.cluster_drains.get(&key) else {
        return Ok(Action::Wait);
    };
    let status = status(&deps, &drain);
    let changed = |drain: &mut ClusterDrain| {
        let changed = drain.status != status;
        drain.status = status.clone();
        changed
    };
    let writer = writer(&deps.stores.cluster_drains, Api::all(deps.hub.clone()));
    writer.update_status(&drain, changed).await?;
    Ok(Action::After(REFRESH))
}

fn status(deps: &Dependencies, drain: &ClusterDrain) -> ClusterDrainStatus {
    let (cluster, stores) = (drain.spec.cluster_name.as_str(), &deps.stores);
    if stores.cluster(cluster).is_none() {
        let message = format!("cluster {cluster} does not exist");
        return ClusterDrainStatus {
            phase: Some(DrainPhase::Pending),
            message,
            ..ClusterDrainStatus::default()
        };
    }
    let remaining = stores.bindings.by_index(cluster).len() + stores.cluster_bindings.by_index(cluster).len();
    let copies = leaving(&stores.bindings, cluster) + leaving(&stores.cluster_bindings, cluster);
    let now = deps.clock.now::<Time>().truncated();
    let is_done = remaining == 0 && copies == 0;
    let message = if is_done {
        "no binding is placed on the cluster".to_owned()
    } else if drain.spec.evictions_per_second == Some(0.0) {
        format!("{remaining} bindings left; the drain is paused because evictionsPerSecond is 0")
    } else {
        format!("{remaining} bindings left, {copies} old copies wait for their replacement")
    };
    ClusterDrainStatus {
        phase: Some(if is_done {
            DrainPhase::Drained
        } else {
            DrainPhase::Draining
        }),
        bindings_left: remaining as u64,
        copies_left: copies as u64,
        started_at: drain.status.started_at.or(Some(now)),
        finished_at: is_done.then(|| drain.status.finished_at.unwrap_or(now)),
        message,
    }
}

fn leaving<B: AnyBinding>(store: &Store<B>, cluster: &str) -> usize {
    store
        .list()
        .iter()
        .filter(|binding| binding.spec().is_evicting(cluster))
        .count()
}

#[cfg(test)]
mod tests;
