//! Comparison of recorded decisions with those of another version of a plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::composition::Mode;
use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{DecisionInput, DecisionRecord, differences};
use bulkhead_core::policy::{Capability, Policy, PolicyEntry, PolicySet};
use bulkhead_journal::{Stored, StoredDecision};
use serde::Serialize;
use serde_json::Value;

use super::replay::Replayer;

/// Message of a recorded policy that receives a call it has no recorded reply to.
const NO_ANSWER: &str = "the record has no answer about";

/// Kind of difference between two decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A held eviction would be released. Most important class.
    HeldToReleased,
    /// A released eviction would be held.
    ReleasedToHeld,
    /// The health of an object would differ.
    Health,
    /// A taint would be added that was not.
    TaintAdded,
    /// A taint that was added would not be.
    TaintNotAdded,
    /// Different taints would be removed.
    TaintRemoval,
    /// An unplaced workload would be placed.
    Placed,
    /// A placed workload would not be placed.
    NotPlaced,
    /// A workload would be placed on other clusters.
    PlacedElsewhere,
    /// The plugin would have faulted, and its fail-static rule would have applied.
    Fault,
    /// The verdict would be the same, for other reasons.
    ReasonOnly,
    /// Unknown: other policies would have received calls without a recorded reply.
    CannotTell,
}

impl Class {
    /// Returns a one-line description.
    pub fn describe(self) -> &'static str {
        match self {
            Self::HeldToReleased => "old copies that were held would go",
            Self::ReleasedToHeld => "old copies that went would be held",
            Self::Health => "a different health",
            Self::TaintAdded => "taints that were not added would be",
            Self::TaintNotAdded => "taints that were added would not be",
            Self::TaintRemoval => "other taints would be removed",
            Self::Placed => "workloads without a place would have one",
            Self::NotPlaced => "workloads with a place would have none",
            Self::PlacedElsewhere => "workloads would be placed elsewhere",
            Self::Fault => "the plugin would not have answered",
            Self::ReasonOnly => "the same verdict for another reason",
            Self::CannotTell => "unknown, because other policies would have received other calls",
        }
    }

    /// Returns true if the verdict differs or is unknown.
    pub fn changes_verdict(self) -> bool {
        self != Self::ReasonOnly
    }
}

/// Decision that would have come out differently.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Id of the decision.
    pub id: u64,
    /// Kind of difference.
    pub class: Class,
    /// Object of the decision, as `Kind namespace/name`.
    pub subject: String,
    /// Member cluster concerned, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Recorded result.
    pub before: String,
    /// Result with the plugin.
    pub after: String,
}

/// Effects of a plugin on recorded decisions.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Number of decisions that the plugin takes part in.
    pub compared: usize,
    /// Number of compared decisions with an identical plan, byte for byte.
    pub unchanged: usize,
    /// Number of compared decisions that another version of the plugin took part in.
    pub replaced: usize,
    /// Number of changes per class.
    pub classes: BTreeMap<Class, usize>,
    /// Changes, in order of id.
    pub changes: Vec<Change>,
    /// Number of compared decisions whose inputs contain redacted values.
    pub redacted: usize,
}

impl Comparison {
    /// Returns true if any verdict would have been different.
    pub fn changes_verdicts(&self) -> bool {
        self.classes.keys().any(|class| class.changes_verdict())
    }
}

/// Repeats the decisions with a plugin in place of the one with the same name, or before all others if there was
/// none.
pub fn compare(records: &[Stored], plugin: &Arc<dyn Policy>, name: &str) -> Comparison {
    let (mut comparison, replayer) = (Comparison::default(), Replayer::default());
    let mut last: Option<&Arc<StoredDecision>> = None;
    for stored in records {
        let Some(kept) = &stored.decision else { continue };
        if last.is_some_and(|last| Arc::ptr_eq(last, kept)) || !takes_part(plugin.as_ref(), &kept.decision) {
            continue;
        }
        last = Some(kept);
        comparison.compared += 1;
        comparison.redacted += usize::from(kept.redacted > 0);
        let replaces = kept.decision.policies.iter().any(|slot| slot.policy.name == name);
        comparison.replaced += usize::from(replaces);
        let mut after = kept.decision.decide(&with(&replayer, &kept.decision, plugin, name));
        redact(&mut after);
        let mut before = kept.decision.plan.clone();
        redact(&mut before);
        if differences(&before, &after).is_empty() {
            comparison.unchanged += 1;
            continue;
        }
        for change in changes(stored, &kept.decision, &after) {
            *comparison.classes.entry(change.class).or_default() += 1;
            comparison.changes.push(change);
        }
    }
    comparison
}

fn takes_part(plugin: &dyn Policy, decision: &DecisionRecord) -> bool {
    let object = match &decision.input {
        DecisionInput::Health { object, .. } => Some(object),
        _ => None,
    };
    let text = |name: &str| object.and_then(|object| object.get(name)?.as_str()).unwrap_or_default();
    let covers = |capability: &Capability| {
        let kind = capability.object_kind.as_ref();
        let fits = kind.is_none_or(|(version, kind)| (text("apiVersion"), text("kind")) == (version, kind));
        decision.kinds().contains(&capability.kind) && fits
    };
    plugin.capabilities().iter().any(covers)
}

/// Returns the policies of a decision record, including the plugin.
fn with(replayer: &Replayer, decision: &DecisionRecord, plugin: &Arc<dyn Policy>, name: &str) -> PolicySet {
    let own = |slot: &bulkhead_core::journal::PolicySlot| (slot.policy.name == name).then(|| Arc::clone(plugin));
    let policies = decision.policies(|slot| own(slot).or_else(|| replayer.same(slot)));
    if decision.policies.iter().any(|slot| slot.policy.name == name) {
        return policies;
    }
    let first = PolicyEntry {
        policy: Arc::clone(plugin),
        mode: Mode::Enforce,
        weight: 1,
    };
    let entries = std::iter::once(first).chain(policies.entries().iter().cloned());
    PolicySet::composed(entries.collect(), policies.composition())
}

fn changes(stored: &Stored, decision: &DecisionRecord, after: &Value) -> Vec<Change> {
    let before = &decision.plan;
    let entry = &stored.record.entry;
    let change = |class, cluster: Option<&str>, before: String, after: String| Change {
        id: stored.record.id,
        class,
        subject: entry.subject.to_string(),
        cluster: cluster.map(str::to_owned).or_else(|| entry.cluster.clone()),
        before,
        after,
    };
    if after.to_string().contains(NO_ANSWER) {
        return vec![change(
            Class::CannotTell,
            None,
            verdict(decision, before),
            verdict(decision, after),
        )];
    }
    let mut found = match &decision.input {
        DecisionInput::GracefulEviction { .. } => ends(before, after, &change),
        DecisionInput::Taint { .. } => taints(before, after, &change),
        DecisionInput::Schedule { .. } => placement(before, after)
            .map(|class| change(class, None, place(before), place(after)))
            .into_iter()
            .collect(),
        DecisionInput::Health { .. } if before["health"] != after["health"] => {
            vec![change(
                Class::Health,
                None,
                text(&before["health"]),
                reasoned(&after["health"], after),
            )]
        }
        DecisionInput::Health { .. }
        | DecisionInput::Evict { .. }
        | DecisionInput::Failover { .. }
        | DecisionInput::Failback { .. } => Vec::new(),
    };
    let faults = |plan: &Value| plan["remarks"]["faults"].as_array().map_or(0, Vec::len);
    if faults(after) > faults(before) {
        let fault = after["remarks"]["faults"]
            .as_array()
            .and_then(|faults| faults.last())
            .cloned()
            .unwrap_or_default();
        let message = format!("{}: {}", text(&fault["kind"]), text(&fault["message"]));
        found.push(change(Class::Fault, None, verdict(decision, before), message));
    }
    if found.is_empty() {
        let (before, after) = (attribution(before), attribution(after));
        found.push(change(Class::ReasonOnly, None, before, after));
    }
    found
}

/// Returns the outcome of each task by cluster: `released`, `held` or `calledOff`.
fn ends_of(plan: &Value) -> BTreeMap<String, (&'static str, Value)> {
    let mut ends = BTreeMap::new();
    for end in ["released", "held", "calledOff"] {
        for item in plan[end].as_array().into_iter().flatten() {
            ends.insert(text(&item["task"]["fromCluster"]), (end, item["because"].clone()));
        }
    }
    ends
}

fn ends(before: &Value, after: &Value, change: &impl Fn(Class, Option<&str>, String, String) -> Change) -> Vec<Change> {
    let (before, after) = (ends_of(before), ends_of(after));
    let mut found = Vec::new();
    for (cluster, (end, attribution)) in &after {
        let Some((was, why)) = before.get(cluster).filter(|(was, _)| was != end) else {
            continue;
        };
        let class = if *end == "held" {
            Class::ReleasedToHeld
        } else {
            Class::HeldToReleased
        };
        let describe = |end: &str, attribution: &Value| format!("{end} ({})", reason(attribution));
        found.push(change(
            class,
            Some(cluster),
            describe(was, why),
            describe(end, attribution),
        ));
    }
    found
}

fn taints(
    before: &Value,
    after: &Value,
    change: &impl Fn(Class, Option<&str>, String, String) -> Change,
) -> Vec<Change> {
    let named = |plan: &Value, list: &str| -> Vec<String> {
        let items = plan[list].as_array().into_iter().flatten();
        items
            .map(|item| format!("{}:{}", text(&item["taint"]["key"]), text(&item["taint"]["effect"])))
            .collect()
    };
    let describe = |list: &[String]| {
        if list.is_empty() {
            "none".to_owned()
        } else {
            list.join(", ")
        }
    };
    let (was, is) = (named(before, "added"), named(after, "added"));
    let mut found = Vec::new();
    if is.iter().any(|taint| !was.contains(taint)) {
        found.push(change(Class::TaintAdded, None, describe(&was), describe(&is)));
    }
    if was.iter().any(|taint| !is.contains(taint)) {
        found.push(change(Class::TaintNotAdded, None, describe(&was), describe(&is)));
    }
    let (was, is) = (named(before, "removed"), named(after, "removed"));
    if was != is {
        found.push(change(Class::TaintRemoval, None, describe(&was), describe(&is)));
    }
    found
}

fn placement(before: &Value, after: &Value) -> Option<Class> {
    let (was, is) = (before["outcome"].get("place"), after["outcome"].get("place"));
    match (was, is) {
        (Some(was), Some(is)) => (was != is).then_some(Class::PlacedElsewhere),
        (None, Some(_)) => Some(Class::Placed),
        (Some(_), None) => Some(Class::NotPlaced),
        (None, None) => None,
    }
}

/// Formats the placement in a plan of the scheduler, or the reason for its absence.
pub(super) fn place(plan: &Value) -> String {
    let outcome = &plan["outcome"];
    match outcome.get("place").and_then(Value::as_array) {
        Some(targets) if targets.is_empty() => "nowhere".to_owned(),
        Some(targets) => {
            let one =
                |target: &Value| format!("{}:{}", text(&target["name"]), target["replicas"].as_i64().unwrap_or(0));
            targets.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        None => ["clear", "keep"]
            .iter()
            .find_map(|kind| outcome.get(*kind)?.get("message")?.as_str())
            .map_or_else(|| "nothing".to_owned(), str::to_owned),
    }
}

/// Formats the result of a plan in one line.
fn verdict(decision: &DecisionRecord, plan: &Value) -> String {
    match &decision.input {
        DecisionInput::Schedule { .. } => place(plan),
        DecisionInput::Health { .. } => text(&plan["health"]),
        DecisionInput::GracefulEviction { .. } => ends_of(plan)
            .iter()
            .map(|(cluster, (end, _))| format!("{cluster} {end}"))
            .collect::<Vec<_>>()
            .join(", "),
        DecisionInput::Taint { .. } => {
            let count = |list: &str| plan[list].as_array().map_or(0, Vec::len);
            format!("{} taints added, {} removed", count("added"), count("removed"))
        }
        DecisionInput::Evict { .. } | DecisionInput::Failover { .. } | DecisionInput::Failback { .. } => {
            plan.to_string()
        }
    }
}

fn attribution(plan: &Value) -> String {
    let first = |list: &str| {
        plan[list]
            .as_array()
            .and_then(|items| items.first())
            .map(|item| item["because"].clone())
    };
    let found = plan
        .get("because")
        .cloned()
        .or_else(|| ["held", "released", "added", "removed"].into_iter().find_map(first));
    found.map_or_else(String::new, |attribution| reason(&attribution))
}

fn reasoned(verdict: &Value, plan: &Value) -> String {
    format!("{} ({})", text(verdict), reason(&plan["because"]))
}

/// Formats a reason of a plan, with the policy that gave it.
pub(super) fn reason(attribution: &Value) -> String {
    let (code, message) = (
        text(&attribution["reason"]["code"]),
        text(&attribution["reason"]["message"]),
    );
    let said = if message.is_empty() {
        code
    } else {
        format!("{code}: {message}")
    };
    match attribution["policy"]["name"].as_str() {
        Some(policy) => format!("{policy}: {said}"),
        None => said,
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
