//! Journals for tests, and a decision about an object.

use std::path::Path;
use std::sync::Arc;

use bulkhead_core::decide::health::Uncovered;
use bulkhead_core::journal::{DecisionInput, DecisionRecord};
use bulkhead_journal::{Bounds, Writer};
use serde_json::{Value, json};

use crate::records::made;

pub(crate) fn open(directory: &Path) -> Writer {
    open_bounded(directory, Bounds::default())
}

pub(crate) fn open_bounded(directory: &Path, bounds: Bounds) -> Writer {
    Writer::open(directory, bounds, |error| panic!("{error}"))
        .unwrap()
        .writer
}

/// Opens a journal whose segments end after that many bytes: with 1, each has one record.
pub(crate) fn open_segmented(directory: &Path, segment_bytes: u64) -> Writer {
    let bounds = Bounds {
        segment_bytes,
        ..Bounds::default()
    };
    open_bounded(directory, bounds)
}

/// Returns a decision about the health of an object.
pub(crate) fn health_decision(object: Value) -> Arc<DecisionRecord> {
    let input = DecisionInput::Health {
        object: Arc::new(object),
        uncovered: Uncovered::Healthy,
    };
    made(input, Vec::new(), json!({"health": "Healthy"}))
}
