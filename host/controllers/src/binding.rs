//! Binding → Works (Karmada: `pkg/controllers/binding`).

mod purge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_api::Work;
use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::dispatch;
use bulkhead_core::identity::same_identity;
use bulkhead_core::journal::Decision;
use bulkhead_core::names::{self};
use bulkhead_core::overriding::{Applied, Overridden};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Action, Error, is_conflict, is_not_found};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use self::purge::Purged;
use crate::binding_kind::{self, Binding, Bindings, Reconcile};
use crate::binding_owner::{self, Contested};
use crate::decision_log::{DecisionLog, Record};
use crate::flags::{FeatureGate, Flags};
use crate::interpreter::Interpreters;
use crate::overrides::{self, NotOverridden};
use crate::render::{self, Source};
use crate::stores::Stores;
use crate::subjects::{about, input, subject, template_of};
use crate::templates::Templates;
use crate::works::{binding_of, cluster_of};
use crate::writers::Writers;

const NAME: &str = "binding-controller";
const WORKERS: usize = 5;
/// Interval of checks for Works that must be gone first (Karmada: `requeueIntervalForDirectlyPurge`).
const DIRECT_PURGE_RECHECK: Duration = Duration::from_secs(5);

struct BindingController {
    deps: Dependencies,
    /// Clusters that are not ready and hold back a replacement, by binding, as recorded.
    blocked: Mutex<BTreeMap<Key, BTreeSet<String>>>,
    /// Bindings whose Work name belongs to another binding.
    refused: Contested<Key>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) interpreters: Interpreters,
    pub(crate) log: DecisionLog,
    pub(crate) stores: Arc<Stores>,
    pub(crate) templates: Templates,
    pub(crate) writers: Writers,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let _bindings = binding_kind::subscribe(
        &deps.stores,
        &queue,
        |change| change.is_generation_change(),
        |change| change.is_generation_change(),
    );
    let _overrides = overrides::subscribe(&deps.stores, &queue);
    // A Work that arrives late may be an orphan already, and one that vanished may still be needed.
    let (blocked, refused) = (Mutex::default(), Contested::default());
    let controller = Arc::new(BindingController {
        deps: deps.clone(),
        blocked,
        refused,
    });
    let (owners, waiting) = (Arc::clone(&queue), Arc::clone(&controller));
    let _works = deps.stores.works.subscribe(move |change| {
        if let Change::Added(work) | Change::Deleted(work) = change {
            owners.add(binding_of(work));
        }
        if let Change::Deleted(work) = change {
            waiting
                .refused
                .take(&Key::of(&***work))
                .into_iter()
                .for_each(|binding| owners.add(binding));
        }
    });
    deps.interpreters.wait_for_cache_sync().await;
    // Without its overrides, a Work would change the member's object for a moment.
    deps.stores.override_policies.wait_for_cache_sync().await;
    deps.stores.cluster_override_policies.wait_for_cache_sync().await;
    let observer = deps.failures.counter(NAME, binding_kind::named);
    binding_kind::run(queue, WORKERS, controller, observer).await;
}

impl Reconcile for BindingController {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(binding) = B::store(&deps.stores).get(&key) else {
            self.blocked().remove(&key);
            return Ok(Action::Wait);
        };
        // An empty ID would select the Works of other bindings.
        let Some(id) = binding.permanent_id().map(str::to_owned) else {
            return Err(Error::NotYet(format!(
                "{} {key} has no label {}",
                B::kind(&()),
                B::ID_LABEL
            )));
        };
        let works = deps.stores.works.by_index(&id);
        if binding.meta().deletion_timestamp.is_some() {
            // A new Work may not be known yet, and nothing would ever delete it.
            let works = self.works::<B>(&id).await?;
            self.withdraw(&*binding, &works, "the binding is being deleted").await?;
            return self.release(&*binding).await;
        }
        let dispatch = dispatch::decide(binding.spec());
        let orphans: Vec<_> = works
            .iter()
            .filter(|work| !dispatch.kept.contains(&cluster_of(work)))
            .cloned()
            .collect();
        if orphans.iter().any(|work| work.metadata.deletion_timestamp.is_none()) {
            self.is_current(&*binding).await?;
        }
        self.withdraw(
            &*binding,
            &orphans,
            "the cluster is neither a target nor in an eviction task",
        )
        .await?;
        let unpurged = works
            .iter()
            .map(|work| cluster_of(work))
            .filter(|name| dispatch.purged_first.contains(name));
        let given_up = match self.purged(&key, &*binding, unpurged.collect()) {
            Purged::Yes { given_up } => given_up,
            Purged::NotYet { after } => return Ok(Action::After(after)),
        };
        let Some(template) = self.template(&*binding).await? else {
            return Ok(Action::Wait);
        };
        let mut first_error = None;
        let mut written = 0;
        let none = BTreeMap::new();
        let injects = deps.flags.gate(FeatureGate::StatefulFailoverInjection);
        let preserved_labels = if injects { &dispatch.preserved_labels } else { &none };
        let source = Source {
            binding: &*binding,
            permanent_id: &id,
            template: &template,
            preserved_labels,
        };
        let attribution = match &given_up {
            None => Attribution::rule("Target", "the cluster is in the scheduling result"),
            Some(why) => Attribution::rule(
                "PurgeGivenUp",
                format!("the cluster is in the scheduling result; {why}"),
            ),
        };
        for target in &dispatch.rendered {
            match self.ensure_work(&source, target, &attribution).await {
                Ok(wrote) => written += usize::from(wrote),
                // An error of one cluster must not stop the others.
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        if let Some(error) = first_error {
            // Conflicts are retried soon and need no event.
            if !error.is_conflict() {
                let message = format!("Failed to sync work: {}", error.describe());
                deps.log
                    .events
                    .emit(NAME, about(&*binding), EventType::Warning, "SyncWorkFailed", message);
            }
            return Err(error);
        }
        if written > 0 {
            let message = format!("Sync work of {}({key}) successful.", B::kind(&()));
            deps.log
                .events
                .emit_recovery(NAME, about(&*binding), "SyncWorkSucceed", message);
        }
        Ok(Action::Wait)
    }
}

impl BindingController {
    fn blocked(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<String>>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if a binding is outdated: a watch that lags must not cost a workload its place.
    async fn is_current<B: Binding>(&self, binding: &B) -> Result<(), Error> {
        let (name, kind) = (binding.name_any(), B::kind(&()));
        let api = B::api(self.deps.hub.clone(), &binding.namespace().unwrap_or_default());
        let live = api
            .get_metadata_opt(&name)
            .await
            .map_err(Error::api(format!("reading {kind} {name}")))?;
        let version = |meta: &ObjectMeta| (meta.uid.clone(), meta.generation);
        if live.is_some_and(|live| version(&live.metadata) != version(binding.meta())) {
            return Err(Error::NotYet(format!("{kind} {name} is newer than its cached version")));
        }
        Ok(())
    }

    /// Returns the Works of a binding from the API server.
    async fn works<B: Binding>(&self, id: &str) -> Result<Vec<Arc<Work>>, Error> {
        let api: Api<Work> = Api::all(self.deps.hub.clone());
        let found = api
            .list(&ListParams::default().labels(&format!("{}={id}", B::ID_LABEL)))
            .await;
        let found = found.map_err(Error::api(format!("listing the Works of {id}")))?;
        Ok(found.items.into_iter().map(Arc::new).collect())
    }

    async fn withdraw<B: Binding>(&self, binding: &B, works: &[Arc<Work>], why: &str) -> Result<(), Error> {
        let deps = &self.deps;
        for work in works.iter().filter(|work| work.metadata.deletion_timestamp.is_none()) {
            let cluster = cluster_of(work);
            let record = deps.log.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(cluster.clone()),
                decision: Decision::Withdrawn,
                attribution: Attribution::rule("Orphaned", why),
                effect: format!("Work {} is deleted", Key::of(&**work)),
                inputs: vec![input(binding), input(&**work)],
            });
            let deleted = async {
                let deleted = deps
                    .writers
                    .works(&work.namespace().unwrap_or_default())
                    .delete(work)
                    .await;
                deleted.map_err(|error| {
                    if !is_conflict(&error) {
                        let message = format!("Failed to delete the Work of cluster {cluster}: {error}");
                        deps.log
                            .events
                            .emit(NAME, about(binding), EventType::Warning, "CleanupWorkFailed", message);
                    }
                    Error::api(format!("deleting Work {}", Key::of(&**work)))(error)
                })
            };
            deps.log.apply(&[record], deleted).await?;
        }
        Ok(())
    }

    async fn release<B: Binding>(&self, binding: &B) -> Result<Action, Error> {
        let finalizers: Vec<_> = binding
            .finalizers()
            .iter()
            .filter(|f| *f != B::FINALIZER)
            .cloned()
            .collect();
        if finalizers.len() == binding.finalizers().len() {
            return Ok(Action::Wait);
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        match B::writer(&self.deps.bindings, binding)
            .patch_despite_status(binding, patch)
            .await
        {
            Err(error) if !is_not_found(&error) => {
                Err(Error::api(format!("releasing {} {}", B::kind(&()), binding.name_any()))(error))
            }
            _ => Ok(Action::Wait),
        }
    }

    async fn template<B: Binding>(&self, binding: &B) -> Result<Option<Arc<Value>>, Error> {
        let resource = &binding.spec().resource;
        let kind = ObjectKind::new(&resource.api_version, &resource.kind);
        let template = self
            .deps
            .templates
            .read(&kind, &Key::new(&resource.namespace, &resource.name))
            .await?;
        template
            .map(|template| template.to_value(&kind).map(Arc::new))
            .transpose()
    }

    /// Returns the template with the cluster's replicas, if an interpreter can set them.
    async fn revised<B: Binding>(
        &self,
        binding: &B,
        template: &Arc<Value>,
        target: &bulkhead_core::model::TargetCluster,
    ) -> Result<Value, Error> {
        if !binding.spec().is_workload() {
            return Ok(Value::clone(template));
        }
        let revise = Operation::Revise {
            object: template,
            replicas: target.replicas.into(),
        };
        match self.deps.interpreters.interpret(NAME, &subject(binding), revise).await {
            Ok(Some(Interpretation::Object(revised))) => {
                same_identity(template, &revised).map_err(Error::Undecided)?;
                Ok(revised)
            }
            Ok(_) => Ok(Value::clone(template)),
            Err(fault) => Err(Error::Undecided(format!(
                "replicas of {}: {}",
                binding.spec().resource,
                fault.reason()
            ))),
        }
    }

    /// Creates or updates the Work of one target cluster. Returns true if there was anything to write.
    async fn ensure_work<B: Binding>(
        &self,
        source: &Source<'_, B>,
        target: &bulkhead_core::model::TargetCluster,
        attribution: &Attribution,
    ) -> Result<bool, Error> {
        let deps = &self.deps;
        let binding = source.binding;
        let resource = &binding.spec().resource;
        let namespace = names::execution_namespace(&target.name);
        let name = names::work_name(&resource.kind, &resource.name, &resource.namespace);
        let existing = deps.stores.works.get(&Key::new(&namespace, &name));
        if let Some(work) = &existing
            && let Err(refused) = binding_owner::check_work(work, binding)
        {
            self.refused.add(Key::of(&**work), Key::of(binding));
            return Err(refused);
        }
        if existing
            .as_ref()
            .is_some_and(|work| work.metadata.deletion_timestamp.is_some())
        {
            return Err(Error::NotYet(format!("Work {namespace}/{name} is being deleted")));
        }
        let manifest = self.revised(binding, source.template, target).await?;
        // An interpreter may have been slow, and a new Work carries no version of the binding that it was rendered
        // from.
        let current = B::store(&deps.stores).get(&Key::of(binding));
        let is_wanted = |current: &B| {
            current.meta().uid == binding.meta().uid
                && current.meta().deletion_timestamp.is_none()
                && dispatch::decide(current.spec())
                    .rendered
                    .iter()
                    .any(|rendered| rendered.name == target.name)
        };
        if existing.is_none() && !current.is_some_and(|current| is_wanted(&current)) {
            // The change triggers another reconcile.
            return Ok(false);
        }
        let overridden = self.overridden(binding, manifest, &target.name)?;
        let policies = names_of(&overridden.applied);
        let desired = render::work(source, overridden, target, existing.as_deref())
            .map_err(|error| Error::Undecided(format!("rendering {resource}: {error}")))?;
        if existing.as_deref() == Some(&desired) {
            return Ok(false);
        }
        let mut records = Vec::new();
        if existing.is_none() {
            records.push(deps.log.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(target.name.clone()),
                decision: Decision::Dispatched,
                attribution: attribution.clone(),
                effect: format!("Work {name} with {} replicas", target.replicas),
                inputs: vec![input(binding)],
            }));
        }
        let operation = Error::api(format!("writing Work {namespace}/{name}"));
        let writer = deps.writers.works(&namespace);
        let written = async {
            let written = match existing {
                None => writer.create(&desired).await.map(drop),
                Some(existing) => writer.replace(&existing, desired).await.map(drop),
            };
            written.map_err(operation)
        };
        deps.log.apply(&records, written).await?;
        self.report_overrides(binding, &policies, &target.name);
        Ok(true)
    }

    /// Returns the manifest with the changes of the override policies, which are made last, as in Karmada.
    fn overridden<B: Binding>(&self, binding: &B, manifest: Value, cluster: &str) -> Result<Overridden, Error> {
        let deps = &self.deps;
        overrides::apply(&deps.stores, manifest, cluster).map_err(|error| match error {
            NotOverridden::UnknownCluster => Error::NotYet(format!("Cluster {cluster} is not known yet")),
            NotOverridden::Rule(failed) => {
                let policy = event_name(&failed.namespace, &failed.name);
                let message = format!(
                    "Apply {policy} for cluster({cluster}) failed: rule {}: {}",
                    failed.rule, failed.reason
                );
                let reason = "ApplyOverridePolicyFailed";
                deps.log
                    .events
                    .emit(NAME, template_of(binding), EventType::Warning, reason, message);
                Error::Undecided(format!("cluster {cluster}: {failed}"))
            }
        })
    }

    /// Emits an event for each policy that changed a Work.
    fn report_overrides<B: Binding>(&self, binding: &B, policies: &[String], cluster: &str) {
        for policy in policies {
            let (about, reason) = (template_of(binding), "ApplyOverridePolicySucceed");
            let message = format!("Apply {policy} for cluster({cluster}) succeed.");
            self.deps
                .log
                .events
                .emit(NAME, about, EventType::Normal, reason, message);
        }
    }
}

/// Returns the policies of applied rules, each once, as events name them.
fn names_of(applied: &[Applied]) -> Vec<String> {
    let names = applied.iter().map(|rule| event_name(&rule.namespace, &rule.name));
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}

/// Returns an override policy as Karmada's events name it.
fn event_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("cluster override policy({name})")
    } else {
        format!("override policy({namespace}/{name})")
    }
}

#[cfg(test)]
mod tests;
