//! Construction of the timeline from journal records and observations.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::journal::{Decision, Journal, Outcome, Record};
use bulkhead_core::time::Time;

use crate::report::{EntrySource, TimelineEntry, Tone};

/// Minimum number of similar entries within one second that are merged into one line.
const GROUP_FROM: usize = 4;

/// Returns the decisions that took effect, in order.
pub(super) fn taken(journal: &Journal) -> Vec<Record> {
    journal
        .records()
        .into_iter()
        .filter(|record| record.outcome == Outcome::Taken)
        .collect()
}

/// Level of detail of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Important decisions only, with similar ones merged.
    Highlights,
    /// Every decision.
    Everything,
}

/// Builds the timeline: decisions since `start` merged with `others` by time. Similar entries are merged for
/// [`Detail::Highlights`].
pub(super) fn build(records: &[Record], others: Vec<TimelineEntry>, start: Time, detail: Detail) -> Vec<TimelineEntry> {
    let shown = |record: &&Record| record.entry.at >= start && (detail == Detail::Everything || is_highlight(record));
    let mut entries = others;
    entries.extend(records.iter().filter(shown).map(|record| entry(record, start)));
    // The sort is stable: an injected event precedes its consequences at the same time.
    entries.sort_by_key(|entry| entry.at_ms);
    if detail == Detail::Everything {
        entries
    } else {
        grouped(entries)
    }
}

/// Returns false for bookkeeping that always follows a shown entry, and for transient health states.
fn is_highlight(record: &Record) -> bool {
    match record.entry.decision {
        Decision::Bound | Decision::Dispatched | Decision::Applied | Decision::Withdrawn => false,
        Decision::HealthChanged => record.entry.effect == "Healthy",
        _ => true,
    }
}

/// Grouping key of similar entries: second, source, event, reason, and the cluster unless many clusters are
/// affected.
type GroupKey = (i64, EntrySource, String, String, Option<String>);

fn grouped(entries: Vec<TimelineEntry>) -> Vec<TimelineEntry> {
    let group_key = |entry: &TimelineEntry, cluster: Option<String>| -> GroupKey {
        (
            entry.at_ms.div_euclid(1000),
            entry.source,
            entry.what.clone(),
            entry.reason.clone(),
            cluster,
        )
    };
    let mut clusters: BTreeMap<GroupKey, BTreeSet<String>> = BTreeMap::new();
    for entry in &entries {
        clusters
            .entry(group_key(entry, None))
            .or_default()
            .extend(entry.cluster.clone());
    }
    let on_many = |entry: &TimelineEntry| clusters.get(&group_key(entry, None)).map_or(0, BTreeSet::len) >= GROUP_FROM;
    let key_of = |entry: &TimelineEntry| group_key(entry, entry.cluster.clone().filter(|_| !on_many(entry)));
    let mut sizes: BTreeMap<GroupKey, usize> = BTreeMap::new();
    for entry in &entries {
        *sizes.entry(key_of(entry)).or_default() += 1;
    }
    let (mut lines, mut line_of) = (Vec::<TimelineEntry>::new(), BTreeMap::new());
    for mut entry in entries {
        let key = key_of(&entry);
        if entry.source == EntrySource::Injected || sizes.get(&key).is_none_or(|size| *size < GROUP_FROM) {
            lines.push(entry);
        } else if let Some(line) = line_of.get(&key).and_then(|line: &usize| lines.get_mut(*line)) {
            line.count += 1;
            if line.effect != entry.effect {
                line.effect = String::new();
            }
        } else {
            if on_many(&entry) {
                entry.cluster = None;
            }
            entry.object = None;
            line_of.insert(key, lines.len());
            lines.push(entry);
        }
    }
    lines
}

fn entry(record: &Record, start: Time) -> TimelineEntry {
    let entry = &record.entry;
    let (what, tone) = describe(entry.decision, &entry.effect);
    TimelineEntry {
        at_ms: entry.at.millis_since(start),
        source: EntrySource::Decided,
        tone,
        cluster: entry.cluster.clone(),
        object: (entry.subject.kind != "Cluster").then(|| entry.subject.to_string()),
        what: what.to_owned(),
        effect: entry.effect.clone(),
        reason: entry.attribution.reason.code.clone(),
        why: entry.attribution.reason.message.clone(),
        plugin: entry.attribution.policy.as_ref().map(ToString::to_string),
        controller: Some(entry.controller.clone()),
        count: 1,
    }
}

fn describe(decision: Decision, effect: &str) -> (&'static str, Tone) {
    match decision {
        Decision::Bound => ("bound by a policy", Tone::Neutral),
        Decision::Unbound => ("no longer bound", Tone::Neutral),
        Decision::Scheduled => ("scheduled", Tone::Good),
        Decision::NotScheduled => ("cannot be scheduled", Tone::Bad),
        Decision::Dispatched => ("dispatched", Tone::Neutral),
        Decision::Withdrawn => ("withdrawn", Tone::Neutral),
        Decision::Applied => ("applied", Tone::Neutral),
        Decision::Removed => ("removed", Tone::Neutral),
        Decision::RemovalWaits => ("removal waits", Tone::Waiting),
        Decision::ReadyChanged if effect == "True" => ("Ready is", Tone::Good),
        Decision::ReadyChanged => ("Ready is", Tone::Bad),
        Decision::Tainted => ("tainted", Tone::Bad),
        Decision::Untainted => ("untainted", Tone::Good),
        Decision::Tolerated => ("tolerates for now", Tone::Waiting),
        Decision::Evicted => ("evicted", Tone::Bad),
        Decision::EvictionsWait => ("eviction waits", Tone::Waiting),
        Decision::EvictionsResumed => ("evictions resume", Tone::Neutral),
        Decision::Held => ("held", Tone::Waiting),
        Decision::Released => ("released", Tone::Good),
        Decision::CalledOff => ("eviction called off", Tone::Good),
        Decision::HealthChanged if effect == "Healthy" => ("health is", Tone::Good),
        Decision::HealthChanged => ("health is", Tone::Waiting),
        Decision::PluginFault => ("plugin fault", Tone::Bad),
        Decision::ShadowDiverged => ("a shadow would differ", Tone::Neutral),
        Decision::PluginsChanged => ("plugins", Tone::Neutral),
    }
}
