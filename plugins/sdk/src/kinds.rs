//! One trait per kind of plugin.

use crate::{
    Binding, Cluster, Clusters, Component, Dependency, Edit, EvictionTask, EvictionVerdict, FilterVerdict,
    HealthVerdict, Object, Observations, Plugin, PolicyError, Replicas, TaintChange,
};

/// Eviction check: decides when the old copy of a workload may be removed.
pub trait EvictionCheck: Plugin {
    /// Returns a verdict on one graceful eviction task of a binding.
    fn check(&self, binding: &Binding, task: &EvictionTask) -> Result<EvictionVerdict, PolicyError>;
}

/// Source of taints of member clusters.
pub trait ClusterTaint: Plugin {
    /// Returns the changes for one cluster: at most 64, for taints whose keys are among [`Plugin::TAINT_KEYS`].
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError>;
}

/// Health of an object in a member cluster.
pub trait HealthInterpreter: Plugin {
    /// Returns the health of an object as reported by the member cluster.
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError>;
}

/// Scheduler filter: decides which clusters can run a binding.
pub trait Filter: Plugin {
    /// Returns one verdict per candidate, in the order of the candidates.
    fn filter(&self, binding: &Binding, candidates: &Clusters) -> Result<Vec<FilterVerdict>, PolicyError>;
}

/// Scheduler score: ranks the feasible clusters for a binding.
pub trait Score: Plugin {
    /// Returns one score from 0 to 100 per cluster, in the order of the clusters.
    fn score(&self, binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError>;
}

/// Resource interpreter: Karmada's interpreter operations other than health. A method without an implementation has
/// no rule, and the host asks the next interpreter level.
pub trait ResourceInterpreter: Plugin {
    /// `InterpretReplica`: returns the replicas of a template and the requirements of one replica.
    fn replicas(&self, template: &Object) -> Result<Replicas, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }

    /// `InterpretComponent`: returns the pod templates of an object that has several.
    fn components(&self, template: &Object) -> Result<Vec<Component>, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }

    /// `ReviseReplica`: returns the edits that give a template the requested number of replicas.
    fn revise_replicas(&self, template: &Object, replicas: i32) -> Result<Vec<Edit>, PolicyError> {
        let _ = (template, replicas);
        Err(PolicyError::Unsupported)
    }

    /// `Retain`: returns the edits of the desired object that preserve the fields owned by the member cluster.
    fn retain(&self, desired: &Object, observed: &Object) -> Result<Vec<Edit>, PolicyError> {
        let _ = (desired, observed);
        Err(PolicyError::Unsupported)
    }

    /// `InterpretStatus`: returns the part of the status to collect, as JSON text.
    fn reflect_status(&self, observed: &Object) -> Result<Option<String>, PolicyError> {
        let _ = observed;
        Err(PolicyError::Unsupported)
    }

    /// `AggregateStatus`: returns the edits that write the aggregated reports of the member clusters to a template.
    fn aggregate_status(&self, template: &Object, reports: &Observations) -> Result<Vec<Edit>, PolicyError> {
        let _ = (template, reports);
        Err(PolicyError::Unsupported)
    }

    /// `InterpretDependency`: returns the objects that a template requires.
    fn dependencies(&self, template: &Object) -> Result<Vec<Dependency>, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }
}
