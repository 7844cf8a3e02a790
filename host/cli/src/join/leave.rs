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
            lines.push(format!("{name} {}", if self.dry_run { "would leave (dry run)" } else { "has left" }));
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
        let Some(before) = clusters.get_opt(name).await.with_context(about)? else { return Ok(None) };
        clusters.delete(name, &deletion(self.dry_run)).await.with_context(about)?;
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
                    if cluster.spec.sync_mode == SyncMode::Pull { ", and its agent" } else { "" },
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
    let found = Api::<K>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await;
    let found = found.with_context(|| format!("listing {} in {NAMESPACE}", K::plural(&())))?;
    Ok(found.items.iter().all(|object| OF_EVERY_NAMESPACE.contains(&object.name_any().as_str())))
}

/// Checks that a member cluster exists. The error lists the existing ones.
pub(crate) async fn check_member(clusters: &Api<Cluster>, name: &str) -> anyhow::Result<()> {
    let clusters = clusters.list(&ListParams::default()).await.context("reading the member clusters")?;
    let names: Vec<_> = clusters.iter().map(ResourceExt::name_any).collect();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
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
    if dry_run { DeleteParams::default().dry_run() } else { DeleteParams::default() }
}

impl<'a> Removed<'a> {
    pub(super) fn of(client: &'a Client, dry_run: bool) -> Self {
        Self { client, names: Vec::new(), dry_run }
    }

    pub(super) fn summary(&self, place: &str) -> Option<String> {
        let done = if self.dry_run { "would be removed" } else { "removed" };
        (!self.names.is_empty()).then(|| format!("{done} {place}: {}", self.names.join(", ")))
    }

    async fn remove<K>(&mut self, namespace: &str, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.delete(&Api::<K>::namespaced(self.client.clone(), namespace), format!("{namespace}/{name}"), name).await
    }

    async fn remove_global<K>(&mut self, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.delete(&Api::<K>::all(self.client.clone()), name.to_owned(), name).await
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
mod tests {
    use kube::api::{Patch, PatchParams};
    use serde_json::json;

    use super::super::account::apply;
    use super::super::testing::server;
    use super::*;

    async fn names<K>(client: &Client) -> Vec<String>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
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
        apply::<Secret>(&Api::namespaced(hub.clone(), NAMESPACE), secret).await.unwrap();
        apply::<Cluster>(&Api::all(hub.clone()), json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}}))
            .await
            .unwrap();
        apply::<Secret>(&Api::namespaced(member.clone(), NAMESPACE), named(ACCOUNT)).await.unwrap();
        apply::<ServiceAccount>(&Api::namespaced(member.clone(), NAMESPACE), named(ACCOUNT)).await.unwrap();
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
        Leaving { hub: hub.clone(), member: member.cloned(), name: "m1", timeout, dry_run: false }
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
        assert_eq!(names::<Secret>(&hub).await.len() + names::<Secret>(&member).await.len(), 0);
        assert_eq!(names::<ClusterRoleBinding>(&member).await.len(), 0);
        let error = leaving(&hub, None).leave().await.unwrap_err().to_string();
        assert_eq!(error, "there is no member cluster m1; there are: none");
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
        assert!(message.contains("where its name is eu-1, uses the account karmada-cluster/bulkhead;"), "{message}");
        let remedy = "bulkhead unjoin eu-1 --cluster-kubeconfig FILE --gone-control-plane another";
        assert!(message.ends_with(remedy), "{message}");
        assert_eq!(
            (names::<ServiceAccount>(&member).await, names::<Secret>(&member).await.len()),
            (vec![ACCOUNT.into()], 1)
        );
        assert_eq!(names::<ClusterRoleBinding>(&member).await, [BINDING]);
        // The other control plane is the last one, and removes the account.
        assert_eq!(users(&accounts, ACCOUNT).await.unwrap().into_keys().collect::<Vec<_>>(), ["another"]);
        set_user(&accounts, ACCOUNT, "another", None).await.unwrap();
        leaving(&hub, Some(&member)).leave().await.unwrap();
        assert!(names::<ServiceAccount>(&member).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_names_the_objects_and_removes_none() {
        let (hub, member) = (server("hub").client(), server("m1").client());
        joined(&hub, &member).await;
        let message = Leaving { dry_run: true, ..leaving(&hub, Some(&member)) }.leave().await.unwrap();
        assert!(message.starts_with("m1 would leave (dry run)\nwould be removed on the control plane: "), "{message}");
        assert!(message.contains("would be removed in the member: ClusterRoleBinding"), "{message}");
        assert_eq!(names::<Cluster>(&hub).await, ["m1"]);
        assert_eq!((names::<Secret>(&hub).await.len(), names::<Secret>(&member).await.len()), (1, 1));
        assert_eq!(names::<ClusterRoleBinding>(&member).await, [BINDING]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_its_kubeconfig_the_account_of_the_member_is_kept_and_removed_later() {
        let (hub, member) = (server("hub").client(), server("m1").client());
        joined(&hub, &member).await;
        let others = json!({"metadata": {"name": "settings", "namespace": NAMESPACE}, "data": {"a": "b"}});
        apply::<ConfigMap>(&Api::namespaced(member.clone(), NAMESPACE), others).await.unwrap();
        let message = leaving(&hub, None).leave().await.unwrap();
        assert!(message.contains("bulkhead unjoin m1 --cluster-kubeconfig FILE"), "{message}");
        assert_eq!(names::<ServiceAccount>(&member).await, [ACCOUNT]);
        let message = leaving(&hub, Some(&member)).leave().await.unwrap();
        assert!(
            message.starts_with("removed in the member: ClusterRoleBinding") && !message.contains("Namespace"),
            "{message}"
        );
        assert!(names::<Namespace>(&member).await.contains(&NAMESPACE.to_owned()), "somebody else's things are in it");
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_stay_until_the_cluster_is_gone_and_foreign_ones_are_kept() {
        let (hub, member) = (server("hub").client(), server("m1").client());
        joined(&hub, &member).await;
        let clusters = Api::<Cluster>::all(hub.clone());
        let hold = |finalizers: serde_json::Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        clusters.patch("m1", &PatchParams::default(), &hold(json!(["karmada.io/cluster-controller"]))).await.unwrap();
        let error = leaving(&hub, Some(&member)).leave().await.unwrap_err().to_string();
        assert!(error.contains("still waits for karmada.io/cluster-controller"), "{error}");
        assert_eq!(
            (names::<Secret>(&hub).await, names::<Secret>(&member).await),
            (vec!["m1".into()], vec![ACCOUNT.into()])
        );
        clusters.patch("m1", &PatchParams::default(), &hold(json!(null))).await.unwrap();
        let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
        secrets.delete("m1", &DeleteParams::default()).await.unwrap();
        let theirs = serde_json::from_value(json!({"metadata": {"name": "m1"}})).unwrap();
        secrets.create(&Default::default(), &theirs).await.unwrap();
        leaving(&hub, Some(&member)).leave().await.unwrap();
        assert_eq!((names::<Secret>(&hub).await, names::<Secret>(&member).await.len()), (vec!["m1".into()], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_account_of_an_agent_goes_with_its_member() {
        let hub = server("hub").client();
        super::super::account::make_namespace(&hub, NAMESPACE).await.unwrap();
        apply::<Cluster>(&Api::all(hub.clone()), json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Pull"}}))
            .await
            .unwrap();
        agent::grant(&hub, "m1").await.unwrap();
        let account = json!({"metadata": {"name": agent::account_name("m1"), "namespace": NAMESPACE}});
        apply::<ServiceAccount>(&Api::namespaced(hub.clone(), NAMESPACE), account).await.unwrap();
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
}
