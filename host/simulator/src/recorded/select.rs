//! Selection of records by id, object or member cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_core::journal::{Decision, DecisionId, Record};
use bulkhead_journal::{Problem, Selection, Stored, visit};

use super::journals::merged;

/// Reads the records of journals that match a word, or all records, and collects the results of `keep`, in order of
/// time. Records are streamed; no journal is ever in memory as a whole. A word is an id, a binding or object as
/// `namespace/name` or `name`, or a member cluster. `journals` are those of
/// [`journals::journals`](super::journals::journals).
///
/// A number without a process is the whole id of a decision of an earlier version, and matches such decisions first.
///
/// # Errors
///
/// There is no journal, no record matches, or a number without a process matches decisions of several processes. The
/// message lists similar names.
pub fn find<T>(
    journals: &[PathBuf],
    word: Option<&str>,
    mut keep: impl FnMut(Stored) -> Option<T>,
) -> anyhow::Result<(Vec<T>, Vec<Problem>)> {
    let mut search = Search::new(word);
    let (mut lists, mut problems) = (Vec::new(), Vec::new());
    for journal in journals {
        let mut kept = Vec::new();
        let found = visit(journal, |stored| {
            let (at_ms, is_of_process) = (stored.record.entry.at.as_millis(), !stored.record.process.is_empty());
            if search.concerns(&stored.record)
                && let Some(made) = keep(stored)
            {
                kept.push((at_ms, (is_of_process, made)));
            }
        });
        problems.extend(found.context("--journal")?);
        lists.push(kept);
    }
    let kept = search.named(merged(lists));
    search.result(journals, &problems)?;
    Ok((kept, problems))
}

/// Searches records that are in memory, as [`find`] searches journals. Each list is in order of time.
///
/// # Errors
///
/// Those of [`find`], but for journals that cannot be read.
pub fn among<T>(
    lists: Vec<Vec<Stored>>,
    word: Option<&str>,
    mut keep: impl FnMut(Stored) -> Option<T>,
) -> anyhow::Result<Vec<T>> {
    let mut search = Search::new(word);
    let mut kept = Vec::new();
    for list in lists {
        let found = list.into_iter().filter_map(|stored| {
            let (at_ms, is_of_process) = (stored.record.entry.at.as_millis(), !stored.record.process.is_empty());
            let made = search.concerns(&stored.record).then(|| keep(stored))??;
            Some((at_ms, (is_of_process, made)))
        });
        kept.push(found.collect());
    }
    let kept = search.named(merged(kept));
    search.result(&[], &[])?;
    Ok(kept)
}

/// Search for the records that a word names.
struct Search<'a> {
    word: Option<&'a str>,
    selection: Selection,
    is_found: bool,
    /// First and last number, of one journal.
    extent: Option<(u64, u64)>,
    /// Decisions with the number that was asked for.
    namesakes: BTreeSet<DecisionId>,
}

impl<'a> Search<'a> {
    fn new(word: Option<&'a str>) -> Self {
        Self {
            word,
            selection: Selection::of(word),
            is_found: false,
            extent: None,
            namesakes: BTreeSet::new(),
        }
    }

    /// Returns true if the word names the record.
    fn concerns(&mut self, record: &Record) -> bool {
        self.extent = Some((self.extent.map_or(record.id, |(first, _)| first), record.id));
        if matches!(&self.selection, Selection::Id(id) if id.number == record.id) {
            self.namesakes.insert(record.decision_id());
        }
        let concerns = self.selection.selects(record);
        self.is_found |= concerns;
        concerns
    }

    /// Returns true if the word is the whole id of a decision of an earlier version.
    fn is_whole_id(&self) -> bool {
        matches!(&self.selection, Selection::Id(id) if id.process.is_empty() && self.namesakes.contains(id))
    }

    /// Returns the results without those of decisions whose id only ends in the number that is a whole id. The flag is
    /// true for decisions of a process with a uid.
    fn named<T>(&self, results: Vec<(bool, T)>) -> Vec<T> {
        let exact = self.is_whole_id() && self.namesakes.len() > 1;
        let named = results
            .into_iter()
            .filter(|(is_of_process, _)| !(exact && *is_of_process));
        named.map(|(_, result)| result).collect()
    }

    fn result(self, journals: &[PathBuf], problems: &[Problem]) -> anyhow::Result<()> {
        let extent = self.extent.filter(|_| journals.len() == 1);
        match (self.extent, problems.first(), &self.selection, self.word) {
            (None, Some(problem), ..) => bail!("--journal: {problem}"),
            (_, _, Selection::Id(id), _) if !self.is_found => Err(unknown(id, extent, &self.namesakes)),
            (_, _, Selection::Id(id), _)
                if id.process.is_empty() && self.namesakes.len() > 1 && !self.is_whole_id() =>
            {
                let namesakes: Vec<_> = self.namesakes.iter().map(ToString::to_string).collect();
                bail!(
                    "{id} is the number of several decisions; name one of {}",
                    namesakes.join(", ")
                )
            }
            (_, _, Selection::About(_), Some(word)) if !self.is_found => {
                bail!("no recorded decision is about {word:?}{}", suggestion(journals, word))
            }
            _ => Ok(()),
        }
    }
}

fn unknown(id: &DecisionId, extent: Option<(u64, u64)>, namesakes: &BTreeSet<DecisionId>) -> anyhow::Error {
    let names: Vec<_> = namesakes.iter().map(ToString::to_string).collect();
    match (names.is_empty(), extent) {
        (false, _) => anyhow!(
            "there is no decision {id}: decision {} of those that were read is {}; another process made the one you name, and \
             its journal has it",
            id.number,
            names.join(", ")
        ),
        (true, Some((first, last))) => anyhow!("there is no decision {id}; the journal has {first} to {last}"),
        (true, None) => anyhow!("there is no decision {id} among those that were read"),
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
fn suggestion(journals: &[PathBuf], word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let mut keys = BTreeSet::new();
    for journal in journals {
        // Errors are ignored: the journal was just read, and without names there is no suggestion.
        let _ = visit(journal, |stored| {
            let key = stored.record.entry.subject.key();
            if key.contains(name) || name.contains(key.rsplit('/').next().unwrap_or(&key)) {
                keys.insert(key);
            }
        });
    }
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
    use std::path::Path;

    use super::*;

    /// Writes the journal of a process with three decisions, one second apart.
    fn journal(directory: &Path, process: &str, start_s: i64) {
        let writer = Writer::open(directory, Bounds::default(), |error| panic!("{error}"))
            .unwrap()
            .writer;
        let journal = Journal::with_sink(0, 0, Box::new(std::sync::Arc::new(writer))).of_process(process);
        for (second, name) in (start_s..).zip(["nginx", "shop", "nginx"]) {
            journal.record(Entry {
                at: Time::from_millis(second * 1000),
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
        journal(old.path(), "3f9a1c2e55", 0);
        journal(new.path(), "0123456789", 100);
        let find = |directory: &Path, word: &str| {
            let found = find(&[directory.to_path_buf()], Some(word), |stored| {
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
            error.contains("decision 2 of those that were read is 0123456789-2; another process made"),
            "{error}"
        );
        assert!(find(new.path(), "9").unwrap_err().contains("the journal has 1 to 3"));
        assert!(
            find(new.path(), "default/shop-x")
                .unwrap_err()
                .contains("did you mean default/shop?")
        );
    }

    #[test]
    fn an_annotation_of_an_earlier_version_names_its_decision_beside_the_journal_of_this_version() {
        let folder = tempfile::tempdir().unwrap();
        let [old, other, new] = ["old", "other", "new"].map(|name| folder.path().join(name));
        journal(&old, "", 0);
        journal(&new, "3f9a1c2e55", 100);
        let find = |journals: &[PathBuf], word: &str| {
            let found = find(journals, Some(word), |stored| {
                Some(stored.record.decision_id().to_string())
            });
            found.map(|(ids, _)| ids).map_err(|error| error.to_string())
        };
        assert_eq!(find(&[old.clone(), new.clone()], "2").unwrap(), ["2"]);
        assert_eq!(
            find(&[old.clone(), new.clone()], "3f9a1c2e55-2").unwrap(),
            ["3f9a1c2e55-2"]
        );
        // Two processes of the earlier version used the same numbers, and only the object distinguishes them.
        journal(&other, "", 50);
        assert_eq!(find(&[new, old, other], "#2").unwrap(), ["2", "2"]);
    }

    #[test]
    fn the_journals_of_several_processes_are_one_history() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["b-pod", "a-pod"].map(|name| folder.path().join(name));
        journal(&first, "3f9a1c2e55", 0);
        // The second process decided between the second and the third decision of the first one.
        let journal_of_second = tempfile::tempdir().unwrap();
        journal(journal_of_second.path(), "0123456789", 1);
        std::fs::rename(journal_of_second.path(), &second).unwrap();
        let journals = super::super::journals::journals(&[folder.path().to_path_buf()]).unwrap();
        let ids = |word: Option<&str>| {
            let found = find(&journals, word, |stored| Some(stored.record.decision_id().to_string()));
            found.map(|(ids, _)| ids).map_err(|error| error.to_string())
        };
        let expected = [
            "3f9a1c2e55-1",
            "0123456789-1",
            "3f9a1c2e55-2",
            "0123456789-2",
            "3f9a1c2e55-3",
            "0123456789-3",
        ];
        assert_eq!(ids(None).unwrap(), expected);
        assert_eq!(ids(Some("default/shop")).unwrap(), ["3f9a1c2e55-2", "0123456789-2"]);
        for id in expected {
            assert_eq!(ids(Some(id)).unwrap(), [id], "an annotation");
        }
        let error = ids(Some("#2")).unwrap_err();
        assert!(error.contains("name one of 0123456789-2, 3f9a1c2e55-2"), "{error}");
        let error = ids(Some("ffffffffff-9")).unwrap_err();
        assert!(
            error.contains("no decision ffffffffff-9 among those that were read"),
            "{error}"
        );
    }
}
