//! Common interface of both kinds of binding. A key without a namespace is a ClusterResourceBinding.

use std::sync::Arc;

use bulkhead_api::{
    AnyBinding, AnyFailoverRecord, ClusterFailoverRecord, ClusterResourceBinding, FailoverRecord, ResourceBinding,
};
use bulkhead_runtime::controller::{self, Action, Error, Observer};
use bulkhead_runtime::key::{Key, ObjectName};
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Store, Subscription};
use bulkhead_runtime::write::Writer;
use kube::{Api, Client};

use crate::pending_status::PendingStatus;
use crate::stores::Stores;
use crate::writers::writer;

/// Access to bindings of both kinds.
#[derive(Clone)]
pub(crate) struct Bindings {
    pub(crate) stores: Arc<Stores>,
    pub(crate) hub: Client,
    /// Scheduler status fields that are not written yet.
    pub(crate) pending_status: Arc<PendingStatus>,
}

/// Kind of binding, with its store and its API.
pub(crate) trait Binding: AnyBinding {
    /// Kind of the record of its failovers.
    type Record: AnyFailoverRecord;

    /// Returns the store of this kind.
    fn store(stores: &Stores) -> &Arc<Store<Self>>;

    /// Returns the API for bindings of one namespace; the namespace is ignored for cluster scope.
    fn api(client: Client, namespace: &str) -> Api<Self>;

    /// Returns the store of the records.
    fn records(stores: &Stores) -> &Arc<Store<Self::Record>>;

    /// Returns the API for records of one namespace; the namespace is ignored for cluster scope.
    fn record_api(client: Client, namespace: &str) -> Api<Self::Record>;

    /// Returns the writer of a binding.
    fn writer<'a>(bindings: &'a Bindings, binding: &Self) -> Writer<'a, Self> {
        let namespace = binding.meta().namespace.as_deref().unwrap_or_default();
        writer(
            Self::store(&bindings.stores),
            Self::api(bindings.hub.clone(), namespace),
        )
    }

    /// Returns a binding with the pending status fields of this process's scheduler.
    fn latest(bindings: &Bindings, key: &Key) -> Option<Arc<Self>> {
        let mut binding = Self::store(&bindings.stores).get(key)?;
        if let Some(fields) = bindings.pending_status.get(key) {
            fields.merge_into(Arc::make_mut(&mut binding).status_mut());
        }
        Some(binding)
    }

    /// Changes the status of a binding as [`Writer::update_status`] does. If there is anything to write, the pending
    /// fields of the scheduler are written too.
    fn write_status(
        bindings: &Bindings,
        known: &Self,
        mut change: impl FnMut(&mut Self) -> bool + Send,
    ) -> impl Future<Output = Result<Option<Arc<Self>>, Error>> + Send {
        async move {
            let (key, mut taken) = (Key::of(known), None);
            let change = |binding: &mut Self| {
                let changed = change(binding);
                taken = bindings.pending_status.get(&key).filter(|_| changed);
                if let Some(fields) = taken {
                    fields.merge_into(binding.status_mut());
                }
                changed
            };
            let written = Self::writer(bindings, known).update_status(known, change).await?;
            if let Some(taken) = taken {
                bindings.pending_status.done(&key, taken);
            }
            Ok(written)
        }
    }
}

impl Binding for ResourceBinding {
    type Record = FailoverRecord;

    fn store(stores: &Stores) -> &Arc<Store<Self>> {
        &stores.bindings
    }

    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }

    fn records(stores: &Stores) -> &Arc<Store<FailoverRecord>> {
        &stores.failover_records
    }

    fn record_api(client: Client, namespace: &str) -> Api<FailoverRecord> {
        Api::namespaced(client, namespace)
    }
}

impl Binding for ClusterResourceBinding {
    type Record = ClusterFailoverRecord;

    fn store(stores: &Stores) -> &Arc<Store<Self>> {
        &stores.cluster_bindings
    }

    fn api(client: Client, _namespace: &str) -> Api<Self> {
        Api::all(client)
    }

    fn records(stores: &Stores) -> &Arc<Store<ClusterFailoverRecord>> {
        &stores.cluster_failover_records
    }

    fn record_api(client: Client, _namespace: &str) -> Api<ClusterFailoverRecord> {
        Api::all(client)
    }
}

/// Reconcile for either kind of binding.
pub(crate) trait Reconcile: Send + Sync {
    /// Reconciles one binding; a key that no longer exists is not an error.
    fn reconcile<B: Binding>(&self, key: Key) -> impl Future<Output = Result<Action, Error>> + Send;
}

/// Returns the name of the binding of a key, with its kind.
pub(crate) fn named(key: &Key) -> ObjectName<'_> {
    key.named(if key.namespace.is_empty() {
        "ClusterResourceBinding"
    } else {
        "ResourceBinding"
    })
}

/// Takes keys from the queue and reconciles the bindings of their kinds, up to `workers` of them at the same time.
pub(crate) async fn run<R: Reconcile + 'static>(
    queue: Arc<WorkQueue<Key>>,
    workers: usize,
    reconciler: Arc<R>,
    observer: impl Observer<Key>,
) {
    let reconcile = move |key: Key| {
        let reconciler = Arc::clone(&reconciler);
        async move {
            if key.namespace.is_empty() {
                reconciler.reconcile::<ClusterResourceBinding>(key).await
            } else {
                reconciler.reconcile::<ResourceBinding>(key).await
            }
        }
    };
    controller::run(queue, workers, reconcile, observer).await;
}

/// Enqueues bindings of both kinds whose changes match.
pub(crate) fn subscribe<R, C>(
    stores: &Stores,
    queue: &Arc<WorkQueue<Key>>,
    resource: R,
    cluster_resource: C,
) -> (Subscription<ResourceBinding>, Subscription<ClusterResourceBinding>)
where
    R: Fn(&Change<'_, ResourceBinding>) -> bool + Send + Sync + 'static,
    C: Fn(&Change<'_, ClusterResourceBinding>) -> bool + Send + Sync + 'static,
{
    (
        subscribe_one(stores, queue, resource),
        subscribe_one(stores, queue, cluster_resource),
    )
}

fn subscribe_one<B: Binding>(
    stores: &Stores,
    queue: &Arc<WorkQueue<Key>>,
    matters: impl Fn(&Change<'_, B>) -> bool + Send + Sync + 'static,
) -> Subscription<B> {
    let queue = Arc::clone(queue);
    B::store(stores).subscribe(move |change| {
        if matters(change) {
            queue.add(Key::of(change.object()));
        }
    })
}
