//! `bulkhead run`: the controllers on a real control plane.

pub(crate) mod agent;
mod elector;
mod embedded;
mod endpoint;
pub(crate) mod federation;
pub(crate) mod hub;
mod journal;
pub(crate) mod leader;
mod metrics;
pub(crate) mod misuse;
pub(crate) mod mode;
mod news;
mod reload;
mod server;
pub(crate) mod settings;
pub(crate) mod trouble;
mod upkeep;
mod webhook;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::WritePermit;
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::permissions::Mode;
use clap::Args;
use tokio::runtime::{Builder, Handle, Runtime};

use self::elector::Elector;
pub(crate) use self::embedded::HEADING as EMBEDDED;
use self::endpoint::State;
use self::federation::{Federation, Parts};
use self::leader::{Election, ElectionArguments};
use self::misuse::Misuse;
use self::mode::{BesideKarmada, Modes};
use self::settings::Settings;
use self::webhook::{Answers, Credentials, Endpoint, Interpreter, Source};
use crate::access::{self, Uses};
use crate::config::ConfigFile;
use crate::engines::EngineArguments;

/// Exit code when the process could not start, or lost its lease.
const FAILED: u8 = 1;
/// Exit code when the arguments have to change.
const REFUSED: u8 = 2;
/// How long work in flight may take to end.
const DRAIN: Duration = Duration::from_secs(5);
/// How long threads may take to end after that.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Threads for leases and probes. One may be busy with what a member answered.
const VITAL_THREADS: usize = 2;
/// How soon what the control plane refused is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Run the controllers on a control plane: Kubernetes with the definitions that `bulkhead crds` prints.
///
/// It runs until it is interrupted. Of several processes one works and the others wait.
#[derive(Args)]
pub(crate) struct Arguments {
    /// File with any of these arguments, by their names: apiVersion bulkhead.dev/v1alpha1, kind
    /// BulkheadConfiguration. What is given on the command line wins over it.
    #[arg(long, value_name = "FILE")]
    config: Option<ConfigFile>,

    #[command(flatten)]
    hub: hub::HubArguments,

    #[command(flatten)]
    mode: mode::Chosen,

    /// Which controllers of the mode run: names, `*` for all, `-name` for all but that one.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true, value_name = "NAMES")]
    controllers: Vec<String>,

    /// Plugins: a directory of manifests, or a list (plugins.yaml). It is watched for changes.
    #[arg(long, value_name = "PATH")]
    plugin_directory: Option<PathBuf>,

    /// Where /healthz, /readyz and /metrics are served; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:10357", value_name = "ADDRESS", value_parser = endpoint::address)]
    health_probe_bind_address: SocketAddr,

    /// Where the API server's reviews are answered over TLS; nothing is registered without it.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::address)]
    webhook_bind_address: Option<SocketAddr>,

    /// Address under which the API server reaches the reviews; the default is the one they are served at.
    #[arg(long, value_name = "URL", requires = "webhook_bind_address")]
    webhook_url: Option<String>,

    /// Directory with tls.crt, tls.key and ca.crt for the reviews; without it, a certificate is made.
    #[arg(long, value_name = "DIR", requires = "webhook_bind_address")]
    webhook_cert_dir: Option<PathBuf>,

    /// File with the authorities, in PEM, that clients of the reviews need a certificate of; without it, any client is
    /// answered. Not for mode interpret: Karmada presents no certificate.
    #[arg(long, value_name = "FILE", requires = "webhook_bind_address")]
    webhook_client_ca_file: Option<PathBuf>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    journal: journal::JournalArguments,

    #[command(flatten)]
    election: ElectionArguments,

    #[command(flatten)]
    settings: Settings,

    // Last, because clap gives its heading to all that follows.
    #[command(flatten)]
    embedded: embedded::EmbeddedArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    until_stopped(|vital| serve(arguments, vital))
}

/// Runs on all cores until it ends; an error is the last line of the log.
fn until_stopped<F: Future<Output = anyhow::Result<()>>>(serving: impl FnOnce(Handle) -> F) -> ExitCode {
    let outcome = runtimes().and_then(|(runtime, vital)| {
        let outcome = runtime.block_on(serving(vital.handle().clone()));
        // What may be written is written. A thread that is busy with something else must not keep the process alive.
        runtime.shutdown_timeout(LAST_WORDS);
        vital.shutdown_timeout(LAST_WORDS);
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {}", crate::exit::told(&error)));
            ExitCode::from(if error.is::<BesideKarmada>() { REFUSED } else { FAILED })
        }
    }
}

/// The runtime of the controllers, and the one of leases and probes.
fn runtimes() -> anyhow::Result<(Runtime, Runtime)> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.enable_all().build().context("starting the runtime")?;
    let vital = builder.worker_threads(VITAL_THREADS).thread_name("vital").build();
    Ok((runtime, vital.context("starting the runtime of leases and probes")?))
}

/// The time. This is the one place of the program that reads the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is where the controllers' clock comes from")]
pub(crate) fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

/// A line for whoever reads the log.
fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{} {line}", now().strftime("%FT%T%.3fZ"));
}

/// Lines about something that may go on for long: each is said once, until another one or [`Self::over`].
#[derive(Default)]
struct News(String);

impl News {
    fn say(&mut self, line: String) {
        if line != self.0 {
            say(&line);
            self.0 = line;
        }
    }

    /// What was said is over; when it comes back, that is news.
    fn over(&mut self) {
        self.0.clear();
    }
}

async fn serve(arguments: &Arguments, vital: Handle) -> anyhow::Result<()> {
    let checked = arguments.check()?;
    let needs = access::needs(&arguments.uses(&checked));
    let Checked { flags, modes, wanted, election, elects } = checked;
    let permit = match (modes.only_reports(), elects) {
        (true, _) => WritePermit::report_only(),
        (false, true) => WritePermit::none(),
        (false, false) => WritePermit::unlimited(),
    };
    let embedded = arguments.embedded.start(&flags).await?;
    let state = State::default();
    let address = endpoint::serve(arguments.health_probe_bind_address, state.clone()).await?;
    say(&format!("health and metrics at http://{address}"));
    let mut stop = std::pin::pin!(interrupted());
    let of_embedded = embedded.as_ref().map(|embedded| hub::HubArguments::of_file(embedded.kubeconfig.clone()));
    let hub_arguments = of_embedded.as_ref().unwrap_or(&arguments.hub);
    let hub = tokio::select! {
        hub = hub::Hub::connect_in_time(hub_arguments, &permit, &state, &vital) => hub?,
        () = &mut stop => return Ok(()),
    };
    say(&format!("control plane {} is {}", hub.address, hub.version));
    // The embedded control plane is new, and Karmada does not know it.
    if arguments.mode.is_default && embedded.is_none() {
        tokio::select! {
            checked = mode::check_default(&hub, &state) => checked?,
            () = &mut stop => return Ok(()),
        }
    }
    let engines = arguments.engines.start(flags.pod_detail())?;
    let plugins = arguments.plugin_directory.as_deref();
    let journal = arguments.journal.open(&permit)?;
    let parts = Parts {
        flags: flags.clone(),
        engines,
        plugins,
        permit: permit.clone(),
        agent_of: None,
        decisions: journal.as_ref(),
    };
    let federation = Federation::start(&hub, parts, &state)?;
    let webhook = tokio::select! {
        webhook = webhook_in_time(arguments, &modes, &flags, &hub, &federation, &state) => webhook?,
        () = &mut stop => return Ok(()),
    };
    if let Some(embedded) = &embedded {
        embedded.join_members(&hub.unguarded).await?;
    }

    // A standby has everything in its stores when it takes over.
    let running = federation.watch(modes.has(Mode::All), &state);
    state.set_prepared();
    let mut upkeep = tokio::task::JoinSet::new();
    // The embedded control plane allows everything and knows no reviews of access.
    if embedded.is_none() {
        upkeep.spawn(upkeep::permissions(hub.unguarded.clone(), needs, state.clone()));
    }
    let candidate = Elector::new(election, hub.reloading.vital_unguarded(), permit.clone(), vital);
    let stopped = {
        let renewed = hub.reloading.run();
        let endpoint = webhook.as_ref().map(|(endpoint, _)| endpoint);
        let certificates = upkeep::certificates(hub_arguments.clone(), endpoint, state.clone());
        let unrecorded = async {
            match &journal {
                Some(journal) => journal.keep_up().await,
                None => std::future::pending().await,
            }
        };
        let worked = async {
            // Before it may lead: somebody else may know them already.
            running.plugins_known().await;
            if elects {
                state.tell(|told| told.leads = Some(false));
                let before = candidate.acquire(|why| say(&format!("waiting: {why}"))).await;
                let before = before.map(|before| format!("; the process before was for mode {before}"));
                say(&format!("elected{}", before.unwrap_or_default()));
                state.tell(|told| told.leads = Some(true));
            }
            say(&format!("mode {}; controllers {}", modes.names(), named(&wanted)));
            if wanted.is_empty() {
                say(
                    "no controller runs; start the list of --controllers with * to have all but those that it takes out",
                );
            }
            running.run(&wanted);
            let lost = async { if elects { candidate.hold().await } else { std::future::pending().await } };
            let registered = async {
                match &webhook {
                    Some((endpoint, url)) => endpoint.keep_registered(&hub.unguarded, url).await,
                    None => std::future::pending().await,
                }
            };
            let attended = async {
                match &embedded {
                    Some(embedded) => embedded.attend(hub.unguarded.clone()).await,
                    None => std::future::pending().await,
                }
            };
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
            _ = futures::future::join(renewed, certificates) => Ok(()),
            () = &mut stop => Ok(()),
        }
    };
    state.set_stopping();
    say(&stopping(&stopped));
    let held = async { if candidate.holds().await { candidate.hold().await } else { std::future::pending().await } };
    tokio::select! {
        () = running.stop_within(&permit, DRAIN) => {}
        // Whoever has the lease now writes.
        _ = held => {}
    }
    state.tell(|told| told.leads = elects.then_some(false));
    if let Some(journal) = &journal {
        journal.end().await;
    }
    candidate.release().await;
    stopped.map_err(anyhow::Error::msg)
}

/// What is said when the process begins to end.
fn stopping(stopped: &Result<(), String>) -> String {
    match stopped {
        Ok(()) => "stopping".to_owned(),
        Err(why) => format!("stopping: {why}"),
    }
}

/// Names for the log.
pub(crate) fn named(controllers: &[&str]) -> String {
    if controllers.is_empty() { "none".to_owned() } else { controllers.join(", ") }
}

/// Starts the endpoint as soon as that is possible: its certificate may be in a Secret.
async fn webhook_in_time(
    arguments: &Arguments,
    modes: &Modes,
    flags: &Flags,
    hub: &hub::Hub,
    federation: &Federation,
    state: &State,
) -> anyhow::Result<Option<(Endpoint, String)>> {
    let mut news = News::default();
    loop {
        let error = match webhook(arguments, modes, flags, hub, federation).await {
            Ok(webhook) => return Ok(webhook),
            Err(error) => error,
        };
        let asked = error.chain().find_map(|cause| cause.downcast_ref::<kube::Error>());
        if !asked.is_some_and(|asked| trouble::Trouble::of(&hub.address, asked).mends) {
            return Err(error);
        }
        let why = crate::exit::told(&error);
        state.set_stage(format!("making the webhook: {why}"));
        news.say(format!("waiting: {why}"));
        tokio::time::sleep(RETRY).await;
    }
}

/// Starts the endpoint that API servers and Karmada ask, with the URL that they are to use.
async fn webhook(
    arguments: &Arguments,
    modes: &Modes,
    flags: &Flags,
    hub: &hub::Hub,
    federation: &Federation,
) -> anyhow::Result<Option<(Endpoint, String)>> {
    let Some(address) = arguments.webhook_bind_address else { return Ok(None) };
    let host = match &arguments.webhook_url {
        None => address.ip().to_string(),
        Some(url) => host_of(url)?,
    };
    let namespace = &arguments.election.leader_elect_resource_namespace;
    let source = match &arguments.webhook_cert_dir {
        Some(directory) => Source::Directory(directory.clone()),
        None => Source::own(hub.unguarded.clone(), namespace, host),
    };
    let interpreter = modes.has(Mode::Interpret).then(|| Interpreter::new(Arc::clone(federation.registry())));
    let interpreter = interpreter.transpose()?;
    let answers = Answers {
        name: arguments.election.leader_elect_resource_name.clone(),
        admission: flags.admission(),
        customizations: federation.customizations(),
        karmada_kinds: modes.has(Mode::All),
        interpreter,
    };
    let credentials = Credentials { source, client_ca: arguments.webhook_client_ca_file.clone() };
    let endpoint = webhook::start(address, credentials, answers).await?;
    let url = arguments.webhook_url.clone().unwrap_or_else(|| format!("https://{}", endpoint.address));
    say(&format!("webhooks answered at {url}"));
    Ok(Some((endpoint, url.trim_end_matches('/').to_owned())))
}

/// The host in the URL of the webhook.
fn host_of(url: &str) -> Result<String, Misuse> {
    let parsed = url.parse::<http::Uri>().ok().filter(|parsed| parsed.scheme_str() == Some("https"));
    let host = parsed.as_ref().and_then(http::Uri::host).map(str::to_owned);
    host.ok_or_else(|| Misuse::new("webhook-url", format!("{url} must begin with https:// and a host")))
}

/// Where the certificate of the webhook is kept.
pub(crate) enum WebhookCertificate<'a> {
    /// In files that somebody else keeps fresh.
    Directory(&'a Path),
    /// In a Secret of ours in that namespace.
    Secret {
        /// The namespace.
        namespace: &'a str,
    },
}

/// What arguments mean together.
pub(crate) struct Checked {
    /// Settings.
    pub(crate) flags: Flags,
    /// Modes.
    pub(crate) modes: Modes,
    /// Controllers that run.
    pub(crate) wanted: Vec<&'static str>,
    election: Election,
    /// Whether there is an election.
    pub(crate) elects: bool,
}

impl Arguments {
    /// Looks whether the arguments go together.
    ///
    /// # Errors
    ///
    /// A [`Misuse`] of one of them.
    pub(crate) fn check(&self) -> anyhow::Result<Checked> {
        let flags = self.settings.flags()?;
        let modes = Modes::new(&self.mode.modes)?;
        let wanted = modes.controllers(&self.controllers)?;
        let election = self.election.check(&modes)?;
        match self.webhook_bind_address {
            None if modes.has(Mode::Interpret) => {
                let why = "interpret answers Karmada over HTTPS and needs webhook-bind-address";
                return Err(Misuse::new("mode", why).into());
            }
            Some(_) if modes.only_reports() => {
                let why = "leave it out: mode report registers nothing";
                return Err(Misuse::new("webhook-bind-address", why).into());
            }
            _ => {}
        }
        if self.webhook_client_ca_file.is_some() && modes.has(Mode::Interpret) {
            let why = "Karmada presents no client certificate to its interpreter; leave it out, or mode interpret";
            return Err(Misuse::new("webhook-client-ca-file", why).into());
        }
        if let Some(url) = &self.webhook_url {
            host_of(url)?;
        }
        // Whoever writes nothing has nothing to be elected for, and an embedded control plane has only one user.
        let elects = self.election.leader_elect && !modes.only_reports() && !self.embedded.embedded;
        Ok(Checked { flags, modes, wanted, election, elects })
    }

    /// Where the control plane is.
    pub(crate) fn hub(&self) -> &hub::HubArguments {
        &self.hub
    }

    /// How plugins are run.
    pub(crate) fn engines(&self) -> &EngineArguments {
        &self.engines
    }

    /// Where plugins are.
    pub(crate) fn plugin_directory(&self) -> Option<&Path> {
        self.plugin_directory.as_deref()
    }

    /// Where the certificate of the webhook is kept, if there is a webhook.
    pub(crate) fn webhook_certificate(&self) -> Option<WebhookCertificate<'_>> {
        self.webhook_bind_address?;
        Some(match &self.webhook_cert_dir {
            Some(directory) => WebhookCertificate::Directory(directory),
            None => WebhookCertificate::Secret { namespace: &self.election.leader_elect_resource_namespace },
        })
    }

    /// What of the control plane is used.
    pub(crate) fn uses<'a>(&'a self, checked: &'a Checked) -> Uses<'a> {
        Uses {
            modes: checked.modes.all(),
            controllers: &checked.wanted,
            default_mode: self.mode.is_default,
            elects: checked.elects,
            lease_namespace: &self.election.leader_elect_resource_namespace,
            lease_name: &self.election.leader_elect_resource_name,
            webhook: self.webhook_bind_address.is_some(),
            own_certificate: self.webhook_cert_dir.is_none(),
            estimators: checked.flags.enable_scheduler_estimator,
            templates: None,
        }
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
