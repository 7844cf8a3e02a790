//! API server of a control plane or a member cluster, for the tests of this module.

use bulkhead_apiserver::{ApiServer, Clock, Fidelity, Options, ResourceKind, kinds};
use bulkhead_core::time::Time;

/// Creates an API server that serves Clusters.
pub(super) fn server(name: &str) -> ApiServer {
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let cluster = bulkhead_api::kinds::REGISTERED
        .iter()
        .find(|info| info.kind == "Cluster")
        .unwrap();
    let cluster = ResourceKind::cluster_scoped(cluster.group, cluster.version, cluster.kind, cluster.plural);
    let kinds = kinds::kubernetes().into_iter().chain([cluster.with_status()]).collect();
    ApiServer::new(Options {
        kinds,
        fidelity: Fidelity::People,
        ..Options::new(name, 1, clock)
    })
}
