//! Workload affinity groups of a binding, from the labels of its template
//! (Karmada: `pkg/detector/detector.go:getWorkloadAffinityGroups`).

use bulkhead_api::policy::PropagationSpec;
use bulkhead_core::model::BindingSpec;
use bulkhead_runtime::dynamic::KeptObject;

use crate::flags::{FeatureGate, Flags};

/// Writes the groups of a namespaced template into the spec of its binding. As in Karmada, groups that the policy or the
/// labels no longer give are removed, and with the feature gate off all groups.
pub(super) fn describe(flags: &Flags, policy: &PropagationSpec, template: &KeptObject, spec: &mut BindingSpec) {
    let affinity = policy.placement.workload_affinity.as_ref();
    let groups = affinity
        .filter(|_| flags.gate(FeatureGate::WorkloadAffinity))
        .map(|affinity| affinity.groups(&template.labels()));
    spec.set_workload_groups(groups.unwrap_or_default());
}
