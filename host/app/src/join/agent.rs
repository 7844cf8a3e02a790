//! What the agent of a Pull member may do on the control plane, and how it gets there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context as _;
use bulkhead_core::names::{execution_namespace, keys};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::account::{Account, apply};
use crate::run::hub::Hub;

/// Namespace of the agents' accounts and of the Leases of Pull members (as Karmada's).
const NAMESPACE: &str = "karmada-cluster";

/// The account of the agent of a member.
pub(super) fn account_name(name: &str) -> String {
    format!("bulkhead-agent-{name}")
}

/// A file for a kubeconfig that can be written, so that nothing is made for one that cannot.
pub(super) struct Destination<'a> {
    path: &'a Path,
    file: fs::File,
}

impl<'a> Destination<'a> {
    /// Opens it. What is in it stays until there is something else to write; only this user can read a new one.
    pub(super) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        Ok(Self { path, file: file.with_context(|| format!("opening {} for the agent's kubeconfig", path.display()))? })
    }

    fn write(mut self, kubeconfig: &Value) -> anyhow::Result<()> {
        let about = || format!("writing the agent's kubeconfig to {}", self.path.display());
        self.file.set_len(0).with_context(about)?;
        self.file.write_all(&serde_json::to_vec_pretty(kubeconfig)?).with_context(about)
    }
}

/// Makes an account that may look at members, work on its own one, and nothing else, and writes its kubeconfig.
pub(super) async fn allow(hub: &Hub, name: &str, file: Destination<'_>) -> anyhow::Result<()> {
    let account_name = account_name(name);
    let account = Account::make(&hub.unguarded, NAMESPACE, &account_name).await?;
    grant(&hub.unguarded, name).await?;
    file.write(&kubeconfig(&hub.address, &account_name, &account))
}

/// Gives the account of an agent its rights.
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
    for (namespace, rules) in [(works.as_str(), work_rules()), (NAMESPACE, lease_rules())] {
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
        {"apiGroups": ["bulkhead.dev"], "resources": ["plugins"], "verbs": ["get", "list", "watch"]},
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
