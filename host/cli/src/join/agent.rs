//! Permissions and kubeconfig of a Pull member's agent on the control plane.

use anyhow::Context as _;
use bulkhead_api::Cluster;
use bulkhead_core::names::{execution_namespace, keys};
use bulkhead_runtime::controller::is_not_found;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::DeleteParams;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::account::{Account, apply, secrets_of};
use crate::kubeconfig::{Access, Destination, Trust};

/// Namespace of the agents' accounts and of the Leases of Pull members (same as Karmada's).
const NAMESPACE: &str = "karmada-cluster";

/// Prefix of the names of the agents' accounts.
pub(super) const ACCOUNT_PREFIX: &str = "bulkhead-agent-";

/// Returns the name of the service account of a member's agent.
pub(super) fn account_name(name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{name}")
}

/// Invalidates the tokens of a member's agent. The agent of a cluster whose name belongs to another one must not renew
/// the Lease of that one.
pub(super) async fn revoke(client: &Client, name: &str) -> anyhow::Result<()> {
    let account_name = account_name(name);
    let about = || format!("revoking the tokens of {NAMESPACE}/{account_name}");
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let mut deleted = vec![accounts.delete(&account_name, &DeleteParams::default()).await.map(drop)];
    for secret in secrets_of(&secrets, &account_name).await? {
        deleted.push(secrets.delete(&secret, &DeleteParams::default()).await.map(drop));
    }
    for deleted in deleted {
        match deleted {
            Err(error) if is_not_found(&error) => {}
            deleted => deleted.with_context(about)?,
        }
    }
    Ok(())
}

/// Creates the account of an agent with a token in a Secret. The account can read members and update its own member
/// only.
pub(super) async fn allow(client: &Client, name: &str, secret: &str) -> anyhow::Result<Account> {
    let account = Account::make(client, NAMESPACE, &account_name(name), secret).await?;
    grant(client, name).await?;
    Ok(account)
}

/// Writes the kubeconfig of an agent for the control plane at `server`.
pub(super) fn write_kubeconfig(
    server: &str,
    name: &str,
    account: Account,
    file: Destination<'_>,
) -> anyhow::Result<()> {
    let trust = if account.ca_bundle.is_empty() {
        Trust::Any
    } else {
        Trust::Bundle(account.ca_bundle)
    };
    file.write(&Access {
        server,
        user: &account_name(name),
        token: &account.token,
        trust,
        ..Access::default()
    })
}

/// Creates the Lease that the agent renews, owned by its Cluster.
pub(super) async fn make_lease(client: &Client, name: &str) -> anyhow::Result<()> {
    let cluster = Api::<Cluster>::all(client.clone()).get(name).await?;
    let lease = json!({"metadata": {"name": name, "ownerReferences": [cluster.owner_ref(&())]}});
    apply::<Lease>(&Api::namespaced(client.clone(), NAMESPACE), lease).await
}

/// Grants the account of an agent its permissions.
pub(super) async fn grant(client: &Client, name: &str) -> anyhow::Result<()> {
    let account_name = account_name(name);
    let works = execution_namespace(name);
    let namespace = json!({"metadata": {"name": works, "labels": {keys::SYSTEM: "true"}}});
    apply::<Namespace>(&Api::all(client.clone()), namespace).await?;
    let metadata = |namespace: &str| json!({"name": account_name, "namespace": namespace});
    let subjects = json!([{"kind": "ServiceAccount", "name": account_name, "namespace": NAMESPACE}]);
    let reference = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account_name});

    let everywhere = json!({"metadata": {"name": account_name}, "rules": cluster_rules(name)});
    apply::<ClusterRole>(&Api::all(client.clone()), everywhere).await?;
    let bound = json!({"metadata": {"name": account_name}, "roleRef": reference("ClusterRole"), "subjects": subjects});
    apply::<ClusterRoleBinding>(&Api::all(client.clone()), bound).await?;
    for (namespace, rules) in [(works.as_str(), work_rules()), (NAMESPACE, lease_rules(name))] {
        let role = json!({"metadata": metadata(namespace), "rules": rules});
        apply::<Role>(&Api::namespaced(client.clone(), namespace), role).await?;
        let bound = json!({"metadata": metadata(namespace), "roleRef": reference("Role"), "subjects": subjects});
        apply::<RoleBinding>(&Api::namespaced(client.clone(), namespace), bound).await?;
    }
    Ok(())
}

fn cluster_rules(name: &str) -> Value {
    let group = json!(["cluster.karmada.io"]);
    json!([
        {"apiGroups": group, "resources": ["clusters"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": group,
            "resources": ["clusters/status"],
            "resourceNames": [name],
            "verbs": ["get", "patch", "update"],
        },
        {
            "apiGroups": ["config.karmada.io"],
            "resources": ["resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations"],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["bulkhead.dev"],
            "resources": ["plugins", "plugintrusts"],
            "verbs": ["get", "list", "watch"],
        },
    ])
}

/// Returns the rules for the execution namespace. Events are included because the agent emits events about its
/// Works.
fn work_rules() -> Value {
    let group = json!(["work.karmada.io"]);
    json!([
        {"apiGroups": group, "resources": ["works"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": group, "resources": ["works/status"], "verbs": ["get", "patch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ])
}

/// Returns the rules for the agent's own Lease only: renewing another member's Lease could keep a dead cluster
/// alive. RBAC cannot restrict `create` to a name, so the control plane creates the Lease.
fn lease_rules(name: &str) -> Value {
    json!([{
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [name],
        "verbs": ["get", "update"],
    }])
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::PolicyRule;

    use super::super::account::make_namespace;
    use super::super::testing::server;
    use super::*;

    /// Request: verb, group, resource, namespace (empty for cluster scope or all) and name.
    type Request<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

    /// Returns true if the roles on the control plane allow a member's agent the request, as Kubernetes RBAC
    /// evaluates it.
    async fn allows(hub: &Client, member: &str, (verb, group, resource, namespace, name): Request<'_>) -> bool {
        let account = account_name(member);
        let mut rules = Api::<ClusterRole>::all(hub.clone())
            .get(&account)
            .await
            .unwrap()
            .rules
            .unwrap();
        if !namespace.is_empty()
            && let Some(role) = Api::<Role>::namespaced(hub.clone(), namespace)
                .get_opt(&account)
                .await
                .unwrap()
        {
            rules.extend(role.rules.unwrap());
        }
        let has =
            |list: &Option<Vec<String>>, wanted: &str| list.iter().flatten().any(|one| one == wanted || one == "*");
        rules.iter().any(|rule: &PolicyRule| {
            let named = rule
                .resource_names
                .as_ref()
                .is_none_or(|names| names.iter().any(|one| one == name));
            has(&rule.api_groups, group)
                && has(&rule.resources, resource)
                && rule.verbs.iter().any(|v| v == verb)
                && named
        })
    }

    #[tokio::test]
    async fn an_agent_renews_its_own_lease_and_no_other() {
        let hub = server("hub").client();
        make_namespace(&hub, NAMESPACE).await.unwrap();
        grant(&hub, "a").await.unwrap();
        grant(&hub, "b").await.unwrap();
        let check = async |request: Request<'_>, allowed: bool| {
            assert_eq!(allows(&hub, "a", request).await, allowed, "{request:?}");
        };
        let leases = "coordination.k8s.io";
        check(("get", leases, "leases", NAMESPACE, "a"), true).await;
        check(("update", leases, "leases", NAMESPACE, "a"), true).await;
        for verb in ["get", "update", "patch", "create", "delete", "list"] {
            check((verb, leases, "leases", NAMESPACE, "b"), false).await;
        }
        // RBAC cannot match the name of an object in a create request.
        check(("create", leases, "leases", NAMESPACE, ""), false).await;
        check(("update", "cluster.karmada.io", "clusters/status", "", "a"), true).await;
        check(("update", "cluster.karmada.io", "clusters/status", "", "b"), false).await;
        check(("create", "", "events", "karmada-es-a", ""), true).await;
        for namespace in ["", "default", "karmada-es-b", NAMESPACE] {
            check(("create", "", "events", namespace, ""), false).await;
        }
        check(
            ("update", "work.karmada.io", "works/status", "karmada-es-b", "w"),
            false,
        )
        .await;
    }

    #[tokio::test]
    async fn the_token_of_a_replaced_cluster_is_revoked() {
        let hub = server("hub").client();
        make_namespace(&hub, NAMESPACE).await.unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(hub.clone(), NAMESPACE);
        let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
        for name in ["a", "b"] {
            let metadata = json!({"metadata": {"name": account_name(name)}});
            apply(&accounts, metadata.clone()).await.unwrap();
            apply(&secrets, metadata).await.unwrap();
        }
        // A repeated join has nothing left to revoke.
        for _ in 0..2 {
            revoke(&hub, "a").await.unwrap();
            for (name, expected) in [("a", false), ("b", true)] {
                let account = accounts.get_opt(&account_name(name)).await.unwrap();
                let token = secrets.get_opt(&account_name(name)).await.unwrap();
                assert_eq!((account.is_some(), token.is_some()), (expected, expected), "{name}");
            }
        }
    }

    #[tokio::test]
    async fn the_lease_of_an_agent_is_made_once_and_goes_with_its_cluster() {
        let hub = server("hub").client();
        make_namespace(&hub, NAMESPACE).await.unwrap();
        let cluster = json!({"metadata": {"name": "a"}, "spec": {"id": "uid-a", "syncMode": "Pull"}});
        apply::<Cluster>(&Api::all(hub.clone()), cluster).await.unwrap();
        let leases: Api<Lease> = Api::namespaced(hub.clone(), NAMESPACE);
        make_lease(&hub, "a").await.unwrap();
        let mut lease = leases.get("a").await.unwrap();
        lease.spec.get_or_insert_default().holder_identity = Some("a".to_owned());
        leases.replace("a", &Default::default(), &lease).await.unwrap();
        // A repeated join does not overwrite the renewals.
        make_lease(&hub, "a").await.unwrap();
        assert_eq!(
            leases.get("a").await.unwrap().spec.unwrap().holder_identity.as_deref(),
            Some("a")
        );
        Api::<Cluster>::all(hub.clone())
            .delete("a", &Default::default())
            .await
            .unwrap();
        assert!(leases.get_opt("a").await.unwrap().is_none());
    }
}
