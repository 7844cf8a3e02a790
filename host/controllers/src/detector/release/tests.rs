use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::super::tests::{Hub, deployments, policy_for};
use super::*;
use crate::testing::object;

const OTHER_FINALIZER: &str = "example.com/keep";

/// Returns the policy of [`policy_for`] with finalizers.
fn with_finalizers(finalizers: &[&str]) -> PropagationPolicy {
    let mut policy = policy_for("web");
    policy.metadata.finalizers = Some(finalizers.iter().map(|text| (*text).to_owned()).collect());
    policy
}

fn api(hub: &Hub) -> Api<PropagationPolicy> {
    Api::namespaced(hub.hub.clone(), "default")
}

/// Returns the label and the annotations of the claim in an object's metadata.
fn claims(metadata: &ObjectMeta) -> Vec<String> {
    let names = |map: &Option<std::collections::BTreeMap<String, String>>| {
        let all = map.iter().flatten();
        all.filter(|(key, _)| key.contains("propagationpolicy.karmada.io/"))
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
    };
    [names(&metadata.labels), names(&metadata.annotations)].concat()
}

/// Marks of a claim by the policy of [`policy_for`].
const CLAIMED: [&str; 3] = [
    "propagationpolicy.karmada.io/permanent-id=id",
    "propagationpolicy.karmada.io/name=policy",
    "propagationpolicy.karmada.io/namespace=default",
];

async fn template(hub: &Hub) -> DynamicObject {
    let known = hub.components.detector().templates;
    let kind = known.kinds.resolve(&deployments()).await.unwrap();
    let templates: Api<DynamicObject> = kind.api(known.hub.clone(), "default");
    templates.get("web").await.unwrap()
}

/// Waits until the informer of templates has the latest version.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}

impl Hub {
    /// Claims and binds the template, and then deletes its policy, which keeps its finalizers.
    async fn with_deleted_policy(finalizers: &[&str]) -> Self {
        let hub = Self::new(policy_for("web")).await;
        let policies = api(&hub);
        policies
            .create(&PostParams::default(), &with_finalizers(finalizers))
            .await
            .unwrap();
        hub.reconcile().await.unwrap();
        settle().await;
        policies.delete("policy", &DeleteParams::default()).await.unwrap();
        let deleted = policies.get("policy").await.unwrap();
        hub.components.stores.policies.replace_all([deleted]);
        let bound = hub.binding().await.unwrap();
        assert_eq!(claims(&bound.metadata), CLAIMED);
        assert_eq!(claims(&template(&hub).await.metadata), CLAIMED);
        hub.components.stores.bindings.replace_all([bound]);
        hub
    }

    async fn release(&self) -> Result<Action, Error> {
        reconcile(self.components.detector(), Key::new("default", "policy")).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_policy_goes_after_its_marks_and_the_binding_stays() {
    let hub = Hub::with_deleted_policy(&[keys::PROPAGATION_POLICY_FINALIZER]).await;
    let before = hub.binding().await.unwrap();
    assert_eq!(hub.release().await.unwrap(), Action::Wait);
    let bound = hub.binding().await.unwrap();
    assert_eq!(claims(&bound.metadata), [""; 0]);
    assert_eq!((bound.spec, bound.metadata.uid), (before.spec, before.metadata.uid));
    assert_eq!(claims(&template(&hub).await.metadata), [""; 0]);
    assert_eq!(api(&hub).get_opt("policy").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_other_programs_stay() {
    let hub = Hub::with_deleted_policy(&[OTHER_FINALIZER, keys::PROPAGATION_POLICY_FINALIZER]).await;
    hub.release().await.unwrap();
    let policy = api(&hub).get("policy").await.unwrap();
    assert_eq!(policy.finalizers(), [OTHER_FINALIZER]);
    // The policy is released already.
    hub.components.stores.policies.replace_all([policy.clone()]);
    hub.release().await.unwrap();
    let version = api(&hub).get("policy").await.unwrap().resource_version();
    assert_eq!(version, policy.resource_version());
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_not_deleted_keeps_finalizer_and_marks() {
    let hub = Hub::new(with_finalizers(&[keys::PROPAGATION_POLICY_FINALIZER])).await;
    hub.reconcile().await.unwrap();
    hub.release().await.unwrap();
    assert_eq!(claims(&hub.binding().await.unwrap().metadata), CLAIMED);
    assert_eq!(claims(&template(&hub).await.metadata), CLAIMED);
}

#[tokio::test(start_paused = true)]
async fn another_policy_claims_the_template_and_its_claim_stays() {
    let hub = Hub::with_deleted_policy(&[keys::PROPAGATION_POLICY_FINALIZER]).await;
    let cluster_wide: ClusterPropagationPolicy = object(json!({
        "metadata": {"name": "all", "labels": {keys::CLUSTER_PROPAGATION_POLICY_ID: "id-all"}},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {}, "schedulerName": "edited",
        },
    }));
    hub.components.stores.cluster_policies.replace_all([cluster_wide]);
    hub.reconcile().await.unwrap();
    let claimed = [
        "clusterpropagationpolicy.karmada.io/permanent-id=id-all",
        "clusterpropagationpolicy.karmada.io/name=all",
    ];
    let bound = hub.binding().await.unwrap();
    assert_eq!(claims(&bound.metadata), claimed);
    assert_eq!(bound.spec.scheduler_name, "edited");
    assert_eq!(claims(&template(&hub).await.metadata), claimed);
    hub.components.stores.bindings.replace_all([bound]);
    hub.release().await.unwrap();
    assert_eq!(claims(&hub.binding().await.unwrap().metadata), claimed);
    assert_eq!(claims(&template(&hub).await.metadata), claimed);
    assert_eq!(api(&hub).get_opt("policy").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_template_of_a_kind_that_the_policy_no_longer_selects_is_found_by_its_binding() {
    let hub = Hub::with_deleted_policy(&[keys::PROPAGATION_POLICY_FINALIZER]).await;
    let mut policy = api(&hub).get("policy").await.unwrap();
    for selector in &mut policy.spec.resource_selectors {
        "Unknown".clone_into(&mut selector.kind);
    }
    hub.components.stores.policies.replace_all([policy]);
    hub.release().await.unwrap();
    assert_eq!(claims(&template(&hub).await.metadata), [""; 0]);
    assert_eq!(api(&hub).get_opt("policy").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn marks_of_a_policy_that_is_gone_are_removed_with_its_template() {
    let hub = Hub::with_deleted_policy(&[OTHER_FINALIZER]).await;
    // While the policy is being deleted, the marks are left to its release.
    hub.reconcile().await.unwrap();
    assert_eq!(claims(&template(&hub).await.metadata), CLAIMED);
    hub.components.stores.policies.replace_all([]);
    hub.reconcile().await.unwrap();
    assert_eq!(claims(&hub.binding().await.unwrap().metadata), [""; 0]);
    assert_eq!(claims(&template(&hub).await.metadata), [""; 0]);
}

#[test]
fn a_removal_names_every_mark() {
    let removal = PropagationPolicy::MARKS.removal();
    assert_eq!(
        removal,
        json!({
            "labels": {keys::PROPAGATION_POLICY_ID: Value::Null},
            "annotations": {keys::PROPAGATION_POLICY_NAMESPACE: null, keys::PROPAGATION_POLICY_NAME: null},
        })
    );
}
