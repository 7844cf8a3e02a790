use bulkhead_api::{ClusterResourceBinding, ResourceBinding};
use bulkhead_runtime::events;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::*;
use crate::components::Components;
use crate::flags::FeatureGate;
use crate::testing::{components, hub_of_everything, member, object, written_events};

/// Control plane with the Deployment `web`, which the detector watches.
pub(super) struct Hub {
    pub(super) components: Components,
    bindings: Api<ResourceBinding>,
    refused: Arc<Refused>,
    pub(super) hub: Client,
    events: events::Writer,
}

pub(super) fn deployments() -> ObjectKind {
    ObjectKind::new("apps/v1", "Deployment")
}

/// Returns a policy that selects the Deployment of this name; without a name every Deployment.
pub(super) fn policy_for(name: &str) -> PropagationPolicy {
    object(json!({
        "metadata": {"name": "policy", "namespace": "default", "labels": {keys::PROPAGATION_POLICY_ID: "id"}},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}], "placement": {},
        },
    }))
}

impl Hub {
    pub(super) async fn new(policy: PropagationPolicy) -> Self {
        let hub = hub_of_everything(1).client();
        let (components, events) = components(hub.clone(), member().client());
        let template: Deployment = object(json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}}));
        let templates: Api<Deployment> = Api::namespaced(hub.clone(), "default");
        templates.create(&PostParams::default(), &template).await.unwrap();
        components.stores.policies.replace_all([policy]);
        let known = components.detector().templates;
        known.ensure(&deployments()).await.unwrap();
        known.store(&deployments()).unwrap().wait_for_cache_sync().await;
        Self {
            components,
            bindings: Api::namespaced(hub.clone(), "default"),
            refused: Arc::default(),
            hub,
            events,
        }
    }

    pub(super) async fn reconcile(&self) -> Result<Action, Error> {
        let key = (deployments(), Key::new("default", "web"));
        reconcile(self.components.detector(), Arc::clone(&self.refused), key).await
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

    pub(super) async fn binding(&self) -> Option<ResourceBinding> {
        self.bindings.get_opt("web-deployment").await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_is_claimed_and_bound_once() {
    let hub = Hub::new(policy_for("")).await;
    assert_eq!(hub.reconcile().await.unwrap(), Action::Wait);
    let bound = hub.binding().await.unwrap();
    assert_eq!(
        (bound.spec.resource.kind.as_str(), bound.spec.resource.name.as_str()),
        ("Deployment", "web")
    );
    assert_eq!(
        bound.labels().get(keys::PROPAGATION_POLICY_ID).map(String::as_str),
        Some("id")
    );
    // The informer delivers the labels of the claim.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let known = hub.components.detector().templates;
    let template = known.get(&deployments(), &Key::new("default", "web")).unwrap();
    assert_eq!(
        template.labels().get(keys::PROPAGATION_POLICY_ID).map(String::as_str),
        Some("id")
    );
    hub.components.stores.bindings.replace_all([bound.clone()]);
    assert_eq!(hub.reconcile().await.unwrap(), Action::Wait);
    assert_eq!(
        hub.binding().await.unwrap().metadata.resource_version,
        bound.metadata.resource_version
    );
    let records = hub.components.journal.records();
    assert_eq!(
        records.iter().map(|record| record.entry.decision).collect::<Vec<_>>(),
        [Decision::Bound]
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_policy_of_the_best_match_is_in_charge_however_it_selects() {
    let named = |namespace: &str, name: &str, selectors: Value| -> PropagationPolicy {
        object(json!({
            "metadata": {"name": name, "namespace": namespace, "labels": {keys::PROPAGATION_POLICY_ID: name}},
            "spec": {"resourceSelectors": selectors, "placement": {}},
        }))
    };
    let selector = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let hub = Hub::new(policy_for("other")).await;
    let mut policies = Vec::new();
    let mut expect = |policy: PropagationPolicy, expected: &str| {
        policies.push(policy);
        hub.components.stores.policies.replace_all(policies.clone());
        let template = hub.components.detector().templates;
        let template = template.get(&deployments(), &Key::new("default", "web")).unwrap();
        let claim = claim(&hub.components.detector(), &deployments(), &template);
        assert_eq!(claim.map_or(String::new(), |claim| claim.policy.name), expected);
    };
    expect(named("default", "other", json!([selector("shop")])), "");
    expect(named("elsewhere", "namesake", json!([selector("web")])), "");
    expect(named("default", "kind-b", json!([selector("")])), "kind-b");
    expect(
        named("default", "kind-a", json!([selector("shop"), selector("")])),
        "kind-a",
    );
    expect(
        named("default", "name-b", json!([selector(""), selector("web")])),
        "name-b",
    );
    expect(
        named("default", "name-a", json!([selector("web"), selector("web")])),
        "name-a",
    );
}

#[tokio::test(start_paused = true)]
async fn a_lazy_policy_takes_effect_with_the_next_change_of_the_template() {
    for lazy in [true, false] {
        let mut policy = policy_for("web");
        policy.spec.activation_preference = if lazy { "Lazy".to_owned() } else { String::new() };
        let hub = Hub::new(policy.clone()).await;
        hub.reconcile().await.unwrap();
        // The informer delivers the labels of the claim.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let bound = hub.binding().await.unwrap();
        hub.components.stores.bindings.replace_all([bound]);
        hub.reconcile().await.unwrap();
        let bound = hub.binding().await.unwrap();
        hub.components.stores.bindings.replace_all([bound]);
        policy.spec.scheduler_name = "edited".to_owned();
        hub.components.stores.policies.replace_all([policy]);
        hub.reconcile().await.unwrap();
        let scheduler = || async { hub.binding().await.unwrap().spec.scheduler_name };
        assert_eq!(scheduler().await == "edited", !lazy, "{lazy}");
        let templates: Api<Deployment> = Api::namespaced(hub.hub.clone(), "default");
        let more = Patch::Merge(json!({"spec": {"replicas": 3}}));
        templates.patch("web", &PatchParams::default(), &more).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let bound = hub.binding().await.unwrap();
        hub.components.stores.bindings.replace_all([bound]);
        hub.reconcile().await.unwrap();
        assert_eq!(scheduler().await, "edited", "{lazy}");
    }
}

/// Returns flags with the feature gate `WorkloadAffinity` on or off.
fn flags(workload_affinity: bool) -> Arc<Flags> {
    Arc::new(Flags {
        feature_gates: [(FeatureGate::WorkloadAffinity, workload_affinity)].into(),
        ..Flags::default()
    })
}

#[tokio::test(start_paused = true)]
async fn groups_follow_the_labels_of_the_template_behind_the_gate() {
    let mut policy = policy_for("web");
    policy.spec.placement.workload_affinity = Some(object(json!({
        "affinity": {"groupByLabelKey": "app"}, "antiAffinity": {"groupByLabelKey": "tier"},
    })));
    let mut hub = Hub::new(policy.clone()).await;
    let templates: Api<Deployment> = Api::namespaced(hub.hub.clone(), "default");
    let both = json!({"affinityGroup": "app=shop", "antiAffinityGroup": "tier=db"});
    for (gate, labels, expected) in [
        (false, json!({"app": "shop", "tier": "db"}), Value::Null),
        (true, json!({}), both.clone()),
        (
            true,
            json!({"app": "blog", "tier": null}),
            json!({"affinityGroup": "app=blog"}),
        ),
        (true, json!({"app": null}), Value::Null),
        (true, json!({"app": "shop", "tier": "db"}), both),
        (false, json!({}), Value::Null),
    ] {
        hub.components.flags = flags(gate);
        let labelled = Patch::Merge(json!({"metadata": {"labels": labels}}));
        templates
            .patch("web", &PatchParams::default(), &labelled)
            .await
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        hub.reconcile().await.unwrap();
        let bound = hub.binding().await.unwrap();
        assert_eq!(
            bound.spec.placement.as_ref(),
            Some(&policy.spec.placement),
            "{gate} {labels}"
        );
        let groups = bound.spec.rest.get("workloadAffinityGroups").cloned();
        assert_eq!(groups.unwrap_or_default(), expected, "{gate} {labels}");
        hub.components.stores.bindings.replace_all([bound]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_of_a_cluster_scoped_template_has_no_groups() {
    let mut hub = Hub::new(policy_for("web")).await;
    hub.components.flags = flags(true);
    let roles: Api<ClusterRole> = Api::all(hub.hub.clone());
    let role: ClusterRole = object(json!({"metadata": {"name": "view", "labels": {"app": "shop"}}}));
    roles.create(&PostParams::default(), &role).await.unwrap();
    let kind = ObjectKind::new("rbac.authorization.k8s.io/v1", "ClusterRole");
    let selector = json!({"apiVersion": &kind.api_version, "kind": &kind.kind, "name": "view"});
    let policy: ClusterPropagationPolicy = object(json!({
        "metadata": {"name": "policy", "labels": {keys::CLUSTER_PROPAGATION_POLICY_ID: "id"}},
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"workloadAffinity": {"affinity": {"groupByLabelKey": "app"}}},
        },
    }));
    hub.components.stores.cluster_policies.replace_all([policy]);
    let known = hub.components.detector().templates;
    known.ensure(&kind).await.unwrap();
    known.store(&kind).unwrap().wait_for_cache_sync().await;
    let key = (kind, Key::new("", "view"));
    reconcile(hub.components.detector(), Arc::clone(&hub.refused), key)
        .await
        .unwrap();
    let bindings: Api<ClusterResourceBinding> = Api::all(hub.hub.clone());
    let bound = bindings.get("view-clusterrole").await.unwrap();
    assert!(
        bound
            .spec
            .placement
            .is_some_and(|placement| placement.workload_affinity.is_some())
    );
    assert_eq!(bound.spec.rest.get("workloadAffinityGroups"), None);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_starts_to_ask_for_preemption_has_an_event() {
    let before = Arc::new(policy_for("web"));
    let mut asks = policy_for("web");
    asks.spec.preemption = PreemptionBehavior::Always;
    let asks = Arc::new(asks);
    for (change, events) in [
        (Change::Added(&before), 0),
        (Change::Added(&asks), 1),
        (
            Change::Updated {
                old: &before,
                new: &asks,
            },
            1,
        ),
        (Change::Updated { old: &asks, new: &asks }, 0),
        (Change::Deleted(&asks), 0),
    ] {
        let hub = Hub::new(policy_for("web")).await;
        warn_of_preemption(&hub.components.detector(), &change);
        assert_eq!(hub.events("PreemptionIgnored").await, events);
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_that_no_policy_selects_is_left_alone() {
    let hub = Hub::new(policy_for("other")).await;
    assert_eq!(hub.reconcile().await.unwrap(), Action::Wait);
    assert!(hub.binding().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_binding_of_another_object_is_refused_until_it_is_gone() {
    let hub = Hub::new(policy_for("web")).await;
    let owner = json!({
        "apiVersion": "example.io/v1", "kind": "Deployment", "name": "web", "uid": "other", "controller": true,
    });
    let resource = json!({"apiVersion": "example.io/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    hub.components.stores.bindings.replace_all([object(json!({
        "metadata": {"name": "web-deployment", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"resource": resource},
    }))]);
    let refused = hub.reconcile().await.unwrap_err().to_string();
    assert!(
        refused.contains("belongs to Deployment.example.io default/web"),
        "{refused}"
    );
    let waiting = hub.refused.take(&Key::new("default", "web-deployment"));
    assert_eq!(
        waiting.into_iter().collect::<Vec<_>>(),
        [(deployments(), Key::new("default", "web"))]
    );
}
