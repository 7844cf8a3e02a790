//! Domain model as Rust types, serialized as in Karmada's API.
//!
//! The model types are also the wire types wherever the wire format is closed and typed. The API types, decisions and
//! plugins therefore share one definition of a placement, a taint or an eviction task.

mod binding;
mod cluster;
mod cluster_drain;
mod condition;
mod condition_history;
mod eviction_pause;
mod failover;
mod failover_record;
mod health;
mod interpretation;
mod list;
mod override_policy;
mod placement;
mod rebalancer;
mod requirements;
#[cfg(feature = "schema")]
mod schema;
mod selector;
mod taint;
mod taint_policy;
mod workload_affinity;

pub use binding::{
    AggregatedStatusItem, Binding, BindingSpec, BindingStatus, GracefulEvictionTask, ObjectReference,
    ReplicaRequirements, Reports, TargetCluster,
};
pub use cluster::{
    ApiEnablement, ApiResource, Cluster, ClusterSpec, ClusterStatus, NodeSummary, ResourceSummary, SyncMode,
};
pub use cluster_drain::{ClusterDrainSpec, ClusterDrainStatus, DrainPhase};
pub use condition::{Condition, ConditionStatus, set_condition};
pub use condition_history::{ConditionChange, ConditionHistory};
pub use eviction_pause::{EvictionPauseSpec, PausedWorkload};
pub use failover::{
    ApplicationFailover, ClusterFailover, DecisionConditions, FailoverBehavior, PreConditions, PurgeMode,
    StatePreservation, StatePreservationRule,
};
pub use failover_record::{FAILOVER_STEPS_MAX, FailoverRecordStatus, FailoverState, FailoverStep};
pub use health::Health;
pub use interpretation::{Component, DependentObjectReference};
pub use list::List;
pub use override_policy::{
    CommandArgsOperator, CommandArgsOverrider, FieldOverrider, FieldPatchOperation, ImageComponent, ImageOverrider,
    ImagePredicate, LabelAnnotationOverrider, OverrideRule, OverriderOperator, Overriders, PlaintextOverrider,
};
pub use placement::{
    ClusterAffinity, ClusterAffinityTerm, ClusterPreferences, FieldSelector, Placement, ReplicaDivisionPreference,
    ReplicaScheduling, ReplicaSchedulingType, SpreadConstraint, StaticWeight,
};
pub use rebalancer::{
    ObservedWorkload, RebalanceFailedReason, RebalanceResult, RebalancedWorkload, WorkloadRebalancerSpec,
    WorkloadRebalancerStatus,
};
pub use selector::{LabelSelector, SelectorOperator, SelectorRequirement};
pub use taint::{Taint, TaintEffect, Toleration};
pub use taint_policy::{
    ADD_ON_MATCH_SECONDS, ClusterTaintPolicySpec, MatchCondition, PolicyTaint, REMOVE_ON_MISMATCH_SECONDS,
    TargetClusters,
};
pub use workload_affinity::{WorkloadAffinity, WorkloadAffinityGroups, WorkloadAffinityTerm};
