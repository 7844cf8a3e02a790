//! `bulkhead drain` and `bulkhead undrain`: a person empties a member cluster.
//!
//! A drain is an object on the control plane and not a process: it goes on when this program ends, over restarts of
//! the controllers and a change of leader. The object has the name of its cluster, so the same command again finds it
//! and goes on from where it is. How evictions happen is in `host/controllers/src/taint_manager`.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::{Cluster, ClusterDrain};
use bulkhead_controllers::WritePermit;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{ClusterDrainSpec, ClusterDrainStatus, DrainPhase};
use clap::{Args, ValueEnum};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::join::finish;
use crate::run::hub;

/// How often `--wait` looks.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Empty a member cluster: what runs there moves elsewhere, and each old copy goes when its replacement is healthy.
///
/// The drain goes on without this command. Give the command again to change its rate, to look or to wait;
/// `bulkhead undrain` ends it. Evictions pause where an EvictionPause says so, and keep every rate of the controllers.
#[derive(Args)]
pub(crate) struct DrainArguments {
    /// Name of the member cluster.
    cluster: String,

    #[command(flatten)]
    hub: hub::HubArguments,

    /// Most evictions per second: a number, 0 to let the drain stand still, or `unlimited` for no rate of its own.
    /// A drain that is there keeps its rate without this.
    #[arg(long, value_name = "NUMBER|unlimited", value_parser = parse_rate)]
    evictions_per_second: Option<DrainRate>,

    /// Only say how far the drain is.
    #[arg(long, conflicts_with_all = ["evictions_per_second", "wait"])]
    status: bool,

    /// Stay until nothing is left there. What is interrupted goes on all the same.
    #[arg(long)]
    wait: bool,

    /// How long `--wait` stays, for example 30m; without it for as long as it takes.
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<GoDuration>,

    /// How to print the state.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// End a drain: the cluster may be scheduled to again. What has left does not come back by this.
#[derive(Args)]
pub(crate) struct UndrainArguments {
    /// Name of the member cluster.
    cluster: String,

    #[command(flatten)]
    hub: hub::HubArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A sentence.
    Text,
    /// The ClusterDrain object.
    Json,
}

/// How fast a drain goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DrainRate {
    /// At most so many evictions per second; 0 stands still.
    PerSecond(f64),
    /// As fast as the rates of the controllers allow.
    Unlimited,
}

fn parse_rate(text: &str) -> Result<DrainRate, String> {
    if text == "unlimited" {
        return Ok(DrainRate::Unlimited);
    }
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.map(DrainRate::PerSecond).ok_or_else(|| "must be a number of 0 or more, or `unlimited`".to_owned())
}

impl DrainRate {
    /// As in the object, where absent is unlimited.
    fn per_second(self) -> Option<f64> {
        match self {
            Self::PerSecond(rate) => Some(rate),
            Self::Unlimited => None,
        }
    }
}

/// Runs `drain`.
pub(crate) fn drain(arguments: &DrainArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let (drains, cluster) = (Drains::new(&hub.unguarded), arguments.cluster.as_str());
        let drain = if arguments.status {
            drains.find(cluster).await?.with_context(|| format!("{cluster} is not being drained"))?
        } else {
            drains.start(cluster, arguments.evictions_per_second).await?
        };
        let drain = if arguments.wait {
            drains.wait(cluster, arguments.timeout.map(|timeout| timeout.0), say).await?
        } else {
            drain
        };
        Ok(match arguments.output {
            Output::Text => describe(&drain),
            Output::Json => serde_json::to_string_pretty(&drain).context("printing the drain")?,
        })
    })
}

/// Runs `undrain`.
pub(crate) fn undrain(arguments: &UndrainArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        Drains::new(&hub.unguarded).stop(&arguments.cluster).await
    })
}

fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// The drains of a control plane.
struct Drains {
    clusters: Api<Cluster>,
    drains: Api<ClusterDrain>,
}

impl Drains {
    fn new(hub: &Client) -> Self {
        Self { clusters: Api::all(hub.clone()), drains: Api::all(hub.clone()) }
    }

    async fn find(&self, cluster: &str) -> anyhow::Result<Option<ClusterDrain>> {
        let found = self.drains.get_opt(cluster).await.with_context(|| format!("reading ClusterDrain {cluster}"))?;
        if let Some(drain) = &found
            && drain.spec.cluster_name != cluster
        {
            bail!(
                "ClusterDrain {cluster} drains another cluster, {}; this command leaves it alone",
                drain.spec.cluster_name
            );
        }
        Ok(found)
    }

    /// Makes the drain of a cluster, or changes the rate of the one that is there.
    async fn start(&self, cluster: &str, rate: Option<DrainRate>) -> anyhow::Result<ClusterDrain> {
        if let Some(drain) = self.find(cluster).await? {
            let Some(rate) = rate.map(DrainRate::per_second).filter(|rate| *rate != drain.spec.evictions_per_second)
            else {
                return Ok(drain);
            };
            let patch = Patch::Merge(json!({"spec": {"evictionsPerSecond": rate}}));
            let patched = self.drains.patch(cluster, &PatchParams::default(), &patch).await;
            return patched.with_context(|| format!("changing the rate of ClusterDrain {cluster}"));
        }
        crate::join::check_member(&self.clusters, cluster).await?;
        let spec = ClusterDrainSpec {
            cluster_name: cluster.to_owned(),
            evictions_per_second: rate.and_then(DrainRate::per_second),
        };
        let created = self.drains.create(&PostParams::default(), &ClusterDrain::new(cluster, spec)).await;
        created.with_context(|| {
            format!("making ClusterDrain {cluster}; `bulkhead crds` prints the definition of its kind")
        })
    }

    /// Waits until nothing is left on a cluster, and says whenever something changes.
    async fn wait(&self, cluster: &str, timeout: Option<Duration>, say: impl Fn(&str)) -> anyhow::Result<ClusterDrain> {
        let started = tokio::time::Instant::now();
        let mut said = String::new();
        loop {
            let drain = self.find(cluster).await?;
            let drain = drain.with_context(|| format!("the drain of {cluster} was ended by somebody else"))?;
            if drain.status.phase == Some(DrainPhase::Drained) {
                return Ok(drain);
            }
            let state = describe(&drain);
            if timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
                bail!("{state}; it goes on, but this command waits no longer");
            }
            if state != said {
                say(&state);
                said = state;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Ends the drain of a cluster. Drains of other names are other people's.
    async fn stop(&self, cluster: &str) -> anyhow::Result<String> {
        let Some(drain) = self.find(cluster).await? else {
            bail!("there is no ClusterDrain {cluster}{}", self.others(cluster).await?);
        };
        let deleted = self.drains.delete(cluster, &DeleteParams::default()).await;
        deleted.with_context(|| format!("deleting ClusterDrain {cluster}"))?;
        let ClusterDrainStatus { bindings_left, copies_left, .. } = drain.status;
        Ok(format!(
            "{cluster} is no longer drained; {bindings_left} bindings stay there, {copies_left} are on their way out \
             and go on{}",
            self.others(cluster).await?
        ))
    }

    async fn others(&self, cluster: &str) -> anyhow::Result<String> {
        let drains = self.drains.list(&ListParams::default()).await.context("reading the drains")?;
        let others = drains.items.iter().filter(|drain| drain.spec.cluster_name == cluster);
        let names: Vec<_> = others.map(ResourceExt::name_any).filter(|name| name != cluster).collect();
        Ok(if names.is_empty() { String::new() } else { format!("; ClusterDrain {} drains it too", names.join(", ")) })
    }
}

fn describe(drain: &ClusterDrain) -> String {
    let cluster = &drain.spec.cluster_name;
    let rate = match drain.spec.evictions_per_second {
        None => "no rate of its own".to_owned(),
        Some(rate) => format!("at most {rate} evictions per second"),
    };
    let ClusterDrainStatus { phase, message, .. } = &drain.status;
    match phase {
        None => format!("{cluster} is to be drained ({rate}); no controller has looked at it yet"),
        Some(DrainPhase::Pending) => format!("{cluster} waits: {message}"),
        Some(DrainPhase::Draining) => format!("{cluster} is being drained ({rate}): {message}"),
        Some(DrainPhase::Drained) => format!("{cluster} is drained: {message}"),
    }
}

#[cfg(test)]
mod tests;
