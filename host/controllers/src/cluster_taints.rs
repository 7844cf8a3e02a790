//! Taints of Cluster objects (Karmada: `pkg/controllers/cluster/cluster_controller.go`, `pkg/controllers/taint`).
//!
//! Unlike in Karmada, one controller writes all taints, from all cluster-taint policies at once: those of the Ready
//! condition, of ClusterTaintPolicies and of plugins. So a taint that a policy requires is restored after a manual
//! removal, and no two writers compete for the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_api::{Cluster, ClusterTaintPolicy};
use bulkhead_core::call::CallKind;
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::taint::{self, TaintOptions, TaintPlan};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, plan};
use bulkhead_core::model;
use bulkhead_core::model::{ConditionHistory, Taint};
use bulkhead_core::names::keys;
use bulkhead_core::policy::{EngineKind, Policy, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugin::Layer;
use bulkhead_plugins_builtin::{ClusterDrains, ClusterTaintPolicyRule, TaintPolicyOptions};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::contact::Contacts;
use crate::decision_log::{DecisionLog, Record};
use crate::decision_recorder::DecisionInputs;
use crate::evaluate::Decider;
use crate::flags::{FeatureGate, Flags};
use crate::stores::Stores;
use crate::subjects::{about, input, subject};
use crate::writers::Writers;

const NAME: &str = "cluster-taint-controller";
const WORKERS: usize = 5;

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) decider: Decider,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) log: DecisionLog,
    pub(crate) stores: Arc<Stores>,
    pub(crate) writers: Writers,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let (clusters, warning) = (Arc::clone(&queue), deps.clone());
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        warn_of_foreign_effects(&warning, change);
        warn_of_malformed_owners(&warning, change);
        if !matches!(change, Change::Deleted(_)) {
            clusters.add(Key::of(change.object()));
        }
    });
    let failover = deps.flags.gate(FeatureGate::Failover);
    let policies = failover.then(|| {
        let deps = deps.clone();
        let taint_policies = Arc::clone(&deps.stores.taint_policies);
        taint_policies.subscribe(move |change| {
            warn_of_faulty_policies(&deps, change);
            load_taint_policies(&deps);
        })
    });
    let draining = deps.clone();
    let _drains = deps
        .stores
        .cluster_drains
        .subscribe(move |_| load_taint_policies(&draining));
    // Taints of a policy that was deleted unobserved are removed only once all policies are known.
    let (listing, rechecked) = (deps.clone(), Arc::clone(&queue));
    let complete = async move {
        listing.stores.cluster_drains.wait_for_cache_sync().await;
        listing.stores.taint_policies.wait_for_cache_sync().await;
        load_taint_policies(&listing);
        for cluster in listing.stores.clusters.list() {
            rechecked.add(Key::of(&*cluster));
        }
    };
    let (rules, all) = (Arc::clone(&queue), Arc::clone(&deps.stores.clusters));
    let _rules = deps.decider.registry.subscribe(move || {
        for cluster in all.list() {
            rules.add(Key::of(&*cluster));
        }
    });
    let recheck = recheck(deps.clone(), Arc::clone(&queue));
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), key)
    };
    let reconciling = controller::run(
        queue,
        WORKERS,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("Cluster")),
    );
    futures::join!(recheck, reconciling, complete);
    drop(policies);
}

/// Emits an event when a cluster gets a taint with a foreign effect. The taint is left alone and has no effect.
fn warn_of_foreign_effects(deps: &Dependencies, change: &Change<'_, Cluster>) {
    let (before, cluster) = match change {
        Change::Added(cluster) => (&[][..], cluster),
        Change::Updated { old, new } => (&*old.spec.taints, new),
        Change::Deleted(_) => return,
    };
    for taint in cluster.spec.taints.iter().filter(|taint| taint.effect.is_foreign()) {
        if !before.iter().any(|known| known.same_identity(taint)) {
            let message = format!("The effect of the taint {taint} is unknown; the taint is ignored and not changed.");
            deps.log.events.emit(
                NAME,
                about(&***cluster),
                EventType::Warning,
                "UnknownTaintEffect",
                message,
            );
        }
    }
}

/// Emits an event when a policy becomes invalid. Such a policy neither adds nor removes a taint.
fn warn_of_faulty_policies(deps: &Dependencies, change: &Change<'_, ClusterTaintPolicy>) {
    let (before, policy) = match change {
        Change::Added(policy) => (Vec::new(), policy),
        Change::Updated { old, new } => (old.spec.faults(), new),
        Change::Deleted(_) => return,
    };
    let faults = policy.spec.faults();
    if !faults.is_empty() && faults != before {
        let message = format!(
            "The policy neither adds nor removes a taint: spec.{}",
            faults.join(", spec.")
        );
        deps.log.events.emit(
            NAME,
            about(&***policy),
            EventType::Warning,
            "InvalidTaintPolicy",
            message,
        );
    }
}

/// Emits an event when the owners of a cluster's taints become unreadable. As long as they are, no taint is
/// adopted, and none is added whose owner cannot be recorded.
fn warn_of_malformed_owners(deps: &Dependencies, change: &Change<'_, Cluster>) {
    let (before, cluster) = match change {
        Change::Added(cluster) => (None, cluster),
        Change::Updated { old, new } => (Some(old), new),
        Change::Deleted(_) => return,
    };
    if cluster.has_malformed_taint_owners() && !before.is_some_and(|before| before.has_malformed_taint_owners()) {
        let message = format!(
            "The annotation {} is malformed: while the cluster has a taint of an unknown owner, ClusterTaintPolicies and \
             plugins neither add nor remove a taint. Correct or remove the annotation.",
            keys::TAINT_OWNERS
        );
        deps.log.events.emit(
            NAME,
            about(&***cluster),
            EventType::Warning,
            "MalformedTaintOwners",
            message,
        );
    }
}

async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    let cluster = deps
        .stores
        .clusters
        .get(&key)
        .filter(|cluster| cluster.metadata.deletion_timestamp.is_none());
    let Some(cluster) = cluster else {
        return Ok(Action::Wait);
    };
    let model = Arc::new(cluster.to_model());
    let (options, now) = (taint_options(&deps, &model), deps.clock.now());
    let deciding = Arc::clone(&model);
    let decide = move |policies: &PolicySet| taint::decide(&deciding, policies, options, now);
    let (recorder, plan) = deps
        .decider
        .decide(NAME, deps.decider.policies(), &[CallKind::ClusterTaint], decide)
        .await;
    let decision_record = || DecisionInputs {
        trigger: "the cluster, a policy or a condition of the cluster changed, or a deadline passed",
        now,
        input: DecisionInput::Taint { options },
        clusters: vec![model],
        plan: plan::taint(&plan),
    };
    let decision_record = if plan.is_empty() {
        None
    } else {
        recorder.finish(decision_record)
    };
    write_taints(&deps, &cluster, plan, decision_record).await?;
    Ok(Action::Wait)
}

/// Enqueues clusters whose taints depend on elapsed time.
async fn recheck(deps: Dependencies, queue: Arc<WorkQueue<Key>>) {
    let mut ticks = tokio::time::interval(deps.flags.cluster_monitor_period.0);
    loop {
        ticks.tick().await;
        let (mut ready, mut due) = (Vec::new(), Vec::new());
        for cluster in deps.stores.clusters.list() {
            let model = cluster.to_model();
            if model.is_ready() {
                ready.push(model);
            } else {
                due.push(Key::of(&*cluster));
            }
        }
        // Plugins may be slow, and clusters that are not ready must not wait for them.
        for key in due {
            queue.add(key);
        }
        for cluster in ready {
            let key = Key::new("", &cluster.name);
            if needs_a_look(&deps, cluster).await {
                queue.add(key);
            }
        }
    }
}

/// True if time alone would change the taints of a ready cluster.
async fn needs_a_look(deps: &Dependencies, cluster: model::Cluster) -> bool {
    let policies = deps.decider.policies();
    let has_plugins = policies.iter().any(|policy| {
        let taints = policy
            .capabilities()
            .iter()
            .any(|capability| capability.kind == CallKind::ClusterTaint);
        taints && policy.id().engine != EngineKind::Builtin
    });
    let windowed = || {
        deps.stores
            .taint_policies
            .list()
            .iter()
            .any(|policy| policy.spec.has_windows())
    };
    let damped = !deps.flags.cluster_taint_policy_damping_window.0.is_zero();
    if !(has_plugins || damped || windowed()) {
        return false;
    }
    let (options, now) = (taint_options(deps, &cluster), deps.clock.now());
    let taints = |policy: &dyn Policy| {
        policy
            .capabilities()
            .iter()
            .any(|can| can.kind == CallKind::ClusterTaint)
    };
    let decide = move |policies: &PolicySet| taint::decide(&cluster, policies, options, now);
    !deps.decider.ask(NAME, policies, taints, decide).await.is_empty()
}

fn load_taint_policies(deps: &Dependencies) {
    let failover = deps.flags.gate(FeatureGate::Failover);
    let policies = if failover {
        deps.stores.taint_policies.list()
    } else {
        Vec::new()
    };
    let created = |created: Option<&_>| created.map_or(Time::from_millis(0), bulkhead_api::time::from_meta);
    let policies: Vec<_> = policies
        .iter()
        .map(|policy| {
            (
                policy.name_any(),
                created(policy.metadata.creation_timestamp.as_ref()),
                policy.spec.clone(),
            )
        })
        .collect();
    let rules = ClusterTaintPolicyRule::all(policies, taint_policy_options(deps));
    let mut policies: Vec<Arc<dyn Policy>> = rules
        .into_iter()
        .map(|rule| -> Arc<dyn Policy> { Arc::new(rule) })
        .collect();
    // Before all drains are known, the taint of a drain that is not seen yet would be removed for a moment.
    let drains = &deps.stores.cluster_drains;
    if drains.has_synced() {
        let drains = drains.list();
        let named = drains
            .iter()
            .map(|drain| (drain.name_any(), drain.spec.cluster_name.clone()));
        policies.push(Arc::new(ClusterDrains::new(named.collect())));
    }
    deps.decider.registry.replace(Layer::TaintPolicies, policies);
}

fn taint_policy_options(deps: &Dependencies) -> TaintPolicyOptions {
    TaintPolicyOptions {
        cleans_up: deps.flags.cluster_taint_policy_clean_up,
        damping_window_s: deps.flags.cluster_taint_policy_damping_window.as_secs(),
    }
}

/// Returns the options of taint decisions. Without the gate the policies are not loaded, and their taints stay.
fn taint_options(deps: &Dependencies, cluster: &model::Cluster) -> TaintOptions {
    let failover = deps.flags.gate(FeatureGate::Failover);
    TaintOptions {
        cleans_up: deps.flags.cluster_taint_policy_clean_up,
        policies_are_complete: failover && deps.stores.taint_policies.has_synced(),
        answers: deps.contacts.answers_unready(cluster),
    }
}

async fn write_taints(
    deps: &Dependencies,
    cluster: &Cluster,
    plan: TaintPlan,
    decision_record: Option<Arc<DecisionRecord>>,
) -> Result<(), Error> {
    deps.log
        .record_diagnostics(NAME, &subject(cluster), Some(&cluster.name_any()), &plan.diagnostics);
    if plan.is_empty() {
        return Ok(());
    }
    let record = |decision, (taint, attribution): (bulkhead_core::model::Taint, Attribution)| {
        let record = Record {
            controller: NAME,
            subject: subject(cluster),
            cluster: Some(cluster.name_any()),
            decision,
            attribution,
            effect: taint.to_string(),
            inputs: vec![input(cluster)],
        };
        deps.log.record_decided(record, decision_record.as_ref(), None)
    };
    let stays_tainted = plan.taints.iter().flatten().any(|taint| taint.effect.evicts());
    if !stays_tainted && plan.removed.iter().any(|(taint, _)| taint.effect.evicts()) {
        deps.contacts.untainted(&cluster.name_any());
    }
    let mut records: Vec<_> = plan
        .removed
        .into_iter()
        .map(|change| record(Decision::Untainted, change))
        .collect();
    records.extend(plan.added.into_iter().map(|change| record(Decision::Tainted, change)));
    let mut patch = taint_patch(plan.taints.as_deref(), plan.owners.as_ref(), plan.history.as_ref());
    deps.log.sign(&mut patch, &records);
    let operation = Error::api(format!("writing the taints of Cluster {}", cluster.name_any()));
    let patched = async {
        deps.writers
            .clusters()
            .patch_if_unchanged(cluster, patch)
            .await
            .map_err(operation)
    };
    match deps.log.apply(&records, patched).await {
        Ok(_) => {
            let Some(taints) = plan.taints else { return Ok(()) };
            let message = format!("Taint cluster succeed: {}.", taint::taints_message(&taints));
            let events = deps.log.events_of(&records);
            events.emit(NAME, about(cluster), EventType::Normal, "TaintClusterSucceed", message);
            Ok(())
        }
        Err(error) => {
            if !error.is_conflict() {
                let message = format!("Taint cluster failed: {error}");
                deps.log
                    .events
                    .emit(NAME, about(cluster), EventType::Warning, "TaintClusterFailed", message);
            }
            Err(error)
        }
    }
}

/// Returns one patch for taints, owners and history, so that no taint lacks an owner and no owner lacks a taint.
fn taint_patch(
    taints: Option<&[Taint]>,
    owners: Option<&BTreeMap<String, String>>,
    history: Option<&ConditionHistory>,
) -> Value {
    let mut patch = json!({});
    if let Some(taints) = taints {
        // A merge patch does not change an absent list, so an empty one is null.
        patch["spec"]["taints"] = if taints.is_empty() { json!(null) } else { json!(taints) };
    }
    // The value of an annotation is text; null removes it.
    let text = |is_empty: bool, value: Value| {
        if is_empty {
            Value::Null
        } else {
            Value::String(value.to_string())
        }
    };
    if let Some(owners) = owners {
        patch["metadata"]["annotations"][keys::TAINT_OWNERS] = text(owners.is_empty(), json!(owners));
    }
    if let Some(history) = history {
        patch["metadata"]["annotations"][keys::CONDITION_HISTORY] = text(history.is_empty(), json!(history));
    }
    patch
}

#[cfg(test)]
mod tests;
