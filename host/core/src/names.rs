//! Names and metadata keys that Karmada derives or defines (Karmada: `pkg/util/names`).

/// Namespace prefix of Works; the rest is the cluster's name.
pub const EXECUTION_SPACE_PREFIX: &str = "karmada-es-";

/// Returns the namespace that holds the Works of a cluster.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_SPACE_PREFIX}{cluster}")
}

/// Returns the cluster whose Works the namespace holds. `None` for a namespace that is not an execution namespace.
pub fn cluster_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(EXECUTION_SPACE_PREFIX)
}

/// Returns true if Karmada reserves the namespace.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    matches!(namespace, "karmada-system" | "karmada-cluster") || namespace.starts_with(EXECUTION_SPACE_PREFIX)
}

/// Splits an `apiVersion` into group and version; the core group is empty.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the binding name of a resource template: lower-case `<name>-<kind>`, with `:` in the name replaced by `.`.
pub fn binding_name(kind: &str, name: &str) -> String {
    format!("{}-{kind}", name.replace(':', ".")).to_lowercase()
}

/// Returns the label key that marks a binding as a dependency of another binding. The label value is the permanent id
/// of that other binding, which `namespace` and `name` identify. (Karmada: `pkg/dependenciesdistributor`,
/// `names.go:GenerateBindingReferenceKey`.)
pub fn depended_by_label(namespace: &str, name: &str) -> String {
    let key = if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    };
    format!("resourcebinding.karmada.io/depended-by-{}", safe_hash(&key))
}

/// Returns the Work name of a resource template. `namespace` is empty for cluster scope.
pub fn work_name(kind: &str, name: &str, namespace: &str) -> String {
    let name = name.replace(':', ".").to_lowercase();
    let text = if namespace.is_empty() {
        format!("{name}-{kind}")
    } else {
        format!("{namespace}-{name}-{kind}")
    };
    format!("{name}-{}", safe_hash(&text.to_lowercase()))
}

/// Returns the 32-bit FNV-1a hash.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(2_166_136_261, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)
    })
}

/// Encodes the hash in decimal, with each digit mapped to a character from an alphabet without vowels.
fn safe_hash(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let encode = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    fnv1a_32(text.as_bytes()).to_string().bytes().map(encode).collect()
}

/// Metadata keys and well-known values.
pub mod keys {
    /// Label: permanent id of a `PropagationPolicy`.
    pub const PROPAGATION_POLICY_ID: &str = "propagationpolicy.karmada.io/permanent-id";
    /// Label: permanent id of a ClusterPropagationPolicy.
    pub const CLUSTER_PROPAGATION_POLICY_ID: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
    /// Annotation: namespace of the claiming PropagationPolicy.
    pub const PROPAGATION_POLICY_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
    /// Annotation: name of the claiming PropagationPolicy.
    pub const PROPAGATION_POLICY_NAME: &str = "propagationpolicy.karmada.io/name";
    /// Annotation: name of the claiming ClusterPropagationPolicy.
    pub const CLUSTER_PROPAGATION_POLICY_NAME: &str = "clusterpropagationpolicy.karmada.io/name";
    /// Label: permanent id of a ResourceBinding.
    pub const RESOURCE_BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";
    /// Label: permanent id of a ClusterResourceBinding.
    pub const CLUSTER_RESOURCE_BINDING_ID: &str = "clusterresourcebinding.karmada.io/permanent-id";
    /// Label: permanent id of a Work.
    pub const WORK_ID: &str = "work.karmada.io/permanent-id";
    /// Annotation: namespace of the binding a Work belongs to.
    pub const RESOURCE_BINDING_NAMESPACE: &str = "resourcebinding.karmada.io/namespace";
    /// Annotation: name of the binding a Work belongs to.
    pub const RESOURCE_BINDING_NAME: &str = "resourcebinding.karmada.io/name";
    /// Annotation: name of the cluster-scoped binding a Work belongs to.
    pub const CLUSTER_RESOURCE_BINDING_NAME: &str = "clusterresourcebinding.karmada.io/name";
    /// Annotation on a binding: the dependencies of its template, as a JSON list of references.
    pub const DEPENDENCIES: &str = "resourcebinding.karmada.io/dependencies";
    /// Annotation on a member object: namespace of its Work.
    pub const WORK_NAMESPACE: &str = "work.karmada.io/namespace";
    /// Annotation on a member object: name of its Work.
    pub const WORK_NAME: &str = "work.karmada.io/name";
    /// Annotation: `overwrite` or `abort`.
    pub const CONFLICT_RESOLUTION: &str = "work.karmada.io/conflict-resolution";
    /// Label with value `true` on every object that Karmada manages in a member.
    pub const MANAGED: &str = "karmada.io/managed";
    /// Label with value `true` on execution namespaces.
    pub const SYSTEM: &str = "karmada.io/system";
    /// Annotation on a binding: the placement used by the last scheduling.
    pub const APPLIED_PLACEMENT: &str = "policy.karmada.io/applied-placement";
    /// Annotation of a Work: the rules of OverridePolicies that changed its manifest, in JSON.
    pub const APPLIED_OVERRIDES: &str = "policy.karmada.io/applied-overrides";
    /// Annotation of a Work: the rules of ClusterOverridePolicies that changed its manifest, in JSON.
    pub const APPLIED_CLUSTER_OVERRIDES: &str = "policy.karmada.io/applied-cluster-overrides";
    /// Annotation on a manifest: uid of the template.
    pub const TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";
    /// Annotation on a manifest: generation of the template.
    pub const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
    /// Annotation on a manifest: sorted list of the labels that Karmada set.
    pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
    /// Annotation on a manifest: sorted list of the annotations that Karmada set.
    pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";
    /// Label that allows the scheduler to handle bindings of another manager.
    pub const BINDING_MANAGED_BY: &str = "binding.karmada.io/managed-by";
    /// Finalizer of Clusters.
    pub const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";
    /// Finalizer of PropagationPolicies.
    pub const PROPAGATION_POLICY_FINALIZER: &str = "karmada.io/propagation-policy-controller";
    /// Finalizer of ClusterPropagationPolicies.
    pub const CLUSTER_PROPAGATION_POLICY_FINALIZER: &str = "karmada.io/cluster-propagation-policy-controller";
    /// Finalizer of Works.
    pub const EXECUTION_FINALIZER: &str = "karmada.io/execution-controller";
    /// Finalizer of ResourceBindings.
    pub const BINDING_FINALIZER: &str = "karmada.io/binding-controller";
    /// Finalizer of ResourceBindings whose dependencies are distributed.
    pub const DEPENDENCIES_FINALIZER: &str = "karmada.io/binding-dependencies-distributor";
    /// Finalizer of ClusterResourceBindings.
    pub const CLUSTER_BINDING_FINALIZER: &str = "karmada.io/cluster-resource-binding-controller";
    /// Annotation on a Cluster: the policy that added each taint, as JSON. Specific to Bulkhead.
    pub const TAINT_OWNERS: &str = "bulkhead.dev/taint-owners";
    /// Annotation on a Cluster: the history of its conditions, as JSON. Specific to Bulkhead.
    pub const CONDITION_HISTORY: &str = "bulkhead.dev/condition-history";
    /// Taint key for a cluster that a `ClusterDrain` empties. Specific to Bulkhead.
    pub const DRAIN_TAINT: &str = "bulkhead.dev/drain";
    /// Label on a binding or its template: an integer. Pending evictions with a higher number are processed first.
    pub const EVICTION_PRIORITY: &str = "bulkhead.dev/eviction-priority";
    /// Annotation of objects and events: journal id of the decision that caused the last change.
    pub const DECISION: &str = "bulkhead.dev/decision";
    /// Annotation on the Lease of a Pull cluster: its renew time, the Works whose last reports the control plane did not
    /// have at that moment, and those of them whose object may be healthy, as JSON. Specific to Bulkhead.
    pub const UNREPORTED: &str = "bulkhead.dev/unreported";
    /// Annotation on a binding: digest of its template, without the fields that change on their own.
    pub const TEMPLATE_DIGEST: &str = "bulkhead.dev/template-digest";
    /// Taint key for a cluster whose Ready condition is False.
    pub const NOT_READY_TAINT: &str = "cluster.karmada.io/not-ready";
    /// Taint key for a cluster whose Ready condition is Unknown.
    pub const UNREACHABLE_TAINT: &str = "cluster.karmada.io/unreachable";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_names_are_karmadas() {
        let check = |kind, name, namespace, expected| assert_eq!(work_name(kind, name, namespace), expected);
        check("Deployment", "nginx", "default", "nginx-687f7fb96f");
        check("Deployment", "nginx", "test", "nginx-8cf4564bd");
        check("ClusterRole", "system:reader", "", "system.reader-95c867f78");
        check("Role", "My:Role", "ns1", "my.role-745c87bdc5");
        check("ConfigMap", "kube-root-ca.crt", "default", "kube-root-ca.crt-cdf669694");
    }

    #[test]
    fn labels_of_dependants_differ_by_namespace_and_name() {
        let prefix = "resourcebinding.karmada.io/depended-by-";
        let labels =
            [("a", "web"), ("b", "web"), ("a", "db"), ("", "a/web")].map(|(ns, name)| depended_by_label(ns, name));
        assert!(
            labels
                .iter()
                .all(|label| label.starts_with(prefix) && label.len() > prefix.len()),
            "{labels:?}"
        );
        assert!(labels[0] != labels[1] && labels[0] != labels[2], "{labels:?}");
        // Same as in Karmada, where names contain no slash.
        assert_eq!(labels[0], labels[3]);
    }

    #[test]
    fn binding_names_are_karmadas() {
        assert_eq!(binding_name("Deployment", "nginx"), "nginx-deployment");
        assert_eq!(
            binding_name("ClusterRole", "system:Reader"),
            "system.reader-clusterrole"
        );
    }
}
