//! `bulkhead diff`.

use std::fmt::Write;
use std::path::PathBuf;

use bulkhead_server::engines::EngineArguments;
use bulkhead_simulator::recorded::diff::{Change, Comparison, compare};
use clap::Args;

use super::Common;
use crate::plugin::load;

/// Show how a plugin would have changed recorded decisions.
///
/// Each recorded decision that the plugin applies to is computed again with it, in place of the plugin of the same
/// name, or before all others if there was none. All other policies answer as recorded. Exit code: 0 if no verdict
/// changes, 1 if one does, 2 if the journal or the plugin is bad.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead diff --journal journal --plugin hold.lua
  bulkhead diff --journal journal --plugin release-when-healthy.wasm --replaces hold -o json")]
pub(crate) struct Arguments {
    /// Plugin: a component (.wasm), a script (.lua), or a directory with a plugin.yaml.
    #[arg(long, value_name = "PLUGIN")]
    plugin: PathBuf,

    /// Configuration of the plugin in JSON or YAML, or @FILE.
    #[arg(long, value_name = "CONFIG")]
    config: Option<String>,

    /// Name of the recorded plugin to replace; the default is the plugin's own name.
    #[arg(long, value_name = "NAME")]
    replaces: Option<String>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let contents = arguments.common.load()?;
    let (name, plugin) = load(&arguments.plugin, arguments.config.as_deref(), &arguments.engines)?;
    let name = arguments.replaces.clone().unwrap_or(name);
    let known = |stored: &bulkhead_journal::Stored| {
        let kept = stored.decision.as_ref()?;
        kept.decision
            .policies
            .iter()
            .find(|slot| slot.policy.name == name)
            .map(|_| ())
    };
    if arguments.replaces.is_some() && contents.records.iter().find_map(known).is_none() {
        anyhow::bail!("--replaces {name}: no recorded decision had a plugin of that name");
    }
    let comparison = compare(&contents.records, &plugin, &name);
    arguments.common.print(|| text(&comparison, &name), &comparison)?;
    Ok(!comparison.changes_verdicts())
}

fn text(comparison: &Comparison, name: &str) -> String {
    let mut out = String::new();
    for Change {
        id,
        class,
        subject,
        cluster,
        before,
        after,
    } in &comparison.changes
    {
        if !class.changes_verdict() {
            continue;
        }
        let on = cluster
            .as_ref()
            .map(|cluster| format!(" on {cluster}"))
            .unwrap_or_default();
        let _ = writeln!(out, "#{id}  {subject}{on}\n  - {before}\n  + {after}");
    }
    let Comparison {
        compared,
        unchanged,
        replaced,
        redacted,
        ..
    } = comparison;
    let _ = writeln!(out, "{compared} decisions involve {name}, {unchanged} unchanged");
    for (class, count) in &comparison.classes {
        let _ = writeln!(out, "{count:>6}  {}", class.describe());
    }
    if *compared > *replaced {
        let _ = writeln!(
            out,
            "{} of them were made without a plugin of that name; it was called first",
            compared - replaced
        );
    }
    if *redacted > 0 {
        let _ = writeln!(
            out,
            "{redacted} of them have redacted values, so the plugin received incomplete input"
        );
    }
    out
}
