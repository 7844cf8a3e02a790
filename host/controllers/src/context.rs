//! Dependencies shared by the controllers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::{
    Cluster, ClusterDrain, ClusterPropagationPolicy, ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, Plugin,
    PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration,
    Work,
};
use bulkhead_core::call::Reason;
use bulkhead_core::combine::{Attribution, Diagnostics};
use bulkhead_core::decide::schedule::ScheduleExplanation;
use bulkhead_core::journal::{Decision, DecisionRecord, Entry, Input, Journal, Subject};
use bulkhead_core::model::SyncMode;
use bulkhead_core::names::keys;
use bulkhead_core::policy::PolicySet;
use bulkhead_estimator::EstimatorPool;
use bulkhead_plugin::Registry;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::contact::Contacts;
use crate::controller::{Error, ErrorClass};
use crate::customizations::InterpretersLoaded;
use crate::dynamic::DynamicStores;
use crate::evaluate::Evaluator;
use crate::events::Events;
use crate::flags::Flags;
use crate::interpreter::UncoveredKinds;
use crate::kinds::Kinds;
use crate::lease_runtime::LeaseRuntime;
use crate::members::ReplacedHandler;
use crate::metrics::Metrics;
use crate::pending_status::PendingStatus;
use crate::plugins::PluginObjects;
use crate::scheduler::{RunningScheduler, WriteBudget};
use crate::store::{InformerState, Key, Store};
use crate::webhook::Webhooks;
use crate::write::Writer;

/// Access to the API servers of member clusters.
pub trait Members: Send + Sync {
    /// Returns a client for a member cluster.
    fn client(&self, cluster: &str) -> Result<Client, MemberError>;

    /// Registers `handler`, which is called when a cluster gets a new client because its address or credentials
    /// changed. The handler stays registered until the caller drops it. By default clients never change and the
    /// handler is not called.
    fn on_replaced(&self, _handler: &Arc<ReplacedHandler>) {}
}

/// Reason why a member cluster has no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// No client yet; says nothing about the state of the cluster.
    #[error("{0}")]
    NotYet(String),
    /// The Cluster object does not yield a client, for example because a credential is missing.
    #[error("{0}")]
    Broken(String),
}

/// Member clusters that a set of controllers talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All Push clusters, from the control plane.
    Push,
    /// One Pull cluster, from inside it.
    Agent(String),
}

/// Dependencies of a controller. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The control plane.
    pub hub: Client,
    /// Caches of the control plane's objects.
    pub stores: Arc<Stores>,
    /// Kinds that the control plane serves.
    pub kinds: Arc<Kinds>,
    /// Member clusters.
    pub members: Arc<dyn Members>,
    /// Member clusters that these controllers talk to.
    pub scope: Scope,
    /// Runtime of leases and probes; none if they run on the runtime of all controllers.
    pub lease_runtime: Option<LeaseRuntime>,
    /// Clock for decisions and timestamps.
    pub clock: Clock,
    /// Policies in force.
    pub registry: Arc<Registry>,
    /// Evaluator of decisions that call plugins.
    pub evaluator: Evaluator,
    /// Plugins defined by `Plugin` objects; none if this process does not watch them.
    pub plugins: Option<Arc<PluginObjects>>,
    /// Journal of decisions.
    pub journal: Arc<Journal>,
    /// Settings.
    pub flags: Arc<Flags>,
    /// Sender of Kubernetes events.
    pub events: Events,
    /// Counts of failed reconciles.
    pub failures: Arc<Failures>,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// Rate limit of the scheduler's writes.
    pub scheduler_budget: Arc<WriteBudget>,
    /// Scheduler of this process, for controllers that evict bindings.
    pub scheduler: Arc<RunningScheduler>,
    /// Evidence that member clusters respond and that their reports are current.
    pub contacts: Arc<Contacts>,
    /// Scheduler status fields that are not written yet.
    pub pending_status: Arc<PendingStatus>,
    /// Load state of the interpreters from customizations.
    pub interpreters_loaded: Arc<InterpretersLoaded>,
    /// Accurate estimators, if enabled.
    pub estimators: Option<Arc<EstimatorPool>>,
    /// Key of the binding whose scheduling is explained in the journal, as `namespace/name` or `name`.
    pub explain: Option<String>,
    /// Caches of resource templates, from the API server that [`HUB`] names.
    pub templates: Arc<DynamicStores>,
    /// Caches of managed objects in member clusters, by cluster.
    pub member_objects: Arc<DynamicStores>,
    /// Transport to webhook interpreters.
    pub webhooks: Arc<dyn Webhooks>,
    /// Kinds in use without a health interpreter.
    pub uncovered: Arc<UncoveredKinds>,
    /// Number of requests sent to webhook interpreters.
    pub requests: Arc<AtomicU64>,
}

/// Name of the control plane among the API servers that dynamic informers watch.
pub const HUB: &str = "";

/// Caches of the control plane's objects.
pub struct Stores {
    /// Clusters.
    pub clusters: Arc<Store<Cluster>>,
    /// PropagationPolicies.
    pub policies: Arc<Store<PropagationPolicy>>,
    /// ClusterPropagationPolicies.
    pub cluster_policies: Arc<Store<ClusterPropagationPolicy>>,
    /// ClusterTaintPolicies.
    pub taint_policies: Arc<Store<ClusterTaintPolicy>>,
    /// EvictionPauses.
    pub eviction_pauses: Arc<Store<EvictionPause>>,
    /// ClusterDrains.
    pub cluster_drains: Arc<Store<ClusterDrain>>,
    /// ResourceBindings, indexed by target cluster and by their dependencies and dependants.
    pub bindings: Arc<Store<ResourceBinding>>,
    /// ClusterResourceBindings, indexed by target cluster.
    pub cluster_bindings: Arc<Store<ClusterResourceBinding>>,
    /// Works, indexed by the permanent ID of their binding.
    pub works: Arc<Store<Work>>,
    /// ResourceInterpreterCustomizations.
    pub customizations: Arc<Store<ResourceInterpreterCustomization>>,
    /// Plugins; empty in processes that do not watch them.
    pub plugins: Arc<Store<Plugin>>,
    /// ResourceInterpreterWebhookConfigurations.
    pub webhooks: Arc<Store<ResourceInterpreterWebhookConfiguration>>,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            clusters: Store::new(),
            policies: Store::new(),
            cluster_policies: Store::new(),
            taint_policies: Store::new(),
            eviction_pauses: Store::new(),
            cluster_drains: Store::new(),
            bindings: Store::indexed(|binding| {
                let clusters = binding.spec.clusters.iter().map(|target| target.name.clone());
                clusters.chain(crate::dependencies::index(binding)).collect()
            }),
            cluster_bindings: Store::indexed(|binding| binding.spec.clusters.iter().map(|t| t.name.clone()).collect()),
            works: Store::indexed(|work| {
                let id = |key| work.labels().get(key).filter(|id| !id.is_empty()).cloned();
                [keys::RESOURCE_BINDING_ID, keys::CLUSTER_RESOURCE_BINDING_ID].into_iter().filter_map(id).collect()
            }),
            customizations: Store::new(),
            plugins: Store::new(),
            webhooks: Store::new(),
        }
    }
}

impl Stores {
    /// Returns the state of the informers that these controllers use, by `plural.group`.
    pub fn informers(&self, scope: &Scope) -> Vec<(String, InformerState)> {
        fn one<K: Resource<DynamicType = ()> + 'static>(store: &Store<K>) -> (String, InformerState) {
            (format!("{}.{}", K::plural(&()), K::group(&())), store.informer())
        }
        let mut all = vec![one(&self.clusters), one(&self.works), one(&self.customizations), one(&self.webhooks)];
        all.push(one(&self.plugins));
        if *scope == Scope::Push {
            all.extend([
                one(&self.policies),
                one(&self.cluster_policies),
                one(&self.taint_policies),
                one(&self.bindings),
                one(&self.cluster_bindings),
                one(&self.eviction_pauses),
                one(&self.cluster_drains),
            ]);
        }
        all
    }

    /// Waits until the informers of the kinds that controllers share have synced. Controllers wait themselves for
    /// kinds that only some of them read, such as EvictionPauses.
    pub(crate) async fn wait_for_cache_sync(&self, scope: &Scope) {
        self.clusters.wait_for_cache_sync().await;
        self.works.wait_for_cache_sync().await;
        if *scope == Scope::Push {
            self.policies.wait_for_cache_sync().await;
            self.cluster_policies.wait_for_cache_sync().await;
            self.bindings.wait_for_cache_sync().await;
            self.cluster_bindings.wait_for_cache_sync().await;
        }
    }

    /// Returns a cluster by name.
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.get(&Key::new("", name))
    }
}

/// Failure counts by controller and error. Bounded by the number of classes and by the number of distinct texts,
/// which is limited to [`Failures::KINDS_MAX`].
#[derive(Default)]
pub struct Failures {
    counts: Mutex<BTreeMap<(String, String), Count>>,
    classes: Mutex<BTreeMap<(String, ErrorClass), u64>>,
    withheld: AtomicU64,
}

struct Count {
    class: ErrorClass,
    count: u64,
    last: Instant,
}

/// A kind of failed reconcile with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the controller.
    pub controller: String,
    /// Error text.
    pub text: String,
    /// Error class.
    pub class: ErrorClass,
    /// Number of occurrences.
    pub count: u64,
}

impl Failures {
    /// Maximum number of distinct failures.
    pub const KINDS_MAX: usize = 1_000;
    /// Age after which a failure that did not recur makes room for others.
    const FORGET: Duration = Duration::from_mins(10);

    /// Counts a failure or a withheld write. Writes that were cut off by the end of the process do not count.
    pub fn count(&self, controller: &str, error: &Error) {
        if error.is_withheld() {
            self.withheld.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if error.is_stop() {
            return;
        }
        let class = error.class();
        *self
            .classes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((controller.to_owned(), class))
            .or_default() += 1;
        // All conflicts share one text: only their number matters.
        let text = if error.is_conflict() { "another writer was faster".to_owned() } else { error.describe() };
        let now = Instant::now();
        let mut failures = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (controller.to_owned(), text);
        if failures.len() >= Self::KINDS_MAX && !failures.contains_key(&key) {
            failures.retain(|_, count| now - count.last < Self::FORGET);
            if failures.len() >= Self::KINDS_MAX {
                "other failures".clone_into(&mut key.1);
            }
        }
        let counted = failures.entry(key).or_insert(Count { class, count: 0, last: now });
        counted.count += 1;
        counted.last = now;
    }

    /// Returns the failures so far, except for forgotten ones.
    pub fn counts(&self) -> Vec<Failure> {
        let failures = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |((controller, text), Count { class, count, .. }): (&(String, String), &Count)| Failure {
            controller: controller.clone(),
            text: text.clone(),
            class: *class,
            count: *count,
        };
        failures.iter().map(one).collect()
    }

    /// Returns the number of failures by controller and class.
    pub fn classes(&self) -> Vec<(String, ErrorClass, u64)> {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes.iter().map(|((controller, class), count)| (controller.clone(), *class, *count)).collect()
    }

    /// Returns the number of writes that were decided but not sent because this process only reports.
    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }
}

/// A decision that is to be added to the journal.
pub(crate) struct Record {
    pub(crate) controller: &'static str,
    pub(crate) subject: Subject,
    pub(crate) cluster: Option<String>,
    pub(crate) decision: Decision,
    pub(crate) attribution: Attribution,
    pub(crate) effect: String,
    pub(crate) inputs: Vec<Input>,
}

impl Context {
    /// Returns the policies in force.
    pub fn policies(&self) -> Arc<PolicySet> {
        self.registry.policies()
    }

    /// Returns the writer of Clusters.
    pub(crate) fn cluster_writer(&self) -> Writer<'_, Cluster> {
        Writer { store: &self.stores.clusters, api: Api::all(self.hub.clone()) }
    }

    /// Returns the writer of the Works of one namespace.
    pub(crate) fn work_writer(&self, namespace: &str) -> Writer<'_, Work> {
        Writer { store: &self.stores.works, api: Api::namespaced(self.hub.clone(), namespace) }
    }

    /// Records a decision. Called before its effects are applied.
    pub(crate) fn record(&self, record: Record) -> u64 {
        self.record_decided(record, None, None)
    }

    /// Records a decision with its inputs and, for scheduling, its explanation.
    pub(crate) fn record_decided(
        &self,
        record: Record,
        decision_record: Option<&Arc<DecisionRecord>>,
        explanation: Option<Arc<ScheduleExplanation>>,
    ) -> u64 {
        let Record { controller, subject, cluster, decision, attribution, effect, inputs } = record;
        let controller = controller.to_owned();
        let at = self.clock.now();
        let entry = Entry { at, controller, subject, cluster, decision, attribution, effect, inputs, explanation };
        self.journal.record_decided(entry, decision_record)
    }

    /// Passes a result through. If it proves that nothing was written, marks the records of the decision as
    /// abandoned. Without a response the write may be in effect, so the records stay.
    pub(crate) fn settle<T>(&self, records: &[u64], result: Result<T, Error>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_undone) {
            for id in records {
                self.journal.abandon(*id);
            }
        }
        result
    }

    /// True if these controllers are responsible for a member cluster.
    pub(crate) fn serves(&self, cluster: &Cluster) -> bool {
        match &self.scope {
            Scope::Push => cluster.spec.sync_mode == SyncMode::Push,
            Scope::Agent(name) => cluster.name_any() == *name,
        }
    }

    /// Returns a client for a member cluster.
    pub(crate) fn member(&self, cluster: &str) -> Result<Client, Error> {
        self.members.client(cluster).map_err(|error| Error::NotYet(error.to_string()))
    }

    /// Returns a unique ID for a webhook request.
    pub(crate) fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.clock.now().as_millis())
    }

    /// Records plugin faults that a decision had to do without, and the different answers of policies in shadow.
    pub(crate) fn record_diagnostics(
        &self,
        controller: &'static str,
        subject: &Subject,
        cluster: Option<&str>,
        diagnostics: &Diagnostics,
    ) {
        let record = |decision, attribution, effect| {
            let (subject, cluster) = (subject.clone(), cluster.map(str::to_owned));
            let _ =
                self.record(Record { controller, subject, cluster, decision, attribution, effect, inputs: Vec::new() });
        };
        for fault in &diagnostics.faults {
            record(Decision::PluginFault, Attribution::from(fault), String::new());
        }
        for divergence in &diagnostics.divergences {
            self.registry.count_divergence(&divergence.policy);
            let reason = Reason::new("ShadowDiverged", divergence.shadow.clone());
            let attribution = Attribution::policy(&divergence.policy, reason);
            record(Decision::ShadowDiverged, attribution, divergence.enforced.clone());
        }
    }

    /// Returns a callback that counts failed reconciles of a controller.
    pub(crate) fn failed<K>(&self, controller: &'static str) -> impl Fn(&K, &Error) + Send + Sync + 'static {
        let failures = Arc::clone(&self.failures);
        move |_, error| failures.count(controller, error)
    }
}

/// Returns the version of an object, for the journal.
pub(crate) fn input<K>(object: &K) -> Input
where
    K: Resource<DynamicType = ()>,
{
    Input { subject: subject(object), resource_version: object.resource_version().unwrap_or_default() }
}

/// Returns an object as the subject of a decision.
pub(crate) fn subject<K>(object: &K) -> Subject
where
    K: Resource<DynamicType = ()>,
{
    Subject::new(&K::kind(&()), &object.namespace().unwrap_or_default(), &object.name_any())
}

/// Returns an object as the subject of an event.
pub(crate) fn about<K>(object: &K) -> ObjectReference
where
    K: Resource<DynamicType = ()>,
{
    object.object_ref(&())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_that_are_over_make_room_for_new_ones() {
        let failures = Failures::default();
        let fail = |number: usize| failures.count("scheduler", &Error::Undecided(format!("{number:04}")));
        (0..Failures::KINDS_MAX + 2).for_each(fail);
        let counts = failures.counts();
        let last = counts.last().map(|failure| (failure.text.as_str(), failure.count));
        assert_eq!((counts.len(), last), (Failures::KINDS_MAX + 1, Some(("other failures", 2))));
        tokio::time::advance(Failures::FORGET).await;
        fail(5_000);
        assert_eq!(failures.counts().iter().map(|failure| failure.text.as_str()).collect::<Vec<_>>(), ["5000"]);
    }
}
