//! One trait per kind of plugin.

use crate::{
    Binding, Cluster, Clusters, Component, Dependency, Edit, EvictionTask, EvictionVerdict, FilterVerdict,
    HealthVerdict, Object, Observations, Plugin, PolicyError, Replicas, TaintChange,
};

/// May an old copy go?
pub trait EvictionCheck: Plugin {
    /// Decides about one graceful eviction task of a binding.
    fn check(&self, binding: &Binding, task: &EvictionTask) -> Result<EvictionVerdict, PolicyError>;
}

/// Which taints should a cluster carry?
pub trait ClusterTaint: Plugin {
    /// Decides about one cluster: at most 64 changes of taints whose keys are among [`Plugin::TAINT_KEYS`].
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError>;
}

/// How is an object in a member cluster?
pub trait HealthInterpreter: Plugin {
    /// Interprets an object as the member cluster reports it.
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError>;
}

/// Where can a binding run?
pub trait Filter: Plugin {
    /// One verdict per candidate, in their order.
    fn filter(&self, binding: &Binding, candidates: &Clusters) -> Result<Vec<FilterVerdict>, PolicyError>;
}

/// How good is each feasible cluster?
pub trait Score: Plugin {
    /// One score from 0 to 100 per cluster, in their order.
    fn score(&self, binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError>;
}

/// What does an object mean? Karmada's interpreter operations other than health. An operation that is left out has no
/// rule, and the next level of the interpreter is asked.
pub trait ResourceInterpreter: Plugin {
    /// `InterpretReplica`: replicas of a template and what one of them needs.
    fn replicas(&self, template: &Object) -> Result<Replicas, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }

    /// `InterpretComponent`: the pod templates of a template that has several.
    fn components(&self, template: &Object) -> Result<Vec<Component>, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }

    /// `ReviseReplica`: what to change in a template so that it has that many replicas.
    fn revise_replicas(&self, template: &Object, replicas: i32) -> Result<Vec<Edit>, PolicyError> {
        let _ = (template, replicas);
        Err(PolicyError::Unsupported)
    }

    /// `Retain`: what to change in the desired object so that it keeps what the member cluster owns.
    fn retain(&self, desired: &Object, observed: &Object) -> Result<Vec<Edit>, PolicyError> {
        let _ = (desired, observed);
        Err(PolicyError::Unsupported)
    }

    /// `InterpretStatus`: the part of the status that is worth collecting, as JSON text.
    fn reflect_status(&self, observed: &Object) -> Result<Option<String>, PolicyError> {
        let _ = observed;
        Err(PolicyError::Unsupported)
    }

    /// `AggregateStatus`: what to change in a template so that it tells what the member clusters report.
    fn aggregate_status(&self, template: &Object, reports: &Observations) -> Result<Vec<Edit>, PolicyError> {
        let _ = (template, reports);
        Err(PolicyError::Unsupported)
    }

    /// `InterpretDependency`: the objects that a template needs.
    fn dependencies(&self, template: &Object) -> Result<Vec<Dependency>, PolicyError> {
        let _ = template;
        Err(PolicyError::Unsupported)
    }
}
