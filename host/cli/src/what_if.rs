//! `bulkhead what-if`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::engines::EngineArguments;
use bulkhead_server::hub::{Hub, HubArguments, READ_TIME_MAX};
use bulkhead_server::settings::Settings;
use bulkhead_simulator::origin::{Input, Origin};
use bulkhead_simulator::render;
use bulkhead_simulator::what_if::{self, Answer, Export, Question};
use clap::Args;
use serde_json::json;

use crate::block_on::block_on;
use crate::exit;
use crate::output::Format;

/// Maximum number of workloads listed individually per section.
const SHOWN_MAX: usize = 50;

/// Show what would happen if member clusters were lost, from exported objects or from a live control plane.
///
/// Reads Clusters, bindings, ClusterTaintPolicies and EvictionPauses, runs the controllers on a copy of them, in virtual
/// time, and writes nothing. A workload counts as placed when it is scheduled. Exits with code 0 if every evicted
/// workload is placed, with 1 if not or if no ready cluster is left, and with 2 if the export, the control plane or an
/// argument cannot be used.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead what-if --down member1
  bulkhead what-if --down member1,member2 --for 30m export --report what-if.html")]
pub(crate) struct Arguments {
    /// Directory of exported objects, in the format of `kubectl get clusters,resourcebindings -A -o json`. Without
    /// it, objects are read from the control plane in the kubeconfig; nothing is written.
    #[arg(value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    export: Option<PathBuf>,

    /// Clusters that are lost, separated by commas; may be repeated.
    #[arg(long, required = true, value_delimiter = ',', value_name = "CLUSTER")]
    down: Vec<String>,

    /// Duration of the loss; permanent if omitted.
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<GoDuration>,

    /// Evictions per second, overriding resource-eviction-rate.
    #[arg(long, value_name = "NUMBER")]
    rate: Option<f64>,

    /// Maximum virtual time to simulate.
    #[arg(long, default_value = "24h", value_name = "DURATION")]
    horizon: GoDuration,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Also write a self-contained HTML page with a chart for each cluster that gains or loses replicas.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    hub: HubArguments,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    settings: Settings,
}

/// Runs the command. Exits with 1 if a workload is left without a placement, and with 2 on a bad export or argument.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    exit::code(try_run(arguments))
}

fn try_run(arguments: &Arguments) -> anyhow::Result<bool> {
    let flags = flags(&arguments.settings, arguments.rate)?;
    let export = objects(arguments.export.as_deref(), &arguments.hub, &arguments.down)?;
    for note in export.notes.iter().cloned().chain(off(&flags)) {
        writeln!(anstream::stderr(), "note: {note}")?;
    }
    let registry = bulkhead_defaults::registry::build(&flags, arguments.engines.start(flags.pod_detail())?);
    let (down, lasts, horizon) = (arguments.down.clone(), arguments.lasts, arguments.horizon);
    let question = Question {
        down,
        lasts,
        horizon,
        flags,
    };
    let origin = arguments.report.is_some().then(|| origin(&export, &question));
    let answer = what_if::play(export, Arc::new(registry), &question)?;
    if let (Some(path), Some(origin)) = (&arguments.report, origin) {
        let page = render::what_if(&answer, &question, &origin);
        fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
    }
    arguments.output.print(|| text(&answer), &answer)?;
    Ok(answer.nowhere.is_empty() && !answer.no_cluster_left)
}

/// Returns the settings with another rate of evictions per second, if one is given.
pub(crate) fn flags(settings: &Settings, rate: Option<f64>) -> anyhow::Result<Flags> {
    let mut flags = settings.flags()?;
    if let Some(rate) = rate {
        flags.resource_eviction_rate = rate;
        flags.validate().map_err(|error| anyhow::anyhow!("--rate: {error}"))?;
    }
    Ok(flags)
}

/// Returns the exported objects of a directory; without one, those of the control plane. `down` is for the advice about
/// a missing directory.
pub(crate) fn objects(export: Option<&Path>, hub: &HubArguments, down: &[String]) -> anyhow::Result<Export> {
    match export {
        Some(directory) => exported(directory, down),
        None => live(hub),
    }
}

/// Returns the origin of an answer: the settings and the objects that it was computed from.
fn origin(export: &Export, question: &Question) -> Origin {
    let Export {
        clusters,
        bindings,
        cluster_bindings,
        taint_policies,
        pauses,
        ..
    } = export;
    let data = [
        json!(clusters),
        json!(bindings),
        json!(cluster_bindings),
        json!(taint_policies),
        json!(pauses),
    ]
    .map(|part| part.to_string());
    let objects = clusters.len() + bindings.len() + cluster_bindings.len() + taint_policies.len() + pauses.len();
    let input = Input::of(format!("{objects} exported objects"), data.iter().map(String::as_bytes));
    Origin::new(&question.flags, vec![input])
}

/// Loads an export directory. If it does not exist, the error suggests the likely mistake in the arguments.
fn exported(directory: &Path, down: &[String]) -> anyhow::Result<Export> {
    if directory.is_dir() {
        return what_if::load(directory);
    }
    let name = directory.display();
    bail!(
        "cannot read the export {name}: no such directory; to lose the cluster {name} too, write --down {},{name}",
        down.join(",")
    )
}

/// Reads a live control plane over a connection that permits no writes.
fn live(hub: &HubArguments) -> anyhow::Result<Export> {
    block_on(async {
        let hub = Hub::connect(hub, &WritePermit::report_only()).await?;
        what_if::load_live(&hub.reader(READ_TIME_MAX), &hub.address).await
    })
}

/// Returns a note if the settings disable all evictions.
pub(crate) fn off(flags: &Flags) -> Option<String> {
    let message = "with these settings no taint evicts; --feature-gates Failover=true and \
                   --enable-no-execute-taint-eviction=true switch failover on";
    (!flags.evict_options().no_execute).then(|| message.to_owned())
}

fn text(answer: &Answer) -> String {
    let mut out = String::new();
    if answer.no_cluster_left {
        let _ = writeln!(out, "EVERY CLUSTER IS LOST OR NOT READY: no workload can move\n");
    }
    let time = |ms: u64| render::duration(i64::try_from(ms).unwrap_or(i64::MAX));
    let _ = writeln!(out, "TAINTS");
    for taint in &answer.taints {
        let _ = writeln!(out, "  {:>9}  {}  {}", time(taint.at_ms), taint.cluster, taint.change);
    }
    let _ = writeln!(out, "\nMOVES: {}", answer.moves.len());
    for moved in answer.moves.iter().take(SHOWN_MAX) {
        let mut to: Vec<_> = moved
            .to
            .iter()
            .map(|(cluster, replicas)| format!("{cluster}:+{replicas}"))
            .collect();
        to.extend(
            moved
                .shrunk
                .iter()
                .map(|(cluster, replicas)| format!("{cluster}:-{replicas}")),
        );
        let to = if to.is_empty() {
            "nowhere".to_owned()
        } else {
            to.join(", ")
        };
        let _ = writeln!(
            out,
            "  {:>9}  {}  {} → {to}",
            time(moved.at_ms),
            moved.binding,
            moved.from
        );
    }
    more(&mut out, answer.moves.len());
    if let Some(last) = answer.last_move_ms {
        let _ = writeln!(out, "  the last one moves {} after the loss", time(last));
    }
    let _ = writeln!(out, "\nSTAYS: {}", answer.stays.len());
    for stay in answer.stays.iter().take(SHOWN_MAX) {
        let _ = writeln!(
            out,
            "  {} on {}: {}: {}",
            stay.binding, stay.cluster, stay.gate, stay.why
        );
    }
    more(&mut out, answer.stays.len());
    if answer.waiting > 0 {
        let _ = writeln!(out, "  {} still wait for their turn at the end", answer.waiting);
    }
    let _ = writeln!(out, "\nNOWHERE TO GO: {}", answer.nowhere.len());
    for unplaced in answer.nowhere.iter().take(SHOWN_MAX) {
        let _ = writeln!(out, "  {}: {}", unplaced.binding, unplaced.why);
    }
    more(&mut out, answer.nowhere.len());
    let _ = writeln!(out, "\nREPLICAS");
    for load in &answer.load {
        let down = if load.down { "  lost" } else { "" };
        let _ = writeln!(
            out,
            "  {}  {} → {} ({:+}){down}",
            load.cluster,
            load.before,
            load.after,
            load.after - load.before
        );
    }
    out
}

fn more(out: &mut String, count: usize) {
    if count > SHOWN_MAX {
        let _ = writeln!(out, "  … and {} more; -o json has all of them", count - SHOWN_MAX);
    }
}
