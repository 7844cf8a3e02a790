//! `bulkhead pause` and `bulkhead resume`: stop evictions and let them continue.
//!
//! A pause is an `EvictionPause` object on the control plane, not a process. It holds over restarts of the controllers
//! and changes of the leader. Its name follows from its scope, so that `resume` with the same arguments finds it.
//! The rules are in `host/core/src/decide/eviction/pause.rs`.

mod scope;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bulkhead_api::{Cluster, ClusterDrain, EvictionPause};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{DrainPhase, EvictionPauseSpec, TaintEffect};
use bulkhead_core::names::keys::DRAIN_TAINT;
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::{hub, now};
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use self::scope::{ScopeArguments, check_name, check_scope, scope_of};
use crate::conflict::advice;
use crate::join::{check_member, finish};

/// Limit of every pause, in the summary.
const NOT_HELD: &str = "  not held: old copies of earlier evictions, which leave when their replacements are healthy";

/// Stop evictions: all of them, or those of clusters or namespaces.
///
/// Creates an EvictionPause, which holds until `bulkhead resume` or until its end. Repeat the command to change the end
/// or the reason; an omitted one stays as it is. A pause that is over begins anew. Old copies of earlier evictions are
/// still removed when their replacements are healthy.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead pause --reason incident-4711
  bulkhead pause --cluster member1 --for 2h")]
pub(crate) struct PauseArguments {
    #[command(flatten)]
    hub: hub::HubArguments,

    #[command(flatten)]
    scope: ScopeArguments,

    /// Reason, which records of held evictions repeat.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Duration of the pause, for example 2h; without it and without --until a new pause has no end, and an existing
    /// one keeps its end.
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<GoDuration>,

    /// End of the pause, for example 2026-12-31T18:00:00Z, or `never` to remove the end of an existing pause.
    #[arg(long, value_name = "TIME|never", value_parser = parse_end, conflicts_with = "lasts")]
    until: Option<End>,

    /// Check the pause on the server and print it, without creating it.
    #[arg(long)]
    dry_run: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Let evictions continue: delete the EvictionPause that `bulkhead pause` created with the same scope.
///
/// Prints the drains and taints that can evict now, and the pauses that are left.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead resume
  bulkhead resume --cluster member1")]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    hub: hub::HubArguments,

    #[command(flatten)]
    scope: ScopeArguments,

    /// Delete every EvictionPause.
    #[arg(long, conflicts_with_all = ["clusters", "namespaces", "name"])]
    all: bool,

    /// Print the result without deleting anything.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Summary.
    Text,
    /// The EvictionPause object.
    Json,
    /// The EvictionPause object.
    Yaml,
}

/// End of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At this time.
    At(Time),
    /// None: the pause lasts until it is deleted.
    Never,
}

impl End {
    /// Returns the end as in the object.
    fn until(self) -> Option<Time> {
        match self {
            Self::At(time) => Some(time),
            Self::Never => None,
        }
    }
}

fn parse_end(text: &str) -> Result<End, String> {
    if text == "never" {
        return Ok(End::Never);
    }
    let parsed = text.parse().map(Time::new).map(End::At);
    parsed.map_err(|_| "must be a time with its zone, for example 2026-12-31T18:00:00Z, or `never`".to_owned())
}

/// Returns the end that the arguments give, `None` if they give none.
///
/// # Errors
///
/// The end has passed.
fn end(lasts: Option<GoDuration>, until: Option<End>, now: Time) -> anyhow::Result<Option<End>> {
    let end = until.or_else(|| lasts.map(|lasts| End::At(now.plus_seconds(lasts.as_secs()))));
    let Some(End::At(time)) = end else { return Ok(end) };
    let time = time.truncated();
    if time <= now {
        bail!("the end of the pause, {time}, has passed; it is {now}");
    }
    Ok(Some(End::At(time)))
}

/// Arguments of a pause: name, scope, and the parts that a repeated command may omit.
struct Wanted<'a> {
    name: &'a str,
    /// Scope, without end and reason.
    scope: EvictionPauseSpec,
    end: Option<End>,
    reason: Option<&'a str>,
}

/// Runs `pause`.
pub(crate) fn pause(arguments: &PauseArguments) -> ExitCode {
    finish(async {
        let now = Time::new(now());
        let (name, reason) = (arguments.scope.name(), arguments.reason.as_deref());
        check_name(&name)?;
        let end = end(arguments.lasts, arguments.until, now)?;
        let wanted = Wanted {
            name: &name,
            scope: arguments.scope.spec(),
            end,
            reason,
        };
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let pauses = Pauses {
            dry_run: arguments.dry_run,
            ..Pauses::new(&hub.unguarded)
        };
        let (pause, change) = pauses.start(wanted, now).await?;
        Ok(match arguments.output {
            Output::Text => pauses.started(&pause, change).await,
            Output::Json => serde_json::to_string_pretty(&pause).context("printing the pause")?,
            Output::Yaml => serde_saphyr::to_string(&pause)
                .context("printing the pause")?
                .trim_end()
                .to_owned(),
        })
    })
}

/// Runs `resume`.
pub(crate) fn resume(arguments: &ResumeArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let pauses = Pauses {
            dry_run: arguments.dry_run,
            ..Pauses::new(&hub.unguarded)
        };
        let scope = (!arguments.all).then_some(&arguments.scope);
        pauses.end(scope, Time::new(now())).await
    })
}

/// Pauses of a control plane.
struct Pauses {
    clusters: Api<Cluster>,
    drains: Api<ClusterDrain>,
    namespaces: Api<Namespace>,
    pauses: Api<EvictionPause>,
    /// True if the server checks each write and does not store it.
    dry_run: bool,
}

impl Pauses {
    fn new(hub: &Client) -> Self {
        Self {
            clusters: Api::all(hub.clone()),
            drains: Api::all(hub.clone()),
            namespaces: Api::all(hub.clone()),
            pauses: Api::all(hub.clone()),
            dry_run: false,
        }
    }

    /// Creates a pause, or changes the end and the reason of an existing one with the same scope. An existing pause
    /// keeps what is not given, unless it is over.
    async fn start(&self, wanted: Wanted<'_>, now: Time) -> anyhow::Result<(EvictionPause, Change)> {
        let Wanted {
            name,
            scope,
            end,
            reason,
        } = wanted;
        let found = self
            .pauses
            .get_opt(name)
            .await
            .with_context(|| format!("reading EvictionPause {name}"))?;
        let Some(existing) = found else {
            self.check(&scope).await?;
            let (until, reason) = (end.and_then(End::until), reason.unwrap_or_default().to_owned());
            let spec = EvictionPauseSpec { until, reason, ..scope };
            let parameters = PostParams {
                dry_run: self.dry_run,
                ..PostParams::default()
            };
            let created = self.pauses.create(&parameters, &EvictionPause::new(name, spec)).await;
            let created = created.map_err(|error| {
                let advice = advice(&error, "; `bulkhead crds` prints the definition of its kind");
                anyhow::Error::new(error).context(format!("creating EvictionPause {name}{advice}"))
            });
            return Ok((created?, Change::Begun));
        };
        check_scope(name, &existing.spec, &scope)?;
        let (kept, change) = match existing.spec.until.filter(|_| !existing.spec.is_in_force(now)) {
            // A pause that is over holds nothing: the command begins it anew, like one that does not exist.
            Some(over) => ((None, ""), Change::Anew { over }),
            None => ((existing.spec.until, existing.spec.reason.as_str()), Change::Continued),
        };
        let until = end.map_or(kept.0, End::until);
        let reason = reason.unwrap_or(kept.1);
        let change = match (change, existing.spec.until) {
            (Change::Continued, Some(_)) if end.is_none() => Change::KeptEnd,
            (change, _) => change,
        };
        if existing.spec.until == until && existing.spec.reason == reason {
            return Ok((existing, change));
        }
        // The scope was compared with this version.
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": existing.metadata.resource_version},
            "spec": {"until": until, "reason": reason},
        }));
        let parameters = PatchParams {
            dry_run: self.dry_run,
            ..PatchParams::default()
        };
        let patched = self.pauses.patch(name, &parameters, &patch).await;
        let patched = patched.map_err(|error| {
            let advice = advice(&error, "");
            anyhow::Error::new(error).context(format!("changing EvictionPause {name}{advice}"))
        });
        Ok((patched?, change))
    }

    /// Checks that the clusters and namespaces of a pause exist. A pause of a misspelled name would hold nothing.
    async fn check(&self, spec: &EvictionPauseSpec) -> anyhow::Result<()> {
        for cluster in &spec.clusters {
            check_member(&self.clusters, cluster).await?;
        }
        for namespace in &spec.namespaces {
            let found = self.namespaces.get_opt(namespace).await;
            if found
                .with_context(|| format!("reading Namespace {namespace}"))?
                .is_none()
            {
                bail!("there is no namespace {namespace} on the control plane");
            }
        }
        Ok(())
    }

    /// Describes a pause that has just begun or changed.
    async fn started(&self, pause: &EvictionPause, change: Change) -> String {
        let dry_run = if self.dry_run { "dry run: " } else { "" };
        let mut lines = vec![format!("{dry_run}{}", describe(pause))];
        match change {
            Change::Begun | Change::Continued => {}
            Change::KeptEnd => {
                lines.push("  its end is unchanged; --for or --until changes it, --until never removes it".to_owned());
            }
            Change::Anew { over } => lines.push(format!("  it begins anew: the earlier pause ended at {over}")),
        }
        let covers_all = pause.spec.namespaces.is_empty() && pause.spec.workloads.is_empty();
        let held = if covers_all { "held" } else { "held for its workloads" };
        lines.extend(self.causes(&[&pause.spec], held).await);
        lines.push(NOT_HELD.to_owned());
        lines.push(format!("  to continue: bulkhead resume --name {}", pause.name_any()));
        lines.join("\n")
    }

    /// Deletes the pause of a scope, or all pauses without one. Returns a description of the evictions that can
    /// continue.
    async fn end(&self, scope: Option<&ScopeArguments>, now: Time) -> anyhow::Result<String> {
        let all = self
            .pauses
            .list(&ListParams::default())
            .await
            .context("reading the EvictionPauses")?
            .items;
        let ends = |pause: &EvictionPause| scope.is_none_or(|scope| pause.name_any() == scope.name());
        let (ended, left): (Vec<_>, Vec<_>) = all.into_iter().partition(ends);
        if ended.is_empty() {
            let names: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
            let known = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            let name = scope.map(|scope| format!(" {}", scope.name())).unwrap_or_default();
            bail!("there is no EvictionPause{name}; there are: {known}");
        }
        let mut lines = Vec::new();
        for pause in &ended {
            let name = pause.name_any();
            if let Some(scope) = scope.filter(|scope| scope.is_narrow()) {
                check_scope(&name, &pause.spec, &scope.spec())?;
            }
            let parameters = DeleteParams {
                dry_run: self.dry_run,
                ..DeleteParams::default()
            };
            let deleted = self.pauses.delete(&name, &parameters).await;
            deleted.with_context(|| format!("deleting EvictionPause {name}"))?;
            let done = if self.dry_run {
                "dry run: would delete"
            } else {
                "deleted"
            };
            lines.push(format!(
                "{done} EvictionPause {name}, which held {}",
                scope_of(&pause.spec)
            ));
        }
        let covered: Vec<_> = ended.iter().map(|pause| &pause.spec).collect();
        let in_force: Vec<_> = left.iter().filter(|pause| pause.spec.is_in_force(now)).collect();
        let title = match (in_force.is_empty(), self.dry_run) {
            (true, false) => "can evict now",
            (true, true) => "could evict then",
            (false, _) => "can evict unless another pause holds it",
        };
        lines.extend(self.causes(&covered, title).await);
        lines.extend(
            in_force
                .into_iter()
                .map(|pause| format!("  still in force: {}", describe(pause))),
        );
        Ok(lines.join("\n"))
    }

    /// Returns a line for each present cause of evictions that one of the pauses covers: drains and taints. A list
    /// that cannot be read is named, because a pause works without it.
    async fn causes(&self, pauses: &[&EvictionPauseSpec], title: &str) -> Vec<String> {
        let covers = |cluster: &str| {
            let named = |pause: &&EvictionPauseSpec| pause.clusters.iter().any(|listed| listed == cluster);
            pauses.iter().any(|pause| pause.clusters.is_empty() || named(pause))
        };
        let mut lines = Vec::new();
        match self.drains.list(&ListParams::default()).await {
            Ok(drains) => {
                let open = drains
                    .items
                    .into_iter()
                    .filter(|drain| drain.status.phase != Some(DrainPhase::Drained));
                lines.extend(open.filter(|drain| covers(&drain.spec.cluster_name)).map(|drain| {
                    let (cluster, left) = (drain.spec.cluster_name, drain.status.bindings_left);
                    format!("  {title}: drain of {cluster} ({left} bindings left)")
                }));
            }
            Err(error) => lines.push(format!("  unknown: the drains cannot be listed: {error}")),
        }
        match self.clusters.list(&ListParams::default()).await {
            Ok(clusters) => {
                for cluster in clusters.items.iter().filter(|cluster| covers(&cluster.name_any())) {
                    let evicts = [TaintEffect::NoExecute, TaintEffect::PreferNoExecute];
                    let taints = cluster.spec.taints.iter();
                    let taints = taints.filter(|taint| evicts.contains(&taint.effect) && taint.key != DRAIN_TAINT);
                    lines.extend(taints.map(|taint| format!("  {title}: taint {taint} of {}", cluster.name_any())));
                }
            }
            Err(error) => lines.push(format!("  unknown: the clusters cannot be listed: {error}")),
        }
        if lines.is_empty() {
            lines.push(format!(
                "  {title}: no cluster, for lack of a drain or a NoExecute taint"
            ));
        }
        lines
    }
}

/// Effect of a command on a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// There was no pause of the name.
    Begun,
    /// The pause of the name was over since this time.
    Anew { over: Time },
    /// The pause was in force, and keeps its end.
    KeptEnd,
    /// The pause was in force, and has the given end or none.
    Continued,
}

/// Formats a pause with its end and its reason.
fn describe(pause: &EvictionPause) -> String {
    let until = pause
        .spec
        .until
        .map_or_else(|| "until it is deleted".to_owned(), |until| format!("until {until}"));
    let reason = if pause.spec.reason.is_empty() {
        String::new()
    } else {
        format!(" (reason: {})", pause.spec.reason)
    };
    format!(
        "EvictionPause {} holds {} {until}{reason}",
        pause.name_any(),
        scope_of(&pause.spec)
    )
}

#[cfg(test)]
mod tests;
