//! `bulkhead drain` and `bulkhead undrain`: manual draining of a member cluster.
//!
//! A drain is an object on the control plane, not a process. It continues after this program ends, across restarts of
//! the controllers and changes of the leader. The object has the name of its cluster, so repeating the command finds
//! it and continues. Evictions are implemented in `host/controllers/src/taint_manager`.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::{Cluster, ClusterDrain};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{ClusterDrainSpec, ClusterDrainStatus, DrainPhase};
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::hub;
use clap::{Args, ValueEnum};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::conflict::advice;
use crate::join::finish;
use crate::output::Format;

/// Polling interval of `--wait`.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Drain a member cluster: move its workloads elsewhere, and remove each old copy when its replacement is healthy.
///
/// The drain continues without this command. Repeat the command to change the rate, to see the state or to wait;
/// `bulkhead undrain` ends the drain. An EvictionPause holds its evictions too, and all rate limits of the
/// controllers apply.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead drain member1 --evictions-per-second 0.5
  bulkhead drain member1 --wait --timeout 30m
  bulkhead drain member1 --status -o yaml")]
pub(crate) struct DrainArguments {
    /// Name of the member cluster.
    cluster: String,

    /// Maximum evictions per second: a number, 0 to halt the drain, or `unlimited` for no limit of its own. If
    /// omitted, an existing drain keeps its rate.
    #[arg(long, value_name = "NUMBER|unlimited", value_parser = parse_rate)]
    evictions_per_second: Option<DrainRate>,

    /// Only print the state of the drain.
    #[arg(long, conflicts_with_all = ["evictions_per_second", "wait"])]
    status: bool,

    /// Check the change without making it.
    #[arg(long, value_enum, value_name = "none|server", default_value_t = DryRun::None, num_args = 0..=1,
          require_equals = true, default_missing_value = "server", conflicts_with_all = ["wait", "status"])]
    dry_run: DryRun,

    /// Wait until the cluster is empty. The drain continues if the command is interrupted.
    #[arg(long)]
    wait: bool,

    /// Maximum time that `--wait` waits, for example 30m; no limit if omitted.
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<GoDuration>,

    /// Output format: one sentence, or the ClusterDrain object.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    hub: hub::HubArguments,
}

/// End a drain, so that the cluster can be scheduled to again.
///
/// Workloads that have left do not move back.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead undrain member1
  bulkhead undrain member1 --dry-run")]
pub(crate) struct UndrainArguments {
    /// Name of the member cluster.
    cluster: String,

    /// Check the change without making it.
    #[arg(long, value_enum, value_name = "none|server", default_value_t = DryRun::None, num_args = 0..=1,
          require_equals = true, default_missing_value = "server")]
    dry_run: DryRun,

    #[command(flatten)]
    hub: hub::HubArguments,
}

/// Value of `--dry-run`, as of kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DryRun {
    /// Change the drain.
    None,
    /// Let the API server check the change without making it.
    Server,
}

/// Rate of a drain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DrainRate {
    /// Maximum evictions per second; 0 halts the drain.
    PerSecond(f64),
    /// Limited only by the rates of the controllers.
    Unlimited,
}

fn parse_rate(text: &str) -> Result<DrainRate, String> {
    if text == "unlimited" {
        return Ok(DrainRate::Unlimited);
    }
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.map(DrainRate::PerSecond)
        .ok_or_else(|| "must be a number of 0 or more, or `unlimited`".to_owned())
}

impl DrainRate {
    /// Returns the rate as in the object, where `None` is unlimited.
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
        let (drains, cluster) = (
            Drains::new(&hub.unguarded).with(arguments.dry_run),
            arguments.cluster.as_str(),
        );
        let drain = if arguments.status {
            drains
                .find(cluster)
                .await?
                .with_context(|| format!("{cluster} is not being drained"))?
        } else {
            drains.start(cluster, arguments.evictions_per_second).await?
        };
        let drain = if arguments.wait {
            drains
                .wait(cluster, arguments.timeout.map(|timeout| timeout.0), say)
                .await?
        } else {
            drain
        };
        let text = arguments
            .output
            .render(|| drains.text(&drain), &drain)
            .context("printing the drain")?;
        Ok(text.trim_end().to_owned())
    })
}

/// Runs `undrain`.
pub(crate) fn undrain(arguments: &UndrainArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        Drains::new(&hub.unguarded)
            .with(arguments.dry_run)
            .stop(&arguments.cluster)
            .await
    })
}

fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Drains of a control plane.
struct Drains {
    clusters: Api<Cluster>,
    drains: Api<ClusterDrain>,
    dry_run: bool,
}

impl Drains {
    fn new(hub: &Client) -> Self {
        Self {
            clusters: Api::all(hub.clone()),
            drains: Api::all(hub.clone()),
            dry_run: false,
        }
    }

    fn with(self, dry_run: DryRun) -> Self {
        Self {
            dry_run: dry_run == DryRun::Server,
            ..self
        }
    }

    fn text(&self, drain: &ClusterDrain) -> String {
        format!("{}{}\n", describe(drain), if self.dry_run { " (dry run)" } else { "" })
    }

    async fn find(&self, cluster: &str) -> anyhow::Result<Option<ClusterDrain>> {
        let found = self
            .drains
            .get_opt(cluster)
            .await
            .with_context(|| format!("reading ClusterDrain {cluster}"))?;
        if let Some(drain) = &found
            && drain.spec.cluster_name != cluster
        {
            bail!(
                "ClusterDrain {cluster} drains another cluster, {}; this command does not change it",
                drain.spec.cluster_name
            );
        }
        Ok(found)
    }

    /// Creates the drain of a cluster, or changes the rate of an existing one.
    async fn start(&self, cluster: &str, rate: Option<DrainRate>) -> anyhow::Result<ClusterDrain> {
        if let Some(drain) = self.find(cluster).await? {
            let Some(rate) = rate
                .map(DrainRate::per_second)
                .filter(|rate| *rate != drain.spec.evictions_per_second)
            else {
                return Ok(drain);
            };
            let params = PatchParams {
                dry_run: self.dry_run,
                ..PatchParams::default()
            };
            let patch = Patch::Merge(json!({"spec": {"evictionsPerSecond": rate}}));
            let patched = self.drains.patch(cluster, &params, &patch).await;
            return patched.with_context(|| format!("changing the rate of ClusterDrain {cluster}"));
        }
        crate::join::check_member(&self.clusters, cluster).await?;
        let spec = ClusterDrainSpec {
            cluster_name: cluster.to_owned(),
            evictions_per_second: rate.and_then(DrainRate::per_second),
        };
        let params = PostParams {
            dry_run: self.dry_run,
            ..PostParams::default()
        };
        let created = self.drains.create(&params, &ClusterDrain::new(cluster, spec)).await;
        created.map_err(|error| {
            let advice = advice(&error, "; `bulkhead crds` prints the definition of its kind");
            anyhow::Error::new(error).context(format!("creating ClusterDrain {cluster}{advice}"))
        })
    }

    /// Waits until a cluster is empty. Calls `say` at each change of the state.
    async fn wait(&self, cluster: &str, timeout: Option<Duration>, say: impl Fn(&str)) -> anyhow::Result<ClusterDrain> {
        let started = tokio::time::Instant::now();
        let mut printed = String::new();
        loop {
            let drain = self.find(cluster).await?;
            let drain = drain
                .with_context(|| format!("the drain of {cluster} ended: another client deleted its ClusterDrain"))?;
            if drain.status.phase == Some(DrainPhase::Drained) {
                return Ok(drain);
            }
            let state = describe(&drain);
            if timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
                bail!("{state}; the drain continues, but this command stopped waiting");
            }
            if state != printed {
                say(&state);
                printed = state;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Ends the drain of a cluster. Leaves drains with other names alone.
    async fn stop(&self, cluster: &str) -> anyhow::Result<String> {
        let Some(drain) = self.find(cluster).await? else {
            bail!("there is no ClusterDrain {cluster}{}", self.others(cluster).await?);
        };
        let params = DeleteParams::default();
        let params = if self.dry_run { params.dry_run() } else { params };
        let deleted = self.drains.delete(cluster, &params).await;
        deleted.with_context(|| format!("deleting ClusterDrain {cluster}"))?;
        let ClusterDrainStatus {
            bindings_left,
            copies_left,
            ..
        } = drain.status;
        Ok(format!(
            "{cluster} {}; {bindings_left} bindings stay there, {copies_left} evictions continue{}",
            if self.dry_run {
                "would not be drained any more (dry run)"
            } else {
                "is no longer drained"
            },
            self.others(cluster).await?
        ))
    }

    async fn others(&self, cluster: &str) -> anyhow::Result<String> {
        let drains = self
            .drains
            .list(&ListParams::default())
            .await
            .context("reading the drains")?;
        let others = drains.items.iter().filter(|drain| drain.spec.cluster_name == cluster);
        let names: Vec<_> = others
            .map(ResourceExt::name_any)
            .filter(|name| name != cluster)
            .collect();
        Ok(if names.is_empty() {
            String::new()
        } else {
            format!("; ClusterDrain {} drains it too", names.join(", "))
        })
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
        None => format!("{cluster} is to be drained ({rate}); no controller has processed it yet"),
        Some(DrainPhase::Pending) => format!("{cluster} waits: {message}"),
        Some(DrainPhase::Draining) => format!("{cluster} is being drained ({rate}): {message}"),
        Some(DrainPhase::Drained) => format!("{cluster} is drained: {message}"),
    }
}

#[cfg(test)]
mod tests;
