//! Work → objects in the member cluster (Karmada: `pkg/controllers/execution`, `pkg/util/objectwatcher`).

mod removal;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_api::Work;
use bulkhead_api::work::{APPLIED, DISPATCHING, Manifest};
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::ownership::Ownership;
use bulkhead_core::identity::same_identity;
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{Condition, ConditionStatus, set_condition};
use bulkhead_core::names::{self, keys};
use bulkhead_core::prune::prune;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic::{self, DynamicStores, KeptObject};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::{Kinds, ObjectKind};
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::api::{DynamicObject, PostParams};
use kube::core::response::StatusDetails;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::decision_log::{DecisionLog, Record, RecordedDecision};
use crate::interpreter::Interpreters;
use crate::member_owner;
use crate::members::{Members, ReplacedHandler, Scope};
use crate::stores::Stores;
use crate::subjects::{about, input};
use crate::works::{binding_subject, cluster_of, identify, object_of, work_of};
use crate::writers::Writers;

const NAME: &str = "execution-controller";
/// Attempts to delete an object that changes meanwhile, before the reconcile fails.
const DELETE_ATTEMPTS_MAX: usize = 5;
/// Maximum number of Works of one member that are applied at the same time.
const WORKERS: usize = 5;

struct Execution {
    deps: Dependencies,
    /// Works whose deletion waits, so that each is recorded once and not on every retry.
    waiting: Mutex<BTreeSet<Key>>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) interpreters: Interpreters,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) log: DecisionLog,
    pub(crate) member_objects: Arc<DynamicStores>,
    pub(crate) members: Arc<dyn Members>,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
    pub(crate) writers: Writers,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let works = Arc::clone(&queue);
    let _works = deps.stores.works.subscribe(move |change| {
        if change.is_generation_change() {
            works.add(Key::of(change.object()));
        }
    });
    // A recovered cluster triggers the Works that wait for it, whose back-off may have grown to minutes by then.
    let (returning, all_works) = (Arc::clone(&queue), Arc::clone(&deps.stores.works));
    let objects = Arc::clone(&deps.member_objects);
    let _clusters = deps.stores.clusters.subscribe(move |change| match change {
        Change::Updated { old, new } if !old.is_ready() && new.is_ready() => {
            for work in all_works.list_namespace(&names::execution_namespace(&new.name_any())) {
                returning.add(Key::of(&*work));
            }
        }
        // Another cluster may get its name.
        Change::Deleted(cluster) => objects.forget(&cluster.name_any()),
        _ => {}
    });
    // Watches would end with replaced credentials, and receive nothing from a changed address.
    let objects = Arc::clone(&deps.member_objects);
    let reconnect: Arc<ReplacedHandler> = Arc::new(move |cluster, client| objects.reconnect(cluster, client));
    deps.members.on_replaced(&reconnect);
    // Objects that vanish or drift in a member are restored.
    let drifted = Arc::clone(&queue);
    let _objects = deps.member_objects.subscribe(move |_, change| {
        let drift = match change {
            Change::Added(_) => false,
            Change::Deleted(_) => true,
            // Kinds without a status, such as ConfigMap, have no generation.
            Change::Updated { new, .. } if new.metadata.generation.is_none() => dynamic::is_template_change(change),
            Change::Updated { old, new } => {
                let work_id = |object: &KeptObject| object.some_labels([keys::WORK_ID]);
                old.metadata.generation != new.metadata.generation || work_id(old) != work_id(new)
            }
        };
        if drift && let Some(key) = work_of(change.object()) {
            drifted.add(key);
        }
    });
    let execution = Arc::new(Execution {
        deps: deps.clone(),
        waiting: Mutex::default(),
    });
    let reconcile = move |key| {
        let execution = Arc::clone(&execution);
        async move { execution.reconcile(key).await }
    };
    let of_member = |work: &Key| work.namespace.clone();
    deps.interpreters.wait_for_cache_sync().await;
    let failed = deps.failures.counter(NAME, |key: &Key| key.named("Work"));
    controller::run_per_key(queue, WORKERS, of_member, reconcile, failed).await;
}

impl Execution {
    async fn reconcile(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(work) = deps.stores.works.get(&key) else {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            return Ok(Action::Wait);
        };
        let name = cluster_of(&work);
        let Some(cluster) = deps.stores.cluster(&name) else {
            return Err(Error::NotYet(format!("Work {key}: there is no cluster {name}")));
        };
        if !deps.scope.serves(&cluster) {
            return Ok(Action::Wait);
        }
        if work.metadata.deletion_timestamp.is_some() {
            return self.remove(&work, &cluster.to_model()).await;
        }
        let suspended = work.spec.suspend_dispatching.unwrap_or(false);
        if suspended || !cluster.is_ready() {
            self.note(&work, &[self.dispatching(suspended)]).await?;
        }
        if suspended {
            return Ok(Action::Wait);
        }
        if !cluster.is_ready() {
            return Err(Error::NotYet(format!("cluster({name}) not ready")));
        }
        self.apply_all(&work, &name).await
    }

    async fn observe(
        &self,
        cluster: &str,
        manifest: &Value,
    ) -> Result<Option<(Api<DynamicObject>, DynamicObject)>, Error> {
        let (kind, key) = identify(manifest);
        let client = self.deps.members.required(cluster)?;
        let known = match self.deps.kinds.resolve(&kind).await {
            // The control plane may no longer serve a kind that members still have.
            Err(error) if error.is_kind_unknown() => match Kinds::new(client.clone()).resolve(&kind).await {
                Err(error) if error.is_kind_unknown() => return Ok(None),
                known => known?,
            },
            known => known?,
        };
        let api = known.api(client, &key.namespace);
        let observed = api.get_opt(&key.name).await;
        let observed = observed.map_err(Error::api(format!("reading {} in {cluster}", describe(manifest))))?;
        Ok(observed.map(|observed| (api, observed)))
    }

    async fn apply_all(&self, work: &Work, cluster: &str) -> Result<Action, Error> {
        let (mut errors, total) = (Vec::new(), work.spec.workload.manifests.len());
        for manifest in &work.spec.workload.manifests {
            if let Err(error) = self.apply(work, cluster, manifest).await {
                errors.push((error.describe(), error));
            }
        }
        let now = self.deps.clock.now();
        let applied = if errors.is_empty() {
            let message = "Manifest has been successfully applied";
            Condition::new(APPLIED, ConditionStatus::True, "AppliedSuccessful", message, now)
        } else {
            let texts: Vec<_> = errors.iter().map(|(text, _)| text.as_str()).collect();
            let applied = total - errors.len();
            let message = format!(
                "Failed to apply all manifests ({applied}/{total}): {}",
                texts.join(", ")
            );
            Condition::new(APPLIED, ConditionStatus::False, "AppliedFailed", message, now)
        };
        // One write for both: a dispatched Work is usually applied at once.
        self.note(work, &[self.dispatching(false), applied]).await?;
        errors
            .into_iter()
            .next()
            .map_or(Ok(Action::Wait), |(_, error)| Err(error))
    }

    async fn apply(&self, work: &Work, cluster: &str, manifest: &Manifest) -> Result<(), Error> {
        let manifest = &object_of(manifest)?;
        let (kind, key) = identify(manifest);
        let client = self.deps.members.required(cluster)?;
        self.deps
            .member_objects
            .ensure(cluster, &kind, &self.deps.kinds, || Ok(client))
            .await?;
        let mut desired: DynamicObject = serde_json::from_value(manifest.clone())
            .map_err(|error| Error::Undecided(format!("{}: {error}", describe(manifest))))?;
        if self.is_absent(work, cluster, &kind, &key) {
            match self.create(work, cluster, manifest, &desired).await {
                // It exists without the label of the informer, or is newer than its cache.
                Err(error) if error.is_conflict() => {}
                result => return result,
            }
        }
        let Some((api, observed)) = self.observe(cluster, manifest).await? else {
            return self.create(work, cluster, manifest, &desired).await;
        };
        self.check_owner(work, (cluster, manifest), &desired, &observed)?;
        retain(&mut desired, &observed);
        let desired = self.retained(work, &kind, desired, &observed).await?;
        if same_content(&kind, &desired, &observed) {
            return Ok(());
        }
        let attribution = Attribution::rule("WorkChanged", "the object differs from its manifest");
        let record = self.record(work, cluster, Decision::Applied, attribution, &describe(manifest));
        let replaced = async {
            api.replace(&key.name, &PostParams::default(), &desired)
                .await
                .map(drop)
                .map_err(applying(manifest, cluster))
        };
        self.deps.log.apply(&[record], replaced).await
    }

    /// True if the object need not be read before it is created: the informer does not know it, and the last attempt to
    /// apply the Work did not fail, for example because an object of that name exists already.
    fn is_absent(&self, work: &Work, cluster: &str, kind: &ObjectKind, key: &Key) -> bool {
        let applied = Condition::find(&work.status.conditions, APPLIED);
        let failed = applied.is_some_and(|applied| applied.status == ConditionStatus::False);
        let known = self.deps.member_objects.store(cluster, kind);
        !failed && known.is_some_and(|known| known.has_synced() && known.get(key).is_none())
    }

    /// Creates the object of a manifest in the member, and its namespace if the member does not have it.
    async fn create(&self, work: &Work, cluster: &str, manifest: &Value, desired: &DynamicObject) -> Result<(), Error> {
        let (kind, key) = identify(manifest);
        let client = self.deps.members.required(cluster)?;
        let kind = self.deps.kinds.resolve(&kind).await?;
        let api: Api<DynamicObject> = kind.api(client, &key.namespace);
        let attribution = Attribution::rule("WorkApplied", "the Work is to be applied and the cluster is ready");
        let record = self.record(work, cluster, Decision::Applied, attribution, &describe(manifest));
        let created = async {
            let parameters = PostParams::default();
            let created = match api.create(&parameters, desired).await {
                Err(error) if lacks_namespace(&error) => {
                    self.ensure_namespace(cluster, &key.namespace).await?;
                    api.create(&parameters, desired).await
                }
                created => created,
            };
            created.map(drop).map_err(applying(manifest, cluster))
        };
        self.deps.log.apply(&[record], created).await
    }

    /// Refuses to replace an object that did not come from the Work. `overwrite` takes over an object that no control
    /// plane manages, never one of another control plane.
    fn check_owner(
        &self,
        work: &Work,
        (cluster, manifest): (&str, &Value),
        desired: &DynamicObject,
        observed: &DynamicObject,
    ) -> Result<(), Error> {
        let ((kind, key), recorded) = (identify(manifest), member_owner::recorded(observed));
        let overwrite = desired.annotations().get(keys::CONFLICT_RESOLUTION).map(String::as_str) == Some("overwrite");
        match member_owner::of(&self.deps.stores, work, manifest, &recorded) {
            Ownership::Ours => Ok(()),
            Ownership::Unmanaged if overwrite => Ok(()),
            Ownership::Unmanaged => Err(Error::Undecided(format!(
                "resource(kind={}, {key}) already exists in the cluster {cluster} and the \
                 {} strategy value is empty or abort, Karmada will not manage this resource",
                kind.kind,
                keys::CONFLICT_RESOLUTION
            ))),
            Ownership::Foreign => Err(Error::Undecided(format!(
                "resource(kind={}, {key}) in the cluster {cluster} belongs to {recorded}, of another control plane or of \
                 this one; to hand it over, remove its label {}",
                kind.kind,
                keys::MANAGED
            ))),
        }
    }

    /// Returns the desired object with the fields that the member cluster owns, if an interpreter knows them for this
    /// kind. An error leaves the object unchanged, since applying it anyway could remove fields of the member.
    async fn retained(
        &self,
        work: &Work,
        kind: &ObjectKind,
        desired: DynamicObject,
        observed: &DynamicObject,
    ) -> Result<DynamicObject, Error> {
        let cluster = cluster_of(work);
        let undecided =
            |why: String| Error::Undecided(format!("retaining fields of {} in {cluster}: {why}", kind.kind));
        let (ours, theirs) = (
            Arc::new(dynamic::live_value(kind, &desired)),
            Arc::new(dynamic::live_value(kind, observed)),
        );
        let retain = Operation::Retain {
            desired: &ours,
            observed: &theirs,
        };
        match self
            .deps
            .interpreters
            .interpret(NAME, &binding_subject(work), retain)
            .await
        {
            Ok(Some(Interpretation::Object(retained))) => {
                same_identity(&ours, &retained).map_err(undecided)?;
                serde_json::from_value(retained).map_err(|error| undecided(error.to_string()))
            }
            Ok(_) => Ok(desired),
            Err(fault) => Err(undecided(fault.reason().to_string())),
        }
    }

    /// Creates the namespace of an object in the member. Karmada synchronises namespaces with a controller of its
    /// own.
    async fn ensure_namespace(&self, cluster: &str, namespace: &str) -> Result<(), Error> {
        let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.deps.members.required(cluster)?);
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap_or_default();
        match api.create(&PostParams::default(), &object).await {
            Err(error) if !controller::is_conflict(&error) => Err(Error::api(format!(
                "creating namespace {namespace} in {cluster}"
            ))(error)),
            _ => Ok(()),
        }
    }

    fn dispatching(&self, suspended: bool) -> Condition {
        let now = self.deps.clock.now();
        if suspended {
            let message = "Work dispatching is in a suspended state.";
            Condition::new(DISPATCHING, ConditionStatus::False, "SuspendDispatching", message, now)
        } else {
            let message = "Work is being dispatched to member clusters.";
            Condition::new(DISPATCHING, ConditionStatus::True, "Dispatching", message, now)
        }
    }

    /// Sets conditions, with an event for each whose status or message changed. The first success of a Work has none:
    /// its binding has events for the steps of its workload.
    async fn note<'a>(&self, work: &Work, conditions: &'a [Condition]) -> Result<(), Error> {
        let mut changes = Vec::new();
        let changed = |work: &mut Work| {
            let known = &mut work.status.conditions;
            let set = |condition: &'a Condition| {
                let is_first = Condition::find(known, &condition.type_).is_none();
                set_condition(known, Condition::clone(condition)).then_some((condition, is_first))
            };
            changes = conditions.iter().filter_map(set).collect();
            !changes.is_empty()
        };
        self.deps
            .writers
            .works(&work.namespace().unwrap_or_default())
            .update_status(work, changed)
            .await?;
        for (condition, is_first) in changes {
            if is_first && condition.status == ConditionStatus::True {
                continue;
            }
            let (type_, reason) = match (condition.type_.as_str(), condition.status) {
                (DISPATCHING, _) => (EventType::Normal, "WorkDispatching"),
                (_, ConditionStatus::True) => (EventType::Normal, "SyncSucceed"),
                _ => (EventType::Warning, "SyncFailed"),
            };
            self.deps
                .log
                .events
                .emit(NAME, about(work), type_, reason, condition.message.clone());
        }
        Ok(())
    }

    fn record(
        &self,
        work: &Work,
        cluster: &str,
        decision: Decision,
        attribution: Attribution,
        effect: &str,
    ) -> RecordedDecision {
        self.deps.log.record(Record {
            controller: NAME,
            subject: binding_subject(work),
            cluster: Some(cluster.to_owned()),
            decision,
            attribution,
            effect: effect.to_owned(),
            inputs: vec![input(work)],
        })
    }
}

/// True if an object was not created because its namespace does not exist.
fn lacks_namespace(error: &kube::Error) -> bool {
    let is_namespace = |details: &StatusDetails| details.kind == "namespaces";
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.details.as_ref().is_some_and(is_namespace))
}

fn applying(manifest: &Value, cluster: &str) -> impl FnOnce(kube::Error) -> Error + use<> {
    Error::api(format!("applying {} in {cluster}", describe(manifest)))
}

fn describe(manifest: &Value) -> String {
    let (kind, key) = identify(manifest);
    format!("{} {key}", kind.kind)
}

/// Keeps the fields that belong to the member: its bookkeeping, and labels and annotations that were not set from
/// here.
fn retain(desired: &mut DynamicObject, observed: &DynamicObject) {
    desired
        .metadata
        .resource_version
        .clone_from(&observed.metadata.resource_version);
    desired.metadata.finalizers.clone_from(&observed.metadata.finalizers);
    desired
        .metadata
        .owner_references
        .clone_from(&observed.metadata.owner_references);
    let removed_here = |list: &str, key: &str| {
        let ours = observed.annotations().get(list).map(String::as_str).unwrap_or_default();
        ours.split(',').any(|ours| ours == key)
    };
    for (key, value) in observed.annotations() {
        if !removed_here(keys::MANAGED_ANNOTATIONS, key) {
            desired
                .annotations_mut()
                .entry(key.clone())
                .or_insert_with(|| value.clone());
        }
    }
    for (key, value) in observed.labels() {
        if !removed_here(keys::MANAGED_LABELS, key) {
            desired.labels_mut().entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

fn same_content(kind: &ObjectKind, desired: &DynamicObject, observed: &DynamicObject) -> bool {
    let pruned = |object: &DynamicObject| {
        let mut value = dynamic::live_value(kind, object);
        // An object that cannot be pruned is compared unpruned, which at worst causes a redundant write.
        let _ = prune(&mut value);
        value
    };
    pruned(desired) == pruned(observed)
}

#[cfg(test)]
mod tests;
