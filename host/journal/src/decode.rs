//! Decoding of records.
//!
//! A payload is decoded in several passes, each of which skips the members of the others: a tree of the payload, or a
//! buffer of flattened members, costs several times as much.

use std::sync::Arc;

use bulkhead_core::journal::{DecisionRecord, Entry, Outcome, Record};
use bulkhead_core::model::Cluster;
use bulkhead_core::time::Time;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::cluster_outline::ClusterForm;
use crate::stored::StoredDecision;

/// Clusters that a decision read, sorted by name.
pub type Fleet<C = Cluster> = Arc<[Arc<C>]>;

/// Function that returns the clusters with a key.
pub type FleetLookup<'a, C> = dyn Fn(&str) -> Result<Fleet<C>, String> + 'a;

/// Form in which the inputs of a decision are read.
pub trait DecisionForm: Sized {
    /// Part that is read together with the record.
    type Head: DeserializeOwned;
    /// Form of the clusters.
    type Cluster: ClusterForm;

    /// Completes the head with the rest of the payload. `fleet` returns the clusters with a key.
    ///
    /// # Errors
    ///
    /// The inputs cannot be read.
    fn complete(head: Self::Head, payload: &[u8], fleet: &FleetLookup<'_, Self::Cluster>) -> Result<Self, String>;
}

/// Payload of a record, without the rest of its inputs.
pub(crate) struct Decoded<H> {
    pub(crate) record: Record,
    /// Head of the inputs with this record, or the reason why it cannot be read.
    pub(crate) head: Option<Result<H, String>>,
    /// Id of the record that has the inputs.
    pub(crate) decision_of: Option<u64>,
}

/// Members of a payload that are not in [`Entry`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordHead<H> {
    id: u64,
    #[serde(default)]
    process: String,
    outcome: Outcome,
    at_ms: i64,
    case: Option<H>,
    case_of: Option<u64>,
}

/// Decodes the payload of a record.
pub(crate) fn decode<H: DeserializeOwned>(payload: &[u8]) -> Result<Decoded<H>, String> {
    match read::<RecordHead<H>>(payload) {
        Ok(mut head) => {
            let inputs = head.case.take().map(Ok);
            decoded(payload, head, inputs)
        }
        // If a newer program wrote the inputs, the record itself can still be read.
        Err(why) => {
            let head: RecordHead<IgnoredAny> = read(payload)?;
            let inputs = head.case.as_ref().map(|_| Err(why));
            decoded(payload, head, inputs)
        }
    }
}

fn decoded<H, I>(payload: &[u8], head: RecordHead<I>, inputs: Option<Result<H, String>>) -> Result<Decoded<H>, String> {
    let entry = Entry {
        at: Time::from_millis(head.at_ms),
        ..read(payload)?
    };
    let record = Record {
        id: head.id,
        process: head.process,
        outcome: head.outcome,
        entry,
    };
    Ok(Decoded {
        record,
        head: inputs,
        decision_of: head.case_of,
    })
}

fn read<'de, T: Deserialize<'de>>(payload: &'de [u8]) -> Result<T, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

/// Members of the stored inputs that are not in [`DecisionRecord`].
#[derive(Debug, Deserialize)]
pub struct DecisionHead {
    /// Key of the clusters; absent if the decision read none.
    fleet: Option<String>,
    snapshot: String,
    #[serde(default)]
    redacted: usize,
}

impl DecisionForm for StoredDecision {
    type Head = DecisionHead;
    type Cluster = Cluster;

    fn complete(head: DecisionHead, payload: &[u8], fleet: &FleetLookup<'_, Cluster>) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Inputs {
            case: DecisionRecord,
        }
        let Inputs { case: mut decision } = read(payload)?;
        if let Some(key) = head.fleet {
            decision.clusters = fleet(&key)?;
        }
        Ok(Self {
            decision,
            snapshot: head.snapshot,
            redacted: head.redacted,
        })
    }
}
