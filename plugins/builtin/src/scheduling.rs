//! Karmada's in-tree scheduler plugins (Karmada: `pkg/scheduler/framework/plugins`).

use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, FilterVerdict, Reply};
use bulkhead_core::model::{Binding, Cluster};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::{filter, not_asked};

type Filter = fn(&Binding, &Cluster) -> FilterVerdict;
type Score = fn(&Binding, &Cluster) -> i64;

/// A scheduler plugin whose verdict on a cluster depends on the binding and that cluster alone, which is true
/// of all of Karmada's.
pub struct SchedulingPolicy {
    id: PolicyId,
    capabilities: Vec<Capability>,
    filter: Option<Filter>,
    score: Option<Score>,
}

impl SchedulingPolicy {
    fn new(name: &str, filter: Option<Filter>, score: Option<Score>) -> Self {
        let filters = filter.map(|_| Capability::any(CallKind::Filter));
        let scores = score.map(|_| Capability::any(CallKind::Score));
        let capabilities = filters.into_iter().chain(scores).collect();
        Self { id: PolicyId::builtin(name), capabilities, filter, score }
    }

    /// The cluster must serve the resource's API.
    pub fn api_enablement() -> Self {
        Self::new("APIEnablement", Some(filter::api_enablement), None)
    }

    /// The cluster's taints must be tolerated.
    pub fn taint_toleration() -> Self {
        Self::new("TaintToleration", Some(filter::taint_toleration), None)
    }

    /// The placement must select the cluster. Its score is always 0, as in Karmada.
    pub fn cluster_affinity() -> Self {
        Self::new("ClusterAffinity", Some(filter::cluster_affinity), Some(|_, _| 0))
    }

    /// The cluster must have what the spread constraints group by.
    pub fn spread_constraint() -> Self {
        Self::new("SpreadConstraint", Some(filter::spread_constraint), None)
    }

    /// No eviction from the cluster may be under way.
    pub fn cluster_eviction() -> Self {
        Self::new("ClusterEviction", Some(filter::cluster_eviction), None)
    }

    /// 100 where the workload runs already, 0 elsewhere.
    pub fn cluster_locality() -> Self {
        Self::new("ClusterLocality", None, Some(locality))
    }
}

/// Karmada: `clusterlocality/cluster_locality.go:Score`. A target with 0 replicas counts.
fn locality(binding: &Binding, cluster: &Cluster) -> i64 {
    if binding.spec.targets(&cluster.name) { 100 } else { 0 }
}

impl Policy for SchedulingPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match (call, self.filter, self.score) {
            (Call::Filter(call), Some(filter), _) => {
                Ok(Reply::Filter(each(call.clusters, |cluster| filter(call.binding, cluster))))
            }
            (Call::Score(call), _, Some(score)) => {
                Ok(Reply::Score(each(call.clusters, |cluster| score(call.binding, cluster))))
            }
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

fn each<T>(clusters: &[Arc<Cluster>], verdict: impl Fn(&Cluster) -> T) -> Vec<T> {
    clusters.iter().map(|cluster| verdict(cluster)).collect()
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::ScoreCall;
    use bulkhead_core::model::TargetCluster;
    use bulkhead_core::time::Time;

    use super::*;

    fn check(policy: &SchedulingPolicy, targets: &[&str], expected: &[i64]) {
        let mut binding = Binding::default();
        binding.spec.clusters = targets.iter().map(|name| TargetCluster::new(*name, 0)).collect();
        let clusters: Vec<_> = ["member1", "member2"]
            .iter()
            .map(|name| Arc::new(Cluster { name: (*name).to_owned(), ..Cluster::default() }))
            .collect();
        let call = ScoreCall { binding: &binding, clusters: &clusters, now: Time::from_millis(0) };
        assert_eq!(policy.call(&Call::Score(call)), Ok(Reply::Score(expected.to_vec())), "{targets:?}");
    }

    #[test]
    fn locality_prefers_clusters_that_run_the_workload() {
        check(&SchedulingPolicy::cluster_locality(), &[], &[0, 0]);
        check(&SchedulingPolicy::cluster_locality(), &["member2"], &[0, 100]);
        check(&SchedulingPolicy::cluster_locality(), &["member1", "member2"], &[100, 100]);
    }

    #[test]
    fn affinity_does_not_score() {
        check(&SchedulingPolicy::cluster_affinity(), &["member1"], &[0, 0]);
    }

    #[test]
    fn a_question_of_another_kind_is_the_hosts_fault() {
        let (binding, clusters) = (Binding::default(), []);
        let call = Call::Score(ScoreCall { binding: &binding, clusters: &clusters, now: Time::from_millis(0) });
        let kind = SchedulingPolicy::api_enablement().call(&call).map_err(|fault| fault.kind);
        assert_eq!(kind, Err(bulkhead_core::policy::FaultKind::HostBug));
    }
}
