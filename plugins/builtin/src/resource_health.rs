//! The built-in eviction check: releases the old copy when the new ones are healthy.

use bulkhead_core::call::{Call, CallKind, EvictionCheckCall, EvictionVerdict, Reason, Reply};
use bulkhead_core::model::{AggregatedStatusItem, Health, Reports};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::not_asked;

/// Maximum number of clusters in a reason; a workload may run on hundreds.
const NAMED_MAX: usize = 5;

/// Releases the old copy once every target cluster reports the workload as Healthy. (Karmada:
/// `pkg/controllers/gracefuleviction/evictiontask.go:allScheduledResourceInHealthyState`.)
///
/// It differs intentionally from Karmada in one point: with an empty scheduling result, Karmada's check is vacuously
/// true and the last copy is deleted. Preventing the loss of the last copy is the purpose of a failover tool, so this
/// policy holds it.
pub struct ResourceHealth {
    id: PolicyId,
    capabilities: Vec<Capability>,
}

impl Default for ResourceHealth {
    fn default() -> Self {
        Self {
            id: PolicyId::builtin("ResourceHealth"),
            capabilities: vec![Capability::any(CallKind::EvictionCheck)],
        }
    }
}

impl Policy for ResourceHealth {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::EvictionCheck(call) => Ok(Reply::EvictionCheck(judge(call))),
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

fn judge(call: &EvictionCheckCall<'_>) -> EvictionVerdict {
    let (binding, targets) = (call.binding, &call.binding.spec.clusters);
    let (observed, generation) = (binding.status.scheduler_observed_generation, binding.generation);
    if observed != generation {
        let message = format!("the scheduler has seen generation {observed} of {generation}");
        return hold("SchedulePending", message);
    }
    if targets.is_empty() {
        return hold("NoReplacement", "the workload is scheduled to no cluster".to_owned());
    }
    let mut reports = Reports::new(call.observed);
    let mut lacking = targets.iter().filter_map(|target| {
        let item = reports.of(&target.name);
        (item.and_then(|item| item.health) != Some(Health::Healthy)).then_some((&target.name, item))
    });
    let named: Vec<_> = lacking
        .by_ref()
        .take(NAMED_MAX)
        .map(|(name, item)| shortcoming(name, item))
        .collect();
    if !named.is_empty() {
        let others = lacking.count();
        let others = if others > 0 {
            format!(" and {others} others")
        } else {
            String::new()
        };
        return hold("ReplacementNotHealthy", format!("{}{others}", named.join(", ")));
    }
    let count = targets.len();
    let message = format!("{count} of {count} target clusters report Healthy");
    EvictionVerdict::Release(Reason::new("ReplacementHealthy", message))
}

/// Returns a hold verdict without a recheck time, because health changes arrive as events.
fn hold(code: &str, message: String) -> EvictionVerdict {
    EvictionVerdict::Hold {
        reason: Reason::new(code, message),
        recheck_after_s: None,
    }
}

fn shortcoming(cluster: &str, item: Option<&AggregatedStatusItem>) -> String {
    match item.map(|item| item.health) {
        Some(Some(health)) => format!("{cluster}: {}", health.as_str()),
        Some(None) => format!("{cluster}: no health yet"),
        None => format!("{cluster}: no status yet"),
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Binding, GracefulEvictionTask, TargetCluster};
    use bulkhead_core::time::Time;

    use super::*;

    /// Checks a verdict. `observed` has an entry per item: cluster and health.
    fn check(generations: (i64, i64), targets: &[&str], observed: &[(&str, Option<Health>)], expected: &str) {
        let mut binding = Binding {
            generation: generations.0,
            ..Binding::default()
        };
        binding.status.scheduler_observed_generation = generations.1;
        binding.spec.clusters = targets.iter().map(|name| TargetCluster::new(*name, 1)).collect();
        let item = |(name, health): &(&str, Option<Health>)| AggregatedStatusItem {
            cluster_name: (*name).to_owned(),
            health: *health,
            ..AggregatedStatusItem::default()
        };
        let observed: Vec<_> = observed.iter().map(item).collect();
        let task = GracefulEvictionTask::default();
        let now = Time::from_millis(0);
        let call = EvictionCheckCall {
            binding: &binding,
            task: &task,
            observed: &observed,
            now,
        };
        let actual = match ResourceHealth::default().call(&Call::EvictionCheck(call)) {
            Ok(Reply::EvictionCheck(EvictionVerdict::Release(reason))) => format!("release {reason}"),
            Ok(Reply::EvictionCheck(EvictionVerdict::Hold { reason, .. })) => format!("hold {reason}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn the_old_copy_goes_when_all_new_ones_are_healthy() {
        let (healthy, sick, unknown) = (Some(Health::Healthy), Some(Health::Unhealthy), Some(Health::Unknown));
        check(
            (2, 1),
            &["m2"],
            &[("m2", healthy)],
            "hold SchedulePending: the scheduler has seen generation 1 of 2",
        );
        check(
            (1, 1),
            &[],
            &[("m1", healthy)],
            "hold NoReplacement: the workload is scheduled to no cluster",
        );
        check(
            (1, 1),
            &["m2"],
            &[("m1", healthy)],
            "hold ReplacementNotHealthy: m2: no status yet",
        );
        check(
            (1, 1),
            &["m2"],
            &[("m2", None)],
            "hold ReplacementNotHealthy: m2: no health yet",
        );
        let two = [("m2", unknown), ("m3", sick)];
        check(
            (1, 1),
            &["m2", "m3"],
            &two,
            "hold ReplacementNotHealthy: m2: Unknown, m3: Unhealthy",
        );
        let text = "hold ReplacementNotHealthy: a: no status yet, b: no status yet, c: no status yet, d: no status yet, \
                    e: no status yet and 2 others";
        check((1, 1), &["a", "b", "c", "d", "e", "f", "g"], &[], text);
        let two = [("m1", sick), ("m2", healthy), ("m3", healthy)];
        let text = "release ReplacementHealthy: 2 of 2 target clusters report Healthy";
        check((1, 1), &["m2", "m3"], &two, text);
    }
}
