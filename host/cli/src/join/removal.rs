//! Deletion of the objects that `bulkhead join` created.

use std::fmt::Debug;

use anyhow::Context as _;
use bulkhead_runtime::controller::is_not_found;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::account::MADE_BY;
use super::{ACCOUNT, BINDING, IMPERSONATOR, NAMESPACE};

/// Names of objects that exist in every namespace.
const OF_EVERY_NAMESPACE: [&str; 2] = ["default", "kube-root-ca.crt"];

/// Removes the objects that `join` created in a Push member, permissions first.
pub(super) async fn clear_member(removed: &mut Removed<'_>) -> anyhow::Result<()> {
    removed.remove_global::<ClusterRoleBinding>(BINDING).await?;
    removed.remove::<Secret>(NAMESPACE, ACCOUNT).await?;
    removed.remove::<ServiceAccount>(NAMESPACE, ACCOUNT).await?;
    let client = removed.client;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let impersonator = accounts.get_opt(IMPERSONATOR).await;
    let impersonator = impersonator.with_context(|| format!("reading the ServiceAccount {IMPERSONATOR}"))?;
    // One without the label is of `karmadactl`, for another control plane.
    if impersonator.is_some_and(|account| is_made_by_join(&account)) {
        removed.remove::<Secret>(NAMESPACE, IMPERSONATOR).await?;
        removed.remove::<ServiceAccount>(NAMESPACE, IMPERSONATOR).await?;
    }
    let namespace = Api::<Namespace>::all(client.clone()).get_opt(NAMESPACE).await;
    let namespace = namespace.with_context(|| format!("reading the Namespace {NAMESPACE}"))?;
    let is_ours = |namespace: &Namespace| namespace.metadata.deletion_timestamp.is_none() && is_made_by_join(namespace);
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

fn is_made_by_join<K: Resource>(object: &K) -> bool {
    object.labels().get(MADE_BY.0).is_some_and(|by| by == MADE_BY.1)
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

/// Names of the objects removed from an API server.
pub(super) struct Removed<'a> {
    client: &'a Client,
    pub(super) names: Vec<String>,
    dry_run: bool,
}

/// Returns the parameters of a deletion.
pub(super) fn deletion(dry_run: bool) -> DeleteParams {
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

    /// Removes an object of a namespace.
    pub(super) async fn remove<K>(&mut self, namespace: &str, name: &str) -> anyhow::Result<()>
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

    /// Removes an object of cluster scope, or a namespace.
    pub(super) async fn remove_global<K>(&mut self, name: &str) -> anyhow::Result<()>
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
