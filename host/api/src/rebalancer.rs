//! Requests to schedule workloads again (Karmada: `pkg/apis/apps/v1alpha1`).

use bulkhead_core::model::{WorkloadRebalancerSpec, WorkloadRebalancerStatus};
use kube::core::ClusterResourceScope;

use crate::object::api_object;

api_object! {
    /// Request to schedule workloads again, as if they were new. The result is in the status.
    WorkloadRebalancer {
        group: "apps.karmada.io",
        version: "v1alpha1",
        plural: "workloadrebalancers",
        scope: ClusterResourceScope,
        spec: WorkloadRebalancerSpec,
        status: WorkloadRebalancerStatus
    }
}
