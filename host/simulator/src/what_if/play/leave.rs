//! Effect of an eviction: the binding leaves its cluster and is scheduled again.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_controllers::flags::FeatureGate;
use bulkhead_core::decide::schedule::capacity::{AssumedWorkload, Assumptions};
use bulkhead_core::decide::schedule::{self, SchedulerOptions, SchedulingSnapshot};

use super::super::{Move, Unplaced};
use super::{Play, millis};

impl Play<'_> {
    /// Applies an eviction and schedules the binding again.
    pub(super) fn leave(
        &mut self,
        index: usize,
        from: &str,
        spec: bulkhead_core::model::BindingSpec,
        reason: String,
        now: Duration,
    ) {
        let (at, flags) = (self.at(now), &self.question.flags);
        let options = SchedulerOptions {
            multiple_pod_templates: flags.gate(FeatureGate::MultiplePodTemplatesScheduling),
            resource_models: flags.gate(FeatureGate::CustomizedClusterResourceModeling),
            overcommit_protection: true,
            empty_workload_propagation: flags.enable_empty_workload_propagation,
            evicts_standing: flags.gate(FeatureGate::GracefulEviction),
            spares_lost: true,
        };
        // No summary in the export reflects the simulated moves, so assumed workloads never expire.
        let assumed = &self.assumed;
        let Some(binding) = self.bindings.get_mut(index) else {
            return;
        };
        let leaving = binding
            .spec
            .clusters
            .iter()
            .find(|target| target.name == from)
            .map_or(0, |target| target.replicas);
        binding.spec = spec;
        binding.generation += 1;
        let before: BTreeMap<_, _> = binding
            .spec
            .clusters
            .iter()
            .map(|target| (target.name.clone(), target.replicas))
            .collect();
        let snapshot = SchedulingSnapshot {
            binding,
            clusters: &self.snapshot,
            peers: &[],
            accurate: None,
            assumed,
            options: &options,
            now: at,
        };
        let plan = schedule::decide(snapshot, &self.scheduling);
        if let Some(targets) = plan.targets() {
            binding.spec.clusters = targets.to_vec();
            binding
                .spec
                .graceful_eviction_tasks
                .extend(plan.displaced.iter().cloned());
        }
        if let Some(error) = plan.error() {
            self.answer.nowhere.push(Unplaced {
                binding: binding.key(),
                why: error.to_string(),
            });
        }
        let gained = |target: &bulkhead_core::model::TargetCluster| {
            let more = target.replicas - before.get(&target.name).copied().unwrap_or(0);
            (more > 0 || !before.contains_key(&target.name)).then(|| (target.name.clone(), more))
        };
        let to: BTreeMap<_, _> = binding.spec.clusters.iter().filter_map(gained).collect();
        let now_on = |name: &String| {
            binding
                .spec
                .clusters
                .iter()
                .find(|target| target.name == *name)
                .map_or(0, |target| target.replicas)
        };
        let lost = |(name, replicas): (&String, &i32)| {
            let fewer = replicas - now_on(name);
            (fewer > 0).then(|| (name.clone(), fewer))
        };
        let shrunk: BTreeMap<_, _> = before.iter().filter_map(lost).collect();
        let moved: Vec<_> = to
            .iter()
            .map(|(name, replicas)| bulkhead_core::model::TargetCluster::new(name.clone(), *replicas))
            .collect();
        let mut assumptions = Assumptions::default();
        assumptions.assume(binding, &moved, self.start);
        for (cluster, workloads) in assumptions.by_cluster(self.start) {
            let existing = self.assumed.entry(cluster).or_default();
            for workload in workloads {
                add(existing, workload);
            }
        }
        self.changed = now;
        let (at_ms, key) = (millis(now), binding.key());
        self.answer.moves.push(Move {
            at_ms,
            binding: key,
            from: from.to_owned(),
            leaving,
            to,
            shrunk,
            reason,
        });
    }
}

/// Adds a workload to the assumed ones. Workloads of one namespace with the same pod requirements are merged, so
/// that the cost of a decision does not grow with the number of earlier moves.
fn add(existing: &mut Vec<AssumedWorkload>, workload: AssumedWorkload) {
    for component in workload.components {
        let alike = |other: &&mut AssumedWorkload| {
            let needs = |one: &AssumedWorkload| one.components.first().map(|one| one.replica_requirements.clone());
            other.namespace == workload.namespace && needs(other) == Some(component.replica_requirements.clone())
        };
        match existing
            .iter_mut()
            .find(alike)
            .and_then(|other| other.components.first_mut())
        {
            Some(known) => known.replicas = known.replicas.saturating_add(component.replicas),
            None => {
                existing.push(AssumedWorkload {
                    namespace: workload.namespace.clone(),
                    components: vec![component],
                });
            }
        }
    }
}
