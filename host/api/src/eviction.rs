//! Objects of our own by which people steer evictions.

use bulkhead_core::decide::eviction::EvictionPause as Pause;
use bulkhead_core::model::{ClusterDrainSpec, ClusterDrainStatus, EvictionPauseSpec};
use kube::ResourceExt;
use kube::core::ClusterResourceScope;

use crate::object::api_object;

api_object! {
    /// Stops evictions: all of them, or those from some clusters or of some workloads.
    EvictionPause {
        group: "bulkhead.dev",
        version: "v1alpha1",
        plural: "evictionpauses",
        scope: ClusterResourceScope,
        spec: EvictionPauseSpec
    }
}

api_object! {
    /// Empties a member cluster, for as long as it exists.
    ClusterDrain {
        group: "bulkhead.dev",
        version: "v1alpha1",
        plural: "clusterdrains",
        scope: ClusterResourceScope,
        spec: ClusterDrainSpec,
        status: ClusterDrainStatus
    }
}

impl EvictionPause {
    /// The pause as decisions see it.
    pub fn to_model(&self) -> Pause {
        Pause { name: self.name_any(), spec: self.spec.clone() }
    }
}
