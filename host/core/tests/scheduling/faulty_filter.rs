//! Retries after scheduling with a filter that faults.

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::decide::schedule::Retry;
use bulkhead_core::policy::{Capability, Fault, FaultKind, PolicyId};

use super::*;

/// Filter that traps on every call.
struct TrappingFilter(PolicyId, [Capability; 1]);

impl Policy for TrappingFilter {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        Err(Fault::new(FaultKind::Trap, "unreachable"))
    }
}

fn cluster(name: &str) -> Arc<Cluster> {
    let resources = json!([{"name": "deployments", "kind": "Deployment"}]);
    let status = json!({
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": resources}],
        "resourceSummary": {"allocatable": {"cpu": "40", "pods": "50"}},
    });
    Arc::new(serde_json::from_value(json!({"name": name, "spec": {"syncMode": "Push"}, "status": status})).unwrap())
}

/// Schedules a Deployment of two replicas with copies at `placed` on the clusters m1 and m2.
fn scheduled(placed: &Value, scheduling: &Value, is_faulty: bool) -> (SchedulePlan, Retry) {
    let binding: Binding = serde_json::from_value(json!({
        "namespace": "ns", "name": "b",
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "replicas": 2,
            "clusters": placed, "placement": {"clusterAffinity": {}, "replicaScheduling": scheduling},
        },
    }))
    .unwrap();
    let clusters = Arc::new(ClusterSnapshot::new([cluster("m1"), cluster("m2")]));
    let mut policies: Vec<Arc<dyn Policy>> = IN_TREE
        .iter()
        .filter_map(|name| SchedulingPolicy::by_name(name).map(|policy| Arc::new(policy) as Arc<dyn Policy>))
        .collect();
    if is_faulty {
        let capability = Capability::any(CallKind::Filter);
        policies.push(Arc::new(TrappingFilter(PolicyId::builtin("traps"), [capability])));
    }
    let snapshot = SchedulingSnapshot {
        binding: &binding,
        clusters: &clusters,
        peers: &[],
        accurate: None,
        assumed: &BTreeMap::new(),
        options: &SchedulerOptions::default(),
        now: Time::from_millis(5_000),
    };
    let plan = decide(snapshot, &PolicySet::new(policies));
    let retry = plan.conclude(&binding, Ok(())).verdict.retry;
    (plan, retry)
}

#[test]
fn a_workload_that_a_faulty_filter_leaves_unplaced_is_retried_with_backoff() {
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let divided = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    for scheduling in [&duplicated, &divided] {
        let (plan, retry) = scheduled(&json!([]), scheduling, true);
        assert!(
            matches!(plan.error(), Some(ScheduleError::NoClusterFit(_))),
            "{:?}",
            plan.outcome
        );
        assert_eq!(retry, Retry::Backoff);
    }
}

/// A new cluster is not a target while the filter faults.
#[test]
fn a_result_that_a_faulty_filter_leaves_incomplete_is_computed_again_within_minutes() {
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let standing = json!([{"name": "m1", "replicas": 2}]);
    let (plan, retry) = scheduled(&standing, &duplicated, true);
    assert_eq!(placed(&plan).map(<[_]>::len), Some(1), "{:?}", plan.outcome);
    assert_eq!(retry, Retry::Unschedulable);
}

#[test]
fn a_result_without_faults_waits_for_a_change() {
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let (plan, retry) = scheduled(&json!([]), &duplicated, false);
    assert_eq!(placed(&plan).map(<[_]>::len), Some(2), "{:?}", plan.outcome);
    assert_eq!(retry, Retry::Forget);
}
