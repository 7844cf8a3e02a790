//! Additions to a journal that is followed.

use crate::stored::{Stored, StoredDecision};

/// Addition to a journal.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is passed at a time, and nearly all are records"
)]
pub enum News<D = StoredDecision> {
    /// Record that was not passed before, with its outcome as far as it is known.
    Record(Stored<D>),
    /// Id of a record that was passed before and has been abandoned since then.
    Abandoned(u64),
}
