//! Caches of the control plane's objects.

use std::sync::Arc;

use bulkhead_api::{
    Cluster, ClusterDrain, ClusterFailoverRecord, ClusterOverridePolicy, ClusterPropagationPolicy,
    ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, FailoverRecord, OverridePolicy, Plugin, PluginTrust,
    PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration,
    Work, WorkloadRebalancer,
};
use bulkhead_core::names::keys;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::store::{InformerState, Store};
use kube::{Resource, ResourceExt};

use crate::members::Scope;
use crate::{dependency_index, selection};

/// Caches of the control plane's objects.
pub struct Stores {
    /// Clusters.
    pub clusters: Arc<Store<Cluster>>,
    /// PropagationPolicies, indexed by what they select.
    pub policies: Arc<Store<PropagationPolicy>>,
    /// ClusterPropagationPolicies, indexed by what they select.
    pub cluster_policies: Arc<Store<ClusterPropagationPolicy>>,
    /// OverridePolicies; empty while the binding controller does not run.
    pub override_policies: Arc<Store<OverridePolicy>>,
    /// ClusterOverridePolicies; empty while the binding controller does not run.
    pub cluster_override_policies: Arc<Store<ClusterOverridePolicy>>,
    /// ClusterTaintPolicies.
    pub taint_policies: Arc<Store<ClusterTaintPolicy>>,
    /// EvictionPauses.
    pub eviction_pauses: Arc<Store<EvictionPause>>,
    /// ClusterDrains.
    pub cluster_drains: Arc<Store<ClusterDrain>>,
    /// ResourceBindings, indexed by target cluster and by their dependencies and dependants.
    pub bindings: Arc<Store<ResourceBinding>>,
    /// ClusterResourceBindings, indexed by target cluster.
    pub cluster_bindings: Arc<Store<ClusterResourceBinding>>,
    /// Works, indexed by the permanent ID of their binding.
    pub works: Arc<Store<Work>>,
    /// ResourceInterpreterCustomizations.
    pub customizations: Arc<Store<ResourceInterpreterCustomization>>,
    /// WorkloadRebalancers; empty while their controller does not run.
    pub rebalancers: Arc<Store<WorkloadRebalancer>>,
    /// FailoverRecords; empty while their controller does not run.
    pub failover_records: Arc<Store<FailoverRecord>>,
    /// ClusterFailoverRecords; empty while their controller does not run.
    pub cluster_failover_records: Arc<Store<ClusterFailoverRecord>>,
    /// Plugins; empty in processes that do not watch them.
    pub plugins: Arc<Store<Plugin>>,
    /// PluginTrusts; empty in processes that do not watch them.
    pub plugin_trusts: Arc<Store<PluginTrust>>,
    /// ResourceInterpreterWebhookConfigurations.
    pub webhooks: Arc<Store<ResourceInterpreterWebhookConfiguration>>,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            clusters: Store::new(),
            policies: Store::indexed(|policy| {
                let namespace = policy.metadata.namespace.as_deref().unwrap_or_default();
                selection::index_of(namespace, &policy.spec.resource_selectors)
            }),
            cluster_policies: Store::indexed(|policy| selection::index_of("", &policy.spec.resource_selectors)),
            override_policies: Store::new(),
            cluster_override_policies: Store::new(),
            taint_policies: Store::new(),
            eviction_pauses: Store::new(),
            cluster_drains: Store::new(),
            bindings: Store::indexed(|binding| {
                let clusters = binding.spec.clusters.iter().map(|target| target.name.clone());
                clusters.chain(dependency_index::of(binding)).collect()
            }),
            cluster_bindings: Store::indexed(|binding| binding.spec.clusters.iter().map(|t| t.name.clone()).collect()),
            works: Store::indexed(|work| {
                let id = |key| work.labels().get(key).filter(|id| !id.is_empty()).cloned();
                [keys::RESOURCE_BINDING_ID, keys::CLUSTER_RESOURCE_BINDING_ID]
                    .into_iter()
                    .filter_map(id)
                    .collect()
            }),
            customizations: Store::new(),
            rebalancers: Store::new(),
            failover_records: Store::new(),
            cluster_failover_records: Store::new(),
            plugins: Store::new(),
            plugin_trusts: Store::new(),
            webhooks: Store::new(),
        }
    }
}

impl Stores {
    /// Returns the state of the informers that these controllers use, by `plural.group`. Kinds that only one controller
    /// reads are included while it runs.
    pub fn informers(&self, scope: &Scope) -> Vec<(String, InformerState)> {
        fn one<K: Resource<DynamicType = ()> + 'static>(store: &Store<K>) -> (String, InformerState) {
            (format!("{}.{}", K::plural(&()), K::group(&())), store.informer())
        }
        fn started<K: Resource<DynamicType = ()> + 'static>(store: &Store<K>) -> Option<(String, InformerState)> {
            store.has_informer().then(|| one(store))
        }
        if *scope == Scope::Interpreter {
            return vec![one(&self.customizations), one(&self.plugins), one(&self.plugin_trusts)];
        }
        let mut all = vec![
            one(&self.clusters),
            one(&self.works),
            one(&self.customizations),
            one(&self.webhooks),
        ];
        all.extend([one(&self.plugins), one(&self.plugin_trusts)]);
        if *scope == Scope::Push {
            all.extend([
                one(&self.policies),
                one(&self.cluster_policies),
                one(&self.taint_policies),
                one(&self.bindings),
                one(&self.cluster_bindings),
                one(&self.eviction_pauses),
                one(&self.cluster_drains),
            ]);
            all.extend(started(&self.override_policies));
            all.extend(started(&self.cluster_override_policies));
            all.extend(started(&self.rebalancers));
            all.extend(started(&self.failover_records));
            all.extend(started(&self.cluster_failover_records));
        }
        all
    }

    /// Waits until the informers of the kinds that controllers share have synced. Controllers wait themselves for
    /// kinds that only some of them read, such as EvictionPauses.
    pub(crate) async fn wait_for_cache_sync(&self, scope: &Scope) {
        if *scope == Scope::Interpreter {
            return;
        }
        self.clusters.wait_for_cache_sync().await;
        self.works.wait_for_cache_sync().await;
        if *scope == Scope::Push {
            self.policies.wait_for_cache_sync().await;
            self.cluster_policies.wait_for_cache_sync().await;
            self.bindings.wait_for_cache_sync().await;
            self.cluster_bindings.wait_for_cache_sync().await;
        }
    }

    /// Returns a cluster by name.
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.get(&Key::new("", name))
    }
}
