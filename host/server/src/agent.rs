//! `bulkhead agent`: the controllers of one Pull member, inside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_controllers::connect;
use bulkhead_runtime::connection::WritePermit;
use clap::Args;
use kube::Config;
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::connect_error::ConnectError;
use super::endpoint::{self, State};
use super::federation::{AgentOf, Federation, Parts};
use super::plugin_state::{Identity, PluginStateArguments};
use super::settings::Settings;
use super::{DRAIN, Failed, RETRY, hub, interrupted, log_stop, until_stopped};
use crate::BuildInfo;
use crate::config_file::ConfigFile;
use crate::engines::EngineArguments;
use crate::help;
use crate::images::ImageArguments;
use crate::logs::LogArguments;
use crate::traces::Traces;

/// Run the agent of a Pull member, which applies its Works, reports status and health, and renews its Lease.
///
/// Run one agent per member. Two agents do the same work, and optimistic concurrency resolves their conflicts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead agent --cluster-name member1 --kubeconfig agent.kubeconfig
  bulkhead agent --cluster-name member1 --kubeconfig agent.kubeconfig --cluster-kubeconfig member1.kubeconfig")]
pub struct AgentArguments {
    /// Name of the member on the control plane.
    #[arg(long, value_name = "NAME")]
    cluster_name: String,

    /// File with any of these arguments, by name: apiVersion bulkhead.dev/v1alpha1, kind BulkheadConfiguration.
    /// Arguments on the command line and environment variables take precedence.
    #[arg(long, value_name = "FILE", env = help::CONFIG_VARIABLE, hide_env_values = true)]
    config: Option<ConfigFile>,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Kubeconfig of the member; defaults to the pod's service account.
    #[arg(long, visible_alias = "member-kubeconfig", value_name = "FILE", help_heading = help::MEMBER)]
    cluster_kubeconfig: Option<PathBuf>,

    /// Directory of plugins: a plugins.yaml, or components (.wasm) and scripts (.lua). Watched for changes.
    #[arg(long, value_name = "PATH", help_heading = help::PLUGINS, env = help::PLUGINS_VARIABLE,
          hide_env_values = true)]
    plugin_directory: Option<PathBuf>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    images: ImageArguments,

    #[command(flatten)]
    plugin_state: PluginStateArguments,

    /// Address of /healthz, /readyz and /metrics; port 0 selects a free one.
    #[arg(long, default_value = "127.0.0.1:10370", value_name = "ADDRESS", value_parser = endpoint::address,
          help_heading = help::ENDPOINTS)]
    health_probe_bind_address: SocketAddr,

    #[command(flatten)]
    log: LogArguments,

    #[command(flatten)]
    settings: Settings,
}

/// Runs the controllers of one Pull member until the process is stopped. The metrics have the counts of `traces`.
///
/// # Errors
///
/// The process cannot work.
pub fn run(arguments: &AgentArguments, build: BuildInfo, traces: Option<&Traces>) -> Result<(), Failed> {
    let state = State::of(build, traces.map(Traces::counts));
    until_stopped(|lease_runtime| serve(arguments, state, lease_runtime))
}

async fn serve(arguments: &AgentArguments, state: State, lease_runtime: Handle) -> anyhow::Result<()> {
    let flags = arguments.settings.flags()?;
    let permit = WritePermit::unlimited();
    let address = endpoint::serve(arguments.health_probe_bind_address, state.clone()).await?;
    info!("health and metrics at http://{address}");
    let mut stop = std::pin::pin!(interrupted());
    let connected = async {
        let hub = hub::Hub::connect_in_time(&arguments.hub, &permit, &state, &lease_runtime).await?;
        info!("control plane {} is {}", hub.address, hub.version);
        let member = arguments.member_in_time(&permit, &state, &lease_runtime).await?;
        anyhow::Ok((hub, member))
    };
    let (hub, member) = tokio::select! {
        connected = connected => connected?,
        () = &mut stop => return Ok(()),
    };
    let engines = arguments.engines.start(flags.pod_detail())?;
    let plugins = arguments.plugin_directory.as_deref();
    let (role, control_plane) = (arguments.cluster_name.as_str(), hub.address.as_str());
    let identity = Identity {
        command: "agent",
        role,
        control_plane,
        plugins,
    };
    let crash_marker = arguments.plugin_state.open(None, &identity);
    let sources = arguments.images.sources(plugins)?;
    let parts = Parts {
        flags,
        engines,
        plugins: sources,
        crash_marks: crash_marker.as_ref().map(|marker| marker.marks()),
        permit: permit.clone(),
        agent_of: Some(member),
        only_interprets: false,
        decisions: None,
    };
    let running = Federation::start(&hub, parts, &state)?.watch(false, &state);
    state.set_prepared();
    // The member's lease and status do not wait for plugins.
    running.run_all();
    let stopped = tokio::select! {
        () = &mut stop => Ok(()),
        () = hub.reloading.run() => Ok(()),
        why = running.failed() => Err(why),
    };
    state.set_stopping();
    log_stop(&stopped);
    running.stop_within(&permit, DRAIN).await;
    stopped.map_err(anyhow::Error::msg)
}

impl AgentArguments {
    /// Returns the arguments of the log.
    pub fn log(&self) -> &LogArguments {
        &self.log
    }

    /// Connects to the member, retrying until it is available. Logs the reason for waiting.
    async fn member_in_time(
        &self,
        permit: &WritePermit,
        state: &State,
        lease_runtime: &Handle,
    ) -> anyhow::Result<AgentOf> {
        let name = &self.cluster_name;
        loop {
            // Read again for each attempt, because missing credentials may appear.
            let config = self.member_config().await?;
            let address = config.cluster_url.to_string();
            let client = connect(config.clone(), permit, &Arc::default())?;
            let error = match client.apiserver_version().await {
                Ok(version) => {
                    info!("member {name} is {}", version.git_version);
                    let lease_client = {
                        let _entered = lease_runtime.enter();
                        connect(config, permit, &Arc::default())?
                    };
                    return Ok(AgentOf {
                        name: name.clone(),
                        client,
                        lease_client,
                    });
                }
                Err(error) => ConnectError::of(&address, &error),
            };
            if !error.is_transient {
                return Err(error).with_context(|| format!("asking the member {name} for its version"));
            }
            state.set_stage(format!("connecting to the member {name}: {error}"));
            warn!("waiting for the member {name}: {error}");
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn member_config(&self) -> anyhow::Result<Config> {
        match &self.cluster_kubeconfig {
            Some(path) => hub::config_in("the member's kubeconfig", path, None).await,
            None => Config::incluster()
                .context("this is no pod with a service account; name a kubeconfig with --cluster-kubeconfig"),
        }
    }
}
