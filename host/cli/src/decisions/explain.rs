//! `bulkhead explain`.

use std::collections::BTreeMap;

use bulkhead_core::journal::{Decision, DecisionId, Record};
use bulkhead_core::time::Time;
use bulkhead_journal::Stored;
use bulkhead_server::queries::client::Query;
use bulkhead_simulator::recorded::explain::{Explanation, explain};
use bulkhead_simulator::recorded::queued::with_queue;
use bulkhead_simulator::recorded::waiting::{Event, Waiting, concerns, decisions, waiting};
use clap::Args;

use super::qualified;
use super::source::SourceArguments;

/// Explain a decision: each gate with its inputs and thresholds, and what would have changed the outcome.
///
/// For a binding, explains the decisions that changed its placement and those that hold it up, and then what still
/// waits: the closed gate, since when, what would open it, and when it is checked next. Exit code: 2 if there is no
/// such decision.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead explain 3f9a1c2e55-41 --kubeconfig karmada.kubeconfig
  bulkhead explain nginx-deployment -n default --journal journal
  bulkhead explain --waiting --journal journal")]
pub(crate) struct Arguments {
    /// Id of a decision (41, #41 or 3f9a1c2e55-41), or a binding, object or member cluster.
    #[arg(value_name = "ID|BINDING|CLUSTER", required_unless_present = "waiting")]
    about: Option<String>,

    /// Namespace of the binding or object, unless its name contains one.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Explain all records about a binding, bookkeeping included.
    #[arg(long, conflicts_with = "waiting")]
    all: bool,

    /// List only what waits according to the journal, of everything or of one binding, object or member cluster.
    #[arg(long)]
    waiting: bool,

    #[command(flatten)]
    source: SourceArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let about = arguments.about.as_deref();
    let about = about.map(|about| qualified(about, arguments.namespace.as_deref()));
    if arguments.waiting {
        return list(arguments, about);
    }
    let is_one = about.as_ref().is_some_and(|about| about.parse::<DecisionId>().is_ok());
    let everything = arguments.all || is_one;
    let found = |stored: Stored| {
        let explanation = (everything || matters(&stored)).then(|| explain(&stored));
        Some((explanation, Noted::of(stored)))
    };
    let query = Query {
        about,
        ..Query::default()
    };
    let found = arguments.source.find(&query, false, found)?;
    let (explanations, events): (Vec<_>, Vec<_>) = found.kept.into_iter().unzip();
    let mut explanations: Vec<_> = explanations.into_iter().flatten().collect();
    // The end of a wait is in other records than the one with this id.
    if !is_one {
        attach(
            &mut explanations,
            waiting(events.iter().flatten().filter_map(Noted::event)),
        );
    }
    let text = || {
        let texts = explanations.iter().map(|explanation| explanation.text(None));
        texts.collect::<Vec<_>>().join("\n")
    };
    arguments.source.print(text, &explanations)?;
    Ok(true)
}

/// Record that concerns a wait, without the inputs of its decision.
struct Noted {
    record: Record,
    again_after_ms: Option<i64>,
}

impl Noted {
    fn of(stored: Stored) -> Option<Self> {
        let decision = stored.decision.as_ref();
        let again_after_ms = decision.and_then(|decision| decision.again_after_ms());
        concerns(stored.record.entry.decision).then_some(Self {
            record: stored.record,
            again_after_ms,
        })
    }

    fn event(&self) -> Option<Event<'_>> {
        Event::of(&self.record, self.again_after_ms)
    }
}

/// Adds each wait to the explanation of its decision.
fn attach(explanations: &mut [Explanation], waits: Vec<Waiting>) {
    let by_decision = waits
        .into_iter()
        .filter_map(|wait| Some((wait.decision.clone()?, wait)));
    let mut by_decision: BTreeMap<_, _> = by_decision.collect();
    for explanation in explanations.iter_mut().rev() {
        if let Some(wait) = by_decision.remove(&explanation.record.decision_id().to_string()) {
            explanation.waiting = Some(wait);
        }
    }
}

/// Lists what waits. The leader knows tolerations and rates too, which have no record.
fn list(arguments: &Arguments, about: Option<String>) -> anyhow::Result<bool> {
    let mut last = Time::from_millis(0);
    let timed = |stored: Stored| {
        last = last.max(stored.record.entry.at);
        Noted::of(stored)
    };
    let namespace = arguments.namespace.clone().filter(|_| about.is_none());
    let query = Query {
        about: about.clone(),
        namespace: namespace.clone(),
        decisions: decisions(),
        ..Query::default()
    };
    let found = arguments.source.find(&query, true, timed)?;
    let (mut waits, mut now) = (waiting(found.kept.iter().filter_map(Noted::event)), last);
    if let Some(queued) = found.queued {
        now = Time::new(bulkhead_server::now());
        waits = with_queue(waits, &queued, now);
    }
    let is_wanted = |wait: &Waiting| {
        namespace
            .as_ref()
            .is_none_or(|namespace| wait.subject.namespace == *namespace)
            && about
                .as_ref()
                .is_none_or(|about| wait.subject.key() == *about || wait.cluster.as_ref() == Some(about))
    };
    waits.retain(is_wanted);
    let text = || {
        let texts: Vec<_> = waits.iter().map(|wait| wait.text(now)).collect();
        if texts.is_empty() {
            "nothing waits\n".to_owned()
        } else {
            texts.join("\n")
        }
    };
    arguments.source.print(text, &waits)?;
    Ok(true)
}

/// Returns true if a decision moves a workload, or keeps it in place temporarily or permanently.
fn matters(stored: &Stored) -> bool {
    let decision = stored.record.entry.decision;
    decision.is_about_place() || decision == Decision::Tolerated
}
