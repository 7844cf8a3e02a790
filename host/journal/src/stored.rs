//! Records as they are kept, and as they are read again.

use std::sync::Arc;

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Case, Record, canonical};
use bulkhead_core::time::Time;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A record of a journal with what it was decided from.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The record. Unlike in the API, its time is exact to the millisecond.
    pub record: Record,
    /// What it was decided from; absent for decisions that are not made again, and when it cannot be read.
    pub case: Option<Arc<StoredCase>>,
}

/// What a decision was made from, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCase {
    /// The case. What was redacted has left its mark.
    pub case: Case,
    /// Digest of the snapshot: of all that is kept of it, as 32 hexadecimal digits.
    pub snapshot: String,
    /// How many values were redacted.
    pub redacted: usize,
}

/// A short name for content, the same on every machine.
pub(crate) fn key(content: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    Sha256::digest(content).iter().take(16).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A value as text.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    // A value has no keys but texts, so this does not fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The payload of a record. `case` is what is kept of its case, or the id of the record that has it.
pub(crate) fn encode(record: &Record, case: Option<Kept>) -> Vec<u8> {
    let mut value = canonical(record);
    // Messages may quote objects and addresses.
    redact(&mut value);
    if let Value::Object(members) = &mut value {
        // It is made again from the case when somebody asks.
        members.remove("explanation");
        members.insert("atMs".to_owned(), record.entry.at.as_millis().into());
        match case {
            None => {}
            Some(Kept::Whole(case)) => drop(members.insert("case".to_owned(), case)),
            Some(Kept::With(id)) => drop(members.insert("caseOf".to_owned(), id.into())),
        }
    }
    bytes(&value)
}

/// How a record has its case.
pub(crate) enum Kept {
    /// It is with this record.
    Whole(Value),
    /// It is with the record of that id, in the same segment.
    With(u64),
}

/// A record as it is read, its case not yet put together.
pub(crate) struct Raw {
    pub(crate) record: Record,
    pub(crate) case: Option<Value>,
    pub(crate) case_of: Option<u64>,
}

/// Reads the payload of a record.
pub(crate) fn decode(payload: &[u8]) -> Result<Raw, String> {
    let mut value: Value = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let members = value.as_object_mut().ok_or("it is no object")?;
    let (case, case_of) = (members.remove("case"), members.remove("caseOf").and_then(|id| id.as_u64()));
    let at_ms = members.remove("atMs").and_then(|at| at.as_i64()).ok_or("atMs: is missing or no number")?;
    let mut record: Record = serde_json::from_value(value).map_err(|error| error.to_string())?;
    record.entry.at = Time::from_millis(at_ms);
    Ok(Raw { record, case, case_of })
}
