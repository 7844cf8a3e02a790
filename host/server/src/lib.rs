//! The controllers on a real control plane: `bulkhead run`, and `bulkhead agent` inside a member.
//!
//! The arguments of both are here, because configuration files and `bulkhead doctor` take them too.

pub mod access;
pub mod agent;
mod arguments;
pub mod config_file;
pub mod connect_error;
pub mod console;
#[cfg(test)]
#[path = "../../../tests/edits/edit.rs"]
mod edit;
mod elector;
mod embedded;
mod endpoint;
pub mod engines;
pub mod expiry;
mod failure_log;
pub mod federation;
mod health_checks;
pub mod help;
mod https_url;
pub mod hub;
mod hub_config;
pub mod images;
mod journal;
pub mod leader;
pub mod logs;
mod metrics;
pub mod mode;
mod plugin_state;
pub mod private_file;
pub mod queries;
mod reload;
mod server;
pub mod settings;
pub mod traces;
pub mod unimplemented;
pub mod usage_error;
pub mod user_folder;
mod webhook;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::permissions::Mode;
use bulkhead_plugin::CrashMarker;
use bulkhead_runtime::causes::causes;
use bulkhead_runtime::connection::WritePermit;
use tokio::runtime::{Builder, Handle, Runtime};
use tracing::{error, info, warn};

pub use self::arguments::{Checked, RunArguments, WebhookCertificate};
use self::elector::Elector;
pub use self::embedded::HEADING as EMBEDDED;
use self::endpoint::State;
use self::federation::{Federation, Parts};
pub use self::metrics::BuildInfo;
use self::mode::Modes;
use self::plugin_state::Identity;
use self::traces::Traces;
pub use self::webhook::WEBHOOK_SECRET;
use self::webhook::{Credentials, Endpoint, Interpreter, OfferedOperations, Source, WebhookServices};

/// Time limit for writes in flight at shutdown.
const DRAIN: Duration = Duration::from_secs(5);
/// Time limit for the threads of each runtime to end after that.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Number of threads for leases and probes. One of them may be busy with a member's response.
const LEASE_THREADS: usize = 2;
/// Time after which an idle thread for blocking work ends. The allocator keeps memory for each, and the ticks of an open
/// page of the console would keep all threads of an earlier burst with a longer time.
const KEEP_ALIVE: Duration = Duration::from_millis(100);
/// Retry interval after a failed request to an API server.
const RETRY: Duration = Duration::from_secs(5);

/// The process ended with an error, which is the last line of its log.
#[derive(Debug)]
pub struct Failed;

/// Runs the controllers on the control plane until the process is stopped. `pages` makes the pages of the console.
/// The metrics have the counts of `traces`.
///
/// # Errors
///
/// The process cannot work, or may no longer write.
pub fn run(
    arguments: &RunArguments,
    build: BuildInfo,
    pages: console::MakePages,
    traces: Option<&Traces>,
) -> Result<(), Failed> {
    let state = State::of(build, traces.map(Traces::counts));
    until_stopped(|lease_runtime| serve(arguments, state, pages, lease_runtime))
}

/// Runs the server on a multi-threaded runtime until it ends. An error becomes the last line of the log.
fn until_stopped<F: Future<Output = anyhow::Result<()>>>(serving: impl FnOnce(Handle) -> F) -> Result<(), Failed> {
    let outcome = runtimes().and_then(|(runtime, lease_runtime)| {
        let outcome = runtime.block_on(serving(lease_runtime.handle().clone()));
        // The writes in flight have been awaited. A busy thread must not keep the process alive.
        runtime.shutdown_timeout(LAST_WORDS);
        lease_runtime.shutdown_timeout(LAST_WORDS);
        outcome
    });
    outcome.map_err(|error| {
        error!("{}", causes(error.as_ref()));
        Failed
    })
}

/// Creates the runtime of the controllers and the runtime of leases and probes.
fn runtimes() -> anyhow::Result<(Runtime, Runtime)> {
    let mut builder = Builder::new_multi_thread();
    builder.thread_keep_alive(KEEP_ALIVE);
    let runtime = builder.enable_all().build().context("starting the runtime")?;
    let lease_runtime = builder.worker_threads(LEASE_THREADS).thread_name("leases").build();
    Ok((
        runtime,
        lease_runtime.context("starting the runtime of leases and probes")?,
    ))
}

/// Returns the current time. No other function of the program reads the system clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where the controllers' clock comes from"
)]
pub fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

async fn serve(
    arguments: &RunArguments,
    state: State,
    pages: console::MakePages,
    lease_runtime: Handle,
) -> anyhow::Result<()> {
    let checked = arguments.check()?;
    let needs = access::needs(&arguments.uses(&checked));
    let Checked {
        flags,
        modes,
        wanted,
        election,
        elects,
    } = checked;
    let permit = permit(&modes, elects);
    // Before the embedded control plane, which replaces a kubeconfig that another process may serve.
    let address = endpoint::serve(arguments.health_probe_bind_address, state.clone()).await?;
    info!("health and metrics at http://{address}");
    let embedded = arguments.embedded.start(&flags).await?;
    let mut stop = std::pin::pin!(interrupted());
    let of_embedded = embedded
        .as_ref()
        .map(|embedded| hub::HubArguments::of_file(embedded.kubeconfig.clone()));
    let hub_arguments = of_embedded.as_ref().unwrap_or(&arguments.hub);
    let hub = tokio::select! {
        hub = hub::Hub::connect_in_time(hub_arguments, &permit, &state, &lease_runtime) => hub?,
        () = &mut stop => return Ok(()),
    };
    info!("control plane {} is {}", hub.address, hub.version);
    // The embedded control plane is new and has no Karmada controllers.
    if embedded.is_none() {
        tokio::select! {
            checked = check_karmada(arguments, &modes, &wanted, &flags, &hub, &state) => checked?,
            () = &mut stop => return Ok(()),
        }
    }
    let journal = arguments.journal.open(&permit)?;
    let control_plane = embedded.as_ref().map_or(hub.address.as_str(), |_| "embedded");
    let crash_marker = crash_marker(arguments, &modes, control_plane);
    let parts = Parts {
        crash_marks: crash_marker.as_ref().map(|marker| marker.marks()),
        decisions: journal.as_ref(),
        ..parts(arguments, &flags, &modes, &permit)?
    };
    let federation = Federation::start(&hub, parts, &state)?;
    let webhook = tokio::select! {
        webhook = webhook_in_time(arguments, &modes, &flags, &hub, &federation, &state) => webhook?,
        () = &mut stop => return Ok(()),
    };
    if let Some(embedded) = &embedded {
        embedded.join_members(&hub.unguarded).await?;
    }
    let queries = queries(arguments, &hub, &federation).await?;
    let _console = console(arguments, &hub, &federation, pages).await?;

    let clock = federation.clock().clone();
    // A standby has synced caches when it becomes the leader.
    let running = federation.watch(modes.has(Mode::All), &state);
    state.set_prepared();
    let mut checks = tokio::task::JoinSet::new();
    // The embedded control plane allows everything and serves no access reviews.
    if embedded.is_none() {
        checks.spawn(health_checks::permissions(hub.unguarded.clone(), needs, state.clone()));
    }
    let candidate = Elector::new(
        election.advertising(queries.as_ref().map(|queries| &queries.advertised)),
        hub.reloading.lease_unguarded(),
        permit.clone(),
        clock,
        lease_runtime,
    );
    let stopped = {
        let endpoint = webhook.as_ref().map(|(endpoint, _)| endpoint);
        let certificates = health_checks::certificates(hub_arguments.clone(), endpoint, state.clone());
        let unrecorded = or_never(journal.as_ref().map(|journal| journal.keep_up()));
        let worked = async {
            // Plugins load before the election: another process may have loaded them already.
            running.wait_for_plugins().await;
            if elects {
                lead(&candidate, &state).await;
            }
            announce(&modes, &wanted);
            running.run(&wanted);
            let lost = or_never(elects.then(|| candidate.hold()));
            let registered = webhook
                .as_ref()
                .map(|(endpoint, url)| endpoint.keep_registered(&hub.unguarded, url));
            let registered = or_never(registered);
            let attended = or_never(embedded.as_ref().map(|embedded| embedded.attend(hub.unguarded.clone())));
            tokio::select! {
                why = attended => why,
                why = lost => why,
                () = registered => std::future::pending().await,
            }
        };
        tokio::select! {
            why = worked => Err(why),
            why = unrecorded => Err(why),
            why = running.failed() => Err(why),
            _ = futures::future::join(hub.reloading.run(), certificates) => Ok(()),
            () = &mut stop => Ok(()),
        }
    };
    state.set_stopping();
    log_stop(&stopped);
    wind_down(running, &permit, &candidate, journal.as_ref()).await;
    state.update(|status| status.leads = elects.then_some(false));
    stopped.map_err(anyhow::Error::msg)
}

/// Returns the parts of the federation that depend on the arguments alone.
fn parts<'a>(
    arguments: &RunArguments,
    flags: &Flags,
    modes: &Modes,
    permit: &WritePermit,
) -> anyhow::Result<Parts<'a>> {
    Ok(Parts {
        flags: flags.clone(),
        engines: arguments.engines.start(flags.pod_detail())?,
        plugins: arguments.plugins()?,
        crash_marks: None,
        permit: permit.clone(),
        agent_of: None,
        only_interprets: modes.all() == [Mode::Interpret],
        decisions: None,
    })
}

/// Starts the endpoint of queries, if it is enabled.
async fn queries(
    arguments: &RunArguments,
    hub: &hub::Hub,
    federation: &Federation,
) -> anyhow::Result<Option<queries::Endpoint>> {
    let sources = queries::Sources {
        reviews: hub.unguarded.clone(),
        journal: arguments.journal.directory().map(Path::to_path_buf),
        queued: federation.queued(),
    };
    let endpoint = queries::start(&arguments.queries, sources).await?;
    if let Some(endpoint) = &endpoint {
        info!("queries answered at {}", endpoint.advertised.url);
    }
    Ok(endpoint)
}

/// Starts the console, if it is enabled.
async fn console(
    arguments: &RunArguments,
    hub: &hub::Hub,
    federation: &Federation,
    pages: console::MakePages,
) -> anyhow::Result<Option<console::Running>> {
    let Some(journal) = arguments.journal.directory() else {
        return Ok(None);
    };
    let sources = console::Sources {
        journal: journal.to_path_buf(),
        queued: federation.queued(),
        registry: Arc::clone(federation.registry()),
    };
    let (hosting, reviews) = (arguments.hosting(), hub.unguarded.clone());
    let console = console::start(&arguments.console, hosting, sources, reviews, pages).await?;
    Ok(console.map(|(running, url)| {
        info!("console at {url}");
        running
    }))
}

/// Stops the controllers, then ends the journal, then releases the lease. The lease is renewed until then.
async fn wind_down(
    running: federation::Running,
    permit: &WritePermit,
    candidate: &Elector,
    journal: Option<&journal::Running>,
) {
    let held = async {
        if candidate.holds().await {
            candidate.hold().await
        } else {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = running.stop_within(permit, DRAIN) => {}
        // Another process holds the lease and may write.
        _ = held => {}
    }
    if let Some(journal) = journal {
        journal.end().await;
    }
    candidate.release().await;
}

/// Opens the record of plugins that ended a process.
fn crash_marker(arguments: &RunArguments, modes: &Modes, control_plane: &str) -> Option<CrashMarker> {
    let (role, plugins) = (modes.names(), arguments.plugin_directory.as_deref());
    let identity = Identity {
        command: "run",
        role: &role,
        control_plane,
        plugins,
    };
    let owned = arguments.journal.directory().or(arguments.embedded.data_dir());
    arguments.plugin_state.open(owned, &identity)
}

/// Checks that the process does not replace a running controller of Karmada, or one that it has no counterpart of.
async fn check_karmada(
    arguments: &RunArguments,
    modes: &Modes,
    wanted: &[&'static str],
    flags: &Flags,
    hub: &hub::Hub,
    state: &State,
) -> anyhow::Result<()> {
    if arguments.mode.is_default {
        mode::check_default(hub, state).await?;
    }
    if modes.has(Mode::All) {
        unimplemented::check(hub, wanted, flags.ignore_unimplemented, state).await?;
    }
    Ok(())
}

/// Returns the permission to write at the start of the process.
fn permit(modes: &Modes, elects: bool) -> WritePermit {
    match (modes.only_reports(), elects) {
        (true, _) => WritePermit::report_only(),
        (false, true) => WritePermit::none(),
        (false, false) => WritePermit::unlimited(),
    }
}

/// Waits until this process is the leader.
async fn lead(candidate: &Elector, state: &State) {
    state.update(|status| status.leads = Some(false));
    let elected = candidate.acquire(|why| info!("waiting: {why}")).await;
    let before = elected
        .modes_before
        .map(|before| format!("; the previous process ran in mode {before}"));
    info!("elected{}", before.unwrap_or_default());
    elected.clock.iter().for_each(|line| info!("{line}"));
    state.update(|status| status.leads = Some(true));
}

/// Logs the controllers that this process runs.
fn announce(modes: &Modes, wanted: &[&str]) {
    info!("mode {}; controllers {}", modes.names(), named(wanted));
    if wanted.is_empty() {
        warn!("no controller runs; start the list of --controllers with * to run all except those it removes");
    }
}

/// Waits for a future, or without end if there is none.
async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Logs the start of the shutdown.
fn log_stop(stopped: &Result<(), String>) {
    match stopped {
        Ok(()) => info!("stopping"),
        Err(why) => error!("stopping: {why}"),
    }
}

/// Formats controller names for the log.
pub fn named(controllers: &[&str]) -> String {
    if controllers.is_empty() {
        "none".to_owned()
    } else {
        controllers.join(", ")
    }
}

/// Starts the webhook endpoint. Retries while the control plane is unavailable, since the certificate may be in a
/// Secret.
async fn webhook_in_time(
    arguments: &RunArguments,
    modes: &Modes,
    flags: &Flags,
    hub: &hub::Hub,
    federation: &Federation,
    state: &State,
) -> anyhow::Result<Option<(Endpoint, String)>> {
    loop {
        let error = match webhook(arguments, modes, flags, hub, federation).await {
            Ok(webhook) => return Ok(webhook),
            Err(error) => error,
        };
        let asked = error.chain().find_map(|cause| cause.downcast_ref::<kube::Error>());
        if !asked.is_some_and(|asked| connect_error::ConnectError::of(&hub.address, asked).is_transient) {
            return Err(error);
        }
        let why = causes(error.as_ref());
        state.set_stage(format!("creating the webhook: {why}"));
        warn!("waiting: {why}");
        tokio::time::sleep(RETRY).await;
    }
}

/// Starts the endpoint for API servers and Karmada. Returns it with the URL to register.
async fn webhook(
    arguments: &RunArguments,
    modes: &Modes,
    flags: &Flags,
    hub: &hub::Hub,
    federation: &Federation,
) -> anyhow::Result<Option<(Endpoint, String)>> {
    let Some(address) = arguments.webhook_bind_address else {
        return Ok(None);
    };
    let host = match &arguments.webhook_url {
        None => address.ip().to_string(),
        Some(url) => https_url::host_of("webhook-url", url)?,
    };
    let namespace = &arguments.election.leader_elect_resource_namespace;
    let source = match &arguments.webhook_cert_dir {
        Some(directory) => Source::Directory(directory.clone()),
        None => Source::own(hub.unguarded.clone(), namespace, host),
    };
    let offered = OfferedOperations::parse(&arguments.interpreter_operations)?;
    let interpreter = modes.has(Mode::Interpret).then(|| {
        let (registry, clock) = (Arc::clone(federation.registry()), federation.clock().clone());
        Interpreter::new(registry, offered, hub.unguarded.clone(), clock)
    });
    let interpreter = interpreter.transpose()?;
    let services = WebhookServices {
        name: arguments.election.leader_elect_resource_name.clone(),
        admission: flags.admission(),
        customizations: federation.customizations(),
        karmada_kinds: modes.has(Mode::All),
        interpreter,
    };
    let credentials = Credentials {
        source,
        client_ca: arguments.webhook_client_ca_file.clone(),
    };
    let endpoint = webhook::start(address, credentials, services).await?;
    let url = arguments
        .webhook_url
        .clone()
        .unwrap_or_else(|| format!("https://{}", endpoint.address));
    info!("webhooks answered at {url}");
    Ok(Some((endpoint, url.trim_end_matches('/').to_owned())))
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
