//! Placement and readiness of the workloads.

use std::collections::BTreeMap;

use bulkhead_core::model::ObjectReference;

use super::super::member;
use super::Federation;

impl Federation {
    /// Returns the number of bindings with a cluster in their placement.
    pub(in crate::simulation) fn bindings_on(&self, cluster: &str) -> usize {
        let stores = &self.context.stores;
        stores.bindings.by_index(cluster).len() + stores.cluster_bindings.by_index(cluster).len()
    }

    /// Returns the target clusters of all bindings with an eviction in progress.
    pub(in crate::simulation) fn targets_of_evictions(&self) -> std::collections::BTreeSet<String> {
        let stores = &self.context.stores;
        let targets = |spec: &bulkhead_core::model::BindingSpec| {
            let moves = !spec.graceful_eviction_tasks.is_empty();
            spec.clusters
                .iter()
                .filter(|_| moves)
                .map(|target| target.name.clone())
                .collect::<Vec<_>>()
        };
        let bindings = stores.bindings.list();
        let cluster_bindings = stores.cluster_bindings.list();
        let of_bindings = bindings.iter().flat_map(|binding| targets(&binding.spec));
        of_bindings
            .chain(cluster_bindings.iter().flat_map(|binding| targets(&binding.spec)))
            .collect()
    }

    /// Returns the ready replicas of a workload by member cluster, without clusters in which it does not exist.
    pub(in crate::simulation) fn ready_replicas(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        reachable_only: bool,
    ) -> BTreeMap<String, i64> {
        let members = self
            .members
            .iter()
            .filter(|(_, member)| member.reachable || !reachable_only);
        let ready = members.filter_map(|(cluster, member)| {
            Some((
                cluster.clone(),
                member::ready_replicas(&member.cluster, kind, namespace, name)?,
            ))
        });
        ready.collect()
    }

    /// Returns the images of a workload's containers by member cluster, without clusters in which it does not exist.
    pub(in crate::simulation) fn images(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> BTreeMap<String, Vec<String>> {
        let images = self.members.iter().filter_map(|(cluster, member)| {
            let images = member::images(&member.cluster, kind, namespace, name)?;
            Some((cluster.clone(), images))
        });
        images.collect()
    }

    /// Returns the number of pods that a member cluster can still take.
    pub(in crate::simulation) fn free_pods(&self, cluster: &str) -> i64 {
        let member = self.members.get(cluster);
        member.map_or(0, |member| member::free_pods(&member.cluster))
    }

    /// Returns the number of pods of a workload that a member cluster has no room for.
    pub(in crate::simulation) fn unschedulable_pods(&self, cluster: &str, resource: &ObjectReference) -> i64 {
        let ObjectReference {
            kind, namespace, name, ..
        } = resource;
        self.members.get(cluster).map_or(0, |member| {
            member::unschedulable_pods(&member.cluster, kind, namespace, name)
        })
    }
}
