//! Built-in policies: Karmada's own rules as policies.
//!
//! Each policy answers the same calls as a plugin and could be replaced by one. Policies have no mutable state, no
//! clock, and no dependency on an engine. The shape of an object is checked field by field
//! ([`bulkhead_core::shape`]). A malformed object is an answer (`Unknown`) for health and a fault for the other
//! interpreter operations.
//!
//! Start reading at [`all`].

mod aggregate;
mod aggregate_job;
mod aggregate_load_balancer;
mod aggregate_pod;
mod aggregated_items;
mod cluster_drains;
mod dependencies;
mod failover_eviction;
mod filter;
mod native_health;
mod native_interpreter;
mod ready_condition;
mod reflect;
mod replicas;
mod resource_health;
mod retain;
mod scheduling;
mod statuses;
mod taint_policies;

use std::sync::Arc;

use bulkhead_core::call::Call;
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Fault, FaultKind, Policy, PolicyId};

pub use cluster_drains::ClusterDrains;
pub use failover_eviction::FailoverEviction;
pub use native_health::NativeHealth;
pub use native_interpreter::NativeInterpreter;
pub use ready_condition::ReadyCondition;
pub use resource_health::ResourceHealth;
pub use scheduling::SchedulingPolicy;
pub use taint_policies::{ClusterTaintPolicyRule, TaintPolicyOptions};

/// Returns all policies that need no configuration, in the order in which they are called.
///
/// Not included: [`FailoverEviction`], which a flag enables, and [`ClusterTaintPolicyRule`] and [`ClusterDrains`],
/// which are rebuilt from the objects in the API.
pub fn all() -> Vec<Arc<dyn Policy>> {
    all_with(Detail::Plain)
}

/// Returns the same policies with the given detail about pods.
pub fn all_with(detail: Detail) -> Vec<Arc<dyn Policy>> {
    vec![
        Arc::new(SchedulingPolicy::api_enablement()),
        Arc::new(SchedulingPolicy::taint_toleration()),
        Arc::new(SchedulingPolicy::cluster_affinity()),
        Arc::new(SchedulingPolicy::spread_constraint()),
        Arc::new(SchedulingPolicy::cluster_eviction()),
        Arc::new(SchedulingPolicy::recent_eviction()),
        Arc::new(SchedulingPolicy::workload_affinity()),
        Arc::new(SchedulingPolicy::workload_anti_affinity()),
        Arc::new(SchedulingPolicy::cluster_locality()),
        Arc::new(ResourceHealth::default()),
        Arc::new(NativeHealth::default()),
        Arc::new(NativeInterpreter::new(detail)),
        Arc::new(ReadyCondition::default()),
    ]
}

/// Returns the fault for a call that the policy's capabilities do not include; such a call is a bug of the host.
fn not_asked(id: &PolicyId, call: &Call<'_>) -> Fault {
    Fault::new(
        FaultKind::HostBug,
        format!("{id} does not answer {} calls", call.kind()),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;

    #[test]
    fn names_are_unique_and_every_policy_answers_something() {
        let policies = all();
        let names: BTreeSet<_> = policies.iter().map(|policy| policy.id().name.clone()).collect();
        assert_eq!(names.len(), policies.len());
        assert!(policies.iter().all(|policy| !policy.capabilities().is_empty()));
    }
}
