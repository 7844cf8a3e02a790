//! Kinds that Bulkhead serves and uses, as data.
//!
//! `Remedy` is not included: nothing here acts on it.

/// Data that an API server needs about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Lower-case plural, as in paths.
    pub plural: &'static str,
    /// Lower-case singular.
    pub singular: &'static str,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Categories for `kubectl`.
    pub categories: &'static [&'static str],
    /// True if objects live in a namespace.
    pub namespaced: bool,
    /// True if `status` is a subresource.
    pub status_subresource: bool,
}

impl KindInfo {
    /// Returns `group/version`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

const KARMADA: &[&str] = &["karmada-io"];
const BULKHEAD: &[&str] = &["bulkhead"];

/// All kinds of this crate (Karmada: `charts/karmada/_crds/bases`, `pkg/registry/cluster/storage/storage.go`).
pub const REGISTERED: &[KindInfo] = &[
    KindInfo {
        group: "cluster.karmada.io",
        version: "v1alpha1",
        kind: "Cluster",
        plural: "clusters",
        singular: "cluster",
        short_names: &[],
        categories: &[],
        namespaced: false,
        status_subresource: true,
    },
    KindInfo {
        group: "policy.karmada.io",
        version: "v1alpha1",
        kind: "PropagationPolicy",
        plural: "propagationpolicies",
        singular: "propagationpolicy",
        short_names: &["pp"],
        categories: KARMADA,
        namespaced: true,
        status_subresource: false,
    },
    KindInfo {
        group: "policy.karmada.io",
        version: "v1alpha1",
        kind: "ClusterPropagationPolicy",
        plural: "clusterpropagationpolicies",
        singular: "clusterpropagationpolicy",
        short_names: &["cpp"],
        categories: KARMADA,
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "policy.karmada.io",
        version: "v1alpha1",
        kind: "OverridePolicy",
        plural: "overridepolicies",
        singular: "overridepolicy",
        short_names: &["op"],
        categories: KARMADA,
        namespaced: true,
        status_subresource: false,
    },
    KindInfo {
        group: "policy.karmada.io",
        version: "v1alpha1",
        kind: "ClusterOverridePolicy",
        plural: "clusteroverridepolicies",
        singular: "clusteroverridepolicy",
        short_names: &["cop"],
        categories: KARMADA,
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "policy.karmada.io",
        version: "v1alpha1",
        kind: "ClusterTaintPolicy",
        plural: "clustertaintpolicies",
        singular: "clustertaintpolicy",
        short_names: &[],
        categories: &[],
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "work.karmada.io",
        version: "v1alpha2",
        kind: "ResourceBinding",
        plural: "resourcebindings",
        singular: "resourcebinding",
        short_names: &["rb"],
        categories: KARMADA,
        namespaced: true,
        status_subresource: true,
    },
    KindInfo {
        group: "work.karmada.io",
        version: "v1alpha2",
        kind: "ClusterResourceBinding",
        plural: "clusterresourcebindings",
        singular: "clusterresourcebinding",
        short_names: &["crb"],
        categories: KARMADA,
        namespaced: false,
        status_subresource: true,
    },
    KindInfo {
        group: "work.karmada.io",
        version: "v1alpha1",
        kind: "Work",
        plural: "works",
        singular: "work",
        short_names: &["wk"],
        categories: KARMADA,
        namespaced: true,
        status_subresource: true,
    },
    KindInfo {
        group: "config.karmada.io",
        version: "v1alpha1",
        kind: "ResourceInterpreterCustomization",
        plural: "resourceinterpretercustomizations",
        singular: "resourceinterpretercustomization",
        short_names: &["ric"],
        categories: KARMADA,
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "config.karmada.io",
        version: "v1alpha1",
        kind: "ResourceInterpreterWebhookConfiguration",
        plural: "resourceinterpreterwebhookconfigurations",
        singular: "resourceinterpreterwebhookconfiguration",
        short_names: &[],
        categories: KARMADA,
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "EvictionPause",
        plural: "evictionpauses",
        singular: "evictionpause",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: false,
        status_subresource: false,
    },
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "ClusterDrain",
        plural: "clusterdrains",
        singular: "clusterdrain",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: false,
        status_subresource: true,
    },
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "Plugin",
        plural: "plugins",
        singular: "plugin",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: false,
        status_subresource: true,
    },
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "PluginTrust",
        plural: "plugintrusts",
        singular: "plugintrust",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: false,
        status_subresource: true,
    },
    KindInfo {
        group: "apps.karmada.io",
        version: "v1alpha1",
        kind: "WorkloadRebalancer",
        plural: "workloadrebalancers",
        singular: "workloadrebalancer",
        short_names: &[],
        categories: &[],
        namespaced: false,
        status_subresource: true,
    },
    // No status subresource: a new record is complete after one write.
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "FailoverRecord",
        plural: "failoverrecords",
        singular: "failoverrecord",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: true,
        status_subresource: false,
    },
    KindInfo {
        group: "bulkhead.dev",
        version: "v1alpha1",
        kind: "ClusterFailoverRecord",
        plural: "clusterfailoverrecords",
        singular: "clusterfailoverrecord",
        short_names: &[],
        categories: BULKHEAD,
        namespaced: false,
        status_subresource: false,
    },
];

#[cfg(test)]
mod tests {
    use kube::Resource;

    use super::*;
    use crate::{
        Cluster, ClusterDrain, ClusterFailoverRecord, ClusterOverridePolicy, ClusterPropagationPolicy,
        ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, FailoverRecord, OverridePolicy, Plugin, PluginTrust,
        PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration,
        Work, WorkloadRebalancer,
    };

    fn check<K: Resource<DynamicType = ()>>(index: usize) {
        let info = &REGISTERED[index];
        assert_eq!(K::group(&()), info.group);
        assert_eq!(K::version(&()), info.version);
        assert_eq!(K::kind(&()), info.kind);
        assert_eq!(K::plural(&()), info.plural);
        assert_eq!(info.kind.to_lowercase(), info.singular);
    }

    #[test]
    fn the_table_agrees_with_the_types() {
        check::<Cluster>(0);
        check::<PropagationPolicy>(1);
        check::<ClusterPropagationPolicy>(2);
        check::<OverridePolicy>(3);
        check::<ClusterOverridePolicy>(4);
        check::<ClusterTaintPolicy>(5);
        check::<ResourceBinding>(6);
        check::<ClusterResourceBinding>(7);
        check::<Work>(8);
        check::<ResourceInterpreterCustomization>(9);
        check::<ResourceInterpreterWebhookConfiguration>(10);
        check::<EvictionPause>(11);
        check::<ClusterDrain>(12);
        check::<Plugin>(13);
        check::<PluginTrust>(14);
        check::<WorkloadRebalancer>(15);
        check::<FailoverRecord>(16);
        check::<ClusterFailoverRecord>(17);
        assert_eq!(REGISTERED.len(), 18);
    }
}
