//! Selection of records by id, object or member cluster.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_core::journal::{Decision, DecisionId, Record};
use bulkhead_journal::{Problem, Stored, visit};

/// Reads the records of a journal that match a word, or all records, and collects the results of `keep`. Records are
/// streamed; the journal is never in memory as a whole. A word is an id, a binding or object as `namespace/name` or
/// `name`, or a member cluster.
///
/// # Errors
///
/// There is no journal, or no record matches. The message lists similar names.
pub fn find<T>(
    directory: &Path,
    word: Option<&str>,
    mut keep: impl FnMut(Stored) -> Option<T>,
) -> anyhow::Result<(Vec<T>, Vec<Problem>)> {
    let id = word.and_then(|word| word.parse::<DecisionId>().ok());
    let (mut found, mut kept) = (false, Vec::new());
    let (mut ids, mut namesake): (Option<(u64, u64)>, Option<DecisionId>) = (None, None);
    let problems = visit(directory, |stored| {
        let record = &stored.record;
        ids = Some((ids.map_or(record.id, |(first, _)| first), record.id));
        let concerns = match (&id, word) {
            (None, None) => true,
            (None, Some(word)) => is_about(record, word),
            (Some(id), _) if id.number != record.id => false,
            (Some(id), _) => {
                namesake = Some(record.decision_id());
                is_named(record, id)
            }
        };
        found |= concerns;
        if concerns && let Some(made) = keep(stored) {
            kept.push(made);
        }
    })
    .context("--journal")?;
    match (ids, problems.first(), id, word) {
        (None, Some(problem), ..) => bail!("--journal: {problem}"),
        (_, _, Some(id), _) if !found => Err(unknown(&id, ids, namesake)),
        (_, _, None, Some(word)) if !found => {
            bail!("no recorded decision is about {word:?}{}", suggestion(directory, word))
        }
        _ => Ok((kept, problems)),
    }
}

fn is_about(record: &Record, word: &str) -> bool {
    record.entry.subject.key() == word || record.entry.cluster.as_deref() == Some(word)
}

/// Returns true if the record has this id. An id without a process matches by number, which is unique within a
/// journal.
fn is_named(record: &Record, id: &DecisionId) -> bool {
    record.id == id.number && (id.process.is_empty() || id.process == record.process)
}

fn unknown(id: &DecisionId, ids: Option<(u64, u64)>, namesake: Option<DecisionId>) -> anyhow::Error {
    match (namesake, ids) {
        (Some(namesake), _) => anyhow!(
            "there is no decision {id}: decision {} of this journal is {namesake}; another process made the one you name, \
             and its journal has it",
            id.number
        ),
        (None, Some((first, last))) => anyhow!("there is no decision {id}; the journal has {first} to {last}"),
        (None, None) => anyhow!("there is no decision {id}; the journal is empty"),
    }
}

/// Parses the name of a decision, ignoring case.
///
/// # Errors
///
/// The name is unknown; the message lists the valid names.
pub fn decision(name: &str) -> Result<Decision, String> {
    let found = Decision::ALL
        .into_iter()
        .find(|decision| format!("{decision:?}").eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<_> = Decision::ALL.iter().map(|decision| format!("{decision:?}")).collect();
        format!("there is no decision {name}; there are {}", names.join(", "))
    })
}

/// Suggests subjects whose name contains the word or is contained in it.
fn suggestion(directory: &Path, word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let mut keys = BTreeSet::new();
    // Errors are ignored: the journal was just read, and without names there is no suggestion.
    let _ = visit(directory, |stored| {
        let key = stored.record.entry.subject.key();
        if key.contains(name) || name.contains(key.rsplit('/').next().unwrap_or(&key)) {
            keys.insert(key);
        }
    });
    if keys.is_empty() {
        return "; bindings are named namespace/name-kind, for example default/nginx-deployment".to_owned();
    }
    format!(
        "; did you mean {}?",
        keys.into_iter().take(3).collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use bulkhead_core::combine::Attribution;
    use bulkhead_core::journal::{Entry, Journal, Subject};
    use bulkhead_core::time::Time;
    use bulkhead_journal::{Bounds, Writer};

    use super::*;

    /// Writes the journal of a process with three decisions.
    fn journal(directory: &Path, process: &str) {
        let writer = Writer::open(directory, Bounds::default(), |error| panic!("{error}"))
            .unwrap()
            .writer;
        let journal = Journal::with_sink(0, 0, Box::new(std::sync::Arc::new(writer))).of_process(process);
        for name in ["nginx", "shop", "nginx"] {
            journal.record(Entry {
                at: Time::from_millis(5),
                controller: "test".to_owned(),
                subject: Subject::new("ResourceBinding", "default", name),
                cluster: None,
                decision: Decision::Scheduled,
                attribution: Attribution::rule("Why", "because"),
                effect: String::new(),
                inputs: Vec::new(),
                explanation: None,
            });
        }
    }

    #[test]
    fn an_annotation_names_one_decision_of_one_process() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        journal(old.path(), "3f9a1c2e55");
        journal(new.path(), "0123456789");
        let find = |directory: &Path, word: &str| {
            let found = find(directory, Some(word), |stored| {
                Some(stored.record.decision_id().to_string())
            });
            found.map(|(ids, _)| ids).map_err(|error| error.to_string())
        };
        assert_eq!(find(old.path(), "3f9a1c2e55-2").unwrap(), ["3f9a1c2e55-2"]);
        assert_eq!(find(old.path(), "#2").unwrap(), ["3f9a1c2e55-2"]);
        assert_eq!(find(new.path(), "2").unwrap(), ["0123456789-2"]);
        assert_eq!(
            find(new.path(), "default/nginx").unwrap(),
            ["0123456789-1", "0123456789-3"]
        );
        // After a change of leaders the number alone would match a decision of the other process.
        let error = find(new.path(), "3f9a1c2e55-2").unwrap_err();
        assert!(
            error.contains("decision 2 of this journal is 0123456789-2; another process made"),
            "{error}"
        );
        assert!(find(new.path(), "9").unwrap_err().contains("the journal has 1 to 3"));
        assert!(
            find(new.path(), "default/shop-x")
                .unwrap_err()
                .contains("did you mean default/shop?")
        );
    }
}
