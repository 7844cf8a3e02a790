//! Kinds known to a server, with the properties that discovery and the write rules need.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

/// Scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// Column of a custom kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// Human-readable description.
    pub description: String,
    /// 0 is always shown; higher values only with `-o wide`.
    pub priority: i64,
    /// JSON path of the value, such as `.spec.replicas`.
    pub path: String,
}

/// One version of a kind that a server can store.
///
/// Each version of a kind is stored separately; there is no conversion between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// API group; empty for the core group.
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
    /// Scope of the objects.
    pub scope: Scope,
    /// True if `/status` is a subresource, so that writes to the main resource keep the status.
    pub status_subresource: bool,
    /// Additional columns of `kubectl get` for custom kinds.
    pub columns: Vec<Column>,
    /// Structural schema of custom kinds; absent if objects are not validated.
    pub schema: Option<Arc<Value>>,
    /// True if the schema has rules in the Common Expression Language.
    pub has_rules: bool,
    /// Fields of custom kinds that a field selector may name, such as `spec.color`.
    pub selectable_fields: Vec<String>,
    /// Fields of custom kinds behind the subresource `scale`; absent if there is none.
    pub scale: Option<ScalePaths>,
}

/// Fields that the subresource `scale` of a custom kind reads and writes, as paths such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Desired number of replicas.
    pub spec_replicas: String,
    /// Actual number of replicas.
    pub status_replicas: String,
    /// Label selector as text; absent if the kind has none.
    pub selector: Option<String>,
}

impl ResourceKind {
    /// Returns a namespaced kind without a status subresource.
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
            has_rules: false,
            selectable_fields: Vec::new(),
            scale: None,
        }
    }

    /// Returns a cluster-scoped kind without a status subresource.
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

    /// Adds `/status` as a subresource.
    pub const fn with_status(mut self) -> Self {
        self.status_subresource = true;
        self
    }

    /// Sets the abbreviations for `kubectl`.
    pub fn with_short_names(mut self, short_names: &[&'static str]) -> Self {
        self.short_names = short_names.iter().copied().map(Cow::Borrowed).collect();
        self
    }

    /// Sets the `kubectl` categories.
    pub fn with_categories(mut self, categories: &[&'static str]) -> Self {
        self.categories = categories.iter().copied().map(Cow::Borrowed).collect();
        self
    }

    /// Returns `group/version`, or only the version in the core group, as written in `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns true if `text` is what [`ResourceKind::api_version`] returns.
    pub(crate) fn has_api_version(&self, text: &str) -> bool {
        match text.rsplit_once('/') {
            Some((group, version)) => (group, version) == (&*self.group, &*self.version) && !group.is_empty(),
            None => self.group.is_empty() && text == self.version,
        }
    }

    /// Returns the kind in lower case.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Returns `plural.group`, or only the plural in the core group, as error messages name a resource.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns true if objects of this kind belong to a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns true if the kind has the subresource `scale`.
    pub(crate) fn is_scalable(&self) -> bool {
        let is_workload = self.group == "apps" && matches!(&*self.kind, "Deployment" | "ReplicaSet" | "StatefulSet");
        is_workload || self.scale.is_some()
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Returns true if Kubernetes sets `metadata.generation` for the kind. It does not for kinds that are only data.
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

    /// Returns true for kinds built into Kubernetes. Strategic merge patch is defined only for them.
    pub(crate) fn is_builtin(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }
}

/// Handle of a kind registered in one server; valid only for that server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(pub(crate) u32);

/// Predefined sets of kinds.
pub mod kinds {
    use serde_json::{Value, json};

    use super::ResourceKind;

    /// Returns the ServiceAccount that every namespace has.
    pub fn default_account() -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    }

    /// Returns the Service in the namespace `default` that stands for the API server.
    pub fn api_service() -> Value {
        let port = json!({"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443});
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "ports": [port]},
        })
    }

    /// Returns `CustomResourceDefinition`: the server serves the kinds of each stored definition.
    pub fn definitions() -> ResourceKind {
        let (group, kind) = ("apiextensions.k8s.io", "CustomResourceDefinition");
        ResourceKind::cluster_scoped(group, "v1", kind, "customresourcedefinitions")
            .with_status()
            .with_short_names(&["crd", "crds"])
            .with_categories(&["api-extensions"])
    }

    /// Returns the built-in Kubernetes kinds that a member cluster serves.
    pub fn kubernetes() -> Vec<ResourceKind> {
        let rbac = "rbac.authorization.k8s.io";
        vec![
            ResourceKind::cluster_scoped("", "v1", "Namespace", "namespaces")
                .with_status()
                .with_short_names(&["ns"]),
            ResourceKind::cluster_scoped("", "v1", "Node", "nodes")
                .with_status()
                .with_short_names(&["no"]),
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
            ResourceKind::namespaced("batch", "v1", "Job", "jobs")
                .with_status()
                .with_categories(&["all"]),
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

    /// Returns built-in Kubernetes kinds that are only stored: no emulated controller acts on them. Servers for people
    /// have them in addition.
    pub fn stored() -> Vec<ResourceKind> {
        let (admission, storage) = ("admissionregistration.k8s.io", "storage.k8s.io");
        let (validating, mutating) = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration");
        vec![
            ResourceKind::namespaced("", "v1", "Endpoints", "endpoints").with_short_names(&["ep"]),
            ResourceKind::namespaced("", "v1", "LimitRange", "limitranges").with_short_names(&["limits"]),
            ResourceKind::namespaced("", "v1", "PodTemplate", "podtemplates"),
            ResourceKind::namespaced("", "v1", "ReplicationController", "replicationcontrollers")
                .with_status()
                .with_short_names(&["rc"])
                .with_categories(&["all"]),
            ResourceKind::namespaced("", "v1", "ResourceQuota", "resourcequotas")
                .with_status()
                .with_short_names(&["quota"]),
            ResourceKind::cluster_scoped("", "v1", "PersistentVolume", "persistentvolumes")
                .with_status()
                .with_short_names(&["pv"]),
            ResourceKind::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions"),
            ResourceKind::namespaced(
                "autoscaling",
                "v2",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
            )
            .with_status()
            .with_short_names(&["hpa"])
            .with_categories(&["all"]),
            ResourceKind::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            ResourceKind::namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
                .with_short_names(&["netpol"]),
            ResourceKind::cluster_scoped("networking.k8s.io", "v1", "IngressClass", "ingressclasses"),
            ResourceKind::cluster_scoped("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"),
            ResourceKind::cluster_scoped(storage, "v1", "StorageClass", "storageclasses").with_short_names(&["sc"]),
            ResourceKind::cluster_scoped(admission, "v1", validating, "validatingwebhookconfigurations")
                .with_categories(&["api-extensions"]),
            ResourceKind::cluster_scoped(admission, "v1", mutating, "mutatingwebhookconfigurations")
                .with_categories(&["api-extensions"]),
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
        let config = ResourceKind::namespaced("", "v1", "ConfigMap", "configmaps");
        let has = |text: &str| (WIDGET.has_api_version(text), config.has_api_version(text));
        assert_eq!(["example.io/v1", "v1"].map(has), [(true, false), (false, true)]);
        for other in [
            "",
            "/v1",
            "io/v1",
            "example.io/",
            "example.io/v2",
            "a/example.io/v1",
            "v2",
        ] {
            assert_eq!(has(other), (false, false), "{other}");
        }
        assert_eq!(WIDGET.group_resource(), "widgets.example.io");
        assert_eq!(WIDGET.singular(), "widget");
        assert!(!WIDGET.is_builtin());
    }

    #[test]
    fn no_built_in_resource_is_listed_twice() {
        let mut names: Vec<String> = kinds::kubernetes()
            .iter()
            .chain(&kinds::stored())
            .map(ResourceKind::group_resource)
            .collect();
        let total = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), total);
    }
}
