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
use super::{DRAIN, hub, interrupted, say, until_stopped};
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
    #[arg(long, default_value = "127.0.0.1:10357", value_name = "ADDRESS")]
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
    let hub = hub::Hub::connect_in_time(&arguments.hub, &permit, &state).await?;
    say(&format!("control plane {} is {}", hub.address, hub.version));
    let name = &arguments.cluster_name;
    let member = arguments.member().await?;
    let version = member.apiserver_version().await;
    let version = version.with_context(|| format!("asking the member {name} for its version"))?;
    say(&format!("member {name} is {}", version.git_version));
    let engines = arguments.engines.start(flags.pod_detail())?;
    let plugins = arguments.plugin_directory.as_deref();
    let parts = Parts { flags, engines, plugins, permit, agent_of: Some((name.clone(), member)), decisions: None };
    let standby = Federation::start(&hub, parts, &state)?.watch(false);
    state.set_prepared();
    let running = standby.run_all();
    tokio::select! {
        () = interrupted() => {}
        () = hub.reloading.run() => {}
    }
    state.set_stopping();
    say("stopping");
    running.stop_within(DRAIN).await;
    Ok(())
}

impl AgentArguments {
    async fn member(&self) -> anyhow::Result<Client> {
        let config = match &self.member_kubeconfig {
            Some(path) => hub::config_in("the member's kubeconfig", path, None).await?,
            None => Config::incluster()
                .context("this is no pod with a service account; name a kubeconfig with --member-kubeconfig")?,
        };
        Ok(connect(config, &WritePermit::unlimited(), &Arc::default())?)
    }
}
