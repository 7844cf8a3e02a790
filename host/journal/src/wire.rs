//! Records as JSON, for another process that reads them.
//!
//! A stored record names its clusters by their digests. A record on its way to a reader has them with it.

use std::sync::Arc;

use bulkhead_core::journal::{DecisionRecord, Record};
use bulkhead_core::model::Cluster;
use bulkhead_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stored::{Stored, StoredDecision};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    record: Record,
    /// The time of the record to the millisecond; in `record` it has the form of the API.
    at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionMessage>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecisionMessage {
    decision: DecisionRecord,
    clusters: Vec<Arc<Cluster>>,
    snapshot: String,
    redacted: usize,
}

/// Returns a record with the inputs of its decision.
pub fn to_json(stored: &Stored) -> Value {
    let decision = stored.decision.as_ref().map(|kept| DecisionMessage {
        decision: kept.decision.clone(),
        clusters: kept.decision.clusters.to_vec(),
        snapshot: kept.snapshot.clone(),
        redacted: kept.redacted,
    });
    let message = Message {
        record: stored.record.clone(),
        at_ms: stored.record.entry.at.as_millis(),
        decision,
    };
    // All keys of a record are strings, so this does not fail.
    serde_json::to_value(message).unwrap_or_default()
}

/// Reads a record that [`to_json`] wrote, from its text.
///
/// # Errors
///
/// The text is no record, or one of a newer program.
pub fn from_json(text: &[u8]) -> Result<Stored, String> {
    let Message {
        mut record,
        at_ms,
        decision,
    } = serde_json::from_slice(text).map_err(|error| format!("not a record of a journal: {error}"))?;
    record.entry.at = Time::from_millis(at_ms);
    let decision = decision.map(|message| {
        let decision = DecisionRecord {
            clusters: message.clusters.into(),
            ..message.decision
        };
        Arc::new(StoredDecision {
            decision,
            snapshot: message.snapshot,
            redacted: message.redacted,
        })
    });
    Ok(Stored { record, decision })
}
