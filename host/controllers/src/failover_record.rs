//! `FailoverRecord` of each binding that leaves a cluster, for the owner of its workload.
//!
//! Nothing waits for a record. Changes are written after a short delay, with a pause between two writes of one record
//! ([`WRITE_PAUSE`], [`DETAIL_PAUSE`]) and with the lowest priority, so that a storm of evictions has few writes of
//! records. A write that fails is repeated with all that has happened since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_api::AnyFailoverRecord;
use bulkhead_core::failover_record::{self, FailoverNote};
use bulkhead_core::model::FailoverRecordStatus;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Action, Error};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Store, Subscription};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::binding_kind::{self, Binding, Reconcile};
use crate::failover_notes::{FailoverNotes, WRITE_DELAY};
use crate::flags::Flags;
use crate::stores::Stores;
use crate::writers::writer;

const NAME: &str = "failover-record-controller";
/// Few, so that records take few of the writes in flight.
const WORKERS: usize = 2;
/// Minimum pause between two writes of one record.
const WRITE_PAUSE: Duration = Duration::from_secs(10);
/// Minimum pause if a record gets no step, but another reason of a hold or other targets.
const DETAIL_PAUSE: Duration = Duration::from_mins(1);
/// Number of remembered writes above which those are forgotten whose pause is over.
const WRITTEN_MAX: usize = 4096;

struct FailoverRecords {
    deps: Dependencies,
    /// Time of the last write of each record, at least for those whose pause lasts.
    written: Mutex<BTreeMap<Key, Instant>>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) notes: Arc<FailoverNotes>,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped. It ends at once if the flag `failover-records` is off.
pub(crate) async fn run(deps: Dependencies) {
    /// Queues bindings whose eviction tasks change, or whose targets change during an eviction.
    fn matters<B: Binding>(change: &Change<'_, B>) -> bool {
        let leaves = |binding: &B| !binding.spec().graceful_eviction_tasks.is_empty();
        match change {
            Change::Added(binding) => leaves(binding),
            Change::Deleted(_) => true,
            Change::Updated { old, new } => {
                let (before, after) = (old.spec(), new.spec());
                before.graceful_eviction_tasks != after.graceful_eviction_tasks
                    || (leaves(new) && before.clusters != after.clusters)
            }
        }
    }
    if !deps.flags.failover_records {
        return;
    }
    let stores = &deps.stores;
    stores.failover_records.wait_for_cache_sync().await;
    stores.cluster_failover_records.wait_for_cache_sync().await;
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    deps.notes.keep_for(&queue);
    let _bindings = (
        subscribe(&stores.bindings, &queue, matters),
        subscribe(&stores.cluster_bindings, &queue, matters),
    );
    let _tasks = (
        note_ended_tasks(&stores.bindings, &deps.notes),
        note_ended_tasks(&stores.cluster_bindings, &deps.notes),
    );
    // Evictions may have ended, and bindings may have been deleted, while no controller ran.
    let _records = (
        subscribe(&stores.failover_records, &queue, |change| !is_update(change)),
        subscribe(&stores.cluster_failover_records, &queue, |change| !is_update(change)),
    );
    let controller = Arc::new(FailoverRecords::new(deps.clone()));
    let observer = deps.failures.counter(NAME, binding_kind::named);
    binding_kind::run(queue, WORKERS, controller, observer).await;
}

fn is_update<K>(change: &Change<'_, K>) -> bool {
    matches!(change, Change::Updated { .. })
}

/// Queues the keys of objects whose changes match, after a delay.
fn subscribe<K: Resource + 'static>(
    store: &Store<K>,
    queue: &Arc<WorkQueue<Key>>,
    matters: impl Fn(&Change<'_, K>) -> bool + Send + Sync + 'static,
) -> Subscription<K> {
    let queue = Arc::clone(queue);
    store.subscribe(move |change| {
        if matters(change) {
            queue.add_after(Key::of(change.object()), WRITE_DELAY);
        }
    })
}

/// Notes tasks when they end: an eviction of another process may end before its record is written.
fn note_ended_tasks<B: Binding>(store: &Store<B>, notes: &Arc<FailoverNotes>) -> Subscription<B> {
    let notes = Arc::clone(notes);
    store.subscribe(move |change| {
        let Change::Updated { old, new } = change else { return };
        let tasks = old.spec().graceful_eviction_tasks.iter();
        for task in tasks.filter(|task| !new.spec().is_evicting(&task.from_cluster)) {
            if let Some(note) = FailoverNote::of_task(task) {
                notes.add(&Key::of(change.object()), note);
            }
        }
    })
}

impl FailoverRecords {
    fn new(deps: Dependencies) -> Self {
        Self {
            deps,
            written: Mutex::default(),
        }
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<Key, Instant>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time until a record may be changed; `None` if it may be changed now.
    fn pause_before(&self, key: &Key, before: &FailoverRecordStatus, after: &FailoverRecordStatus) -> Option<Duration> {
        let steps = |record: &FailoverRecordStatus| {
            let steps = record
                .steps
                .iter()
                .map(|step| (step.from.clone(), step.state, step.time));
            steps.collect::<Vec<_>>()
        };
        let pause = if steps(before) == steps(after) {
            DETAIL_PAUSE
        } else {
            WRITE_PAUSE
        };
        let left = pause.checked_sub(self.written().get(key)?.elapsed())?;
        (!left.is_zero()).then_some(left)
    }

    fn note_written(&self, key: &Key) {
        let mut written = self.written();
        if written.len() >= WRITTEN_MAX {
            written.retain(|_, at| at.elapsed() < DETAIL_PAUSE);
        }
        written.insert(key.clone(), Instant::now());
    }

    /// Deletes the record of a deleted binding, on a control plane without a garbage collector too.
    async fn remove<B: Binding>(&self, key: &Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(record) = B::records(&deps.stores).get(key) else {
            return Ok(Action::Wait);
        };
        let writer = writer(
            B::records(&deps.stores),
            B::record_api(deps.hub.clone(), &key.namespace),
        );
        let operation = Error::api(format!("deleting {} {key}", B::Record::kind(&())));
        accepted(writer.delete(&record).await.map_err(operation))?;
        Ok(Action::Wait)
    }

    /// Creates or changes the record of a binding. The write fails if another process changed the record meanwhile.
    async fn write<B: Binding>(
        &self,
        binding: &B,
        existing: Option<&B::Record>,
        status: FailoverRecordStatus,
    ) -> Result<(), Error> {
        let (deps, key) = (&self.deps, Key::of(binding));
        let owner = owner(binding);
        let writer = writer(
            B::records(&deps.stores),
            B::record_api(deps.hub.clone(), &key.namespace),
        );
        let operation = Error::api(format!("writing {} {key}", B::Record::kind(&())));
        let written = if let Some(existing) = existing {
            let patch = json!({"metadata": {"ownerReferences": [owner]}, "status": status});
            writer.patch_if_unchanged(existing, patch).await.map(drop)
        } else {
            let metadata = ObjectMeta {
                name: Some(key.name.clone()),
                namespace: binding.namespace(),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            };
            writer.create(&B::Record::new(metadata, status)).await.map(drop)
        };
        accepted(written.map_err(operation))
    }
}

impl Reconcile for FailoverRecords {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let notes = deps.notes.of(&key);
        let Some(binding) = B::store(&deps.stores).get(&key) else {
            deps.notes.done(&key, &notes);
            return self.remove::<B>(&key).await;
        };
        if binding.meta().deletion_timestamp.is_some() {
            return Ok(Action::Wait);
        }
        let existing = B::records(&deps.stores).get(&key);
        let known = existing.as_deref().filter(|record| is_of(*record, &*binding));
        let before = known.map(|record| record.status().clone()).unwrap_or_default();
        let after = failover_record::update(&before, binding.spec(), &notes, deps.clock.now());
        if after != before {
            if let Some(pause) = self.pause_before(&key, &before, &after) {
                return Ok(Action::After(pause));
            }
            self.write(&*binding, existing.as_deref(), after).await?;
            self.note_written(&key);
        } else if known.is_none() {
            // An earlier binding of the same name may have left one.
            self.remove::<B>(&key).await?;
        }
        deps.notes.done(&key, &notes);
        Ok(Action::Wait)
    }
}

/// Counts a write that this process may not make, because it only reports, as made.
fn accepted(written: Result<(), Error>) -> Result<(), Error> {
    written.or_else(|error| if error.is_withheld() { Ok(()) } else { Err(error) })
}

fn owner<B: Binding>(binding: &B) -> OwnerReference {
    OwnerReference {
        api_version: B::api_version(&()).into_owned(),
        kind: B::kind(&()).into_owned(),
        name: binding.name_any(),
        uid: binding.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// True if a record is about this binding, and not about an earlier one of the same name.
fn is_of<B: Binding>(record: &B::Record, binding: &B) -> bool {
    let uid = binding.uid().unwrap_or_default();
    record.owner_references().iter().any(|owner| owner.uid == uid)
}

#[cfg(test)]
mod tests;
