//! Helpers for the tests of several modules.

use bulkhead_apiserver::{ApiServer, Clock, Options, kinds};

/// Creates an API server of Kubernetes' own kinds.
pub(crate) fn hub() -> ApiServer {
    let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
    ApiServer::new(Options {
        kinds: kinds::kubernetes(),
        auto_create_namespaces: true,
        ..Options::new("hub", 1, clock)
    })
}
