//! `bulkhead history`.

use std::fmt::Write;

use bulkhead_core::journal::{Decision, Outcome, Record};
use bulkhead_journal::Stored;
use bulkhead_server::queries::client::Query;
use bulkhead_simulator::recorded::select;
use clap::Args;
use serde_json::json;

use super::qualified;
use super::source::SourceArguments;

/// List recorded decisions, oldest first.
///
/// Exit code: 0, or 2 if the journal cannot be read or no record matches the name. Damaged parts are reported on
/// standard error, and the rest is listed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead history --journal journal --last 20
  bulkhead history --kubeconfig karmada.kubeconfig --last 20
  bulkhead history default/nginx-deployment --journal journal --decision Evicted,Released")]
pub(crate) struct Arguments {
    /// Only decisions about this binding, object or member cluster, for example default/nginx-deployment.
    #[arg(value_name = "BINDING|CLUSTER")]
    about: Option<String>,

    /// Namespace of the binding or object; without one, only decisions about objects of this namespace.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Only decisions of these kinds, for example Evicted,Released.
    #[arg(long, value_delimiter = ',', value_parser = select::decision, value_name = "NAMES",
          long_help = decision_help())]
    decision: Vec<Decision>,

    /// Only the last NUMBER decisions.
    #[arg(long, value_name = "NUMBER")]
    last: Option<usize>,

    #[command(flatten)]
    source: SourceArguments,
}

fn decision_help() -> String {
    let names: Vec<_> = Decision::ALL.iter().map(|decision| format!("{decision:?}")).collect();
    format!(
        "Only decisions of these kinds, separated by commas: {}",
        names.join(", ")
    )
}

/// Record with its snapshot digest, for the list.
struct Listed {
    record: Record,
    /// Digest of the snapshot; absent if the record cannot be replayed.
    snapshot: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let namespace = arguments.namespace.as_deref();
    let about = arguments.about.as_deref().map(|about| qualified(about, namespace));
    let query = Query {
        // A name has its namespace already.
        namespace: namespace.filter(|_| about.is_none()).map(str::to_owned),
        about,
        decisions: arguments.decision.clone(),
        last: arguments.last,
        since_ms: None,
    };
    let listed = |stored: Stored| {
        query.selects(&stored.record.entry).then(|| Listed {
            record: stored.record,
            snapshot: stored.decision.map(|kept| kept.snapshot.clone()),
        })
    };
    let found = arguments.source.find(&query, false, listed)?;
    let (mut found, is_partial) = (found.kept, found.is_partial);
    if let Some(last) = arguments.last {
        found.drain(..found.len().saturating_sub(last));
    }
    let data: Vec<_> = found
        .iter()
        .map(|stored| {
            json!({
                "record": stored.record,
                "atMs": stored.record.entry.at.as_millis(),
                "snapshot": stored.snapshot,
                "replayable": stored.snapshot.is_some(),
            })
        })
        .collect();
    arguments.source.print(|| text(&found, is_partial), &data)?;
    Ok(true)
}

/// Lists records. `is_partial` is true if a part of the journal cannot be read.
fn text(found: &[Listed], is_partial: bool) -> String {
    let mut out = String::new();
    let widths = found.iter().map(|stored| stored.record.decision_id().to_string().len());
    let width = widths.max().unwrap_or(1);
    for stored in found {
        let entry = &stored.record.entry;
        let on = entry.cluster.as_ref().filter(|cluster| **cluster != entry.subject.name);
        let on = on.map(|cluster| format!(" on {cluster}")).unwrap_or_default();
        let effect = if entry.effect.is_empty() {
            String::new()
        } else {
            format!(": {}", entry.effect)
        };
        let abandoned = if stored.record.outcome == Outcome::Abandoned {
            " [abandoned]"
        } else {
            ""
        };
        let decision = format!("{:?}", entry.decision);
        let _ = writeln!(
            out,
            "#{:<width$}  {}  {decision:<16}  {}{on}{effect} — {}{abandoned}",
            stored.record.decision_id().to_string(),
            entry.at,
            entry.subject,
            entry.attribution.reason.code
        );
    }
    if found.is_empty() {
        let part = if is_partial {
            " in the part of the journal that can be read"
        } else {
            ""
        };
        let _ = writeln!(out, "no matching decisions{part}");
    }
    out
}
