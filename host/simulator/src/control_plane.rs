//! Control plane of a simulation, and the virtual time in which it runs.

use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_api::{KindInfo, REGISTERED};
use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind, kinds::kubernetes};
use bulkhead_controllers::flags::Flags;
use bulkhead_defaults::admission::InProcess;
use tokio::runtime::{Builder, Runtime};

/// Number of watch events that the control plane keeps per kind, for watches that resume.
const WATCH_HISTORY_MAX: usize = 5_000;

fn registered(info: &KindInfo) -> ResourceKind {
    let kind = if info.namespaced {
        ResourceKind::namespaced(info.group, info.version, info.kind, info.plural)
    } else {
        ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural)
    };
    let kind = kind.with_short_names(info.short_names).with_categories(info.categories);
    if info.status_subresource {
        kind.with_status()
    } else {
        kind
    }
}

/// Creates the control plane. `others` are further kinds that it serves.
pub(crate) fn server(seed: u64, clock: Clock, flags: &Flags, others: Vec<ResourceKind>) -> ApiServer {
    ApiServer::new(Options {
        kinds: kubernetes()
            .into_iter()
            .chain(REGISTERED.iter().map(registered))
            .chain(others)
            .collect(),
        admission: Some(Arc::new(InProcess(flags.admission()))),
        watch_history_events_max: WATCH_HISTORY_MAX,
        ..Options::new("control plane", seed, clock)
    })
}

/// Creates a runtime with virtual time, which passes only while all tasks wait.
pub(crate) fn virtual_time() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("starting the runtime")
}
