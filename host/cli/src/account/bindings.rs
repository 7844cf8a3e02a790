//! Bindings of roles on a control plane: those that an account has from earlier commands, and their removal.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use bulkhead_controllers::permissions::Mode;
use bulkhead_controllers::roles::ACCOUNT;
use bulkhead_runtime::controller::is_not_found;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::{Account, identity, objects, shown, text};
use crate::conflict::advice;

/// Prefix of the names of roles and bindings.
const PREFIX: &str = "bulkhead-";
/// Labels of roles and bindings in the manifests.
const LABELS: [(&str, &str); 2] = [
    ("app.kubernetes.io/name", "bulkhead"),
    ("app.kubernetes.io/component", "rbac"),
];
/// Label of objects that Helm installed, and its value. Helm removes them.
const HELM: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");

/// Binding of a role, of either scope.
#[derive(Debug)]
pub(super) struct Binding {
    kind: &'static str,
    /// Empty for a ClusterRoleBinding.
    namespace: String,
    name: String,
    version: Option<String>,
    labels: BTreeMap<String, String>,
    role: RoleRef,
    /// Kind, namespace and name of each subject.
    subjects: Vec<String>,
}

/// Returns all bindings of a control plane.
pub(super) async fn list(client: &Client) -> anyhow::Result<Vec<Binding>> {
    let everywhere = Api::<ClusterRoleBinding>::all(client.clone())
        .list(&ListParams::default())
        .await;
    let everywhere = everywhere.context("listing the ClusterRoleBindings")?.items.into_iter();
    let within = Api::<RoleBinding>::all(client.clone())
        .list(&ListParams::default())
        .await;
    let within = within.context("listing the RoleBindings")?.items.into_iter();
    let everywhere = everywhere.map(|one| Binding::new("ClusterRoleBinding", one.metadata, one.role_ref, one.subjects));
    let within = within.map(|one| Binding::new("RoleBinding", one.metadata, one.role_ref, one.subjects));
    Ok(everywhere.chain(within).collect())
}

impl Binding {
    fn new(kind: &'static str, metadata: ObjectMeta, role: RoleRef, subjects: Option<Vec<Subject>>) -> Self {
        let named = |subject: Subject| {
            let place = subject
                .namespace
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default();
            format!("{} {place}{}", subject.kind, subject.name)
        };
        Self {
            kind,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            version: metadata.resource_version,
            labels: metadata.labels.unwrap_or_default(),
            role,
            subjects: subjects.unwrap_or_default().into_iter().map(named).collect(),
        }
    }

    /// Returns true if the object is this binding.
    fn is(&self, object: &Value) -> bool {
        identity(object) == (self.kind, self.namespace.as_str(), self.name.as_str())
    }

    /// Checks that a manifest may replace this binding.
    ///
    /// # Errors
    ///
    /// Another account would lose its role, or the binding has another role, which cannot be changed.
    pub(super) fn check(&self, manifest: &Value, account: &str) -> anyhow::Result<()> {
        if !self.is(manifest) {
            return Ok(());
        }
        if let Some(other) = self.subjects.iter().find(|subject| *subject != account) {
            bail!(
                "{self} gives its role to {other}, which would lose it; nothing was written; `bulkhead account \
                 --apply` with the --namespace of that account gives it bindings of its own, or delete the {}",
                self.kind
            );
        }
        let role = (text(manifest, "/roleRef/kind"), text(manifest, "/roleRef/name"));
        if role != (self.role.kind.as_str(), self.role.name.as_str()) {
            bail!(
                "{self} has another role, {} {}; nothing was written; delete the {}",
                self.role.kind,
                self.role.name,
                self.kind
            );
        }
        Ok(())
    }

    /// Returns true if the binding was made for this account alone.
    fn is_made_for(&self, account: &str) -> bool {
        self.name.starts_with(PREFIX)
            && has_labels(&self.labels)
            && matches!(self.subjects.as_slice(), [only] if only == account)
    }

    /// Returns true if the binding was made for this account alone and is not among the manifests.
    fn is_left_over(&self, manifests: &[Value], account: &str) -> bool {
        self.is_made_for(account) && !manifests.iter().any(|manifest| self.is(manifest))
    }

    fn is_of_helm(&self) -> bool {
        is_of_helm(&self.labels)
    }

    /// Returns true if the binding refers to the role of this kind, namespace and name.
    fn refers_to(&self, (kind, namespace, name): (&str, &str, &str)) -> bool {
        let place = kind == "ClusterRole" || self.namespace == namespace;
        (self.role.kind.as_str(), self.role.name.as_str()) == (kind, name) && place
    }

    /// Returns true if the binding refers to the role of another one.
    fn shares_role_of(&self, other: &Self) -> bool {
        let place = self.role.kind == "ClusterRole" || self.namespace == other.namespace;
        (&self.role.kind, &self.role.name) == (&other.role.kind, &other.role.name) && place
    }
}

/// Writes kind, namespace and name.
impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(self.kind, &self.namespace, &self.name))
    }
}

fn has_labels(labels: &BTreeMap<String, String>) -> bool {
    LABELS
        .iter()
        .all(|(key, value)| labels.get(*key).is_some_and(|found| found == value))
}

fn is_of_helm(labels: &BTreeMap<String, String>) -> bool {
    labels.get(HELM.0).is_some_and(|by| by == HELM.1)
}

impl Account<'_> {
    /// Removes the bindings and the roles of modes, and the ServiceAccount once no binding names it. Objects that Helm
    /// manages and roles that other bindings refer to are kept. Adds a line for each object.
    pub(super) async fn remove_modes(&self, modes: &[Mode], lines: &mut Vec<String>) -> anyhow::Result<()> {
        let (manifests, account) = (objects(modes, self.namespace)?, self.subject());
        let bindings = list(self.client).await?;
        let is_of_modes = |binding: &&Binding| manifests.iter().any(|manifest| binding.is(manifest));
        let (removed, kept): (Vec<_>, Vec<_>) = bindings
            .iter()
            .partition(|binding| is_of_modes(binding) && binding.is_made_for(&account) && !binding.is_of_helm());
        for binding in removed {
            lines.extend(
                self.remove(binding.kind, &binding.namespace, &binding.name, binding.version.clone())
                    .await?,
            );
        }
        for binding in kept.iter().copied().filter(is_of_modes) {
            let why = if binding.is_of_helm() {
                "Helm manages it"
            } else {
                "it is not of this account alone"
            };
            lines.push(format!("kept {binding}: {why}"));
        }
        for role in manifests
            .iter()
            .map(identity)
            .filter(|(kind, ..)| ["ClusterRole", "Role"].contains(kind))
        {
            let user = kept.iter().copied().find(|binding| binding.refers_to(role));
            lines.extend(self.remove_unused(role, user).await?);
        }
        let user = kept.iter().copied().find(|binding| binding.subjects.contains(&account));
        lines.extend(
            self.remove_unused(("ServiceAccount", self.namespace, ACCOUNT), user)
                .await?,
        );
        Ok(())
    }

    /// Removes an object of this command unless a binding needs it. Returns a line about it, `None` if there is none.
    async fn remove_unused(
        &self,
        (kind, namespace, name): (&str, &str, &str),
        user: Option<&Binding>,
    ) -> anyhow::Result<Option<String>> {
        let shown = shown(kind, namespace, name);
        let found = self.api(kind, namespace)?.get_opt(name).await;
        let found = found.with_context(|| format!("reading {shown}"))?;
        let Some(found) = found.filter(|found| has_labels(found.labels())) else {
            return Ok(None);
        };
        if is_of_helm(found.labels()) {
            return Ok(Some(format!("kept {shown}: Helm manages it")));
        }
        match user {
            Some(user) => Ok(Some(format!("kept {shown}: {user} needs it"))),
            None => self.remove(kind, namespace, name, found.resource_version()).await,
        }
    }

    /// Removes the bindings that the account has from earlier modes, and from versions that named them otherwise, with
    /// the roles that are not bound any more. Returns a line for each object.
    pub(super) async fn remove_left_over(
        &self,
        bindings: &[Binding],
        manifests: &[Value],
    ) -> anyhow::Result<Vec<String>> {
        let account = self.subject();
        let is_left_over = |binding: &&Binding| binding.is_left_over(manifests, &account);
        let (removed, kept): (Vec<_>, Vec<_>) = bindings
            .iter()
            .partition(|binding| is_left_over(binding) && !binding.is_of_helm());
        let of_helm = kept.iter().copied().filter(is_left_over);
        let mut lines: Vec<_> = of_helm
            .map(|binding| format!("kept {binding}: Helm manages it"))
            .collect();
        for binding in removed {
            lines.extend(
                self.remove(binding.kind, &binding.namespace, &binding.name, binding.version.clone())
                    .await?,
            );
            let RoleRef { kind, name, .. } = &binding.role;
            let namespace = if kind == "ClusterRole" { "" } else { &binding.namespace };
            let is_used = kept.iter().any(|other| other.shares_role_of(binding));
            let role = (kind.as_str(), namespace, name.as_str());
            let is_wanted = manifests.iter().any(|manifest| identity(manifest) == role);
            if is_used || is_wanted || !name.starts_with(PREFIX) {
                continue;
            }
            let found = self.api(kind, namespace)?.get_opt(name).await;
            let found = found.with_context(|| format!("reading {}", shown(kind, namespace, name)))?;
            if let Some(role) = found.filter(|role| has_labels(role.labels())) {
                lines.extend(self.remove(kind, namespace, name, role.resource_version()).await?);
            }
        }
        Ok(lines)
    }

    /// Deletes the version of an object that was read. Returns a line about it, `None` if it did not exist.
    async fn remove(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        version: Option<String>,
    ) -> anyhow::Result<Option<String>> {
        let shown = shown(kind, namespace, name);
        let preconditions = Preconditions {
            resource_version: version,
            uid: None,
        };
        let parameters = DeleteParams {
            dry_run: self.dry_run,
            ..DeleteParams::default().preconditions(preconditions)
        };
        match self.api(kind, namespace)?.delete(name, &parameters).await {
            Ok(_) => Ok(Some(format!("removed {shown}{}", self.note()))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => {
                let advice = advice(&error, "");
                Err(error).with_context(|| format!("removing {shown}{advice}"))
            }
        }
    }
}
