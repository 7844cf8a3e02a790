//! `bulkhead replay`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_core::journal::DecisionId;
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_journal::Stored;
use bulkhead_plugin::{Bounded, Catalog, Directory, FoundPlugin, Registry};
use bulkhead_server::engines::EngineArguments;
use bulkhead_simulator::recorded::replay::{Replay, Replayer, Replays, Summary};
use bulkhead_simulator::scenario::{self, EventAction};
use clap::Args;

use super::Common;

/// Maximum number of differences that are printed per decision.
const SHOWN_MAX: usize = 10;

/// Replay recorded decisions offline, and compare the plans byte for byte.
///
/// Compiled-in policies are called again if this program has the version that decided, and plugins if --plugins has
/// the same code and configuration. All others answer as recorded. Exit code: 0 if every plan is identical, 1 with
/// the differences if not, 2 if the journal cannot be read in full.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead replay --all --journal journal
  bulkhead replay 41 --journal journal --plugins plugins")]
pub(crate) struct Arguments {
    /// Id of a decision: 41, #41 or 3f9a1c2e55-41.
    #[arg(value_name = "ID", conflicts_with = "all")]
    id: Option<String>,

    /// Replay all decisions.
    #[arg(long)]
    all: bool,

    /// Use the recorded answers of compiled-in policies too: only the decision code runs again.
    #[arg(long)]
    recorded_answers: bool,

    /// Plugins to call again if their code and configuration have the recorded digests: a directory as for
    /// `bulkhead run --plugin-directory`, or the scenario of the journal.
    #[arg(long, value_name = "DIR|SCENARIO", conflicts_with = "recorded_answers")]
    plugins: Option<PathBuf>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    common: Common,
}

/// Loads the plugins of a directory, or all plugins that a scenario loads at any time.
fn plugins(path: &Path, engines: &EngineArguments) -> anyhow::Result<Vec<Arc<dyn Policy>>> {
    let found: Vec<FoundPlugin> = if path.is_dir() {
        let listing = Directory::new(path)
            .read()
            .map_err(|error| anyhow::anyhow!("--plugins: {error}"))?;
        let found = listing.plugins.into_iter().map(|listed| listed.found);
        found
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow::anyhow!("--plugins: {error}"))?
    } else {
        let scenario = scenario::load(path).context("--plugins")?;
        let later = scenario.events.into_iter().filter_map(|event| match event.action {
            EventAction::Plugins(plugins) => Some(plugins),
            _ => None,
        });
        scenario.plugins.into_iter().chain(later.flatten()).collect()
    };
    let registry = Registry::new(engines.start(Detail::default())?);
    let load = |found: FoundPlugin| {
        let loaded = registry
            .load(&found.source)
            .with_context(|| format!("--plugins: {}", found.manifest.name))?;
        let keys = loaded.description.taint_keys.clone();
        anyhow::Ok(Arc::new(Bounded::with_taint_keys(loaded.policy, keys)) as Arc<dyn Policy>)
    };
    found.into_iter().map(load).collect()
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.id.is_none() && !arguments.all {
        return Err(arguments.common.without_id()?);
    }
    let replayer = if arguments.recorded_answers {
        Replayer::with_recorded_replies()
    } else {
        Replayer::default()
    };
    let plugins = arguments
        .plugins
        .as_deref()
        .map(|path| plugins(path, &arguments.engines))
        .transpose()?;
    let replayer = replayer.with_plugins(plugins.unwrap_or_default());
    if let Some(word) = &arguments.id {
        let _: DecisionId = word.parse()?;
    }
    let mut replays = Replays::new(&replayer);
    let mut unreplayable = None;
    let (_, problems) = arguments.common.find(arguments.id.as_deref(), |stored: Stored| {
        if stored.decision.is_none() {
            unreplayable = Some((stored.record.decision_id(), stored.record.entry.decision));
        }
        replays.add(&stored);
        None::<()>
    })?;
    if let (Some(_), Some((id, decision))) = (&arguments.id, unreplayable) {
        bail!(
            "cannot repeat decision {id} ({decision:?}): it follows from others and has no recorded inputs; \
             `bulkhead explain {id}` shows the record"
        );
    }
    let summary = replays.finish();
    arguments.common.print(|| text(&summary), &summary)?;
    let damaged = problems.iter().find(|problem| !problem.is_harmless());
    match damaged {
        Some(problem) if summary.different.is_empty() => bail!("cannot read every decision: {problem}"),
        _ => Ok(summary.different.is_empty()),
    }
}

fn text(summary: &Summary) -> String {
    let mut out = String::new();
    for replay in &summary.different {
        difference(&mut out, replay);
    }
    let decisions = |count: usize| format!("{count} decision{}", if count == 1 { "" } else { "s" });
    let total = summary.exact + summary.different.len();
    let _ = writeln!(out, "{} repeated, {} identical", decisions(total), summary.exact);
    if summary.without_case > 0 {
        let _ = writeln!(
            out,
            "{} records follow from other decisions and have no inputs",
            summary.without_case
        );
    }
    let loaded = summary
        .asked
        .iter()
        .filter(|policy| policy.engine != EngineKind::Builtin);
    let loaded: Vec<_> = loaded.map(ToString::to_string).collect();
    if !loaded.is_empty() {
        let _ = writeln!(out, "plugins called again: {}", loaded.join(", "));
    }
    for missing in &summary.missing {
        let _ = writeln!(out, "note: {missing}");
    }
    if !summary.recorded.is_empty() {
        let names: Vec<_> = summary.recorded.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "answered as recorded: {}", names.join(", "));
    }
    out
}

fn difference(out: &mut String, replay: &Replay) {
    let _ = writeln!(out, "decision {} differs:", replay.id);
    for difference in replay.differences.iter().take(SHOWN_MAX) {
        let side = |value: &Option<serde_json::Value>| value.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        let _ = writeln!(
            out,
            "  {}",
            if difference.path.is_empty() {
                "(the whole plan)"
            } else {
                &difference.path
            }
        );
        let _ = writeln!(out, "  - {}", side(&difference.recorded));
        let _ = writeln!(out, "  + {}", side(&difference.again));
    }
    if replay.differences.len() > SHOWN_MAX {
        let _ = writeln!(out, "  … and {} more", replay.differences.len() - SHOWN_MAX);
    }
    if replay.redacted > 0 {
        let _ = writeln!(
            out,
            "  {} values of the record are redacted, a possible cause",
            replay.redacted
        );
    }
}
