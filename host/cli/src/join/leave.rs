//! `bulkhead unjoin`: removes everything that `bulkhead join` created.
//!
//! Credentials are removed last: the controllers or the agent need them to release the workloads in the member.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_core::model::SyncMode;
use bulkhead_core::names::execution_namespace;
use bulkhead_runtime::controller::is_not_found;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::account::{MADE_BY, set_user, users};
use super::register::secrets_of;
use super::{ACCOUNT, BINDING, NAMESPACE, agent, control_plane_id, gone};

/// Polling interval for the deletion of the Cluster.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Names of objects that exist in every namespace.
const OF_EVERY_NAMESPACE: [&str; 2] = ["default", "kube-root-ca.crt"];

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

/// Removes the objects that `join` created in a Push member, permissions first.
pub(super) async fn clear_member(removed: &mut Removed<'_>) -> anyhow::Result<()> {
    removed.remove_global::<ClusterRoleBinding>(BINDING).await?;
    removed.remove::<Secret>(NAMESPACE, ACCOUNT).await?;
    removed.remove::<ServiceAccount>(NAMESPACE, ACCOUNT).await?;
    let client = removed.client;
    let namespace = Api::<Namespace>::all(client.clone()).get_opt(NAMESPACE).await;
    let namespace = namespace.with_context(|| format!("reading the Namespace {NAMESPACE}"))?;
    let is_ours = |namespace: &Namespace| {
        namespace.metadata.deletion_timestamp.is_none()
            && namespace.labels().get(MADE_BY.0).is_some_and(|by| by == MADE_BY.1)
    };
    if namespace.as_ref().is_some_and(is_ours)
        && is_empty::<Secret>(client).await?
        && is_empty::<ServiceAccount>(client).await?
        && is_empty::<ConfigMap>(client).await?
        && is_empty::<Pod>(client).await?
    {
        removed.remove_global::<Namespace>(NAMESPACE).await?;
    }
    Ok(())
}

/// Returns true if the namespace that `join` uses in the member contains no object of a kind, apart from the default
/// ones.
async fn is_empty<K>(client: &Client) -> anyhow::Result<bool>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let found = Api::<K>::namespaced(client.clone(), NAMESPACE)
        .list(&ListParams::default())
        .await;
    let found = found.with_context(|| format!("listing {} in {NAMESPACE}", K::plural(&())))?;
    Ok(found
        .items
        .iter()
        .all(|object| OF_EVERY_NAMESPACE.contains(&object.name_any().as_str())))
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

/// Names of the objects removed from an API server.
pub(super) struct Removed<'a> {
    client: &'a Client,
    pub(super) names: Vec<String>,
    dry_run: bool,
}

/// Returns the parameters of a deletion.
fn deletion(dry_run: bool) -> DeleteParams {
    if dry_run {
        DeleteParams::default().dry_run()
    } else {
        DeleteParams::default()
    }
}

impl<'a> Removed<'a> {
    pub(super) fn of(client: &'a Client, dry_run: bool) -> Self {
        Self {
            client,
            names: Vec::new(),
            dry_run,
        }
    }

    pub(super) fn summary(&self, place: &str) -> Option<String> {
        let done = if self.dry_run { "would be removed" } else { "removed" };
        (!self.names.is_empty()).then(|| format!("{done} {place}: {}", self.names.join(", ")))
    }

    async fn remove<K>(&mut self, namespace: &str, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.delete(
            &Api::<K>::namespaced(self.client.clone(), namespace),
            format!("{namespace}/{name}"),
            name,
        )
        .await
    }

    async fn remove_global<K>(&mut self, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.delete(&Api::<K>::all(self.client.clone()), name.to_owned(), name)
            .await
    }

    /// Deletes an object. A missing object is not an error.
    async fn delete<K>(&mut self, api: &Api<K>, shown: String, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let shown = format!("{} {shown}", K::kind(&()));
        match api.delete(name, &deletion(self.dry_run)).await {
            Ok(_) => self.names.push(shown),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error).with_context(|| format!("deleting the {shown}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
