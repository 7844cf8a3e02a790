//! Registration of a member on a control plane.
//!
//! A cluster whose name the new one takes works until the end: new credentials have names of their own, one write of
//! the Cluster object switches to them, and only then the former credentials are removed.
//! Commands at the same time are detected by the API server: a new Cluster is created, and an existing one is written
//! only if it still belongs to the cluster that was checked.

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_runtime::controller::{is_conflict, is_not_found};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::account::{Account, MANAGER, apply, make_namespace, secrets_of};
use super::{NAMESPACE, agent};
use crate::kubeconfig::Destination;

/// Suffix of the name of the Secret with the token for Karmada's cluster proxy. It follows the name of the other Secret,
/// because `NAME-impersonator`, which `karmadactl` uses, is the Secret of a member of that name here.
const IMPERSONATOR_SECRET: &str = "impersonator";
/// Maximum number of writes of a Cluster whose status changes between read and write.
const ATTEMPTS_MAX: usize = 10;

/// Member cluster that joins.
pub(super) struct Registration<'a> {
    hub: &'a Client,
    name: &'a str,
    /// Uid of its `kube-system`.
    pub(super) id: &'a str,
    /// True if it may take the name of another cluster, whose credentials are then removed.
    replace: bool,
    /// Cluster of this name from before the command.
    found: Option<Cluster>,
    /// Command that removes the objects of a failed join.
    pub(super) undo: String,
}

impl<'a> Registration<'a> {
    /// Checks the identity of a cluster.
    ///
    /// # Errors
    ///
    /// The cluster is a member under another name, or the name belongs to another cluster and `replace` is not set.
    pub(super) async fn check(hub: &'a Client, name: &'a str, id: &'a str, replace: bool) -> anyhow::Result<Self> {
        let members = Api::<Cluster>::all(hub.clone()).list(&ListParams::default()).await;
        let members = members.context("listing the Clusters")?.items;
        if let Some(other) = members
            .iter()
            .find(|member| member.spec.id == id && member.name_any() != name)
        {
            bail!("this cluster is already a member: {}", other.name_any());
        }
        let found = members.into_iter().find(|member| member.name_any() == name);
        let registration = Self {
            hub,
            name,
            id,
            replace,
            found,
            undo: format!("bulkhead unjoin {name}"),
        };
        if registration.takes_name() && !replace {
            let other = registration.found.map(|found| found.spec.id).unwrap_or_default();
            bail!(
                "{name} is the name of another cluster: its kube-system has uid {other}, that of this one {id}; \
                 `bulkhead unjoin {name}` removes the other one, --replace-cluster leaves its workloads running, \
                 unmanaged"
            );
        }
        Ok(registration)
    }

    /// Returns true if the name belongs to another cluster so far.
    pub(super) fn takes_name(&self) -> bool {
        self.found
            .as_ref()
            .is_some_and(|found| !found.spec.id.is_empty() && found.spec.id != self.id)
    }

    /// Returns the context of an error before the Cluster was written.
    pub(super) fn not_joined(&self) -> String {
        let Self { name, undo, .. } = self;
        match &self.found {
            None => format!(
                "{name} has not joined; `{undo}` removes the objects created so far; the same command continues from \
                 them"
            ),
            Some(_) => format!("{name} has not joined: its Cluster is unchanged; the same command continues"),
        }
    }

    /// Registers a Push member with the credentials of its account, and of the account that Karmada's cluster proxy
    /// uses.
    pub(super) async fn push(&self, account: &Account, impersonator: &Account, mut spec: Value) -> anyhow::Result<()> {
        let secret = secret_name(self.name, self.id);
        let of_proxy = format!("{secret}.{IMPERSONATOR_SECRET}");
        let token = |account: &Account| ByteString(account.token.clone().into_bytes());
        let ca_bundle = ByteString(account.ca_bundle.clone());
        let stored = async {
            make_namespace(self.hub, NAMESPACE).await?;
            self.store(&secret, json!({"token": token(account), "caBundle": ca_bundle}))
                .await?;
            self.store(&of_proxy, json!({"token": token(impersonator)})).await
        };
        stored.await.with_context(|| self.not_joined())?;
        spec["secretRef"] = json!({"namespace": NAMESPACE, "name": secret});
        spec["impersonatorSecretRef"] = json!({"namespace": NAMESPACE, "name": of_proxy});
        self.write(spec).await?;
        let removed = async {
            self.remove_secrets(self.name, &[&secret, &of_proxy]).await?;
            if self.replace {
                agent::revoke(self.hub, self.name).await?;
            }
            anyhow::Ok(())
        };
        removed.await.with_context(|| self.not_revoked())
    }

    /// Registers a Pull member, and writes the kubeconfig of its agent for the control plane at `server`.
    pub(super) async fn pull(&self, server: &str, spec: Value, file: Destination<'_>) -> anyhow::Result<()> {
        let (hub, name) = (self.hub, self.name);
        let secret = secret_name(&agent::account_name(name), self.id);
        let account = agent::allow(hub, name, &secret)
            .await
            .with_context(|| self.not_joined())?;
        self.write(spec).await?;
        let lease = agent::make_lease(hub, name).await;
        lease.with_context(|| format!("{name} joined without the Lease of its agent; run the same command again"))?;
        agent::write_kubeconfig(server, name, account, file).with_context(|| {
            format!("{name} joined without the kubeconfig of its agent; run the same command again")
        })?;
        if !self.replace {
            return Ok(());
        }
        let removed = async {
            self.remove_secrets(name, &[]).await?;
            self.remove_secrets(&agent::account_name(name), &[&secret]).await
        };
        removed.await.with_context(|| self.not_revoked())
    }

    fn not_revoked(&self) -> String {
        format!(
            "{} joined, but earlier credentials are left; run the same command again to remove them",
            self.name
        )
    }

    /// Stores credentials of a Push member.
    async fn store(&self, secret: &str, data: Value) -> anyhow::Result<()> {
        let secret = json!({"metadata": {"name": secret, "namespace": NAMESPACE}, "data": data});
        apply::<Secret>(&Api::namespaced(self.hub.clone(), NAMESPACE), secret).await
    }

    /// Writes the Cluster. Fields of `spec` that are null are removed, and absent ones keep their value.
    ///
    /// # Errors
    ///
    /// Another client registered, replaced or removed a cluster of this name since the check.
    async fn write(&self, mut spec: Value) -> anyhow::Result<()> {
        let clusters: Api<Cluster> = Api::all(self.hub.clone());
        let name = self.name;
        let Some(before) = &self.found else {
            if let Some(fields) = spec.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            let cluster = Cluster::new(name, serde_json::from_value(spec).context("building the Cluster")?);
            let parameters = PostParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PostParams::default()
            };
            let created = clusters.create(&parameters, &cluster).await;
            if created.as_ref().is_err_and(is_conflict) {
                bail!("another client registered {name} meanwhile; check its Cluster, and run the same command again");
            }
            created
                .with_context(|| format!("creating Cluster {name}"))
                .with_context(|| self.not_joined())?;
            return self.check_twin(&clusters).await;
        };
        let identity = |cluster: &Cluster| (cluster.uid(), cluster.spec.id.clone());
        for _ in 0..ATTEMPTS_MAX {
            let found = clusters
                .get_opt(name)
                .await
                .with_context(|| format!("reading Cluster {name}"))?;
            let Some(found) = found.filter(|found| identity(found) == identity(before)) else {
                bail!(
                    "another client replaced or removed {name} meanwhile; check its Cluster, and run the command again"
                );
            };
            let metadata = json!({"resourceVersion": found.resource_version()});
            let patch = Patch::Merge(json!({"metadata": metadata, "spec": spec}));
            let parameters = PatchParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let patched = clusters.patch(name, &parameters, &patch).await;
            // Reports of the status change the version too.
            if patched.as_ref().is_err_and(is_conflict) {
                continue;
            }
            patched
                .with_context(|| format!("changing Cluster {name}"))
                .with_context(|| self.not_joined())?;
            return self.check_twin(&clusters).await;
        }
        let conflicts = anyhow::anyhow!("Cluster {name} changed {ATTEMPTS_MAX} times between read and write");
        Err(conflicts).with_context(|| self.not_joined())
    }

    /// Checks that no other command registered the same cluster under another name meanwhile.
    async fn check_twin(&self, clusters: &Api<Cluster>) -> anyhow::Result<()> {
        let members = clusters
            .list(&ListParams::default())
            .await
            .context("listing the Clusters")?;
        let is_twin = |member: &&Cluster| member.spec.id == self.id && member.name_any() != self.name;
        match members.items.iter().find(is_twin).map(|twin| twin.name_any()) {
            Some(twin) if !self.id.is_empty() => bail!(
                "{} joined, but another client registered the same cluster as {twin} meanwhile; `bulkhead unjoin` \
                 one of them, without --cluster-kubeconfig",
                self.name
            ),
            _ => Ok(()),
        }
    }

    /// Removes the Secrets that `join` made for an owner, except for those in `kept`.
    async fn remove_secrets(&self, owner: &str, kept: &[&str]) -> anyhow::Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), NAMESPACE);
        for secret in secrets_of(&secrets, owner)
            .await?
            .into_iter()
            .filter(|secret| !kept.contains(&secret.as_str()))
        {
            match secrets.delete(&secret, &DeleteParams::default()).await {
                Err(error) if is_not_found(&error) => {}
                deleted => drop(deleted.with_context(|| format!("deleting the Secret {NAMESPACE}/{secret}"))?),
            }
        }
        Ok(())
    }
}

/// Returns the name of the Secret of a Push member, or of the token of an agent's account. It has the uid of the
/// cluster, so that the credentials of two clusters, one after the other under one name, do not overwrite each other.
fn secret_name(owner: &str, id: &str) -> String {
    if id.is_empty() {
        owner.to_owned()
    } else {
        format!("{owner}.{id}")
    }
}

#[cfg(test)]
mod tests;
