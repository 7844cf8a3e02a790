//! Evidence that reports of member clusters are current.
//!
//! The Ready condition follows probes with a delay, and a report in the control plane outlives its object. Before an
//! old copy is removed, the copies that replace it are confirmed: the member responds, and the report was made from
//! the current version of its object. Pull members cannot be queried; their heartbeat counts instead, which says if
//! their agent has reports that the control plane does not have.
//!
//! Controllers in other processes leave no evidence here. Then the Ready condition is sufficient.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_api::Cluster;
use bulkhead_core::decide::graceful_eviction::{Unconfirmed, UnconfirmedTargets};
use bulkhead_core::model::{self, AggregatedStatusItem, Binding, Health, Reports, SyncMode};
use bulkhead_core::names;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::{Kinds, ObjectKind};
use bulkhead_runtime::object_lock::is_newer_version;
use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use tokio::time::Instant;

use crate::heartbeat::Unreported;
use crate::members::{MemberError, Members};
use crate::stores::Stores;

/// Maximum number of members queried at the same time for one binding.
const REQUESTS_MAX: usize = 16;
/// Time within which the store shows that a taint was removed.
const UNTAINT_MAX: Duration = Duration::from_secs(5);
/// Timeout of one query.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Observations of member clusters in this process.
#[derive(Default)]
pub struct Contacts(Mutex<State>);

#[derive(Default)]
struct State {
    /// True once this process probes Push clusters.
    probes: bool,
    /// True once this process watches the heartbeats of Pull clusters.
    monitors: bool,
    /// True once this process reads the objects of its clusters.
    collects: bool,
    /// Outcome of the last probe of each Push cluster.
    answered: BTreeMap<String, bool>,
    /// Last renewal of each Pull cluster's lease, if one was seen since the process started.
    renewed: BTreeMap<String, Heartbeat>,
    /// Versions of the object of each Work.
    versions: BTreeMap<Key, Versions>,
    /// Time of the last decision to remove a taint of each cluster.
    untainted: BTreeMap<String, Instant>,
}

/// Renewal of the lease of a Pull cluster.
struct Heartbeat {
    at: Instant,
    /// Uid of the Cluster. Another member of the same name has sent none yet.
    cluster: Option<String>,
    /// Works whose last reports the control plane did not have.
    unreported: Unreported,
}

impl State {
    /// Returns the last heartbeat of a Pull cluster.
    fn heartbeat(&self, cluster: &Cluster) -> Option<&Heartbeat> {
        let heartbeat = self.renewed.get(&cluster.name_any())?;
        Some(heartbeat).filter(|heartbeat| heartbeat.cluster == cluster.uid())
    }
}

/// Versions of an object in a member cluster on its way to the status of its Work.
#[derive(Default)]
struct Versions {
    /// Last version that was seen.
    seen: Option<ObjectMeta>,
    /// Last version whose health was derived, and that health.
    derived: Option<(ObjectMeta, Option<Health>)>,
    /// Version from which the health in the Work was derived.
    reported: Option<ObjectMeta>,
}

impl Versions {
    /// True unless the health that was derived from this object, or a later one, is not Healthy.
    fn may_be_healthy(&self, object: &ObjectMeta) -> bool {
        let is_ill = |(known, health): &(ObjectMeta, Option<Health>)| {
            is_current(known, object) && *health != Some(Health::Healthy)
        };
        !self.derived.as_ref().is_some_and(is_ill)
    }
}

/// Returns the part of the metadata that identifies a version of an object.
fn version(object: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        uid: object.uid.clone(),
        resource_version: object.resource_version.clone(),
        ..ObjectMeta::default()
    }
}

/// True if a version of an object is this one or a later one.
fn is_current(known: &ObjectMeta, object: &ObjectMeta) -> bool {
    known.uid == object.uid && (known.resource_version == object.resource_version || is_newer_version(object, known))
}

impl Contacts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that this process probes Push clusters from now on.
    pub(crate) fn expect_probes(&self) {
        self.state().probes = true;
    }

    /// Records that this process watches the heartbeats of Pull clusters from now on.
    pub(crate) fn expect_heartbeats(&self) {
        self.state().monitors = true;
    }

    /// Records that this process reports the objects of its clusters from now on.
    pub(crate) fn expect_reports(&self) {
        self.state().collects = true;
    }

    /// Records the outcome of a probe.
    pub(crate) fn probed(&self, cluster: &str, answered: bool) {
        self.state().answered.insert(cluster.to_owned(), answered);
    }

    /// Records that the lease of a Pull cluster was renewed, with the Works whose last reports the control plane did not
    /// have.
    pub(crate) fn heard(&self, cluster: &Cluster, unreported: Unreported) {
        let heartbeat = Heartbeat {
            at: Instant::now(),
            cluster: cluster.uid(),
            unreported,
        };
        self.state().renewed.insert(cluster.name_any(), heartbeat);
    }

    /// Records a version of the object of a Work that was seen, and may not be reported before its cluster is ready.
    pub(crate) fn seen(&self, work: &Key, object: &ObjectMeta) {
        self.state().versions.entry(work.clone()).or_default().seen = Some(version(object));
    }

    /// Records the version of the object from which the health in a Work was derived.
    pub(crate) fn reported(&self, work: &Key, object: &ObjectMeta) {
        self.state().versions.entry(work.clone()).or_default().reported = Some(version(object));
    }

    /// Records the health that was derived from an object, before it is in a Work: that is delayed, and can fail.
    pub(crate) fn derived(&self, work: &Key, object: &ObjectMeta, health: Option<Health>) {
        self.state().versions.entry(work.clone()).or_default().derived = Some((version(object), health));
    }

    /// Forgets a Work that was deleted, or whose object is missing so that its report is not current.
    pub(crate) fn forget_work(&self, work: &Key) {
        self.state().versions.remove(work);
    }

    /// Returns those of the Works that do not have the report about the last version of their object. A Work without a
    /// report since the start of this process is one of them: its object may be missing.
    pub(crate) fn unreported(&self, works: impl Iterator<Item = Key>) -> Unreported {
        let state = self.state();
        let is_reported = |work: &Key| {
            let versions = state.versions.get(work);
            let of_last = |versions: &Versions| {
                let reported = versions.reported.as_ref()?;
                Some(is_current(reported, versions.seen.as_ref()?))
            };
            versions.and_then(of_last) == Some(true)
        };
        let works = works.filter(|work| state.collects && !is_reported(work));
        let may_be_healthy = |work: &Key| {
            let versions = state.versions.get(work);
            versions.is_none_or(|versions| versions.seen.as_ref().is_none_or(|seen| versions.may_be_healthy(seen)))
        };
        let works = works.map(|work| {
            let may_be_healthy = may_be_healthy(&work);
            (work.name, may_be_healthy)
        });
        Unreported::of(works.collect())
    }

    /// True if the agent of a Pull cluster had a report at its last heartbeat that the Work does not have.
    fn misses_report(&self, cluster: &Cluster, work: &Key) -> bool {
        let state = self.state();
        let heartbeat = state.heartbeat(cluster);
        heartbeat.is_some_and(|heartbeat| heartbeat.unreported.contains(&work.name))
    }

    /// True if the agent of a Pull cluster misses a report in the Work, and the object may be healthy.
    fn misses_recovery(&self, cluster: &Cluster, work: &Key) -> bool {
        let state = self.state();
        let heartbeat = state.heartbeat(cluster);
        heartbeat.is_some_and(|heartbeat| heartbeat.unreported.may_be_healthy(&work.name))
    }

    /// Forgets a deleted cluster.
    pub(crate) fn forget(&self, cluster: &str) {
        let mut state = self.state();
        state.answered.remove(cluster);
        state.renewed.remove(cluster);
        state.untainted.remove(cluster);
    }

    /// True if a Push cluster answered its last probe although its status is not ready: it recovers, or its status
    /// cannot be written.
    pub(crate) fn answers_unready(&self, cluster: &model::Cluster) -> bool {
        let state = self.state();
        state.probes && !cluster.is_ready() && state.answered.get(&cluster.name) == Some(&true)
    }

    /// Records that taints of a cluster are removed now.
    pub(crate) fn untainted(&self, cluster: &str) {
        self.state().untainted.insert(cluster.to_owned(), Instant::now());
    }

    /// True if taints of a cluster were removed a moment ago, so that the store may still have them.
    pub(crate) fn loses_taints(&self, cluster: &str) -> bool {
        let removed = self.state().untainted.get(cluster).copied();
        removed.is_some_and(|removed| removed.elapsed() < UNTAINT_MAX)
    }

    /// True if the last contact with a cluster failed, or there was none yet.
    fn is_silent(&self, cluster: &Cluster, lease: Duration) -> bool {
        let state = self.state();
        match cluster.spec.sync_mode {
            SyncMode::Push => state.probes && state.answered.get(&cluster.name_any()) != Some(&true),
            SyncMode::Pull => {
                let heartbeat = state.heartbeat(cluster);
                state.monitors && heartbeat.is_none_or(|heartbeat| heartbeat.at.elapsed() > lease)
            }
        }
    }

    /// True if the report in a Work is missing or was made from an older object than this one.
    fn is_outdated(&self, work: &Key, object: &ObjectMeta) -> bool {
        let state = self.state();
        let reported = state.versions.get(work).and_then(|versions| versions.reported.as_ref());
        state.collects && !reported.is_some_and(|reported| is_current(reported, object))
    }

    /// True unless the health that was derived from this object, or a later one, is not Healthy.
    fn may_be_healthy(&self, work: &Key, object: &ObjectMeta) -> bool {
        let state = self.state();
        let versions = state.versions.get(work);
        state.collects && versions.is_none_or(|versions| versions.may_be_healthy(object))
    }
}

/// Reports of member clusters about a binding, with the evidence that they are current.
#[derive(Clone)]
pub(crate) struct Reported {
    pub(crate) stores: Arc<Stores>,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) members: Arc<dyn Members>,
    pub(crate) kinds: Arc<Kinds>,
    /// Duration of the Lease of a Pull cluster.
    pub(crate) lease_duration: Duration,
}

impl Reported {
    /// Returns the targets of a binding whose reports do not count, as far as that is known without a query.
    pub(crate) fn unconfirmed(&self, binding: &Binding) -> UnconfirmedTargets {
        let mut reports = Reports::new(&binding.status.aggregated_status);
        let targets = binding.spec.clusters.iter();
        let found = targets.filter_map(|target| {
            let name = &target.name;
            let Some(cluster) = self.stores.cluster(name) else {
                return Some((name.clone(), Unconfirmed::Missing));
            };
            let reported = reports.of(name).and_then(|item| item.health);
            let reason = self.doubt(&cluster).or_else(|| {
                let outdated = self.contacts.misses_report(&cluster, &work_key(binding, name))
                    || reported == Some(Health::Healthy) && !self.is_healthy_in_work(binding, name);
                outdated.then_some(Unconfirmed::Outdated)
            });
            Some((name.clone(), reason?))
        });
        found.collect()
    }

    fn doubt(&self, cluster: &Cluster) -> Option<Unconfirmed> {
        let is_terminating = cluster.metadata.deletion_timestamp.is_some();
        let lease = self.lease_duration;
        Unconfirmed::of_cluster(is_terminating, &cluster.status.conditions).or_else(|| {
            self.contacts
                .is_silent(cluster, lease)
                .then_some(Unconfirmed::Unreachable)
        })
    }

    /// True if the Work of a binding supports the binding's healthy report, which is written later. The report of a
    /// Work that is being deleted is about a copy that goes, and the next Work has none yet.
    fn is_healthy_in_work(&self, binding: &Binding, cluster: &str) -> bool {
        self.health_in_work(binding, cluster) == Some(Health::Healthy)
    }

    fn health_in_work(&self, binding: &Binding, cluster: &str) -> Option<Health> {
        let work = self.stores.works.get(&work_key(binding, cluster))?;
        let stays = work.metadata.deletion_timestamp.is_none();
        work.status.manifest_statuses.first().filter(|_| stays)?.health
    }

    /// Replaces unhealthy reports in a binding that its Works contradict by now. The status of a binding stays as it is
    /// while its writes fail, and an application that recovered meanwhile must not be evicted for it. Returns true if it
    /// replaced a report.
    pub(crate) fn refresh_unhealthy(&self, binding: &mut Binding) -> bool {
        let is_unhealthy = |item: &AggregatedStatusItem| item.health == Some(Health::Unhealthy);
        let unhealthy = binding
            .status
            .aggregated_status
            .iter()
            .filter(|item| is_unhealthy(item));
        let current: Vec<_> = unhealthy
            .map(|item| self.health_in_work(binding, &item.cluster_name))
            .collect();
        let items = binding
            .status
            .aggregated_status
            .iter_mut()
            .filter(|item| is_unhealthy(item));
        let mut replaced = false;
        for (item, current) in items.zip(current) {
            item.health = current.or(item.health);
            replaced |= !is_unhealthy(item);
        }
        replaced
    }

    /// Queries clusters for the object of a binding. Returns true if it may be healthy in one of them although its report
    /// is not, for example because the status of its Work cannot be written. A cluster that does not respond, or that
    /// this process cannot query, has only its report, unless its agent knows of a newer one that may be healthy.
    pub(crate) async fn may_be_healthy_in<'a>(
        &self,
        binding: &Binding,
        clusters: impl Iterator<Item = &'a str>,
    ) -> bool {
        let names: Vec<_> = clusters.map(str::to_owned).collect();
        let asked = futures::stream::iter(names).map(|name: String| async move {
            match self.observe(binding, &name).await {
                Ok(Some(object)) => self.contacts.may_be_healthy(&work_key(binding, &name), &object),
                Ok(None) => self.may_be_healthy_for_agent(binding, &name),
                Err(reason) => reason == Unconfirmed::Outdated,
            }
        });
        asked.buffered(REQUESTS_MAX).any(std::future::ready).await
    }

    fn may_be_healthy_for_agent(&self, binding: &Binding, name: &str) -> bool {
        let cluster = self.stores.cluster(name);
        cluster.is_some_and(|cluster| self.contacts.misses_recovery(&cluster, &work_key(binding, name)))
    }

    /// Queries the targets of a binding that are not known to be unconfirmed. Returns those that turn out to be. A
    /// target that this process cannot query counts as confirmed.
    pub(crate) async fn confirm(&self, binding: &Binding, unconfirmed: &UnconfirmedTargets) -> UnconfirmedTargets {
        let names = binding.spec.clusters.iter().map(|target| &target.name);
        // Another program may have listed a target twice.
        let names: BTreeSet<_> = names.filter(|name| !unconfirmed.contains_key(*name)).cloned().collect();
        let asked = futures::stream::iter(names).map(|name: String| async move {
            let reason = self.probe_target(binding, &name).await.err()?;
            Some((name, reason))
        });
        asked
            .buffered(REQUESTS_MAX)
            .filter_map(std::future::ready)
            .collect()
            .await
    }

    async fn probe_target(&self, binding: &Binding, name: &str) -> Result<(), Unconfirmed> {
        let Some(object) = self.observe(binding, name).await? else {
            return Ok(());
        };
        let outdated = self.contacts.is_outdated(&work_key(binding, name), &object);
        if outdated { Err(Unconfirmed::Outdated) } else { Ok(()) }
    }

    /// Returns the metadata of the object of a binding in a cluster; `None` if this process cannot query the cluster.
    async fn observe(&self, binding: &Binding, name: &str) -> Result<Option<ObjectMeta>, Unconfirmed> {
        let cluster = self.stores.cluster(name).ok_or(Unconfirmed::Missing)?;
        if cluster.spec.sync_mode == SyncMode::Pull {
            return Ok(None);
        }
        let client = match self.members.client(name) {
            Ok(client) => client,
            Err(MemberError::NotYet(_) | MemberError::Broken(_)) if !self.contacts.state().probes => return Ok(None),
            Err(MemberError::NotYet(_) | MemberError::Broken(_)) => return Err(Unconfirmed::Unreachable),
        };
        let resource = &binding.spec.resource;
        let kind = ObjectKind::new(&resource.api_version, &resource.kind);
        let known = self.kinds.resolve(&kind).await.map_err(|_| Unconfirmed::Outdated)?;
        let api: Api<DynamicObject> = known.api(client, &resource.namespace);
        let answer = tokio::time::timeout(ANSWER_MAX, api.get_metadata_opt(&resource.name)).await;
        match answer {
            Ok(Ok(object)) => object.map(|object| Some(object.metadata)).ok_or(Unconfirmed::Outdated),
            // The member responds but does not let this process read. Reports are not made from there either, unless
            // that was possible before.
            Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => {
                let collects = self.contacts.state().collects;
                if collects { Err(Unconfirmed::Outdated) } else { Ok(None) }
            }
            Ok(Err(_)) | Err(_) => {
                self.contacts.probed(name, false);
                Err(Unconfirmed::Unreachable)
            }
        }
    }
}

fn work_key(binding: &Binding, cluster: &str) -> Key {
    let resource = &binding.spec.resource;
    let name = names::work_name(&resource.kind, &resource.name, &resource.namespace);
    Key::new(names::execution_namespace(cluster), name)
}

#[cfg(test)]
mod tests;
