//! `bulkhead plugin run`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_conformance::Case;
use bulkhead_core::call::{EvictionVerdict, FilterVerdict, Interpretation, Reply, TaintChange};
use bulkhead_core::journal::DecisionId;
use bulkhead_simulator::recorded::diff::compare;
use bulkhead_simulator::recorded::journals::journals;
use bulkhead_simulator::recorded::select;
use clap::Args;
use serde_json::{Value, json};

use super::target::{Which, bounded, read_cases};
use crate::output::Format;

/// Run one call of a plugin and print its reply.
///
/// The input is a case in YAML, in the format of `bulkhead plugin test`; its expectations are ignored. Exits with
/// code 1 if the call is a fault. With --from-journal a recorded decision is made again with the plugin, in place of the
/// plugin of the same name; all other policies answer as recorded. Exits with code 1 then if the verdict changes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin run --input cases/cases.yaml
  bulkhead plugin run hold.lua --input cases.yaml --name weekend
  bulkhead plugin run hold.lua --journal journal --from-journal 3f9a1c2e55-41")]
pub(crate) struct Arguments {
    /// File of cases.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "from_journal",
        conflicts_with = "from_journal"
    )]
    input: Option<PathBuf>,

    /// Id of a recorded decision to make again, for example 41 or 3f9a1c2e55-41.
    #[arg(long, value_name = "ID", requires = "journal", conflicts_with = "name")]
    from_journal: Option<String>,

    /// Directory of the journal.
    #[arg(long, value_name = "DIR", requires = "from_journal")]
    journal: Option<PathBuf>,

    /// Name of the case; defaults to the first.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Output format. Text is YAML.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    which: Which,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    match (&arguments.input, &arguments.from_journal, &arguments.journal) {
        (Some(input), ..) => run_case(arguments, input),
        (None, Some(id), Some(journal)) => decide_again(arguments, journal, id),
        // The arguments are checked.
        (None, ..) => bail!("--input or --from-journal is missing"),
    }
}

fn run_case(arguments: &Arguments, input: &Path) -> anyhow::Result<bool> {
    let cases = read_cases(input)?;
    let case = chosen(&cases, arguments.name.as_deref()).with_context(|| format!("in {}", input.display()))?;
    let target = arguments.which.target()?;
    let policy = match &case.config {
        Some(config) => target.load_with(config)?,
        None => bounded(&target.load()?),
    };
    let reply = case.call.with_call(|call| policy.call(call));
    let usage = policy.usage();
    let mut data = match &reply {
        Ok(reply) => json!({ "reply": to_json(reply) }),
        Err(fault) => json!({ "fault": {"kind": fault.kind, "message": fault.message, "blame": fault.kind.blame()} }),
    };
    if usage.steps > 0 {
        data["steps"] = json!(usage.steps);
    }
    if usage.memory_bytes_max > 0 {
        data["memoryBytes"] = json!(usage.memory_bytes_max);
    }
    let format = if arguments.output == Format::Text {
        Format::Yaml
    } else {
        arguments.output
    };
    format.print(String::new, &data)?;
    Ok(reply.is_ok())
}

fn decide_again(arguments: &Arguments, journal: &Path, id: &str) -> anyhow::Result<bool> {
    if id.parse::<DecisionId>().is_err() {
        bail!("--from-journal: {id:?} is not the id of a decision, such as 41 or 3f9a1c2e55-41");
    }
    let (found, _) = select::find(&journals(&[journal.to_path_buf()])?, Some(id), Some)?;
    let target = arguments.which.target()?;
    let (name, plugin) = (&target.source.name, bounded(&target.load()?));
    let comparison = compare(&found, &plugin, name);
    if comparison.compared == 0 {
        bail!("decision {id} has no inputs in this journal, or is of no kind that {name} answers");
    }
    let recorded = || {
        let entries = found.iter().map(|stored| &stored.record.entry);
        let entries = entries.map(|entry| format!("{:?}: {}", entry.decision, entry.attribution.reason));
        entries.collect::<Vec<_>>().join("\n")
    };
    let text = || {
        let changes = comparison.changes.iter();
        let changes = changes.map(|change| format!("- {}\n+ {}\n", change.before, change.after));
        let changes: String = changes.collect();
        if changes.is_empty() {
            format!("the same with {name}: {}\n", recorded())
        } else {
            changes
        }
    };
    arguments.output.print(text, &comparison)?;
    Ok(!comparison.changes_verdicts())
}

fn chosen<'a>(cases: &'a [Case], name: Option<&str>) -> anyhow::Result<&'a Case> {
    let found = match name {
        Some(name) => cases.iter().find(|case| case.name == name),
        None => cases.first(),
    };
    let Some(case) = found else {
        let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
        bail!("there is no such case; there are: {}", names.join("; "));
    };
    Ok(case)
}

fn to_json(reply: &Reply) -> Value {
    match reply {
        Reply::Health(verdict) => json!({"health": verdict.health, "reason": verdict.reason}),
        Reply::ClusterTaint(verdict) => {
            let change = |change: &TaintChange| match change {
                TaintChange::Add { taint, reason } => json!({"add": taint, "reason": reason}),
                TaintChange::Remove { key, effect, reason } => {
                    json!({"remove": {"key": key, "effect": effect}, "reason": reason})
                }
            };
            json!({"taints": verdict.changes.iter().map(change).collect::<Vec<_>>()})
        }
        Reply::Filter(verdicts) => {
            let verdict = |verdict: &FilterVerdict| match verdict {
                FilterVerdict::Fit => json!("fit"),
                FilterVerdict::Unfit(reason) => json!({"unfit": reason}),
                FilterVerdict::Abstain => json!("abstain"),
            };
            json!({"clusters": verdicts.iter().map(verdict).collect::<Vec<_>>()})
        }
        Reply::Score(scores) => json!({ "scores": scores }),
        Reply::EvictionCheck(EvictionVerdict::Release(reason)) => json!({"verdict": "release", "reason": reason}),
        Reply::EvictionCheck(EvictionVerdict::Hold {
            reason,
            recheck_after_s,
        }) => {
            json!({"verdict": "hold", "reason": reason, "recheckAfterSeconds": recheck_after_s})
        }
        Reply::EvictionCheck(EvictionVerdict::Abstain) => json!({"verdict": "abstain"}),
        Reply::Interpret(None) => json!({"noRule": true}),
        Reply::Interpret(Some(interpretation)) => match interpretation {
            Interpretation::Replicas { replicas, requirements } => {
                json!({"replicas": replicas, "requirements": requirements})
            }
            Interpretation::Components(components) => json!({ "components": components }),
            Interpretation::Object(object) => json!({ "object": object }),
            Interpretation::Status(status) => json!({ "status": status }),
            Interpretation::Dependencies(dependencies) => json!({ "dependencies": dependencies }),
        },
    }
}
