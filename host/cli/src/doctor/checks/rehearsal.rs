//! Findings of a rehearsal: changes that a take-over by the modes would make.
//!
//! Equal changes are one finding with their number, and with the diff of the first object.

use std::collections::BTreeMap;

use bulkhead_simulator::takeover::{Change, DURATION, Effect, FieldChange, Outcome};
use serde_json::Value;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Section, Severity, count};

/// Maximum number of changed fields in a diff.
const FIELDS_MAX: usize = 12;
/// Maximum length of a value in a diff, in characters.
const VALUE_MAX: usize = 200;

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let Some(rehearsal) = &facts.rehearsal else {
        section.skipped = true;
        "skipped: the objects cannot be read".clone_into(&mut section.summary);
        return;
    };
    let Outcome {
        objects,
        changes,
        notes,
    } = rehearsal;
    let modes = facts.installation.modes.join(",");
    let changed = match changes.len() {
        0 => "nothing changes".to_owned(),
        number => count(number, "change"),
    };
    section.summary = format!(
        "mode {modes} for {} s on a copy of {}: {changed}",
        DURATION.as_secs(),
        count(*objects, "object")
    );
    for group in groups(changes) {
        report(&group, section);
    }
    for note in notes {
        section.note("rehearsal", note, "");
    }
}

/// Groups equal changes: those of one effect on one kind, in the same fields, except for the fields that name a
/// cluster. Keeps the order of the first change of each group.
fn groups(changes: &[Change]) -> Vec<Vec<&Change>> {
    let mut groups: BTreeMap<_, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        let fields: Vec<_> = match change.effect {
            Effect::Placed | Effect::Evicted | Effect::Ended => Vec::new(),
            _ => change.fields.iter().map(|field| field.path.as_str()).collect(),
        };
        let manifest = change.manifest.split(' ').next().unwrap_or_default();
        groups
            .entry((change.effect, &change.kind, manifest, fields))
            .or_default()
            .push(change);
    }
    groups.into_values().collect()
}

fn report(group: &[&Change], section: &mut Section) {
    let Some(first) = group.first() else { return };
    let (severity, verb, remedy) = meaning(first.effect);
    let place = match group.len() {
        1 => format!("{} {}", first.kind, first.object),
        number => format!("{}, such as {}", count(number, &first.kind), first.object),
    };
    let object = match (first.manifest.as_str(), group.len()) {
        ("", _) => String::new(),
        (manifest, 1) => format!(" ({manifest})"),
        (manifest, _) => format!(" (such as {manifest})"),
    };
    let writers = match first.writers.as_slice() {
        [] => String::new(),
        writers => format!("; last written by {}", writers.join(", ")),
    };
    section.add(severity, place, format!("{verb}{object}{writers}"), remedy);
    section.with_diff(diff(&first.fields));
}

/// Returns severity, description and remedy.
fn meaning(effect: Effect) -> (Severity, &'static str, &'static str) {
    let held = "bulkhead pause holds evictions until they are resumed";
    match effect {
        Effect::Rewritten => (
            Severity::Error,
            "the object in the member would be rewritten",
            "find the program that made this manifest, and keep it: choose a mode that leaves Works to it",
        ),
        Effect::Deleted => (
            Severity::Warning,
            "would be deleted",
            "check that nothing needs it before the take-over",
        ),
        Effect::Created => (Severity::Warning, "would be created", ""),
        Effect::Evicted => (Severity::Warning, "an eviction would begin", held),
        Effect::Ended => (Severity::Warning, "an eviction task would end", held),
        Effect::Placed => (
            Severity::Warning,
            "the placement would change",
            "check the placement in its policy; bulkhead simulate and bulkhead what-if explain placements",
        ),
        Effect::Tainted => (
            Severity::Warning,
            "taints would change",
            "check the ClusterTaintPolicies and the conditions of the cluster",
        ),
        Effect::Field => (Severity::Warning, "a field would change", ""),
        Effect::Bookkeeping => (Severity::Note, "metadata or status would change", ""),
    }
}

fn diff(fields: &[FieldChange]) -> Vec<String> {
    let mut lines = Vec::new();
    for FieldChange { path, before, after } in fields.iter().take(FIELDS_MAX) {
        let line = |sign: char, value: &Value| format!("{sign} {path}: {}", shortened(value));
        lines.extend(before.as_ref().map(|value| line('-', value)));
        lines.extend(after.as_ref().map(|value| line('+', value)));
    }
    if fields.len() > FIELDS_MAX {
        lines.push(format!("… and {} more fields", fields.len() - FIELDS_MAX));
    }
    lines
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
