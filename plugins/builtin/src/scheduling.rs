//! Karmada's in-tree scheduler plugins (Karmada: `pkg/scheduler/framework/plugins`).

use bulkhead_core::call::{Call, CallKind, FilterCall, FilterVerdict, Reply, ScoreCall};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::{filter, not_asked};

type Filter = fn(&FilterCall<'_>) -> Vec<FilterVerdict>;
type Score = fn(&ScoreCall<'_>) -> Vec<i64>;

/// Scheduler plugin whose result depends only on its call, which is true of all of Karmada's.
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
        Self {
            id: PolicyId::builtin(name),
            capabilities,
            filter,
            score,
        }
    }

    /// Returns the plugin with this name in Karmada, or [`SchedulingPolicy::recent_eviction`].
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "APIEnablement" => Self::api_enablement(),
            "ClusterAffinity" => Self::cluster_affinity(),
            "ClusterEviction" => Self::cluster_eviction(),
            "ClusterLocality" => Self::cluster_locality(),
            "RecentEviction" => Self::recent_eviction(),
            "SpreadConstraint" => Self::spread_constraint(),
            "TaintToleration" => Self::taint_toleration(),
            "WorkloadAffinity" => Self::workload_affinity(),
            "WorkloadAntiAffinity" => Self::workload_anti_affinity(),
            _ => return None,
        })
    }

    /// Requires that the cluster serves the resource's API.
    pub fn api_enablement() -> Self {
        Self::new("APIEnablement", Some(filter::api_enablement), None)
    }

    /// Requires that the cluster's taints are tolerated.
    pub fn taint_toleration() -> Self {
        Self::new("TaintToleration", Some(filter::taint_toleration), None)
    }

    /// Requires that the placement selects the cluster. Its score is always 0, as in Karmada.
    pub fn cluster_affinity() -> Self {
        Self::new(
            "ClusterAffinity",
            Some(filter::cluster_affinity),
            Some(|call| vec![0; call.clusters.len()]),
        )
    }

    /// Requires that the cluster has the properties that the spread constraints group by.
    pub fn spread_constraint() -> Self {
        Self::new("SpreadConstraint", Some(filter::spread_constraint), None)
    }

    /// Requires that no eviction from the cluster is in progress.
    pub fn cluster_eviction() -> Self {
        Self::new("ClusterEviction", Some(filter::cluster_eviction), None)
    }

    /// Requires that the workload has not failed over from the cluster recently. Not in Karmada.
    pub fn recent_eviction() -> Self {
        Self::new("RecentEviction", Some(filter::recent_eviction), None)
    }

    /// Requires that the cluster runs every other workload of the affinity group.
    pub fn workload_affinity() -> Self {
        Self::new("WorkloadAffinity", Some(filter::workload_affinity), None)
    }

    /// Requires that the cluster runs no other workload of the anti-affinity group.
    pub fn workload_anti_affinity() -> Self {
        Self::new("WorkloadAntiAffinity", Some(filter::workload_anti_affinity), None)
    }

    /// Scores 100 for clusters that already run the workload, 0 for others.
    pub fn cluster_locality() -> Self {
        Self::new("ClusterLocality", None, Some(locality))
    }
}

/// Scores 100 for current targets, including those with 0 replicas, and 0 for others. (Karmada:
/// `clusterlocality/cluster_locality.go:Score`.)
fn locality(call: &ScoreCall<'_>) -> Vec<i64> {
    let mut scores = vec![0; call.clusters.len()];
    for target in &call.binding.spec.clusters {
        if let Some(position) = call.clusters.position_of(&target.name) {
            scores[position] = 100;
        }
    }
    scores
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
            (Call::Filter(call), Some(filter), _) => Ok(Reply::Filter(filter(call))),
            (Call::Score(call), _, Some(score)) => Ok(Reply::Score(score(call))),
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::model::{Binding, Cluster, TargetCluster};
    use bulkhead_core::snapshot::ClusterSnapshot;
    use bulkhead_core::time::Time;

    use super::*;

    fn check(policy: &SchedulingPolicy, targets: &[&str], expected: &[i64]) {
        let mut binding = Binding::default();
        binding.spec.clusters = targets.iter().map(|name| TargetCluster::new(*name, 0)).collect();
        let cluster = |name: &str| {
            Arc::new(Cluster {
                name: name.to_owned(),
                ..Cluster::default()
            })
        };
        let clusters = ClusterSnapshot::new(["member1", "member2"].map(cluster));
        let call = ScoreCall {
            binding: &binding,
            clusters: clusters.present(),
            now: Time::from_millis(0),
        };
        assert_eq!(
            policy.call(&Call::Score(call)),
            Ok(Reply::Score(expected.to_vec())),
            "{targets:?}"
        );
    }

    #[test]
    fn locality_prefers_clusters_that_run_the_workload() {
        check(&SchedulingPolicy::cluster_locality(), &[], &[0, 0]);
        check(&SchedulingPolicy::cluster_locality(), &["member2"], &[0, 100]);
        check(
            &SchedulingPolicy::cluster_locality(),
            &["member1", "member2"],
            &[100, 100],
        );
    }

    #[test]
    fn affinity_does_not_score() {
        check(&SchedulingPolicy::cluster_affinity(), &["member1"], &[0, 0]);
    }

    #[test]
    fn a_question_of_another_kind_is_the_hosts_fault() {
        let (binding, clusters) = (Binding::default(), ClusterSnapshot::default());
        let call = ScoreCall {
            binding: &binding,
            clusters: clusters.present(),
            now: Time::from_millis(0),
        };
        let call = Call::Score(call);
        let kind = SchedulingPolicy::api_enablement()
            .call(&call)
            .map_err(|fault| fault.kind);
        assert_eq!(kind, Err(bulkhead_core::policy::FaultKind::HostBug));
    }
}
