//! Stored form of records.

use std::sync::Arc;

use bulkhead_core::journal::redact::{Echoes, redact};
use bulkhead_core::journal::{DecisionRecord, Record, canonical};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Record of a journal with the inputs of its decision, in the form in which they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<D = StoredDecision> {
    /// Record of the decision. Unlike in the API, its time is exact to the millisecond.
    pub record: Record,
    /// Inputs of the decision; absent if the decision cannot be replayed, or if they cannot be read.
    pub decision: Option<Arc<D>>,
}

/// Inputs of a decision, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDecision {
    /// Record of the decision, in which redacted values are marked.
    pub decision: DecisionRecord,
    /// Digest of the stored inputs, as 32 hexadecimal digits.
    pub snapshot: String,
    /// Number of redacted values.
    pub redacted: usize,
}

/// Returns a short digest of content, which is the same on every machine.
pub(crate) fn key(content: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    Sha256::digest(content)
        .iter()
        .take(16)
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Serializes a value.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    // All keys of a value are strings, so this does not fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Returns the payload of a record. `decision` is its decision record, or the id of the record that has it.
pub(crate) fn encode(record: &Record, decision: Option<DecisionLocation>, echoes: &Echoes) -> Vec<u8> {
    let mut value = canonical(record);
    echoes.remove(&mut value);
    // Messages may quote objects and addresses.
    redact(&mut value);
    if let Value::Object(members) = &mut value {
        // It is generated from the decision record on demand.
        members.remove("explanation");
        members.insert("atMs".to_owned(), record.entry.at.as_millis().into());
        match decision {
            None => {}
            Some(DecisionLocation::Whole(decision)) => drop(members.insert("case".to_owned(), decision)),
            Some(DecisionLocation::With(id)) => drop(members.insert("caseOf".to_owned(), id.into())),
        }
    }
    bytes(&value)
}

/// Location of the decision record of a record.
pub(crate) enum DecisionLocation {
    /// With this record.
    Whole(Value),
    /// With the record of that id, in the same segment.
    With(u64),
}
