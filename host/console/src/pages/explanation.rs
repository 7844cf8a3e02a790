//! Explanation of a decision: its gates with inputs and thresholds, and the answers of policies.

use bulkhead_journal::{Stored, StoredDecision};
use bulkhead_simulator::recorded::explain::{Explanation, answers, explain};
use bulkhead_simulator::recorded::finding::Finding;
use bulkhead_simulator::render;
use bulkhead_simulator::render::page::details;
use maud::{Markup, html};

use crate::frame::{moment, table, text};

/// Maximum size of the inputs that a page shows, in bytes.
const INPUTS_BYTES_MAX: usize = 64 << 10;

/// Returns the facts of a record, and the gates of its decision.
pub(super) fn gates(explanation: &Explanation) -> Markup {
    html! {
        (facts(explanation))
        @if explanation.findings.is_empty() {
            p { "The decision follows from others: it has no recorded gates." }
        } @else {
            (findings(&explanation.findings))
        }
    }
}

/// Returns the facts and the gates, the steps of the scheduler, the answers of policies, and the inputs.
pub(super) fn whole(stored: &Stored) -> Markup {
    let explanation = explain(stored);
    html! {
        (gates(&explanation))
        @if let Some(kept) = &stored.decision { (details_of(&explanation, kept)) }
    }
}

fn details_of(explanation: &Explanation, kept: &StoredDecision) -> Markup {
    html! {
        @if let Some(scheduling) = &explanation.scheduling {
            (details("Steps of the scheduler", &html! { pre tabindex="0" { (render::schedule(scheduling)) } }))
        }
        (policies(&answers(&kept.decision)))
        (details("Recorded inputs", &inputs(kept)))
    }
}

fn facts(explanation: &Explanation) -> Markup {
    let entry = &explanation.record.entry;
    let policy = entry.attribution.policy.as_ref();
    html! {
        dl class="facts" {
            dt { "Time" } dd { (moment(entry.at)) " by " (entry.controller) }
            dt { "Reason" } dd {
                (entry.attribution.reason)
                @if let Some(policy) = policy { " (" (policy) ", version " (policy.version) ")" }
            }
            @if !entry.effect.is_empty() { dt { "Effect" } dd { (entry.effect) } }
            @if !explanation.trigger.is_empty() { dt { "Trigger" } dd { (explanation.trigger) } }
            @for input in &entry.inputs { dt { "Read" } dd { (input.subject) ", version " (input.resource_version) } }
            @if !explanation.snapshot.is_empty() { dt { "Snapshot" } dd { (explanation.snapshot) } }
        }
    }
}

fn findings(all: &[Finding]) -> Markup {
    html! { ul class="findings" { @for finding in all { li { (one(finding)) } } } }
}

fn one(finding: &Finding) -> Markup {
    let facts = [
        ("observed", &finding.observed),
        ("against", &finding.threshold),
        ("would change it", &finding.would_change),
    ];
    let facts: Vec<_> = facts.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    html! {
        b { (finding.gate) ":" } " " (finding.verdict)
        @if !facts.is_empty() { dl { @for (word, text) in facts { dt { (word) } dd { (text) } } } }
        @if !finding.within.is_empty() { (findings(&finding.within)) }
    }
}

fn policies(answers: &[Finding]) -> Markup {
    let row = |answer: &Finding| vec![text(&answer.gate), text(&answer.verdict), text(&answer.observed)];
    let rows: Vec<_> = answers.iter().map(row).collect();
    table(
        "Policies that were called, and their answers",
        &["Policy", "Answer", "Reason"],
        &rows,
    )
}

fn inputs(kept: &StoredDecision) -> Markup {
    let mut json = serde_json::to_string_pretty(&kept.decision.input).unwrap_or_default();
    let cut = json.len() > INPUTS_BYTES_MAX;
    if cut {
        let end = json.floor_char_boundary(INPUTS_BYTES_MAX);
        json.truncate(end);
    }
    html! {
        p {
            "Snapshot of " (kept.decision.clusters.len()) " clusters, and these values. "
            (kept.redacted) " values are redacted."
        }
        pre tabindex="0" { (json) }
        @if cut { p { "The rest is not shown; " code { "bulkhead explain -o json" } " has all." } }
    }
}
