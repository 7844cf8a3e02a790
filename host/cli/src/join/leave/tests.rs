use std::fmt::Debug;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::IMPERSONATOR;
use super::super::account::{Account, apply};
use super::super::testing::server;
use super::*;

async fn names<K>(client: &Client) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let list = Api::<K>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    list.iter().map(ResourceExt::name_any).collect()
}

/// Creates the objects that `join` creates for a Push member, on both sides.
async fn joined(hub: &Client, member: &Client) {
    for client in [hub, member] {
        super::super::account::make_namespace(client, NAMESPACE).await.unwrap();
    }
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": NAMESPACE}});
    let mut secret = named("m1");
    secret["data"] = json!({"token": "dA=="});
    apply::<Secret>(&Api::namespaced(hub.clone(), NAMESPACE), secret)
        .await
        .unwrap();
    apply::<Cluster>(
        &Api::all(hub.clone()),
        json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}}),
    )
    .await
    .unwrap();
    apply::<Secret>(&Api::namespaced(member.clone(), NAMESPACE), named(ACCOUNT))
        .await
        .unwrap();
    apply::<ServiceAccount>(&Api::namespaced(member.clone(), NAMESPACE), named(ACCOUNT))
        .await
        .unwrap();
    apply::<ClusterRoleBinding>(
        &Api::all(member.clone()),
        json!({
            "metadata": {"name": BINDING},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        }),
    )
    .await
    .unwrap();
}

fn leaving(hub: &Client, member: Option<&Client>) -> Leaving<'static> {
    let timeout = Duration::from_mins(1);
    Leaving {
        hub: hub.clone(),
        member: member.cloned(),
        name: "m1",
        timeout,
        dry_run: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_member_leaves_nothing_behind_on_either_side() {
    let (hub, member) = (server("hub").client(), server("m1").client());
    joined(&hub, &member).await;
    let message = leaving(&hub, Some(&member)).leave().await.unwrap();
    assert_eq!(
        message,
        "m1 has left\nremoved on the control plane: Secret karmada-cluster/m1\nremoved in the member: \
             ClusterRoleBinding bulkhead-controller-manager, Secret karmada-cluster/bulkhead, ServiceAccount \
             karmada-cluster/bulkhead, Namespace karmada-cluster"
    );
    assert_eq!(
        names::<Secret>(&hub).await.len() + names::<Secret>(&member).await.len(),
        0
    );
    assert_eq!(names::<ClusterRoleBinding>(&member).await.len(), 0);
    let error = leaving(&hub, None).leave().await.unwrap_err().to_string();
    assert_eq!(error, "there is no member cluster m1; there are: none");
}

/// Creates the account of Karmada's cluster proxy with its token, as the token controller does, in a member.
async fn with_impersonator(member: &Client) {
    let secrets: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    let secret = json!({
        "metadata": {"name": IMPERSONATOR}, "type": "kubernetes.io/service-account-token", "data": {"token": "dA=="},
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets.create(&Default::default(), &secret).await.unwrap();
    Account::make_impersonator(member).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_account_of_the_cluster_proxy_goes_unless_another_program_made_it() {
    for made_by_karmada in [false, true] {
        let (hub, member) = (server("hub").client(), server("m1").client());
        joined(&hub, &member).await;
        if made_by_karmada {
            let account = json!({"metadata": {"name": IMPERSONATOR, "labels": {"karmada.io/system": "true"}}});
            let account = serde_json::from_value(account).unwrap();
            let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
            accounts.create(&Default::default(), &account).await.unwrap();
        }
        with_impersonator(&member).await;
        // A second join of the member finds the account.
        Account::make_impersonator(&member).await.unwrap();
        let message = leaving(&hub, Some(&member)).leave().await.unwrap();
        let removed =
            "Secret karmada-cluster/karmada-impersonator, ServiceAccount karmada-cluster/karmada-impersonator";
        assert_eq!(message.contains(removed), !made_by_karmada, "{message}");
        assert_eq!(message.contains("Namespace"), !made_by_karmada, "{message}");
        let expected: &[&str] = if made_by_karmada { &[IMPERSONATOR] } else { &[] };
        assert_eq!(names::<Secret>(&member).await, expected);
        assert_eq!(names::<ServiceAccount>(&member).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_that_another_control_plane_uses_stays() {
    let (hub, member) = (server("hub").client(), server("m1").client());
    joined(&hub, &member).await;
    let system = json!({"metadata": {"name": "kube-system"}});
    apply::<Namespace>(&Api::all(hub.clone()), system).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let ours = control_plane_id(&hub).await.unwrap();
    set_user(&accounts, ACCOUNT, &ours, Some("m1")).await.unwrap();
    set_user(&accounts, ACCOUNT, "another", Some("eu-1")).await.unwrap();
    let message = leaving(&hub, Some(&member)).leave().await.unwrap();
    assert!(message.starts_with("m1 has left\n"), "{message}");
    assert!(
        message.contains("where its name is eu-1, uses the account karmada-cluster/bulkhead;"),
        "{message}"
    );
    let remedy = "bulkhead unjoin eu-1 --cluster-kubeconfig FILE --gone-control-plane another";
    assert!(message.ends_with(remedy), "{message}");
    assert_eq!(
        (
            names::<ServiceAccount>(&member).await,
            names::<Secret>(&member).await.len()
        ),
        (vec![ACCOUNT.into()], 1)
    );
    assert_eq!(names::<ClusterRoleBinding>(&member).await, [BINDING]);
    // The other control plane is the last one, and removes the account.
    assert_eq!(
        users(&accounts, ACCOUNT).await.unwrap().into_keys().collect::<Vec<_>>(),
        ["another"]
    );
    set_user(&accounts, ACCOUNT, "another", None).await.unwrap();
    leaving(&hub, Some(&member)).leave().await.unwrap();
    assert!(names::<ServiceAccount>(&member).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_names_the_objects_and_removes_none() {
    let (hub, member) = (server("hub").client(), server("m1").client());
    joined(&hub, &member).await;
    let message = Leaving {
        dry_run: true,
        ..leaving(&hub, Some(&member))
    }
    .leave()
    .await
    .unwrap();
    assert!(
        message.starts_with("m1 would leave (dry run)\nwould be removed on the control plane: "),
        "{message}"
    );
    assert!(
        message.contains("would be removed in the member: ClusterRoleBinding"),
        "{message}"
    );
    assert_eq!(names::<Cluster>(&hub).await, ["m1"]);
    assert_eq!(
        (names::<Secret>(&hub).await.len(), names::<Secret>(&member).await.len()),
        (1, 1)
    );
    assert_eq!(names::<ClusterRoleBinding>(&member).await, [BINDING]);
}

#[tokio::test(start_paused = true)]
async fn without_its_kubeconfig_the_account_of_the_member_is_kept_and_removed_later() {
    let (hub, member) = (server("hub").client(), server("m1").client());
    joined(&hub, &member).await;
    let others = json!({"metadata": {"name": "settings", "namespace": NAMESPACE}, "data": {"a": "b"}});
    apply::<ConfigMap>(&Api::namespaced(member.clone(), NAMESPACE), others)
        .await
        .unwrap();
    let message = leaving(&hub, None).leave().await.unwrap();
    assert!(
        message.contains("bulkhead unjoin m1 --cluster-kubeconfig FILE"),
        "{message}"
    );
    assert_eq!(names::<ServiceAccount>(&member).await, [ACCOUNT]);
    let message = leaving(&hub, Some(&member)).leave().await.unwrap();
    assert!(
        message.starts_with("removed in the member: ClusterRoleBinding") && !message.contains("Namespace"),
        "{message}"
    );
    assert!(
        names::<Namespace>(&member).await.contains(&NAMESPACE.to_owned()),
        "somebody else's things are in it"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_stay_until_the_cluster_is_gone_and_foreign_ones_are_kept() {
    let (hub, member) = (server("hub").client(), server("m1").client());
    joined(&hub, &member).await;
    let clusters = Api::<Cluster>::all(hub.clone());
    let hold = |finalizers: serde_json::Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    clusters
        .patch(
            "m1",
            &PatchParams::default(),
            &hold(json!(["karmada.io/cluster-controller"])),
        )
        .await
        .unwrap();
    let error = leaving(&hub, Some(&member)).leave().await.unwrap_err().to_string();
    assert!(
        error.contains("still waits for karmada.io/cluster-controller"),
        "{error}"
    );
    assert_eq!(
        (names::<Secret>(&hub).await, names::<Secret>(&member).await),
        (vec!["m1".into()], vec![ACCOUNT.into()])
    );
    clusters
        .patch("m1", &PatchParams::default(), &hold(json!(null)))
        .await
        .unwrap();
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    secrets.delete("m1", &DeleteParams::default()).await.unwrap();
    let theirs = serde_json::from_value(json!({"metadata": {"name": "m1"}})).unwrap();
    secrets.create(&Default::default(), &theirs).await.unwrap();
    leaving(&hub, Some(&member)).leave().await.unwrap();
    assert_eq!(
        (names::<Secret>(&hub).await, names::<Secret>(&member).await.len()),
        (vec!["m1".into()], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_account_of_an_agent_goes_with_its_member() {
    let hub = server("hub").client();
    super::super::account::make_namespace(&hub, NAMESPACE).await.unwrap();
    apply::<Cluster>(
        &Api::all(hub.clone()),
        json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Pull"}}),
    )
    .await
    .unwrap();
    agent::grant(&hub, "m1").await.unwrap();
    let account = json!({"metadata": {"name": agent::account_name("m1"), "namespace": NAMESPACE}});
    apply::<ServiceAccount>(&Api::namespaced(hub.clone(), NAMESPACE), account)
        .await
        .unwrap();
    leaving(&hub, None).leave().await.unwrap();
    let remaining = [
        names::<ServiceAccount>(&hub).await,
        names::<Role>(&hub).await,
        names::<RoleBinding>(&hub).await,
        names::<ClusterRole>(&hub).await,
        names::<ClusterRoleBinding>(&hub).await,
    ];
    assert_eq!(remaining.concat(), [""; 0]);
}
