//! The kinds a server knows: what discovery reports and what the write rules need.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::table::Column;

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// One version of one kind that a server can store.
///
/// Each version of a kind is stored apart; there is no conversion between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// API group, empty for the core group.
    pub group: Cow<'static, str>,
    /// Version, such as `v1`.
    pub version: Cow<'static, str>,
    /// Kind in upper camel case, such as `Deployment`.
    pub kind: Cow<'static, str>,
    /// Lower-case plural used in paths, such as `deployments`.
    pub plural: Cow<'static, str>,
    /// Abbreviations for `kubectl`, such as `deploy`.
    pub short_names: Vec<Cow<'static, str>>,
    /// Groups of kinds for `kubectl`, such as `all`.
    pub categories: Vec<Cow<'static, str>>,
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// Whether `/status` is a subresource, so that writes to the object keep its status.
    pub status_subresource: bool,
    /// What `kubectl get` shows beside the name, for kinds that are not Kubernetes' own.
    pub columns: Vec<Column>,
    /// The structural schema of objects, for kinds that are not Kubernetes' own; absent where none is checked.
    pub schema: Option<Arc<Value>>,
}

impl ResourceKind {
    /// A namespaced kind without a status subresource.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: Scope::Namespaced,
            status_subresource: false,
            columns: Vec::new(),
            schema: None,
        }
    }

    /// A cluster-scoped kind without a status subresource.
    pub const fn cluster_scoped(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        let mut kind = Self::namespaced(group, version, kind, plural);
        kind.scope = Scope::Cluster;
        kind
    }

    /// The same kind with `/status` as a subresource.
    pub const fn with_status(mut self) -> Self {
        self.status_subresource = true;
        self
    }

    /// The same kind with abbreviations for `kubectl`.
    pub fn with_short_names(mut self, short_names: &[&'static str]) -> Self {
        self.short_names = short_names.iter().copied().map(Cow::Borrowed).collect();
        self
    }

    /// The same kind as a member of `kubectl` categories.
    pub fn with_categories(mut self, categories: &[&'static str]) -> Self {
        self.categories = categories.iter().copied().map(Cow::Borrowed).collect();
        self
    }

    /// `group/version`, or only the version in the core group, as written in `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind in lower case.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// `plural.group`, or only the plural in the core group, as error messages name a resource.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether objects of this kind live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Whether Kubernetes counts the changes of what is wanted: not where an object is only data.
    pub(crate) fn counts_generations(&self) -> bool {
        match &*self.group {
            "" => self.kind == "Pod",
            "rbac.authorization.k8s.io" | "coordination.k8s.io" => false,
            _ => true,
        }
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition"
    }

    /// Whether this kind is built into Kubernetes, which decides whether strategic merge patch is defined for it.
    pub(crate) fn is_builtin(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }
}

/// A handle to a kind registered in one server; only meaningful for that server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(pub(crate) u32);

/// Ready-made sets of kinds.
pub mod kinds {
    use super::ResourceKind;

    /// Definitions of kinds: each one that is stored is served from then on.
    pub fn definitions() -> ResourceKind {
        let (group, kind) = ("apiextensions.k8s.io", "CustomResourceDefinition");
        ResourceKind::cluster_scoped(group, "v1", kind, "customresourcedefinitions")
            .with_status()
            .with_short_names(&["crd", "crds"])
            .with_categories(&["api-extensions"])
    }

    /// The built-in Kubernetes kinds a member cluster serves.
    pub fn kubernetes() -> Vec<ResourceKind> {
        let rbac = "rbac.authorization.k8s.io";
        vec![
            ResourceKind::cluster_scoped("", "v1", "Namespace", "namespaces").with_status().with_short_names(&["ns"]),
            ResourceKind::cluster_scoped("", "v1", "Node", "nodes").with_status().with_short_names(&["no"]),
            ResourceKind::namespaced("", "v1", "Pod", "pods")
                .with_status()
                .with_short_names(&["po"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("", "v1", "Service", "services")
                .with_status()
                .with_short_names(&["svc"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("", "v1", "ConfigMap", "configmaps").with_short_names(&["cm"]),
            ResourceKind::namespaced("", "v1", "Secret", "secrets"),
            ResourceKind::namespaced("", "v1", "ServiceAccount", "serviceaccounts").with_short_names(&["sa"]),
            ResourceKind::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
                .with_status()
                .with_short_names(&["pvc"]),
            ResourceKind::namespaced("", "v1", "Event", "events").with_short_names(&["ev"]),
            ResourceKind::namespaced("apps", "v1", "Deployment", "deployments")
                .with_status()
                .with_short_names(&["deploy"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("apps", "v1", "StatefulSet", "statefulsets")
                .with_status()
                .with_short_names(&["sts"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("apps", "v1", "DaemonSet", "daemonsets")
                .with_status()
                .with_short_names(&["ds"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("apps", "v1", "ReplicaSet", "replicasets")
                .with_status()
                .with_short_names(&["rs"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("batch", "v1", "Job", "jobs").with_status().with_categories(&["all"]),
            ResourceKind::namespaced("batch", "v1", "CronJob", "cronjobs")
                .with_status()
                .with_short_names(&["cj"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("coordination.k8s.io", "v1", "Lease", "leases"),
            ResourceKind::namespaced(rbac, "v1", "Role", "roles"),
            ResourceKind::namespaced(rbac, "v1", "RoleBinding", "rolebindings"),
            ResourceKind::cluster_scoped(rbac, "v1", "ClusterRole", "clusterroles"),
            ResourceKind::cluster_scoped(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings"),
            ResourceKind::namespaced("networking.k8s.io", "v1", "Ingress", "ingresses")
                .with_status()
                .with_short_names(&["ing"]),
            ResourceKind::cluster_scoped("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses")
                .with_short_names(&["pc"]),
            ResourceKind::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
                .with_status()
                .with_short_names(&["pdb"]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: ResourceKind = ResourceKind::namespaced("example.io", "v1", "Widget", "widgets").with_status();

    #[test]
    fn a_kind_can_be_a_constant_and_knows_its_names() {
        assert_eq!(WIDGET.api_version(), "example.io/v1");
        assert_eq!(WIDGET.group_resource(), "widgets.example.io");
        assert_eq!(WIDGET.singular(), "widget");
        assert!(!WIDGET.is_builtin());
    }

    #[test]
    fn no_built_in_resource_is_listed_twice() {
        let mut names: Vec<String> = kinds::kubernetes().iter().map(ResourceKind::group_resource).collect();
        let total = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), total);
    }
}
