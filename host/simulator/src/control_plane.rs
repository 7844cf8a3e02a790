//! Control plane of a simulation, and the virtual time in which it runs.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use bulkhead_api::{KindInfo, REGISTERED};
use bulkhead_apiserver::{ApiServer, Contents, Options, ResourceKind, kinds::kubernetes};
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::{Components, MemberError, Members, Process};
use bulkhead_core::journal::Journal;
use bulkhead_defaults::admission::InProcess;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::{Clock, WallClock};
use bulkhead_runtime::events;
use kube::Client;
use tokio::runtime::{Builder, Runtime};

/// Number of watch events that the control plane keeps per kind, for watches that resume.
const WATCH_HISTORY_MAX: usize = 5_000;
/// Number of decisions that a rehearsal keeps in memory. A sink takes those that its result needs.
pub(crate) const RECORDS_MAX: usize = 1;

/// Members without a connection. Without a probe in this process, the Ready condition decides.
struct NoMembers;

impl Members for NoMembers {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        Err(MemberError::Broken(format!("{cluster} is not part of a rehearsal")))
    }
}

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
pub(crate) fn server(
    seed: u64,
    clock: bulkhead_apiserver::Clock,
    flags: &Flags,
    others: Vec<ResourceKind>,
) -> ApiServer {
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

/// Stores the objects of a rehearsal.
///
/// # Errors
///
/// An object has a kind that the control plane does not serve.
pub(crate) fn restore(hub: &ApiServer, contents: Contents) -> anyhow::Result<()> {
    let left_out = hub.restore(contents);
    ensure!(
        left_out.is_empty(),
        "{} objects have a kind that is not served",
        left_out.len()
    );
    Ok(())
}

/// Creates the controllers of a rehearsal, which has no member clusters.
pub(crate) fn components(
    hub: &ApiServer,
    clock: bulkhead_apiserver::Clock,
    registry: Arc<Registry>,
    journal: Journal,
    flags: &Flags,
) -> Components {
    let clock = Clock::following(WallClock::new(move || clock.now()));
    // Events are not part of the result, so their writer does not run.
    let (events, _) = events::events(hub.client(), clock.clone());
    Process {
        hub: hub.client(),
        members: Arc::new(NoMembers),
        clock,
        registry,
        journal,
        flags: flags.clone(),
        events,
        explain: None,
    }
    .components()
}

/// Creates a runtime with virtual time, which passes only while all tasks wait.
pub(crate) fn virtual_time() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("starting the runtime")
}
