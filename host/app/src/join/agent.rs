//! What the agent of a Pull member may do on the control plane, and how it gets there.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context as _;
use bulkhead_core::names::{execution_namespace, keys};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use serde_json::{Value, json};

use super::account::{Account, apply};
use crate::run::hub::Hub;

/// Namespace of the agents' accounts and of the Leases of Pull members (as Karmada's).
const NAMESPACE: &str = "karmada-cluster";

/// Makes an account that may look at members, work on its own one, and nothing else, and writes its kubeconfig to a
/// file that only this user can read.
pub(super) async fn allow(hub: &Hub, name: &str, file: &Path) -> anyhow::Result<()> {
    let client = &hub.unguarded;
    let account_name = format!("bulkhead-agent-{name}");
    let account = Account::make(client, NAMESPACE, &account_name).await?;
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
    for (namespace, rules) in [(works.as_str(), work_rules()), (NAMESPACE, lease_rules())] {
        let role = json!({"metadata": metadata(namespace), "rules": rules});
        apply::<Role>(&Api::namespaced(client.clone(), namespace), role).await?;
        let bound = json!({"metadata": metadata(namespace), "roleRef": reference("Role"), "subjects": subjects});
        apply::<RoleBinding>(&Api::namespaced(client.clone(), namespace), bound).await?;
    }
    write(file, &kubeconfig(&hub.address, &account_name, &account))
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
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ])
}

fn work_rules() -> Value {
    let group = json!(["work.karmada.io"]);
    json!([
        {"apiGroups": group, "resources": ["works"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": group, "resources": ["works/status"], "verbs": ["get", "patch", "update"]},
    ])
}

fn lease_rules() -> Value {
    json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}])
}

fn kubeconfig(server: &str, user: &str, account: &Account) -> Value {
    let mut cluster = json!({"server": server.trim_end_matches('/')});
    if account.ca_bundle.is_empty() {
        cluster["insecure-skip-tls-verify"] = json!(true);
    } else {
        cluster["certificate-authority-data"] = json!(ByteString(account.ca_bundle.clone()));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "control-plane", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": account.token}}],
        "contexts": [{"name": "control-plane", "context": {"cluster": "control-plane", "user": user}}],
        "current-context": "control-plane",
    })
}

fn write(file: &Path, kubeconfig: &Value) -> anyhow::Result<()> {
    use std::io::Write;
    let about = || format!("writing the agent's kubeconfig to {}", file.display());
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create(true).truncate(true).mode(0o600).open(file).with_context(about)?;
    open.write_all(&serde_json::to_vec_pretty(kubeconfig)?).with_context(about)
}
