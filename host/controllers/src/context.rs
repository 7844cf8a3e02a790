//! What the controllers share.

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
use bulkhead_core::combine::{Because, Remarks};
use bulkhead_core::decide::schedule::ScheduleExplanation;
use bulkhead_core::journal::{Case, Decision, Entry, Input, Journal, Subject};
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
use crate::members::ReplacedHandler;
use crate::metrics::Metrics;
use crate::observed::Observations;
use crate::plugins::PluginObjects;
use crate::scheduler::{RunningScheduler, WriteBudget};
use crate::store::{InformerState, Key, Store};
use crate::vital::Vital;
use crate::webhook::Webhooks;
use crate::write::Writer;

/// Where the API servers of member clusters are.
pub trait Members: Send + Sync {
    /// A client for a member cluster.
    fn client(&self, cluster: &str) -> Result<Client, MemberError>;

    /// Calls `handler` whenever a cluster gets another client, because its address or its credentials changed, until
    /// the caller drops it. Clients that never change tell nobody.
    fn on_replaced(&self, _handler: &Arc<ReplacedHandler>) {}
}

/// Why there is no client for a member cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// Nobody looked yet; says nothing about the cluster.
    #[error("{0}")]
    NotYet(String),
    /// What the Cluster object says does not make a client, for example a missing credential.
    #[error("{0}")]
    Broken(String),
}

/// Which member clusters a set of controllers talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All Push clusters, from the control plane.
    Push,
    /// One Pull cluster, from inside it.
    Agent(String),
}

/// Everything a controller is handed. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The control plane.
    pub hub: Client,
    /// What is known of the control plane's objects.
    pub stores: Arc<Stores>,
    /// Kinds that the control plane serves.
    pub kinds: Arc<Kinds>,
    /// Member clusters.
    pub members: Arc<dyn Members>,
    /// Which of them these controllers talk to.
    pub scope: Scope,
    /// Runtime of leases and probes, if it is not that of all controllers.
    pub vital: Option<Vital>,
    /// Time.
    pub clock: Clock,
    /// Policies in force.
    pub registry: Arc<Registry>,
    /// Place where decisions that ask plugins run.
    pub evaluator: Evaluator,
    /// Plugins that are objects, if they are looked for.
    pub plugins: Option<Arc<PluginObjects>>,
    /// Where decisions are recorded.
    pub journal: Arc<Journal>,
    /// Settings.
    pub flags: Arc<Flags>,
    /// Where events go.
    pub events: Events,
    /// What did not get through.
    pub failures: Arc<Failures>,
    /// Numbers about what goes on.
    pub metrics: Arc<Metrics>,
    /// How many writes the scheduler may make.
    pub scheduler_budget: Arc<WriteBudget>,
    /// The scheduler of this process, for those who take bindings away from where they are.
    pub scheduler: Arc<RunningScheduler>,
    /// Evidence that member clusters answer and that reports of them are current.
    pub contacts: Arc<Contacts>,
    /// What the scheduler has still to write about bindings.
    pub observations: Arc<Observations>,
    /// Whether the interpreters that customizations bring are loaded.
    pub interpreters_loaded: Arc<InterpretersLoaded>,
    /// Accurate estimators, if there are any.
    pub estimators: Option<Arc<EstimatorPool>>,
    /// Key of the binding whose scheduling is explained in the journal, as `namespace/name` or `name`.
    pub explain: Option<String>,
    /// Resource templates, on the API server that [`HUB`] names.
    pub templates: Arc<DynamicStores>,
    /// Managed objects in member clusters, by cluster.
    pub member_objects: Arc<DynamicStores>,
    /// How webhook interpreters are reached.
    pub webhooks: Arc<dyn Webhooks>,
    /// Kinds in use whose health nobody interprets.
    pub uncovered: Arc<UncoveredKinds>,
    /// How many requests were sent to webhook interpreters.
    pub requests: Arc<AtomicU64>,
}

/// Name of the control plane among the API servers that dynamic informers watch.
pub const HUB: &str = "";

/// Ordered copies of the control plane's objects.
pub struct Stores {
    /// Clusters.
    pub clusters: Arc<Store<Cluster>>,
    /// Policies of a namespace.
    pub policies: Arc<Store<PropagationPolicy>>,
    /// Policies of the whole control plane.
    pub cluster_policies: Arc<Store<ClusterPropagationPolicy>>,
    /// Taint policies.
    pub taint_policies: Arc<Store<ClusterTaintPolicy>>,
    /// What people stopped from being evicted.
    pub eviction_pauses: Arc<Store<EvictionPause>>,
    /// Clusters that people empty.
    pub cluster_drains: Arc<Store<ClusterDrain>>,
    /// Namespaced bindings, indexed by target cluster and by what they have to do with dependencies.
    pub bindings: Arc<Store<ResourceBinding>>,
    /// Cluster-scoped bindings, indexed by target cluster.
    pub cluster_bindings: Arc<Store<ClusterResourceBinding>>,
    /// Works, indexed by the permanent id of their binding.
    pub works: Arc<Store<Work>>,
    /// Interpreter customizations.
    pub customizations: Arc<Store<ResourceInterpreterCustomization>>,
    /// Plugins, of the processes that look for them.
    pub plugins: Arc<Store<Plugin>>,
    /// Webhook interpreters.
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
    /// How the informers are doing that watch for these controllers, by plural and group.
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

    /// Waits until everything is known that was there when the informers started, of the kinds that controllers share.
    /// What only some of them read, such as pauses, they wait for.
    pub(crate) async fn known(&self, scope: &Scope) {
        self.clusters.listed().await;
        self.works.listed().await;
        if *scope == Scope::Push {
            self.policies.listed().await;
            self.cluster_policies.listed().await;
            self.bindings.listed().await;
            self.cluster_bindings.listed().await;
        }
    }

    /// One cluster.
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.get(&Key::new("", name))
    }
}

/// How often each operation failed, by controller and error. Bounded by the number of different texts, which
/// is cut at [`Failures::KINDS_MAX`], and by the number of classes.
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

/// A way in which reconciles of a controller fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The controller.
    pub controller: String,
    /// What went wrong.
    pub text: String,
    /// What sort of error it is.
    pub class: ErrorClass,
    /// How often it happened.
    pub count: u64,
}

impl Failures {
    /// Most different failures that are told apart.
    pub const KINDS_MAX: usize = 1_000;
    /// A failure that did not come for so long makes room for others.
    const FORGET: Duration = Duration::from_mins(10);

    /// Counts a failure, or a write that was withheld. What the end of the process cuts off is no failure.
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
        // Who lost a race is of no interest, only how often it happens.
        let text = if error.is_conflict() { "another writer was faster".to_owned() } else { error.describe() };
        let now = Instant::now();
        let mut failures = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (controller.to_owned(), text);
        if failures.len() >= Self::KINDS_MAX && !failures.contains_key(&key) {
            failures.retain(|_, count| now - count.last < Self::FORGET);
            if failures.len() >= Self::KINDS_MAX {
                "more failures than are told apart".clone_into(&mut key.1);
            }
        }
        let counted = failures.entry(key).or_insert(Count { class, count: 0, last: now });
        counted.count += 1;
        counted.last = now;
    }

    /// What failed so far and is not forgotten.
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

    /// The same by controller and class.
    pub fn classes(&self) -> Vec<(String, ErrorClass, u64)> {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes.iter().map(|((controller, class), count)| (controller.clone(), *class, *count)).collect()
    }

    /// Writes that were decided and not sent, because this process only reports.
    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }
}

/// A decision on its way to the journal.
pub(crate) struct Record {
    pub(crate) controller: &'static str,
    pub(crate) subject: Subject,
    pub(crate) cluster: Option<String>,
    pub(crate) decision: Decision,
    pub(crate) because: Because,
    pub(crate) effect: String,
    pub(crate) inputs: Vec<Input>,
}

impl Context {
    /// The policies in force.
    pub fn policies(&self) -> Arc<PolicySet> {
        self.registry.policies()
    }

    /// What writes clusters.
    pub(crate) fn cluster_writer(&self) -> Writer<'_, Cluster> {
        Writer { store: &self.stores.clusters, api: Api::all(self.hub.clone()) }
    }

    /// What writes the Works of one namespace.
    pub(crate) fn work_writer(&self, namespace: &str) -> Writer<'_, Work> {
        Writer { store: &self.stores.works, api: Api::namespaced(self.hub.clone(), namespace) }
    }

    /// Records a decision. Called before its effects are applied.
    pub(crate) fn record(&self, record: Record) -> u64 {
        self.record_decided(record, None, None)
    }

    /// Records a decision with what it was made from and, for scheduling, how it came about.
    pub(crate) fn record_decided(
        &self,
        record: Record,
        case: Option<&Arc<Case>>,
        explanation: Option<Arc<ScheduleExplanation>>,
    ) -> u64 {
        let Record { controller, subject, cluster, decision, because, effect, inputs } = record;
        let controller = controller.to_owned();
        let at = self.clock.now();
        let entry = Entry { at, controller, subject, cluster, decision, because, effect, inputs, explanation };
        self.journal.record_decided(entry, case)
    }

    /// Passes a result on; if it says that nothing was done, the decisions it was to put into effect are abandoned. Where
    /// nobody answered they may be in effect.
    pub(crate) fn settle<T>(&self, records: &[u64], result: Result<T, Error>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_undone) {
            for id in records {
                self.journal.abandon(*id);
            }
        }
        result
    }

    /// Whether these controllers are the ones that talk to a member cluster.
    pub(crate) fn serves(&self, cluster: &Cluster) -> bool {
        match &self.scope {
            Scope::Push => cluster.spec.sync_mode == SyncMode::Push,
            Scope::Agent(name) => cluster.name_any() == *name,
        }
    }

    /// A client for a member cluster.
    pub(crate) fn member(&self, cluster: &str) -> Result<Client, Error> {
        self.members.client(cluster).map_err(|error| Error::NotYet(error.to_string()))
    }

    /// What tells one request to a hook from the others.
    pub(crate) fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.clock.now().as_millis())
    }

    /// Records plugin faults that a decision had to do without, and what policies in shadow would have decided.
    pub(crate) fn record_remarks(
        &self,
        controller: &'static str,
        subject: &Subject,
        cluster: Option<&str>,
        remarks: &Remarks,
    ) {
        let record = |decision, because, effect| {
            let (subject, cluster) = (subject.clone(), cluster.map(str::to_owned));
            let _ = self.record(Record { controller, subject, cluster, decision, because, effect, inputs: Vec::new() });
        };
        for fault in &remarks.faults {
            record(Decision::PluginFault, Because::from(fault), String::new());
        }
        for divergence in &remarks.divergences {
            self.registry.count_divergence(&divergence.policy);
            let reason = Reason::new("ShadowDiverged", divergence.shadow.clone());
            let because = Because::policy(&divergence.policy, reason);
            record(Decision::ShadowDiverged, because, divergence.enforced.clone());
        }
    }

    /// Counts a failed reconcile.
    pub(crate) fn failed<K>(&self, controller: &'static str) -> impl Fn(&K, &Error) + Send + Sync + 'static {
        let failures = Arc::clone(&self.failures);
        move |_, error| failures.count(controller, error)
    }
}

/// The version of an object, for the journal.
pub(crate) fn input<K>(object: &K) -> Input
where
    K: Resource<DynamicType = ()>,
{
    Input { subject: subject(object), resource_version: object.resource_version().unwrap_or_default() }
}

/// An object as the subject of a decision.
pub(crate) fn subject<K>(object: &K) -> Subject
where
    K: Resource<DynamicType = ()>,
{
    Subject::new(&K::kind(&()), &object.namespace().unwrap_or_default(), &object.name_any())
}

/// An object as the subject of an event.
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
        assert_eq!((counts.len(), last), (Failures::KINDS_MAX + 1, Some(("more failures than are told apart", 2))));
        tokio::time::advance(Failures::FORGET).await;
        fail(5_000);
        assert_eq!(failures.counts().iter().map(|failure| failure.text.as_str()).collect::<Vec<_>>(), ["5000"]);
    }
}
