//! Policy → binding: the policy that claims a resource template, and the resulting binding (Karmada: `pkg/detector`).

mod affinity_groups;
mod claim;
mod marks;
mod needs;
mod release;

use std::sync::Arc;

use bulkhead_api::policy::PreemptionBehavior;
use bulkhead_api::{ClusterPropagationPolicy, PropagationPolicy};
use bulkhead_core::journal::{Decision, Subject};
use bulkhead_core::manifest::Digest;
use bulkhead_core::model::BindingSpec;
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic::{self, KeptObject};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::{Key, ObjectName};
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Store, Subscription};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Client, ResourceExt};
use serde_json::json;

use self::claim::Claim;
use self::marks::{claim_binding, claim_template};
use self::needs::needs;
use self::release::Policy;
use crate::binding_kind::Binding;
use crate::binding_owner::{self, Contested, Owner};
use crate::decision_log::{DecisionLog, Record};
use crate::flags::Flags;
use crate::interpreter::{Interpreters, NoInterpreter};
use crate::priority;
use crate::selection::{Template, specificity};
use crate::stores::Stores;
use crate::subjects::{about, input};
use crate::templates::{self, Templates};

const NAME: &str = "detector";
const WORKERS: usize = 5;
/// `activationPreference` of a policy whose changes wait for the next change of the template.
const LAZY: &str = "Lazy";

/// Kind and key of a resource template.
type TemplateKey = (ObjectKind, Key);

/// Templates whose binding name belongs to another object.
type Refused = Contested<TemplateKey>;

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) interpreters: Interpreters,
    pub(crate) log: DecisionLog,
    pub(crate) stores: Arc<Stores>,
    pub(crate) templates: Templates,
}

/// Runs the detector until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<TemplateKey>> = Arc::default();
    let refused: Arc<Refused> = Arc::default();
    let _freed = retry_when_freed(&deps.stores.bindings, &refused, &queue);
    let _cluster_freed = retry_when_freed(&deps.stores.cluster_bindings, &refused, &queue);
    let kinds: Arc<WorkQueue<ObjectKind>> = Arc::default();
    let deleted: Arc<WorkQueue<Key>> = Arc::default();
    let affected = Affected {
        templates: Arc::clone(&queue),
        kinds: Arc::clone(&kinds),
        deleted: Arc::clone(&deleted),
    };
    let _policies = follow::<PropagationPolicy>(&deps, &affected);
    let _cluster_policies = follow::<ClusterPropagationPolicy>(&deps, &affected);
    let templates = Arc::clone(&queue);
    let _templates = deps.templates.cache.subscribe(move |origin, change| {
        if dynamic::is_template_change(change) {
            templates.add((origin.kind.clone(), Key::of(change.object())));
        }
    });
    let watch = {
        let deps = deps.clone();
        move |kind| watch_kind(deps.clone(), kind)
    };
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), Arc::clone(&refused), key)
    };
    let watching = controller::run(
        kinds,
        1,
        watch,
        deps.failures
            .counter(NAME, |kind: &ObjectKind| ObjectName::all(&kind.kind)),
    );
    let release = {
        let deps = deps.clone();
        move |key| release::reconcile(deps.clone(), key)
    };
    let releasing = controller::run(deleted, WORKERS, release, deps.failures.counter(NAME, release::named));
    let binding = async {
        deps.interpreters.wait_for_cache_sync().await;
        controller::run(
            queue,
            WORKERS,
            reconcile,
            deps.failures
                .counter(NAME, |(kind, key): &TemplateKey| key.named(&kind.kind)),
        )
        .await;
    };
    futures::join!(watching, releasing, binding);
}

/// Enqueues the templates that were refused because of a binding when that binding is deleted.
fn retry_when_freed<B: Binding>(
    bindings: &Arc<Store<B>>,
    refused: &Arc<Refused>,
    queue: &Arc<WorkQueue<TemplateKey>>,
) -> Subscription<B> {
    let (refused, queue) = (Arc::clone(refused), Arc::clone(queue));
    bindings.subscribe(move |change| {
        if let Change::Deleted(binding) = change {
            refused
                .take(&Key::of(&***binding))
                .into_iter()
                .for_each(|template| queue.add(template));
        }
    })
}

/// Queues of the objects that a change of a policy affects.
#[derive(Clone)]
struct Affected {
    /// Templates that the policy selects or selected.
    templates: Arc<WorkQueue<TemplateKey>>,
    /// Kinds that are not watched yet.
    kinds: Arc<WorkQueue<ObjectKind>>,
    /// The policy itself, if it is being deleted.
    deleted: Arc<WorkQueue<Key>>,
}

/// Enqueues all that changes of policies of one kind affect.
fn follow<P: Policy>(deps: &Dependencies, affected: &Affected) -> Subscription<P> {
    let (deps, affected) = (deps.clone(), affected.clone());
    P::store(&deps.clone().stores).subscribe(move |change| policy_changed(&deps, &affected, change))
}

/// Enqueues the templates that a policy selects or selected, starts informers for kinds that are not watched yet, and
/// enqueues a policy that is being deleted.
fn policy_changed<P: Policy>(deps: &Dependencies, affected: &Affected, change: &Change<'_, P>) {
    warn_of_preemption(deps, change);
    let is_going = |policy: &P| policy.meta().deletion_timestamp.is_some();
    let versions: Vec<&P> = match change {
        Change::Added(policy) | Change::Deleted(policy) => vec![policy],
        Change::Updated { old, new } => vec![old, new],
    };
    if !matches!(change, Change::Deleted(_)) && is_going(change.object()) {
        affected.deleted.add(Key::of(change.object()));
    }
    let (queue, kinds) = (&affected.templates, &affected.kinds);
    for selector in versions
        .into_iter()
        .flat_map(|policy| &policy.spec().resource_selectors)
    {
        let kind = ObjectKind::new(&selector.api_version, &selector.kind);
        let Some(store) = deps.templates.store(&kind) else {
            kinds.add(kind);
            continue;
        };
        if !selector.name.is_empty() && !selector.namespace.is_empty() {
            let key = Key::new(&selector.namespace, &selector.name);
            if store.get(&key).is_some() {
                queue.add((kind, key));
            }
            continue;
        }
        let ours = &selector.namespace;
        let templates = if ours.is_empty() {
            store.list()
        } else {
            store.list_namespace(ours)
        };
        for object in templates {
            if specificity(selector, &Template::new(&kind, &object)).is_some() {
                queue.add((kind.clone(), Key::of(&*object)));
            }
        }
    }
}

/// Emits an event when a policy asks for preemption.
fn warn_of_preemption<P: Policy>(deps: &Dependencies, change: &Change<'_, P>) {
    let asks = |policy: &P| policy.spec().preemption == PreemptionBehavior::Always;
    let (before, policy) = match change {
        Change::Added(policy) => (None, policy),
        Change::Updated { old, new } => (Some(old), new),
        Change::Deleted(_) => return,
    };
    let policy: &P = policy;
    if asks(policy) && !before.is_some_and(|before| asks(before)) {
        let message = "preemption: Always has no effect, as in Karmada without the feature gate \
                       PropagationPolicyPreemption: a template stays with its policy until that policy is deleted or no longer selects it.";
        deps.log
            .events
            .emit(NAME, about(policy), EventType::Warning, "PreemptionIgnored", message);
    }
}

/// Starts the informer of a kind, which then delivers its templates.
async fn watch_kind(deps: Dependencies, kind: ObjectKind) -> Result<Action, Error> {
    deps.templates.ensure(&kind).await?;
    Ok(Action::Wait)
}

async fn reconcile(deps: Dependencies, refused: Arc<Refused>, (kind, key): TemplateKey) -> Result<Action, Error> {
    let Some(template) = deps.templates.get(&kind, &key) else {
        return Ok(Action::Wait);
    };
    let ours = template.labels().contains_key(keys::MANAGED) || names::is_reserved_namespace(&key.namespace);
    if template.metadata.deletion_timestamp.is_some() || ours {
        return Ok(Action::Wait);
    }
    let Some(claim) = claim(&deps, &kind, &template) else {
        return release::unclaim(&deps, &kind, &template).await;
    };
    let claimed = claim_template(&deps, &kind, &template, &claim).await?;
    let template = claimed.as_ref().unwrap_or(&template);
    if key.namespace.is_empty() {
        bind::<bulkhead_api::ClusterResourceBinding>(&deps, &refused, &kind, template, claim).await
    } else {
        bind::<bulkhead_api::ResourceBinding>(&deps, &refused, &kind, template, claim).await
    }
}

/// Returns the policy in charge of a template, if any.
fn claim(deps: &Dependencies, kind: &ObjectKind, template: &KeptObject) -> Option<Claim> {
    let template = Template::new(kind, template);
    let namespaced = candidates::<PropagationPolicy>(&deps.stores, template.namespace, &template);
    let cluster_wide = candidates::<ClusterPropagationPolicy>(&deps.stores, "", &template);
    claim::choose(
        namespaced.iter().map(|policy| (&policy.metadata, &policy.spec)),
        cluster_wide.iter().map(|policy| (&policy.metadata, &policy.spec)),
        &template,
    )
}

/// Returns the policies of a namespace that may select a template, in order of name.
fn candidates<P: Policy>(stores: &Stores, namespace: &str, template: &Template<'_>) -> Vec<Arc<P>> {
    let values = template.index_values(namespace);
    let mut found = values.map(|value| P::store(stores).by_index(&value)).concat();
    found.sort_by(|a, b| a.meta().name.cmp(&b.meta().name));
    found.dedup_by(|a, b| Arc::ptr_eq(a, b));
    found
}

async fn bind<B: Binding>(
    deps: &Dependencies,
    refused: &Refused,
    kind: &ObjectKind,
    template: &KeptObject,
    claim: Claim,
) -> Result<Action, Error> {
    let namespace = template.namespace().unwrap_or_default();
    let name = names::binding_name(&kind.kind, &template.name_any());
    let existing = B::store(&deps.stores).get(&Key::new(&namespace, &name));
    if let Some(existing) = &existing {
        if existing.meta().deletion_timestamp.is_some() {
            refused.add(Key::of(&**existing), (kind.clone(), Key::of(template)));
            return Err(Error::NotYet(format!("binding {name} is still being deleted")));
        }
        check_owner(deps, refused, &**existing, (kind, template), &claim)?;
    }
    let digest = Digest::of(template.canonical_texts().iter().map(String::as_bytes)).to_string();
    let is_known = |existing: &B| {
        existing
            .meta()
            .annotations
            .as_ref()
            .and_then(|all| all.get(keys::TEMPLATE_DIGEST))
            == Some(&digest)
    };
    if claim.spec.activation_preference == LAZY && existing.as_deref().is_some_and(is_known) {
        // The policy takes effect with the next change of the template.
        return Ok(Action::Wait);
    }
    let mut desired = existing.as_deref().cloned().unwrap_or_default();
    describe(deps, kind, template, &claim, desired.spec_mut()).await?;
    // An interpreter may have been slow, and nothing else prevents a binding for a deleted template or policy.
    let is_current =
        |now: &KeptObject| now.metadata.uid == template.metadata.uid && now.metadata.deletion_timestamp.is_none();
    if !deps
        .templates
        .get(kind, &Key::new(&namespace, template.name_any()))
        .is_some_and(|now| is_current(&now))
        || !release::is_in_force(&deps.stores, &claim)
    {
        // The change triggers another reconcile.
        return Ok(Action::Wait);
    }
    desired.meta_mut().name = Some(name.clone());
    desired.meta_mut().namespace = template.namespace();
    claim_binding(&claim, desired.meta_mut());
    ensure_metadata::<B>(desired.meta_mut(), kind, template);
    let before = desired
        .annotations_mut()
        .insert(keys::TEMPLATE_DIGEST.to_owned(), digest.clone());
    if let Some(existing) = existing.as_deref().filter(|_| before == Some(digest)) {
        // Only the status changed. Recording that would trigger all controllers that watch the binding.
        desired
            .spec_mut()
            .resource
            .resource_version
            .clone_from(&existing.spec().resource.resource_version);
    }
    if existing.as_deref() == Some(&desired) {
        return Ok(Action::Wait);
    }
    let record = deps.log.record(Record {
        controller: NAME,
        subject: Subject::new(&B::kind(&()), &namespace, &name),
        cluster: None,
        decision: Decision::Bound,
        attribution: claim.attribution,
        effect: format!("{} replicas of {}", desired.spec().replicas, desired.spec().resource),
        inputs: existing.as_deref().map(input).into_iter().collect(),
    });
    let api = B::api(deps.hub.clone(), &namespace);
    let operation = Error::api(format!("writing {} {name}", B::kind(&())));
    let written = async {
        let written = match existing {
            None => api.create(&PostParams::default(), &desired).await,
            Some(_) => api.replace(&name, &PostParams::default(), &desired).await,
        };
        written.map_err(operation)
    };
    let written = deps.log.apply(&[record], written).await?;
    let message = format!("Apply policy({}) succeed", claim.policy);
    deps.log
        .events
        .emit(NAME, about(&written), EventType::Normal, "ApplyPolicySucceed", message);
    Ok(Action::Wait)
}

/// Refuses a binding that belongs to another object, with an event on the template (Karmada: `ApplyPolicyFailed`).
fn check_owner<B: Binding>(
    deps: &Dependencies,
    refused: &Refused,
    existing: &B,
    (kind, template): (&ObjectKind, &KeptObject),
    claim: &Claim,
) -> Result<(), Error> {
    let (name, wanted) = (
        format!("{} {}", B::kind(&()), Key::of(existing)),
        templates::reference(kind, template),
    );
    let error = match Owner::of(existing, &wanted) {
        Owner::Same => return Ok(()),
        Owner::Earlier => Error::NotYet(format!(
            "{name} belongs to an earlier {} (different owner reference UID) and is not garbage collected yet",
            binding_owner::described(&wanted)
        )),
        Owner::Other(owner) => Error::Undecided(format!(
            "{name} belongs to {owner} (different owner reference UID); rename {} or delete the other object",
            binding_owner::described(&wanted)
        )),
    };
    refused.add(Key::of(existing), (kind.clone(), Key::of(template)));
    let message = format!("Apply policy({}) failed: {error}", claim.policy);
    let about = dynamic::about(kind, template);
    deps.log
        .events
        .emit(NAME, about, EventType::Warning, "ApplyPolicyFailed", message);
    Err(error)
}

/// Writes the data of template and policy into the binding's spec. The fields of others stay.
async fn describe(
    deps: &Dependencies,
    kind: &ObjectKind,
    template: &KeptObject,
    claim: &Claim,
    spec: &mut BindingSpec,
) -> Result<(), Error> {
    let object = Arc::new(template.to_value(kind)?);
    if deps.flags.health_without_interpreter == NoInterpreter::Refuse && !deps.interpreters.covers_health(&object) {
        let name = template.name_any();
        let message = format!(
            "{} {name} is not bound: no interpreter covers the health of {}",
            kind.kind, kind.api_version
        );
        return Err(Error::Undecided(message));
    }
    let about = Subject::new(
        &kind.kind,
        &template.namespace().unwrap_or_default(),
        &template.name_any(),
    );
    let needs = needs(deps, &about, &object)
        .await
        .map_err(|fault| Error::Undecided(format!("replicas of {}: {}", template.name_any(), fault.reason())))?;
    (spec.replicas, spec.replica_requirements, spec.components) =
        (needs.replicas, needs.requirements, needs.components);
    spec.resource = templates::reference(kind, template);
    let policy = &claim.spec;
    spec.propagate_deps = policy.propagate_deps;
    spec.placement = Some(policy.placement.clone());
    spec.failover.clone_from(&policy.failover);
    spec.scheduler_name.clone_from(&policy.scheduler_name);
    policy
        .conflict_resolution
        .as_str()
        .clone_into(&mut spec.conflict_resolution);
    spec.preserve_resources_on_deletion = policy.preserve_resources_on_deletion;
    let scheduling = spec
        .suspension
        .take()
        .and_then(|suspension| suspension.get("scheduling").cloned());
    let mut suspension = policy
        .suspension
        .as_ref()
        .and_then(|suspension| serde_json::to_value(suspension).ok());
    if let Some(scheduling) = scheduling {
        suspension.get_or_insert_with(|| json!({}))["scheduling"] = scheduling;
    }
    spec.suspension = suspension;
    if spec.resource.namespace.is_empty() {
        return Ok(());
    }
    affinity_groups::describe(&deps.flags, policy, template, spec);
    priority::describe(&deps.templates, &deps.flags, policy, spec).await
}

fn ensure_metadata<B: Binding>(meta: &mut ObjectMeta, kind: &ObjectKind, template: &KeptObject) {
    let finalizers = meta.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == B::FINALIZER) {
        finalizers.push(B::FINALIZER.to_owned());
    }
    meta.owner_references = Some(vec![OwnerReference {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        name: template.name_any(),
        uid: template.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
}

#[cfg(test)]
mod tests;
