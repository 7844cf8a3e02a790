//! `bulkhead pause` and `bulkhead resume`: stop evictions and let them continue.
//!
//! A pause is an `EvictionPause` object on the control plane, not a process. It holds over restarts of the controllers
//! and changes of the leader. Its name follows from its scope, so that `resume` with the same arguments finds it.
//! The rules are in `host/core/src/decide/eviction/pause.rs`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bulkhead_api::{Cluster, ClusterDrain, EvictionPause};
use bulkhead_controllers::WritePermit;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{DrainPhase, EvictionPauseSpec, TaintEffect};
use bulkhead_core::names::keys::DRAIN_TAINT;
use bulkhead_core::time::Time;
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::join::{check_member, finish};
use crate::run::{hub, now};

/// Name of the pause without a scope.
const ALL: &str = "all-evictions";
/// Limit of every pause, in the summary.
const NOT_HELD: &str = "  not held: old copies of earlier evictions, which leave when their replacements are healthy";

/// Stop evictions: all of them, or those of clusters or namespaces.
///
/// Creates an EvictionPause, which holds until `bulkhead resume` or until its end. Repeat the command to change the
/// end or the reason. Old copies of earlier evictions are still removed when their replacements are healthy.
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

    /// Duration of the pause, for example 2h; without it and without --until the pause has no end.
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<GoDuration>,

    /// End of the pause, for example 2026-12-31T18:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "lasts")]
    until: Option<Time>,

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

/// Scope of a pause.
#[derive(Args, Clone, Debug, Default)]
struct ScopeArguments {
    /// Cluster whose evictions are paused; a list separated by commas names several.
    #[arg(long = "cluster", value_name = "CLUSTER", value_delimiter = ',')]
    clusters: Vec<String>,

    /// Namespace whose workloads stay; a list separated by commas names several.
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// Name of the EvictionPause; by default the name follows from the scope.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
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

fn parse_time(text: &str) -> Result<Time, String> {
    let parsed = text.parse().map(Time::new);
    parsed.map_err(|_| "must be a time with its zone, for example 2026-12-31T18:00:00Z".to_owned())
}

impl ScopeArguments {
    /// Returns the given name, or the name that follows from the scope.
    fn name(&self) -> String {
        let EvictionPauseSpec { clusters, namespaces, .. } = self.spec();
        let mut parts = Vec::new();
        for (kind, names) in [("cluster", clusters), ("namespace", namespaces)] {
            if !names.is_empty() {
                parts.push(kind.to_owned());
                parts.extend(names);
            }
        }
        if parts.is_empty() {
            parts.push(ALL.to_owned());
        }
        self.name.clone().unwrap_or_else(|| parts.join("-"))
    }

    /// Returns true if a cluster or a namespace is given.
    fn is_narrow(&self) -> bool {
        !self.clusters.is_empty() || !self.namespaces.is_empty()
    }

    /// Returns a pause of this scope, without end and reason.
    fn spec(&self) -> EvictionPauseSpec {
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort();
            list.dedup();
            list
        };
        EvictionPauseSpec {
            clusters: sorted(&self.clusters),
            namespaces: sorted(&self.namespaces),
            ..EvictionPauseSpec::default()
        }
    }
}

/// Returns the end of a pause.
///
/// # Errors
///
/// The end has passed.
fn end(lasts: Option<GoDuration>, until: Option<Time>, now: Time) -> anyhow::Result<Option<Time>> {
    let end = until.or_else(|| lasts.map(|lasts| now.plus_seconds(lasts.as_secs()))).map(Time::truncated);
    if let Some(passed) = end.filter(|end| *end <= now) {
        bail!("the end of the pause, {passed}, has passed; it is {now}");
    }
    Ok(end)
}

/// Runs `pause`.
pub(crate) fn pause(arguments: &PauseArguments) -> ExitCode {
    finish(async {
        let now = Time::new(now());
        let wanted = EvictionPauseSpec { until: end(arguments.lasts, arguments.until, now)?, ..arguments.scope.spec() };
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let pauses = Pauses { dry_run: arguments.dry_run, ..Pauses::new(&hub.unguarded) };
        let pause = pauses.start(&arguments.scope.name(), wanted, arguments.reason.as_deref()).await?;
        Ok(match arguments.output {
            Output::Text => pauses.started(&pause).await,
            Output::Json => serde_json::to_string_pretty(&pause).context("printing the pause")?,
            Output::Yaml => serde_saphyr::to_string(&pause).context("printing the pause")?.trim_end().to_owned(),
        })
    })
}

/// Runs `resume`.
pub(crate) fn resume(arguments: &ResumeArguments) -> ExitCode {
    finish(async {
        let hub = hub::Hub::connect(&arguments.hub, &WritePermit::unlimited()).await?;
        let pauses = Pauses { dry_run: arguments.dry_run, ..Pauses::new(&hub.unguarded) };
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

    /// Creates a pause, or changes the end and the reason of an existing one with the same scope.
    async fn start(
        &self,
        name: &str,
        wanted: EvictionPauseSpec,
        reason: Option<&str>,
    ) -> anyhow::Result<EvictionPause> {
        let found = self.pauses.get_opt(name).await.with_context(|| format!("reading EvictionPause {name}"))?;
        let Some(existing) = found else {
            self.check(&wanted).await?;
            let spec = EvictionPauseSpec { reason: reason.unwrap_or_default().to_owned(), ..wanted };
            let parameters = PostParams { dry_run: self.dry_run, ..PostParams::default() };
            let created = self.pauses.create(&parameters, &EvictionPause::new(name, spec)).await;
            return created.with_context(|| {
                format!("creating EvictionPause {name}; `bulkhead crds` prints the definition of its kind")
            });
        };
        check_scope(name, &existing.spec, &wanted)?;
        let reason = reason.unwrap_or(&existing.spec.reason);
        if existing.spec.until == wanted.until && existing.spec.reason == reason {
            return Ok(existing);
        }
        // The scope was compared with this version.
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": existing.metadata.resource_version},
            "spec": {"until": wanted.until, "reason": reason},
        }));
        let parameters = PatchParams { dry_run: self.dry_run, ..PatchParams::default() };
        let patched = self.pauses.patch(name, &parameters, &patch).await;
        patched.with_context(|| format!("changing EvictionPause {name}"))
    }

    /// Checks that the clusters and namespaces of a pause exist. A pause of a misspelled name would hold nothing.
    async fn check(&self, spec: &EvictionPauseSpec) -> anyhow::Result<()> {
        for cluster in &spec.clusters {
            check_member(&self.clusters, cluster).await?;
        }
        for namespace in &spec.namespaces {
            let found = self.namespaces.get_opt(namespace).await;
            if found.with_context(|| format!("reading Namespace {namespace}"))?.is_none() {
                bail!("there is no namespace {namespace} on the control plane");
            }
        }
        Ok(())
    }

    /// Describes a pause that has just begun.
    async fn started(&self, pause: &EvictionPause) -> String {
        let dry_run = if self.dry_run { "dry run: " } else { "" };
        let mut lines = vec![format!("{dry_run}{}", describe(pause))];
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
        let all = self.pauses.list(&ListParams::default()).await.context("reading the EvictionPauses")?.items;
        let ends = |pause: &EvictionPause| scope.is_none_or(|scope| pause.name_any() == scope.name());
        let (ended, left): (Vec<_>, Vec<_>) = all.into_iter().partition(ends);
        if ended.is_empty() {
            let names: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let name = scope.map(|scope| format!(" {}", scope.name())).unwrap_or_default();
            bail!("there is no EvictionPause{name}; there are: {known}");
        }
        let mut lines = Vec::new();
        for pause in &ended {
            let name = pause.name_any();
            if let Some(scope) = scope.filter(|scope| scope.is_narrow()) {
                check_scope(&name, &pause.spec, &scope.spec())?;
            }
            let parameters = DeleteParams { dry_run: self.dry_run, ..DeleteParams::default() };
            let deleted = self.pauses.delete(&name, &parameters).await;
            deleted.with_context(|| format!("deleting EvictionPause {name}"))?;
            let done = if self.dry_run { "dry run: would delete" } else { "deleted" };
            lines.push(format!("{done} EvictionPause {name}, which held {}", scope_of(&pause.spec)));
        }
        let covered: Vec<_> = ended.iter().map(|pause| &pause.spec).collect();
        let in_force: Vec<_> = left.iter().filter(|pause| pause.spec.is_in_force(now)).collect();
        let title = match (in_force.is_empty(), self.dry_run) {
            (true, false) => "can evict now",
            (true, true) => "could evict then",
            (false, _) => "can evict unless another pause holds it",
        };
        lines.extend(self.causes(&covered, title).await);
        lines.extend(in_force.into_iter().map(|pause| format!("  still in force: {}", describe(pause))));
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
                let open = drains.items.into_iter().filter(|drain| drain.status.phase != Some(DrainPhase::Drained));
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
            lines.push(format!("  {title}: no cluster, for lack of a drain or a NoExecute taint"));
        }
        lines
    }
}

/// Checks that an existing pause has the wanted scope.
fn check_scope(name: &str, existing: &EvictionPauseSpec, wanted: &EvictionPauseSpec) -> anyhow::Result<()> {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let same = sorted(&existing.clusters) == sorted(&wanted.clusters)
        && sorted(&existing.namespaces) == sorted(&wanted.namespaces)
        && existing.workloads == wanted.workloads;
    if !same {
        bail!("EvictionPause {name} holds {}, not {}; choose another --name", scope_of(existing), scope_of(wanted));
    }
    Ok(())
}

/// Formats the scope of a pause.
fn scope_of(spec: &EvictionPauseSpec) -> String {
    let workloads: Vec<_> = spec.workloads.iter().map(|workload| workload.name.clone()).collect();
    let lists = [(" from ", &spec.clusters), (" of namespace ", &spec.namespaces), (" of workload ", &workloads)];
    let given = lists.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = given.map(|(by, names)| format!("{by}{}", names.join(", "))).collect();
    if parts.is_empty() { "all evictions".to_owned() } else { format!("evictions{}", parts.concat()) }
}

/// Formats a pause with its end and its reason.
fn describe(pause: &EvictionPause) -> String {
    let until = pause.spec.until.map_or_else(|| "until it is deleted".to_owned(), |until| format!("until {until}"));
    let reason = if pause.spec.reason.is_empty() { String::new() } else { format!(" (reason: {})", pause.spec.reason) };
    format!("EvictionPause {} holds {} {until}{reason}", pause.name_any(), scope_of(&pause.spec))
}

#[cfg(test)]
mod tests;
