//! Applications that stay unhealthy → evictions (Karmada: `pkg/controllers/applicationfailover`).
//!
//! A kind that no policy judges counts as healthy, so it is never evicted; Karmada requires a webhook first. The
//! history of an application is written together with the eviction, in one write that fails if the binding changed
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::{AnyBinding, ClusterResourceBinding, ResourceBinding};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::application_failover::{
    self, FailoverOptions, FailoverPlan, FailoverSnapshot, HEALTH_HISTORY,
};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, plan};
use bulkhead_core::model::Cluster;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use kube::ResourceExt;
use serde_json::Value;

use crate::binding_kind::{self, Binding, Reconcile};
use crate::contact::Reported;
use crate::decision_log::{DecisionLog, Record, RecordedDecision};
use crate::decision_recorder::DecisionInputs;
use crate::flags::Flags;
use crate::scheduler::{Eviction, Evictions, Precondition, annotation};
use crate::stores::Stores;
use crate::subjects::{about, input, subject, subjects_of_step, template_of};

const NAME: &str = "application-failover-controller";
const WORKERS: usize = 5;
/// Delay of the next decision about a binding whose unhealthy reports are contradicted by its Works or by a member. If the
/// application fails again before the status of the binding is written, that status does not change.
const CONTRADICTED_RECHECK: Duration = Duration::from_secs(10);

struct ApplicationFailover {
    deps: Dependencies,
    /// Reason codes of the last recorded waits, by cluster.
    waits: Mutex<BTreeMap<Key, BTreeMap<String, String>>>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) evictions: Evictions,
    pub(crate) clock: Clock,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) log: DecisionLog,
    pub(crate) reported: Reported,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    fn matters<B: Binding>(change: &Change<'_, B>) -> bool {
        match change {
            Change::Added(binding) | Change::Deleted(binding) => is_concerned(&***binding),
            Change::Updated { old, new } => {
                let reported = old.status().aggregated_status != new.status().aggregated_status;
                is_concerned(&***new) && (reported || change.is_generation_change())
            }
        }
    }
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let _bindings = binding_kind::subscribe(&deps.stores, &queue, matters, matters);
    // The end of a pause releases the evictions that it held.
    let (held_back, known) = (Arc::clone(&queue), deps.clone());
    let _pauses = deps.stores.eviction_pauses.subscribe(move |_| {
        enqueue::<ResourceBinding>(&known, &held_back);
        enqueue::<ClusterResourceBinding>(&known, &held_back);
    });
    let controller = Arc::new(ApplicationFailover {
        deps: deps.clone(),
        waits: Mutex::default(),
    });
    // No eviction may start before pauses are known.
    deps.stores.eviction_pauses.wait_for_cache_sync().await;
    let observer = deps.failures.counter(NAME, binding_kind::named);
    binding_kind::run(queue, WORKERS, controller, observer).await;
}

fn enqueue<B: Binding>(deps: &Dependencies, queue: &WorkQueue<Key>) {
    for binding in B::store(&deps.stores)
        .list()
        .iter()
        .filter(|binding| is_concerned(&***binding))
    {
        queue.add(Key::of(&**binding));
    }
}

/// True if a policy requests application failover, or did so and left a health history behind.
fn is_concerned<B: AnyBinding>(binding: &B) -> bool {
    let asked = binding
        .spec()
        .failover
        .as_ref()
        .is_some_and(|failover| failover.application.is_some());
    asked || binding.annotations().contains_key(HEALTH_HISTORY)
}

/// Returns the producer of tasks: Karmada has one controller for each kind of binding.
fn producer<B: Binding>() -> &'static str {
    match B::kind(&()).as_ref() {
        "ResourceBinding" => "resource-binding-application-failover-controller",
        _ => "cluster-resource-binding-application-failover-controller",
    }
}

impl Reconcile for ApplicationFailover {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(binding) = B::store(&deps.stores).get(&key) else {
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            return Ok(Action::Wait);
        };
        let options = deps.flags.failover_options();
        let pauses: Vec<_> = deps
            .stores
            .eviction_pauses
            .list()
            .iter()
            .map(|pause| pause.to_model())
            .collect();
        let (mut model, producer, now) = (binding.to_model(), producer::<B>(), deps.clock.now());
        let contradicted = deps.reported.refresh_unhealthy(&mut model);
        let recorder = deps.log.without_policies();
        let decide = |clusters: &[Arc<Cluster>], options| {
            application_failover::decide(FailoverSnapshot {
                binding: &model,
                producer,
                options,
                pauses: &pauses,
                clusters,
                now,
            })
        };
        // Clusters matter only to a binding that is due to leave one.
        let mut clusters = Vec::new();
        let mut plan = decide(
            &clusters,
            FailoverOptions {
                pre_check: None,
                ..options
            },
        );
        if !plan.evicted.is_empty() {
            clusters.extend(
                deps.stores
                    .clusters
                    .list()
                    .iter()
                    .map(|cluster| Arc::new(cluster.to_model())),
            );
            plan = decide(&clusters, options);
        }
        // The Work has no recovery of the application either while its status cannot be written.
        let leaving = plan.evicted.iter().map(|(task, _)| task.from_cluster.as_str());
        if deps.reported.may_be_healthy_in(&model, leaving).await {
            return Ok(Action::After(CONTRADICTED_RECHECK));
        }
        let waits = self.new_waits(&key, &plan);
        let decides = !waits.is_empty() || !plan.counting.is_empty() || !plan.evicted.is_empty();
        let decision_record = if decides {
            recorder.finish(|| DecisionInputs {
                trigger: "the reported state of the application changed, or a deadline passed",
                now,
                input: DecisionInput::Failover {
                    binding: Arc::new(model),
                    producer: producer.to_owned(),
                    options,
                    pauses,
                },
                clusters,
                plan: plan::failover(&plan),
            })
        } else {
            None
        };
        self.record_waits(&*binding, waits, decision_record.as_ref());
        if plan.health_histories.is_some() || plan.spec.is_some() {
            let records = self.record(&*binding, &plan, decision_record.as_ref());
            let eviction = Eviction {
                spec: plan.spec.as_deref(),
                annotations: health_history(&plan).into_iter().collect(),
                records: records.clone(),
                precondition: Precondition::Unchanged,
                operation: format!("writing the failover of {} {key}", B::kind(&())),
            };
            let emit = |error: Option<&kube::Error>| self.emit(&*binding, &plan, error, &records);
            deps.evictions.write(&*binding, eviction, emit).await?;
        }
        if let Some(blocked) = plan.blocked {
            return Err(Error::Undecided(format!(
                "cannot evict {} {key}: {blocked}",
                B::kind(&())
            )));
        }
        let again = plan
            .again_after_ms
            .and_then(|ms| u64::try_from(ms).ok())
            .map(Duration::from_millis);
        let after = again
            .into_iter()
            .chain(contradicted.then_some(CONTRADICTED_RECHECK))
            .min();
        Ok(after.map_or(Action::Wait, Action::After))
    }
}

/// Returns the annotation with the health history that a plan changes.
fn health_history(plan: &FailoverPlan) -> Option<(&'static str, Value)> {
    let history = plan.health_histories.as_ref()?;
    Some((HEALTH_HISTORY, annotation(history)))
}

impl ApplicationFailover {
    /// Records why an application stays on each of its clusters.
    fn record_waits<B: Binding>(
        &self,
        binding: &B,
        waits: Vec<(String, Attribution)>,
        decision_record: Option<&Arc<DecisionRecord>>,
    ) {
        for (cluster, attribution) in waits {
            let record = Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(cluster),
                decision: Decision::EvictionsWait,
                attribution,
                effect: "the application stays for now".to_owned(),
                inputs: vec![input(binding)],
            };
            self.deps.log.record_decided(record, decision_record, None);
        }
    }

    /// Evictions that wait for a reason that is not recorded yet.
    fn new_waits(&self, key: &Key, plan: &FailoverPlan) -> Vec<(String, Attribution)> {
        let all = || plan.paused.iter().chain(&plan.without_target);
        let codes: BTreeMap<_, _> = all()
            .map(|(cluster, attribution)| (cluster.clone(), attribution.reason.code.clone()))
            .collect();
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if codes.is_empty() {
            waits.remove(key)
        } else {
            waits.insert(key.clone(), codes.clone())
        };
        let is_new = |(cluster, _): &&(String, Attribution)| {
            before.as_ref().and_then(|before| before.get(cluster)) != codes.get(cluster)
        };
        all().filter(is_new).cloned().collect()
    }

    /// Records evictions, and clocks that start. Returns the records that depend on the write.
    fn record<B: Binding>(
        &self,
        binding: &B,
        plan: &FailoverPlan,
        decision_record: Option<&Arc<DecisionRecord>>,
    ) -> Vec<RecordedDecision> {
        let record = |cluster: &str, decision, attribution: &Attribution, effect: String| {
            let record = Record {
                controller: NAME,
                subject: subject(binding),
                cluster: Some(cluster.to_owned()),
                decision,
                attribution: attribution.clone(),
                effect,
                inputs: vec![input(binding)],
            };
            self.deps.log.record_decided(record, decision_record, None)
        };
        let counting = plan.counting.iter().map(|(cluster, attribution)| {
            record(
                cluster,
                Decision::Tolerated,
                attribution,
                "the application stays for now".to_owned(),
            )
        });
        let evicted = plan.evicted.iter().map(|(task, attribution)| {
            let (replicas, purge_mode) = (task.replicas.unwrap_or(0), task.purge_mode.unwrap_or_default());
            let effect = format!("{replicas} replicas to be placed elsewhere, purge mode {purge_mode:?}");
            record(&task.from_cluster, Decision::Evicted, attribution, effect)
        });
        counting.chain(evicted).collect()
    }

    /// Emits an event for each eviction. Karmada has none for a successful one.
    fn emit<B: Binding>(
        &self,
        binding: &B,
        plan: &FailoverPlan,
        error: Option<&kube::Error>,
        records: &[RecordedDecision],
    ) {
        let events = self.deps.log.events_of(records);
        if error.is_some_and(controller::is_conflict) {
            return;
        }
        for (task, attribution) in &plan.evicted {
            let cluster = &task.from_cluster;
            let (reason, message) = match error {
                None => (
                    "ApplicationFailedOver",
                    format!("Leaving cluster {cluster}: {}.", attribution.reason.message),
                ),
                Some(_) => (
                    "EvictWorkloadFromClusterFailed",
                    format!("Evict from cluster {cluster} failed."),
                ),
            };
            let subjects = match error {
                None => subjects_of_step(binding, &self.deps.flags),
                Some(_) => vec![about(binding), template_of(binding)],
            };
            for about in subjects {
                events.emit(NAME, about, EventType::Warning, reason, message.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_api::Work;
    use kube::Api;
    use kube::api::{Patch, PatchParams, PostParams};
    use kube::runtime::watcher;
    use serde_json::json;

    use super::*;
    use crate::testing::{components, hub_of_works, member};

    /// The status of the binding is not written, so that it stays unhealthy throughout.
    #[tokio::test(start_paused = true)]
    async fn a_failure_that_follows_a_recovery_counts_while_the_binding_keeps_its_old_status() {
        let hub = hub_of_works(1);
        let (components, _events) = components(hub.client(), member().client());
        let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
        let works: Api<Work> = Api::namespaced(hub.client(), "karmada-es-m1");
        let (all_bindings, all_works) = (
            Arc::clone(&components.stores.bindings),
            Arc::clone(&components.stores.works),
        );
        tokio::spawn(all_bindings.run_informer(Api::all(hub.client()), watcher::Config::default()));
        tokio::spawn(all_works.run_informer(Api::all(hub.client()), watcher::Config::default()));
        let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
        let failover = json!({"application": {"decisionConditions": {"tolerationSeconds": 60}}});
        let binding = json!({
            "metadata": {"name": "web-deployment", "namespace": "default"},
            "spec": {
                "resource": resource, "replicas": 1, "clusters": [{"name": "m1", "replicas": 1}],
                "propagateDeps": true, "failover": failover,
            },
        });
        bindings
            .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
            .await
            .unwrap();
        let item = json!({"clusterName": "m1", "applied": true, "health": "Unhealthy"});
        let status = Patch::Merge(json!({"status": {"aggregatedStatus": [item]}}));
        bindings
            .patch_status("web-deployment", &PatchParams::default(), &status)
            .await
            .unwrap();
        let name = bulkhead_core::names::work_name("Deployment", "web", "default");
        let work = json!({
            "metadata": {"name": name, "namespace": "karmada-es-m1"}, "spec": {"workload": {"manifests": []}},
        });
        works
            .create(&PostParams::default(), &serde_json::from_value(work).unwrap())
            .await
            .unwrap();
        let identifier = json!({
            "ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "",
            "namespace": "default", "name": "web",
        });
        let controller = ApplicationFailover {
            deps: components.application_failover(),
            waits: Mutex::default(),
        };
        let decided = async |health: &str| {
            let reported = json!([{"identifier": identifier, "health": health}]);
            let status = Patch::Merge(json!({"status": {"manifestStatuses": reported}}));
            works
                .patch_status(&name, &PatchParams::default(), &status)
                .await
                .unwrap();
            // The informers deliver the changes.
            tokio::time::sleep(Duration::from_secs(1)).await;
            controller
                .reconcile::<ResourceBinding>(Key::new("default", "web-deployment"))
                .await
                .unwrap()
        };
        assert_eq!(
            decided("Healthy").await,
            Action::After(CONTRADICTED_RECHECK),
            "no event follows a new failure"
        );
        let Action::After(counting) = decided("Unhealthy").await else {
            panic!("the toleration must run")
        };
        assert!(counting > CONTRADICTED_RECHECK, "{counting:?}");
    }
}
