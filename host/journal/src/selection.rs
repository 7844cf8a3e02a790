//! Selection of records by id, object or member cluster.

use bulkhead_core::journal::{DecisionId, Record};

/// Word that names records: the id of a decision, a binding or object as `namespace/name` or `name`, or a member
/// cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All records.
    All,
    /// The decision with this id. An id without a process matches by number, which is unique within a journal.
    Id(DecisionId),
    /// Records about an object or a member cluster of this name.
    About(String),
}

impl Selection {
    /// Returns the records that a word names; without one, all.
    pub fn of(word: Option<&str>) -> Self {
        match word.map(|word| (word, word.parse())) {
            None => Self::All,
            Some((_, Ok(id))) => Self::Id(id),
            Some((word, Err(_))) => Self::About(word.to_owned()),
        }
    }

    /// Returns true if the record is selected.
    pub fn selects(&self, record: &Record) -> bool {
        match self {
            Self::All => true,
            Self::Id(id) => record.id == id.number && (id.process.is_empty() || id.process == record.process),
            Self::About(word) => {
                record.entry.subject.key() == *word || record.entry.cluster.as_deref() == Some(word.as_str())
            }
        }
    }
}
