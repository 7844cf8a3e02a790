//! `bulkhead unjoin`: removes everything that `bulkhead join` created.
//!
//! Credentials are removed last: the controllers or the agent need them to release the workloads in the member.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_core::model::SyncMode;
use bulkhead_core::names::execution_namespace;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use super::account::{secrets_of, set_user, users};
use super::removal::{Removed, clear_member, deletion};
use super::{ACCOUNT, BINDING, NAMESPACE, agent, control_plane_id, gone};

/// Polling interval for the deletion of the Cluster.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Removal of a member cluster.
pub(super) struct Leaving<'a> {
    /// Client of the control plane.
    pub(super) hub: Client,
    /// Client of the member, if it is to be cleaned up.
    pub(super) member: Option<Client>,
    /// Name of the member.
    pub(super) name: &'a str,
    /// Maximum time to wait for the deletion of its Cluster.
    pub(super) timeout: Duration,
    /// True if the API servers check the deletions without making them.
    pub(super) dry_run: bool,
}

impl Leaving<'_> {
    /// Removes the member. Returns lines that list the removed objects, and how to remove the remaining ones.
    pub(super) async fn leave(&self) -> anyhow::Result<String> {
        let name = self.name;
        let removed = self.remove_cluster().await?;
        let mut hub = Removed::of(&self.hub, self.dry_run);
        self.clear_hub(&mut hub).await?;
        let mut lines = Vec::new();
        if removed.is_some() {
            lines.push(format!(
                "{name} {}",
                if self.dry_run {
                    "would leave (dry run)"
                } else {
                    "has left"
                }
            ));
        } else if !hub.names.is_empty() {
            lines.push(format!("{name} is not a member any more"));
        } else if self.member.is_none() {
            check_member(&Api::all(self.hub.clone()), name).await?;
        }
        lines.extend(hub.summary("on the control plane"));
        let kept = match &self.member {
            Some(client) => self.keep_account(client).await?,
            None => None,
        };
        match (&self.member, kept) {
            (_, Some(line)) => lines.push(line),
            (Some(client), None) => {
                let mut member = Removed::of(client, self.dry_run);
                let cleared = clear_member(&mut member).await;
                lines.extend(member.summary("in the member"));
                cleared.with_context(|| format!("{}; cleaning up in the member", lines.join("; ")))?;
                if member.names.is_empty() {
                    lines.push("the member has no objects of Bulkhead".to_owned());
                }
            }
            // A Pull member contains no account of the control plane.
            (None, None) if removed.is_some_and(|cluster| cluster.spec.sync_mode == SyncMode::Pull) => {}
            (None, None) => lines.push(format!(
                "not cleaned up: the member; a Push member has the account {NAMESPACE}/{ACCOUNT} with its token, and \
                 the ClusterRoleBinding {BINDING} gives it full access there; to remove it: bulkhead unjoin {name} \
                 --cluster-kubeconfig FILE"
            )),
        }
        Ok(lines.join("\n"))
    }

    /// Returns a line if another control plane uses the account in the member, which then stays: without it, that
    /// control plane loses the cluster, and evicts its workloads.
    async fn keep_account(&self, client: &Client) -> anyhow::Result<Option<String>> {
        let control_plane = control_plane_id(&self.hub).await?;
        let accounts = Api::namespaced(client.clone(), NAMESPACE);
        let mut others = users(&accounts, ACCOUNT).await?;
        others.remove(&control_plane);
        if others.is_empty() {
            return Ok(None);
        }
        if !self.dry_run && !control_plane.is_empty() {
            set_user(&accounts, ACCOUNT, &control_plane, None).await?;
        }
        let names: Vec<_> = others.values().map(String::as_str).collect();
        let gone: Vec<_> = others.iter().map(|(uid, name)| gone::command(name, uid)).collect();
        Ok(Some(format!(
            "not cleaned up: the member; another control plane, where its name is {}, uses the account \
             {NAMESPACE}/{ACCOUNT}; if that control plane no longer exists: {}",
            names.join(", "),
            gone.join("; ")
        )))
    }

    /// Deletes the Cluster and waits until it is gone. Returns the Cluster from before the deletion, `None` if it
    /// did not exist.
    async fn remove_cluster(&self) -> anyhow::Result<Option<Cluster>> {
        let (clusters, name) = (Api::<Cluster>::all(self.hub.clone()), self.name);
        let about = || format!("deleting the Cluster {name}");
        let Some(before) = clusters.get_opt(name).await.with_context(about)? else {
            return Ok(None);
        };
        clusters
            .delete(name, &deletion(self.dry_run))
            .await
            .with_context(about)?;
        if self.dry_run {
            return Ok(Some(before));
        }
        let started = Instant::now();
        while let Some(cluster) = clusters.get_opt(name).await.with_context(about)? {
            if started.elapsed() >= self.timeout {
                bail!(
                    "{name} is leaving, but its Cluster still waits for {}: check that the controllers run{}; their \
                     account in the member stays until then; run the same command again to remove it",
                    cluster.finalizers().join(", "),
                    if cluster.spec.sync_mode == SyncMode::Pull {
                        ", and its agent"
                    } else {
                        ""
                    },
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(Some(before))
    }

    /// Removes the credentials of a Push member and the account of a Pull member's agent.
    async fn clear_hub(&self, removed: &mut Removed<'_>) -> anyhow::Result<()> {
        let name = self.name;
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), NAMESPACE);
        for secret in secrets_of(&secrets, name).await? {
            removed.remove::<Secret>(NAMESPACE, &secret).await?;
        }
        let account = agent::account_name(name);
        removed.remove_global::<ClusterRoleBinding>(&account).await?;
        removed.remove_global::<ClusterRole>(&account).await?;
        for namespace in [NAMESPACE, &execution_namespace(name)] {
            removed.remove::<RoleBinding>(namespace, &account).await?;
            removed.remove::<Role>(namespace, &account).await?;
        }
        for secret in secrets_of(&secrets, &account).await? {
            removed.remove::<Secret>(NAMESPACE, &secret).await?;
        }
        removed.remove::<ServiceAccount>(NAMESPACE, &account).await
    }
}

/// Checks that a member cluster exists. The error lists the existing ones.
pub(crate) async fn check_member(clusters: &Api<Cluster>, name: &str) -> anyhow::Result<()> {
    let clusters = clusters
        .list(&ListParams::default())
        .await
        .context("reading the member clusters")?;
    let names: Vec<_> = clusters.iter().map(ResourceExt::name_any).collect();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let known = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    bail!("there is no member cluster {name}; there are: {known}")
}

#[cfg(test)]
mod tests;
