//! `bulkhead run`: the controllers on a real control plane.

mod endpoint;
mod federation;
pub(crate) mod hub;
mod leader;
mod settings;
mod webhook;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_controllers::{WritePermit, controller_names};
use clap::Args;
use serde_json::Map;

use self::endpoint::State;
use self::leader::{Candidate, Election};
use self::settings::Settings;
use self::webhook::Certificate;
use crate::engines::EngineArguments;

/// Exit code when the process could not start, or lost its lease.
const FAILED: u8 = 1;
/// How long work in flight may take to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Run the controllers on a control plane: Kubernetes with the definitions that `bulkhead crds` prints.
///
/// It runs until it is interrupted. Of several processes one works and the others wait.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: hub::Arguments,

    /// Which controllers run: names, `*` for all, `-name` for all but that one.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true, value_name = "NAMES")]
    controllers: Vec<String>,

    /// Plugins: a directory of manifests, or a list (plugins.yaml). It is watched for changes.
    #[arg(long, value_name = "PATH")]
    plugin_directory: Option<PathBuf>,

    /// Where /healthz, /readyz and /metrics are served; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:10357", value_name = "ADDRESS")]
    health_probe_bind_address: SocketAddr,

    /// Where the API server's reviews are answered over TLS; nothing is registered without it.
    #[arg(long, value_name = "ADDRESS")]
    webhook_bind_address: Option<SocketAddr>,

    /// Address under which the API server reaches the reviews; the default is the one they are served at.
    #[arg(long, value_name = "URL", requires = "webhook_bind_address")]
    webhook_url: Option<String>,

    /// Directory with tls.crt, tls.key and ca.crt for the reviews; without it, a certificate is made.
    #[arg(long, value_name = "DIR", requires = "webhook_bind_address")]
    webhook_cert_dir: Option<PathBuf>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    election: ElectionArguments,

    #[command(flatten)]
    settings: Settings,
}

#[derive(Args)]
#[command(next_help_heading = "Leader election")]
struct ElectionArguments {
    /// Whether several processes agree on who works.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "true|false")]
    leader_elect: bool,

    /// Namespace of the Lease.
    #[arg(long, default_value = "karmada-system", value_name = "NAMESPACE")]
    leader_elect_resource_namespace: String,

    /// Name of the Lease.
    #[arg(long, default_value = "bulkhead", value_name = "NAME")]
    leader_elect_resource_name: String,

    /// How long others wait after the last renewal that they saw.
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    leader_elect_lease_duration: GoDuration,

    /// How long the holder goes on after its last renewal.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    leader_elect_renew_deadline: GoDuration,

    /// How often candidates try.
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    leader_elect_retry_period: GoDuration,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| runtime.block_on(serve(arguments)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The time. This is the one place of the program that reads the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is where the controllers' clock comes from")]
fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

/// A line for whoever reads the log.
fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{} {line}", now().strftime("%FT%T%.3fZ"));
}

async fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    let flags = arguments.settings.over(&Map::new())?;
    let wanted = wanted(&arguments.controllers)?;
    let election = arguments.election.check()?;
    let permit = if arguments.election.leader_elect { WritePermit::none() } else { WritePermit::unlimited() };
    let hub = hub::Hub::connect(&arguments.hub, &permit).await?;
    say(&format!("control plane {} is {}", hub.address, hub.version));
    let state = State::default();
    let address = endpoint::serve(arguments.health_probe_bind_address, state.clone()).await?;
    say(&format!("health and metrics at http://{address}"));
    let _reviews = reviews(arguments, &flags, &hub).await?;
    let engines = arguments.engines.start(flags.pod_detail())?;
    let plugins = arguments.plugin_directory.as_deref();
    let federation = federation::Federation::start(&hub, flags, engines, plugins, &permit, &state)?;

    let mut stop = std::pin::pin!(interrupted());
    let mut candidate = Candidate::new(election, hub.unguarded.clone(), permit);
    if arguments.election.leader_elect {
        tokio::select! {
            () = candidate.acquire(|why| say(&format!("waiting: {why}"))) => say("elected"),
            () = &mut stop => return Ok(()),
        }
    }
    let running = federation.run(|name| wanted.contains(&name));
    state.set_ready(true);
    let lost =
        async { if arguments.election.leader_elect { candidate.hold().await } else { std::future::pending().await } };
    let outcome = tokio::select! {
        why = lost => Err(why),
        () = &mut stop => Ok(()),
    };
    state.set_ready(false);
    if let Err(why) = outcome {
        bail!("{why}")
    }
    say("stopping");
    let _ = tokio::time::timeout(DRAIN, running.stop()).await;
    candidate.release().await;
    Ok(())
}

/// Serves and registers reviews for as long as the returned handle lives.
async fn reviews(arguments: &Arguments, flags: &Flags, hub: &hub::Hub) -> anyhow::Result<Option<AbortOnDrop>> {
    let Some(address) = arguments.webhook_bind_address else { return Ok(None) };
    let host = match &arguments.webhook_url {
        None => address.ip().to_string(),
        Some(url) => {
            let parsed: http::Uri = url.parse().with_context(|| format!("--webhook-url {url}"))?;
            parsed.host().with_context(|| format!("--webhook-url {url} has no host"))?.to_owned()
        }
    };
    let certificate = match &arguments.webhook_cert_dir {
        Some(directory) => Certificate::from_directory(directory)?,
        None => Certificate::self_made(&host)?,
    };
    let (bound, server) = webhook::serve(address, &certificate, flags.admission()).await?;
    let handle = AbortOnDrop(tokio::spawn(server));
    let url = arguments.webhook_url.clone().unwrap_or_else(|| format!("https://{bound}"));
    webhook::register(&hub.unguarded, &url, &certificate).await?;
    say(&format!("reviews answered at {url}"));
    Ok(Some(handle))
}

/// Ends a task with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The controllers that a list in Karmada's syntax names: the first entry that speaks of a controller decides.
fn wanted(list: &[String]) -> anyhow::Result<Vec<&'static str>> {
    for entry in list {
        let name = entry.strip_prefix('-').unwrap_or(entry);
        if name != "*" && !controller_names().any(|known| known == name) {
            let known: Vec<_> = controller_names().collect();
            bail!("--controllers: there is no controller {name}; there are {}", known.join(", "));
        }
    }
    let decides = |name: &str| {
        let exact = list.iter().find_map(|entry| match entry.strip_prefix('-') {
            Some(off) => (off == name).then_some(false),
            None => (entry == name).then_some(true),
        });
        exact.unwrap_or_else(|| list.iter().any(|entry| entry == "*"))
    };
    Ok(controller_names().filter(|name| decides(name)).collect())
}

impl ElectionArguments {
    fn check(&self) -> anyhow::Result<Election> {
        let (lease, renew, retry) =
            (self.leader_elect_lease_duration.0, self.leader_elect_renew_deadline.0, self.leader_elect_retry_period.0);
        if lease <= renew || renew <= retry || retry.is_zero() {
            bail!(
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than \
                 --leader-elect-retry-period"
            );
        }
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "bulkhead".to_owned());
        Ok(Election {
            namespace: self.leader_elect_resource_namespace.clone(),
            name: self.leader_elect_resource_name.clone(),
            identity: format!("{host}_{}", uuid::Uuid::new_v4()),
            lease_duration: lease,
            renew_deadline: renew,
            retry_period: retry,
        })
    }
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_in_karmadas_syntax() {
        let chosen = |list: &[&str]| wanted(&list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen(&["*"]).unwrap().len(), controller_names().count());
        assert_eq!(chosen(&["scheduler", "binding"]).unwrap(), ["scheduler", "binding"]);
        let most = chosen(&["*", "-taintManager"]).unwrap();
        assert!(most.len() + 1 == controller_names().count() && !most.contains(&"taintManager"));
        let error = chosen(&["sheduler"]).unwrap_err().to_string();
        assert!(error.contains("no controller sheduler") && error.contains("scheduler"), "{error}");
    }
}
