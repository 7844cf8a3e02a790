//! Emulator of a member cluster's controllers and kubelets, as one level-triggered loop.
//!
//! Changes and due timers mark objects as dirty. At each instant, all dirty pods are synced first and the workloads
//! that own them afterwards, so a workload sees all transitions of an instant in one status write. Progress of a pod
//! depends only on its own name and times, never on the order of events.

mod claim;
mod condition;
mod daemonset;
mod group;
mod group_size;
mod job;
mod pod;
mod replicas;
mod revisions;
mod rollout;
mod statefulset;
mod time;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bulkhead_apiserver::json::{HasFields, array};
use bulkhead_apiserver::{ApiServer, ChangeType, Clock, DeleteOptions, KindId, Object, ObjectKey, Store, Subscription};
use jiff::Timestamp;
use serde_json::Value;

pub use crate::controllers::group::POD_OBJECTS_MAX;
pub use crate::controllers::group_size::pods_in;
use crate::controllers::pod::PodProgress;
use crate::failure::{FailureSwitch, Failures};
use crate::nodes::Nodes;

/// Time that a scheduled pod takes to become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaReady {
    /// Minimum time.
    pub base: Duration,
    /// Maximum additional time. The actual value depends on the pod's namespace and name and on the cluster's seed.
    pub jitter: Duration,
}

/// Durations and the seed of their jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) seed: u64,
    pub(crate) replica_ready: ReplicaReady,
    pub(crate) job_duration: Duration,
}

/// Settings of an emulator.
pub(crate) struct Settings {
    pub(crate) timing: Timing,
    /// True if Deployments own their pods through ReplicaSets.
    pub(crate) has_replica_sets: bool,
    /// Maximum number of pods of one revision of a workload that have an object each.
    pub(crate) pod_objects_max: u64,
}

/// Kinds whose status the emulator writes.
#[derive(Clone, Copy)]
struct Kinds {
    pod: KindId,
    deployment: KindId,
    replica_set: KindId,
    stateful_set: KindId,
    daemon_set: KindId,
    job: KindId,
    service: KindId,
    claim: KindId,
    /// ControllerRevision, which only members for people serve.
    revision: Option<KindId>,
}

impl Kinds {
    fn of(server: &ApiServer) -> Self {
        let kind = |api_version, kind| {
            server
                .kind_id(api_version, kind)
                .expect("a member cluster serves the built-in kinds")
        };
        Self {
            pod: kind("v1", "Pod"),
            deployment: kind("apps/v1", "Deployment"),
            replica_set: kind("apps/v1", "ReplicaSet"),
            stateful_set: kind("apps/v1", "StatefulSet"),
            daemon_set: kind("apps/v1", "DaemonSet"),
            job: kind("batch/v1", "Job"),
            service: kind("v1", "Service"),
            claim: kind("v1", "PersistentVolumeClaim"),
            revision: server.kind_id("apps/v1", "ControllerRevision"),
        }
    }

    fn all(self) -> [KindId; 8] {
        [
            self.pod,
            self.deployment,
            self.replica_set,
            self.stateful_set,
            self.daemon_set,
            self.job,
            self.service,
            self.claim,
        ]
    }

    /// Returns the workload kind that an owner reference names.
    fn workload(self, kind: &str) -> Option<KindId> {
        match kind {
            "Deployment" => Some(self.deployment),
            "ReplicaSet" => Some(self.replica_set),
            "StatefulSet" => Some(self.stateful_set),
            "DaemonSet" => Some(self.daemon_set),
            "Job" => Some(self.job),
            _ => None,
        }
    }
}

/// Emulator of the controllers and kubelets of one member cluster.
pub(crate) struct Emulator {
    store: Store,
    clock: Clock,
    timing: Timing,
    kinds: Kinds,
    nodes: Nodes,
    has_replica_sets: bool,
    pod_objects_max: u64,
    switch: Arc<FailureSwitch>,
    failures: Arc<Failures>,
    subscription: Subscription,
    dirty_pods: BTreeSet<ObjectKey>,
    dirty: BTreeSet<ObjectKey>,
    timers: BTreeSet<(Timestamp, ObjectKey)>,
    /// Pods that do not fit on any node.
    unscheduled: BTreeSet<ObjectKey>,
    progress: BTreeMap<ObjectKey, PodProgress>,
}

impl Emulator {
    pub(crate) fn new(server: &ApiServer, nodes: Nodes, settings: Settings, switch: Arc<FailureSwitch>) -> Self {
        let kinds = Kinds::of(server);
        let store = server.store();
        let subscription = store.subscribe(&kinds.all());
        let failures = switch.current();
        Self {
            store,
            clock: server.clock().clone(),
            timing: settings.timing,
            kinds,
            nodes,
            has_replica_sets: settings.has_replica_sets,
            pod_objects_max: settings.pod_objects_max,
            switch,
            failures,
            subscription,
            dirty_pods: BTreeSet::new(),
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            unscheduled: BTreeSet::new(),
            progress: BTreeMap::new(),
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        self.mark_everything();
        loop {
            self.absorb_changes();
            self.absorb_failures();
            self.fire_timers();
            if self.work() {
                // Other tasks run at the same instant before the next round.
                tokio::task::yield_now().await;
            } else {
                self.wait().await;
            }
        }
    }

    fn mark_everything(&mut self) {
        for kind in self.kinds.all() {
            for object in self.store.list(kind, None) {
                self.mark(ObjectKey::new(kind, object.namespace(), object.name()));
            }
        }
    }

    fn mark(&mut self, key: ObjectKey) {
        if key.kind == self.kinds.pod {
            self.dirty_pods.insert(key);
        } else {
            self.dirty.insert(key);
        }
    }

    fn mark_owners(&mut self, object: &Object) {
        for owner in array(object.content(), "/metadata/ownerReferences") {
            let kind = owner["kind"].as_str().and_then(|kind| self.kinds.workload(kind));
            if let (Some(kind), Some(name)) = (kind, owner["name"].as_str()) {
                self.dirty.insert(ObjectKey::new(kind, object.namespace(), name));
            }
        }
    }

    fn absorb_changes(&mut self) {
        let Ok(changes) = self.subscription.drain() else {
            self.forget_missing_pods();
            self.mark_everything();
            return;
        };
        for change in changes {
            if change.key.kind == self.kinds.pod || change.key.kind == self.kinds.replica_set {
                self.mark_owners(&change.object);
            }
            if change.change_type() == ChangeType::Deleted {
                self.forget(&change.key);
            } else {
                self.mark(change.key.clone());
            }
        }
    }

    /// Releases the resources of pods whose deletion was missed.
    fn forget_missing_pods(&mut self) {
        let missing: Vec<ObjectKey> = self
            .progress
            .keys()
            .filter(|key| self.store.get(key).is_none())
            .cloned()
            .collect();
        for key in missing {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.progress.remove(key);
        self.unscheduled.remove(key);
        self.release(key);
    }

    /// Releases the capacity of a pod and retries the unscheduled pods.
    fn release(&mut self, key: &ObjectKey) {
        if self.nodes.release(key) {
            self.retry_unscheduled();
        }
    }

    fn retry_unscheduled(&mut self) {
        self.dirty_pods.extend(self.unscheduled.iter().cloned());
    }

    fn absorb_failures(&mut self) {
        let current = self.switch.current();
        if !Arc::ptr_eq(&current, &self.failures) {
            self.failures = current;
            let pods = self.store.list(self.kinds.pod, None);
            let keys = pods
                .iter()
                .map(|pod| ObjectKey::new(self.kinds.pod, pod.namespace(), pod.name()));
            self.dirty_pods.extend(keys);
        }
    }

    fn fire_timers(&mut self) {
        let now = self.clock.now();
        while let Some((at, _)) = self.timers.first()
            && *at <= now
        {
            if let Some((_, key)) = self.timers.pop_first() {
                self.mark(key);
            }
        }
    }

    fn wake_at(&mut self, at: Timestamp, key: &ObjectKey) {
        self.timers.insert((at, key.clone()));
    }

    /// Syncs the dirty pods or, if there are none, the dirty workloads. Returns true if there were any.
    fn work(&mut self) -> bool {
        let pods = std::mem::take(&mut self.dirty_pods);
        if !pods.is_empty() {
            for key in pods {
                self.sync_pod(&key);
            }
            return true;
        }
        let objects = std::mem::take(&mut self.dirty);
        let has_work = !objects.is_empty();
        for key in objects {
            if let Some(object) = self.store.get(&key)
                && !object.is_terminating()
            {
                self.sync_object(&key, &object);
            }
        }
        has_work
    }

    fn sync_object(&mut self, key: &ObjectKey, object: &Object) {
        let kinds = self.kinds;
        if key.kind == kinds.deployment || key.kind == kinds.replica_set {
            self.sync_replicas(key, object);
        } else if key.kind == kinds.stateful_set {
            self.sync_stateful_set(key, object);
        } else if key.kind == kinds.daemon_set {
            self.sync_daemon_set(key, object);
        } else if key.kind == kinds.job {
            self.sync_job(key, object);
        } else if key.kind == kinds.service {
            self.sync_service(key, object);
        } else if key.kind == kinds.claim {
            self.sync_claim(key, object);
        }
    }

    async fn wait(&self) {
        let next_timer = self.timers.first().map(|(at, _)| self.clock.instant_of(*at));
        let timer = async move {
            match next_timer {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.subscription.changed() => {}
            () = self.switch.changed() => {}
            () = timer => {}
        }
    }

    /// Writes a status if it differs from the stored one.
    fn write_status(&self, key: &ObjectKey, object: &Object, status: Value) {
        if object.content().field("status") != Some(&status) {
            // The object may have been deleted in the meantime; its own event reports that.
            let _ = self.store.set_status(key, status);
        }
    }

    fn delete(&self, key: &ObjectKey) -> bool {
        self.store.delete(key, &DeleteOptions::default()).is_ok()
    }
}
