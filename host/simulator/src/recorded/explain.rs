//! Explanation of a decision, as a tree of findings.

use bulkhead_core::decide::schedule::ScheduleExplanation;
use bulkhead_core::journal::{DecisionRecord, Outcome};
use bulkhead_core::time::Time;
use bulkhead_journal::Stored;
use serde::Serialize;

use super::finding::Finding;
use super::findings;
use super::replay::Replayer;
use super::waiting::Waiting;
use crate::render;

/// Explanation of one decision.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Record of the decision.
    #[serde(flatten)]
    pub record: bulkhead_core::journal::Record,
    /// Its time in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Event that triggered the decision; empty without a decision record.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trigger: String,
    /// Digest of the snapshot; empty without a decision record.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
    /// Findings, in order of evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Details of a scheduling decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<ScheduleExplanation>,
    /// Wait that the decision began, if nothing ended it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

/// Explains a record from its decision record.
pub fn explain(stored: &Stored) -> Explanation {
    let mut explanation = Explanation {
        record: stored.record.clone(),
        at_ms: stored.record.entry.at.as_millis(),
        trigger: String::new(),
        snapshot: String::new(),
        findings: Vec::new(),
        scheduling: None,
        waiting: None,
    };
    let Some(kept) = &stored.decision else {
        return explanation;
    };
    let decision = &kept.decision;
    explanation.trigger.clone_from(&decision.trigger);
    explanation.snapshot.clone_from(&kept.snapshot);
    explanation.findings = findings::of(decision, stored.record.entry.cluster.as_deref());
    let replayer = Replayer::default();
    let plan = decision.reschedule(&decision.policies(|slot| replayer.same(slot)), true);
    explanation.scheduling = plan.and_then(|plan| plan.explanation);
    explanation
}

/// Returns the recorded replies of the policies that a decision called, in order.
pub fn answers(decision: &DecisionRecord) -> Vec<Finding> {
    findings::answers(decision, None)
}

impl Explanation {
    /// Formats the explanation as text. Times are wall-clock times, or relative to `start` if it is given.
    pub fn text(&self, start: Option<Time>) -> String {
        let entry = &self.record.entry;
        let on = entry
            .cluster
            .as_ref()
            .map(|cluster| format!(" on {cluster}"))
            .unwrap_or_default();
        let mut lines = vec![format!(
            "#{} {:?} {}{on}",
            self.record.decision_id(),
            entry.decision,
            entry.subject
        )];
        let by = entry
            .attribution
            .policy
            .as_ref()
            .map(|policy| format!(", policy {policy}"))
            .unwrap_or_default();
        lines.push(format!(
            "  at       {} by {}{by}",
            moment(entry.at, start),
            entry.controller
        ));
        lines.push(format!("  because  {}", entry.attribution.reason));
        if !entry.effect.is_empty() {
            lines.push(format!("  effect   {}", entry.effect));
        }
        if self.record.outcome == Outcome::Abandoned {
            lines.push("  outcome  abandoned: it could not be put into effect and was decided again".to_owned());
        }
        if !self.trigger.is_empty() {
            lines.push(format!("  trigger  {}", self.trigger));
        }
        let mut from: Vec<_> = entry
            .inputs
            .iter()
            .map(|input| format!("{}@{}", input.subject, input.resource_version))
            .collect();
        from.extend((!self.snapshot.is_empty()).then(|| format!("snapshot {}", self.snapshot)));
        if !from.is_empty() {
            lines.push(format!("  from     {}", from.join(", ")));
        }
        tree(&self.findings, "  ", &mut lines);
        let mut text = lines.join("\n") + "\n";
        if let Some(scheduling) = &self.scheduling {
            text.push_str(&render::schedule(scheduling));
        }
        if let Some(waiting) = &self.waiting {
            text.push_str(&waiting.remains());
        }
        text
    }
}

fn moment(at: Time, start: Option<Time>) -> String {
    match start {
        Some(start) => render::duration(at.millis_since(start).max(0)),
        None => format!("{at}"),
    }
}

fn tree(findings: &[Finding], indent: &str, lines: &mut Vec<String>) {
    for (index, finding) in findings.iter().enumerate() {
        let is_last = index + 1 == findings.len();
        let (branch, trunk) = if is_last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        lines.push(format!("{indent}{branch}{}: {}", finding.gate, finding.verdict));
        let below = if finding.within.is_empty() { "   " } else { "│  " };
        for (word, text) in [
            ("observed", &finding.observed),
            ("against", &finding.threshold),
            ("would change it", &finding.would_change),
        ] {
            if !text.is_empty() {
                lines.push(format!("{indent}{trunk}{below}{word}: {text}"));
            }
        }
        tree(&finding.within, &format!("{indent}{trunk}"), lines);
    }
}
