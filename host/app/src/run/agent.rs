//! `bulkhead agent`: the controllers of one Pull member, inside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_controllers::{WritePermit, connect};
use clap::Args;
use kube::{Client, Config};

use super::endpoint::{self, State};
use super::federation::{Federation, Parts};
use super::settings::Settings;
use super::trouble::Trouble;
use super::{DRAIN, News, RETRY, hub, interrupted, say, stopping, until_stopped};
use crate::config::ConfigFile;
use crate::engines::EngineArguments;

/// Run the agent of a Pull member: applies its Works, reports status and health, and renews its Lease.
///
/// One agent runs per member; where it runs twice, both do the same and the API servers' versions keep them apart.
#[derive(Args)]
pub(crate) struct AgentArguments {
    /// File with any of these arguments, by their names: apiVersion bulkhead.dev/v1alpha1, kind
    /// BulkheadConfiguration. What is given on the command line wins over it.
    #[arg(long, value_name = "FILE")]
    config: Option<ConfigFile>,

    /// Name of the member, as it joined.
    #[arg(long, value_name = "NAME")]
    cluster_name: String,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Kubeconfig of the member; without it the pod's service account.
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,

    /// Plugins: a directory of manifests, or a list (plugins.yaml). It is watched for changes.
    #[arg(long, value_name = "PATH")]
    plugin_directory: Option<PathBuf>,

    /// Where /healthz, /readyz and /metrics are served; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:10357", value_name = "ADDRESS", value_parser = endpoint::address)]
    health_probe_bind_address: SocketAddr,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    settings: Settings,
}

/// Runs the command.
pub(crate) fn run(arguments: &AgentArguments) -> ExitCode {
    until_stopped(serve(arguments))
}

async fn serve(arguments: &AgentArguments) -> anyhow::Result<()> {
    let flags = arguments.settings.flags()?;
    let permit = WritePermit::unlimited();
    let state = State::default();
    let address = endpoint::serve(arguments.health_probe_bind_address, state.clone()).await?;
    say(&format!("health and metrics at http://{address}"));
    let mut stop = std::pin::pin!(interrupted());
    let connected = async {
        let hub = hub::Hub::connect_in_time(&arguments.hub, &permit, &state).await?;
        say(&format!("control plane {} is {}", hub.address, hub.version));
        let member = arguments.member_in_time(&permit, &state).await?;
        anyhow::Ok((hub, member))
    };
    let (hub, member) = tokio::select! {
        connected = connected => connected?,
        () = &mut stop => return Ok(()),
    };
    let engines = arguments.engines.start(flags.pod_detail())?;
    let plugins = arguments.plugin_directory.as_deref();
    let agent_of = Some((arguments.cluster_name.clone(), member));
    let parts = Parts { flags, engines, plugins, permit: permit.clone(), agent_of, decisions: None };
    let running = Federation::start(&hub, parts, &state)?.watch(false, &state);
    state.set_prepared();
    // That the member is alive is true whatever the plugins say, and who does not hear it evicts.
    running.run(&["lease", "clusterStatus"]);
    let started = async {
        running.plugins_known().await;
        running.run_all();
        std::future::pending::<()>().await;
    };
    let stopped = tokio::select! {
        () = &mut stop => Ok(()),
        () = hub.reloading.run() => Ok(()),
        why = running.failed() => Err(why),
        () = started => Ok(()),
    };
    state.set_stopping();
    say(&stopping(&stopped));
    running.stop_within(&permit, DRAIN).await;
    stopped.map_err(anyhow::Error::msg)
}

impl AgentArguments {
    /// Connects to the member as soon as that is possible, and says what it is waiting for.
    async fn member_in_time(&self, permit: &WritePermit, state: &State) -> anyhow::Result<Client> {
        let (mut news, name) = (News::default(), &self.cluster_name);
        loop {
            // Anew each time: credentials may be what is missing.
            let config = self.member_config().await?;
            let address = config.cluster_url.to_string();
            let member = connect(config, permit, &Arc::default())?;
            let error = match member.apiserver_version().await {
                Ok(version) => {
                    say(&format!("member {name} is {}", version.git_version));
                    return Ok(member);
                }
                Err(error) => Trouble::of(&address, &error),
            };
            if !error.mends {
                return Err(error).with_context(|| format!("asking the member {name} for its version"));
            }
            state.set_stage(format!("connecting to the member {name}: {error}"));
            news.say(format!("waiting for the member {name}: {error}"));
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn member_config(&self) -> anyhow::Result<Config> {
        match &self.member_kubeconfig {
            Some(path) => hub::config_in("the member's kubeconfig", path, None).await,
            None => Config::incluster()
                .context("this is no pod with a service account; name a kubeconfig with --member-kubeconfig"),
        }
    }
}
