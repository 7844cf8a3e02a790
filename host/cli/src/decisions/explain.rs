//! `bulkhead explain`.

use bulkhead_core::journal::{Decision, DecisionId};
use bulkhead_journal::Stored;
use bulkhead_simulator::recorded::explain::explain;
use clap::Args;

use super::{Common, qualified};

/// Explain a decision: each gate with its inputs and thresholds, and what would have changed the outcome.
///
/// For a binding, explains the decisions that changed its placement and those that hold it up. Exit code: 2 if there
/// is no such decision.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead explain 41 --journal journal
  bulkhead explain nginx-deployment -n default --journal journal")]
pub(crate) struct Arguments {
    /// Id of a decision (41, #41 or 3f9a1c2e55-41), or a binding, object or member cluster.
    #[arg(value_name = "ID|BINDING|CLUSTER")]
    about: String,

    /// Namespace of the binding or object, unless its name contains one.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Explain all records about a binding, bookkeeping included.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let everything = arguments.all || arguments.about.parse::<DecisionId>().is_ok();
    let explained = |stored: Stored| (everything || matters(&stored)).then(|| explain(&stored));
    let about = qualified(&arguments.about, arguments.namespace.as_deref());
    let (explanations, _) = arguments.common.find(Some(&about), explained)?;
    let text = || {
        explanations
            .iter()
            .map(|explanation| explanation.text(None))
            .collect::<Vec<_>>()
            .join("\n")
    };
    arguments.common.print(text, &explanations)?;
    Ok(true)
}

/// Returns true if a decision moves a workload, or keeps it in place temporarily or permanently.
fn matters(stored: &Stored) -> bool {
    let decision = stored.record.entry.decision;
    decision.is_about_place() || decision == Decision::Tolerated
}
