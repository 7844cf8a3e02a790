//! Bulkhead's own objects that control evictions.

use bulkhead_core::decide::eviction::EvictionPause as Pause;
use bulkhead_core::model::{ClusterDrainSpec, ClusterDrainStatus, EvictionPauseSpec};
use kube::ResourceExt;
use kube::core::ClusterResourceScope;

use crate::object::api_object;

api_object! {
    /// Pause of evictions: of all, or of those from some clusters or of some workloads.
    EvictionPause {
        group: "bulkhead.dev",
        version: "v1alpha1",
        plural: "evictionpauses",
        scope: ClusterResourceScope,
        spec: EvictionPauseSpec
    }
}

api_object! {
    /// Drain of a member cluster, active for as long as the object exists.
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
    /// Converts the pause to the model that decisions use.
    pub fn to_model(&self) -> Pause {
        Pause {
            name: self.name_any(),
            spec: self.spec.clone(),
        }
    }
}
