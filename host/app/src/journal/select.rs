//! Which records a person means.

use anyhow::bail;
use bulkhead_core::journal::Decision;
use bulkhead_journal::Stored;

/// Records that a word names: an id, a binding or object as `namespace/name` or `name`, or a member cluster.
///
/// # Errors
///
/// Nothing has that name. The message says what has.
pub fn about<'a>(records: &'a [Stored], word: &str) -> anyhow::Result<Vec<&'a Stored>> {
    if let Some(id) = id(word) {
        return one(records, id).map(|stored| vec![stored]);
    }
    let concerns = |stored: &&Stored| {
        let entry = &stored.record.entry;
        entry.subject.key() == word || entry.cluster.as_deref() == Some(word)
    };
    let found: Vec<_> = records.iter().filter(concerns).collect();
    if found.is_empty() {
        bail!("no recorded decision is about {word:?}{}", suggestion(records, word));
    }
    Ok(found)
}

/// The record with an id.
///
/// # Errors
///
/// There is none; the message says which ids there are.
pub fn one(records: &[Stored], id: u64) -> anyhow::Result<&Stored> {
    let found = records.iter().find(|stored| stored.record.id == id);
    match (found, records.first(), records.last()) {
        (Some(stored), ..) => Ok(stored),
        (None, Some(first), Some(last)) => {
            bail!("there is no decision {id}; the journal has {} to {}", first.record.id, last.record.id)
        }
        (None, ..) => bail!("there is no decision {id}; the journal is empty"),
    }
}

/// `41` or `#41`.
pub fn id(word: &str) -> Option<u64> {
    word.strip_prefix('#').unwrap_or(word).parse().ok()
}

/// A decision by its name, whatever the case of its letters.
///
/// # Errors
///
/// There is none; the message has the names.
pub fn decision(name: &str) -> Result<Decision, String> {
    let found = Decision::ALL.into_iter().find(|decision| format!("{decision:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = Decision::ALL.iter().map(|decision| format!("{decision:?}")).collect();
        format!("there is no decision {name}; there are {}", names.join(", "))
    })
}

/// Subjects whose name has the word in it, or is in it.
fn suggestion(records: &[Stored], word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let mut keys: Vec<_> = records.iter().map(|stored| stored.record.entry.subject.key()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| key.contains(name) || name.contains(key.rsplit('/').next().unwrap_or(key)));
    match keys.as_slice() {
        [] => "; bindings are named namespace/name-kind, for example default/nginx-deployment".to_owned(),
        keys => format!("; did you mean {}?", keys.iter().take(3).cloned().collect::<Vec<_>>().join(", ")),
    }
}
