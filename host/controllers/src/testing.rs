//! What tests of several modules need.

use bulkhead_controlplane::{ApiServer, Clock, Options, ResourceKind};

/// A control plane that knows cluster-scoped bindings and nothing else.
pub(crate) fn hub_of_cluster_bindings() -> ApiServer {
    let kind = ResourceKind::cluster_scoped(
        "work.karmada.io",
        "v1alpha2",
        "ClusterResourceBinding",
        "clusterresourcebindings",
    );
    let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
    ApiServer::new(Options { kinds: vec![kind.with_status()], ..Options::new("hub", 1, clock) })
}
