use bulkhead_plugins_builtin as builtin;
use bulkhead_runtime::events;
use kube::Api;
use kube::api::PostParams;

use super::*;
use crate::components::Components;
use crate::testing::{cluster, components, hub_of_works, member, object, written_events};

/// Control plane with the Cluster `m1`, which is not ready, and a policy that evicts from such clusters.
struct Hub {
    components: Components,
    clusters: Api<Cluster>,
    /// Status of the cluster, which the control plane does not store with the object.
    status: bulkhead_core::model::ClusterStatus,
    events: events::Writer,
    hub: kube::Client,
}

impl Hub {
    async fn new() -> Self {
        let hub = hub_of_works(1).client();
        let (components, events) = components(hub.clone(), member().client());
        components.registry.replace(Layer::Builtins, builtin::all());
        let condition = json!({"conditionType": "Ready", "operator": "In", "statusValues": ["False"]});
        let taint = json!({"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"});
        let spec = object(json!({"addOnConditions": [condition], "taints": [taint]}));
        let rule = ClusterTaintPolicyRule::new("not-ready", spec, taint_policy_options(&components.cluster_taints()));
        components.registry.replace(Layer::TaintPolicies, vec![Arc::new(rule)]);
        let clusters: Api<Cluster> = Api::all(hub.clone());
        let lost = cluster("m1", false, &json!([]));
        let created = clusters.create(&PostParams::default(), &lost).await.unwrap();
        let status = lost.status;
        let known = Cluster {
            status: status.clone(),
            ..created
        };
        components.stores.clusters.replace_all([known]);
        Self {
            components,
            clusters,
            status,
            events,
            hub,
        }
    }

    /// Reconciles the cluster, and lets the cache see the result. Returns its taints.
    async fn reconcile(&self) -> Vec<String> {
        let key = Key::new("", "m1");
        assert_eq!(
            reconcile(self.components.cluster_taints(), key.clone()).await.unwrap(),
            Action::Wait
        );
        let stored = self.clusters.get("m1").await.unwrap();
        let taints = stored.spec.taints.iter().map(ToString::to_string).collect();
        let status = self.status.clone();
        self.components
            .stores
            .clusters
            .replace_all([Cluster { status, ..stored }]);
        taints
    }

    /// Returns the number of events with this reason.
    async fn events(self, reason: &str) -> usize {
        let Self {
            components,
            events,
            hub,
            ..
        } = self;
        drop(components);
        let written = written_events(hub, events).await;
        written
            .iter()
            .filter(|event| event.reason.as_deref() == Some(reason))
            .count()
    }
}

const SCHEDULING: &str = "cluster.karmada.io/not-ready:NoSchedule";
const EVICTING: &str = "cluster.karmada.io/not-ready:NoExecute";

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_ready_is_tainted_once() {
    let hub = Hub::new().await;
    let mut tainted = hub.reconcile().await;
    tainted.sort();
    assert_eq!(tainted, [EVICTING, SCHEDULING]);
    let version = || async { hub.clusters.get("m1").await.unwrap().resource_version() };
    let before = version().await;
    hub.reconcile().await;
    assert_eq!(version().await, before);
    assert_eq!(hub.events("TaintClusterSucceed").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_gets_the_taint_that_evicts_when_it_is_silent_again() {
    let hub = Hub::new().await;
    hub.components.contacts.expect_probes();
    hub.components.contacts.probed("m1", true);
    assert_eq!(hub.reconcile().await, [SCHEDULING]);
    hub.components.contacts.probed("m1", false);
    assert_eq!(hub.reconcile().await, [SCHEDULING, EVICTING]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_becomes_faulty_has_one_event() {
    let hub = Hub::new().await;
    let policy =
        |spec: Value| -> Arc<ClusterTaintPolicy> { Arc::new(object(json!({"metadata": {"name": "p"}, "spec": spec}))) };
    let (sound, faulty) = (policy(json!({})), policy(json!({"targetClusterz": {}})));
    let deps = hub.components.cluster_taints();
    warn_of_faulty_policies(&deps, &Change::Added(&sound));
    warn_of_faulty_policies(
        &deps,
        &Change::Updated {
            old: &sound,
            new: &faulty,
        },
    );
    warn_of_faulty_policies(
        &deps,
        &Change::Updated {
            old: &faulty,
            new: &faulty,
        },
    );
    warn_of_faulty_policies(&deps, &Change::Deleted(&faulty));
    drop(deps);
    assert_eq!(hub.events("InvalidTaintPolicy").await, 1);
}
