//! Recently placed workloads that are not in any summary yet (Karmada: feature gate SchedulingOvercommitProtection,
//! `pkg/scheduler/cache/cache.go`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request;
use crate::decide::schedule::ScheduleError;
use crate::decide::schedule::components;
use crate::model::Component;
use crate::model::{AggregatedStatusItem, Binding, Health, TargetCluster};
use crate::time::Time;

/// Lifetime of an assumption unless it is renewed, in seconds.
pub const ASSUMPTION_TTL_S: i64 = 300;

/// Time for which a workload that became healthy stays assumed if the summary of its cluster does not change, in
/// seconds: three intervals of the status.
const SUMMARY_AGE_MAX_S: i64 = 30;

/// Workload that is about to run on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssumedWorkload {
    /// Namespace of the workload.
    #[serde(default, alias = "Namespace")]
    pub namespace: String,
    /// All its pods.
    #[serde(default, alias = "Components")]
    pub components: Vec<Component>,
}

/// Resources of assumed workloads to deduct from a summary: thousandths of cpu, units of all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deduction {
    pub(super) pods: i64,
    taken: BTreeMap<String, i64>,
}

impl Deduction {
    pub(super) fn of(workloads: &[AssumedWorkload]) -> Result<Self, ScheduleError> {
        let mut deduction = Self::default();
        let components = workloads.iter().flat_map(|workload| &workload.components);
        for component in components.filter(|component| component.replicas > 0) {
            let replicas = i64::from(component.replicas);
            deduction.pods = deduction.pods.saturating_add(replicas);
            let request = component
                .replica_requirements
                .as_ref()
                .map(|needs| request::parse(&needs.resource_request));
            for amount in request.transpose()?.unwrap_or_default() {
                let taken = amount.divisor().saturating_mul(replicas);
                let sum = deduction.taken.entry(amount.resource).or_default();
                *sum = sum.saturating_add(taken);
            }
        }
        Ok(deduction)
    }

    pub(super) fn of_resource(&self, resource: &str) -> i64 {
        if self.taken.is_empty() {
            0
        } else {
            self.taken.get(resource).copied().unwrap_or(0)
        }
    }
}

/// Resources of assumed workloads to deduct for component sets, in the counting of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetDeduction {
    pub(super) pods: i64,
    taken: BTreeMap<String, i64>,
}

impl SetDeduction {
    pub(super) fn of(workloads: &[AssumedWorkload]) -> Result<Self, ScheduleError> {
        let mut deduction = Self::default();
        for component in workloads.iter().flat_map(|workload| &workload.components) {
            let replicas = i64::from(component.replicas);
            deduction.pods = deduction.pods.wrapping_add(replicas);
            let request = component
                .replica_requirements
                .as_ref()
                .map(|needs| request::parse(&needs.resource_request));
            for amount in request.transpose()?.unwrap_or_default() {
                let taken = amount.set_amount().wrapping_mul(replicas);
                let sum = deduction.taken.entry(amount.resource).or_default();
                *sum = sum.wrapping_add(taken);
            }
        }
        Ok(deduction)
    }

    pub(super) fn of_resource(&self, resource: &str) -> i64 {
        self.taken.get(resource).copied().unwrap_or(0)
    }
}

/// Assumptions by binding and cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumptions {
    by_binding: BTreeMap<String, Assumed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Assumed {
    until: Time,
    by_cluster: BTreeMap<String, Placed>,
}

#[derive(Clone, Debug, PartialEq)]
struct Placed {
    workload: AssumedWorkload,
    /// End of the assumption, once the workload is healthy.
    healthy_until: Option<Time>,
}

impl Placed {
    fn is_over(&self, now: Time) -> bool {
        self.healthy_until.is_some_and(|until| until <= now)
    }
}

impl Assumptions {
    /// Records the placement of a binding, and replaces its earlier assumption. Only namespaced workloads are
    /// recorded; malformed components are ignored.
    pub fn assume(&mut self, binding: &Binding, targets: &[TargetCluster], now: Time) {
        self.insert(binding, targets, now.plus_seconds(ASSUMPTION_TTL_S));
    }

    /// Records the placement that an earlier process wrote, on the clusters that do not report it healthy. A placement
    /// of an unknown time, with its bookkeeping not yet in the status, counts as one of `now`. Karmada's scheduler
    /// starts without assumptions.
    pub fn recall(&mut self, binding: &Binding, now: Time) {
        let (status, targets) = (&binding.status, &binding.spec.clusters);
        if targets.is_empty() || self.by_binding.contains_key(&binding.key()) {
            return;
        }
        let is_noted = status.scheduler_observed_generation >= binding.generation;
        let placed = status
            .last_scheduled_time
            .filter(|_| is_noted)
            .map_or(now, |time| time.min(now));
        let until = placed.plus_seconds(ASSUMPTION_TTL_S);
        if until <= now {
            return;
        }
        let is_healthy = |name: &str| {
            let mut reports = status.aggregated_status.iter();
            reports.any(|report| report.cluster_name == name && report.health == Some(Health::Healthy))
        };
        let unsettled: Vec<_> = targets
            .iter()
            .filter(|target| !is_healthy(&target.name))
            .cloned()
            .collect();
        self.insert(binding, &unsettled, until);
    }

    fn insert(&mut self, binding: &Binding, targets: &[TargetCluster], until: Time) {
        let spec = &binding.spec;
        if binding.namespace.is_none() || !spec.is_workload() {
            return;
        }
        let whole = components::parse(spec).unwrap_or_default();
        let workload = |target: &TargetCluster| {
            let single = || Component {
                name: spec.resource.name.clone(),
                replicas: target.replicas,
                replica_requirements: spec.replica_requirements.clone(),
            };
            let components = if whole.is_empty() {
                vec![single()]
            } else {
                whole.clone()
            };
            let workload = AssumedWorkload {
                namespace: spec.resource.namespace.clone(),
                components,
            };
            let placed = Placed {
                workload,
                healthy_until: None,
            };
            (target.name.clone(), placed)
        };
        let by_cluster = targets.iter().map(workload).collect();
        self.by_binding.insert(binding.key(), Assumed { until, by_cluster });
    }

    /// Removes the assumptions of a binding.
    pub fn forget(&mut self, binding_key: &str) {
        self.by_binding.remove(binding_key);
    }

    /// Ends the assumptions of a binding on clusters that now report it healthy but did not `before`, with the next
    /// summary of each. A cluster that was healthy before may report an earlier, smaller number of replicas, and the
    /// report of a lost cluster is outdated (Karmada: `event_handler.go:newlyHealthyClusters`, which removes them at
    /// once, up to ten seconds before the summary has the pods).
    pub fn settle(
        &mut self,
        binding_key: &str,
        before: &[AggregatedStatusItem],
        reports: &[AggregatedStatusItem],
        now: Time,
    ) {
        let Some(assumed) = self.by_binding.get_mut(binding_key) else {
            return;
        };
        let healthy = |report: &&AggregatedStatusItem| report.health == Some(Health::Healthy);
        let was_healthy = |name: &str| before.iter().filter(healthy).any(|report| report.cluster_name == name);
        for report in reports
            .iter()
            .filter(healthy)
            .filter(|report| !was_healthy(&report.cluster_name))
        {
            if let Some(placed) = assumed.by_cluster.get_mut(&report.cluster_name) {
                placed.healthy_until = Some(now.plus_seconds(SUMMARY_AGE_MAX_S));
            }
        }
    }

    /// Removes the assumptions of healthy workloads on a cluster whose summary is new.
    pub fn summarized(&mut self, cluster: &str) {
        for assumed in self.by_binding.values_mut() {
            if assumed
                .by_cluster
                .get(cluster)
                .is_some_and(|placed| placed.healthy_until.is_some())
            {
                assumed.by_cluster.remove(cluster);
            }
        }
    }

    /// Removes expired assumptions.
    pub fn expire(&mut self, now: Time) {
        self.by_binding.retain(|_, assumed| {
            assumed.by_cluster.retain(|_, placed| !placed.is_over(now));
            assumed.until > now && !assumed.by_cluster.is_empty()
        });
    }

    /// Returns the assumptions in force at `now`, by cluster.
    pub fn by_cluster(&self, now: Time) -> BTreeMap<String, Vec<AssumedWorkload>> {
        let mut clusters: BTreeMap<String, Vec<AssumedWorkload>> = BTreeMap::new();
        for assumed in self.by_binding.values().filter(|assumed| assumed.until > now) {
            for (cluster, placed) in assumed.by_cluster.iter().filter(|(_, placed)| !placed.is_over(now)) {
                clusters
                    .entry(cluster.clone())
                    .or_default()
                    .push(placed.workload.clone());
            }
        }
        clusters
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_workload_that_turns_healthy_is_counted_by_its_cluster_once() {
        let read = |value: Value| serde_json::from_value::<Binding>(value).unwrap();
        let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "app"});
        let binding = read(json!({
            "namespace": "default", "name": "app-deployment", "spec": {"resource": resource, "replicas": 3},
        }));
        let target = |name: &str| TargetCluster {
            name: name.to_owned(),
            replicas: 3,
            ..TargetCluster::default()
        };
        let report = |name: &str, health: &str| {
            let item = json!({"clusterName": name, "health": health});
            serde_json::from_value::<AggregatedStatusItem>(item).unwrap()
        };
        let now = Time::from_millis(0);
        let mut assumptions = Assumptions::default();
        assumptions.assume(&binding, &[target("grown"), target("new")], now);
        let remaining = |assumptions: &Assumptions| assumptions.by_cluster(now).into_keys().collect::<Vec<_>>();
        let before = [report("grown", "Healthy"), report("new", "Unknown")];
        assumptions.settle(&binding.key(), &before, &before, now);
        assumptions.summarized("new");
        assert_eq!(remaining(&assumptions), ["grown", "new"]);
        let after = [report("grown", "Healthy"), report("new", "Healthy")];
        assumptions.settle(&binding.key(), &before, &after, now);
        assert_eq!(remaining(&assumptions), ["grown", "new"], "the summary is older");
        assumptions.summarized("grown");
        assumptions.summarized("new");
        assert_eq!(remaining(&assumptions), ["grown"]);
        let shrunk = [report("grown", "Unhealthy"), report("new", "Healthy")];
        assumptions.settle(&binding.key(), &after, &shrunk, now);
        assumptions.summarized("grown");
        assert_eq!(remaining(&assumptions), ["grown"]);
        assumptions.settle(&binding.key(), &shrunk, &after, now);
        let ends = |after_s: i64| assumptions.by_cluster(now.plus_seconds(after_s)).is_empty();
        assert!(!ends(29) && ends(30), "a summary may stay as it is");
        assumptions.expire(now.plus_seconds(30));
        assert_eq!(remaining(&assumptions), Vec::<String>::new());
    }

    #[test]
    fn a_new_process_recalls_recent_placements_that_no_cluster_reports_healthy() {
        let now = Time::from_millis(1_000_000);
        let clusters = |generation: i64, observed: i64, scheduled_s: Option<i64>, now: Time| {
            let resource =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "app"});
            let targets = json!([{"name": "ready", "replicas": 1}, {"name": "starting", "replicas": 2}]);
            let mut binding: Binding = serde_json::from_value(json!({
                "namespace": "default", "name": "app-deployment", "generation": generation,
                "spec": {"resource": resource, "replicas": 3, "clusters": targets},
                "status": {"aggregatedStatus": [{"clusterName": "ready", "health": "Healthy"}]},
            }))
            .unwrap();
            binding.status.scheduler_observed_generation = observed;
            binding.status.last_scheduled_time = scheduled_s.map(|s| Time::from_millis(s * 1000));
            let mut assumptions = Assumptions::default();
            assumptions.recall(&binding, Time::from_millis(1_000_000));
            assumptions.by_cluster(now).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(clusters(2, 2, Some(900), now), ["starting"]);
        assert_eq!(clusters(2, 2, Some(900), now.plus_seconds(200)), [""; 0]);
        assert_eq!(clusters(2, 2, Some(700), now), [""; 0]);
        assert_eq!(clusters(2, 2, Some(2_000), now.plus_seconds(300)), [""; 0]);
        assert_eq!(clusters(3, 2, Some(700), now), ["starting"]);
        assert_eq!(clusters(2, 2, None, now), ["starting"]);
    }
}
