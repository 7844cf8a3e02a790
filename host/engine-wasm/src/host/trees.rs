//! Documents made from values of the model, shared by all handles of a call.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use serde::Serialize;
use serde_json::Value;

use super::allowance::{Allowance, Exceeded, Held, VALUE_BYTES};

/// A document with its share of the memory limit.
pub(super) struct Tree {
    pub(super) value: Value,
    _held: Held,
}

/// Documents of one call that a guest has handles of, by the address of their source, which lives as long as the
/// call.
#[derive(Default)]
pub(super) struct Trees(BTreeMap<usize, Weak<Tree>>);

impl Trees {
    /// Returns the document of a value: an existing one that a guest has a handle of, or a new one, which is charged
    /// before it is made.
    pub(super) fn of<T>(
        &mut self,
        source: &T,
        allowance: &mut Allowance,
        text_bytes: impl FnOnce() -> usize,
        make: impl FnOnce(&T) -> Value,
    ) -> Result<Arc<Tree>, Exceeded> {
        allowance.charge(VALUE_BYTES)?;
        let address = std::ptr::from_ref(source) as usize;
        if let Some(tree) = self.0.get(&address).and_then(Weak::upgrade) {
            return Ok(tree);
        }
        allowance.spend(text_bytes())?;
        let value = make(source);
        let held = allowance.hold(weight(&value))?;
        let tree = Arc::new(Tree { value, _held: held });
        self.0.insert(address, Arc::downgrade(&tree));
        Ok(tree)
    }
}

/// Writer that only counts bytes.
#[derive(Default)]
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts a value to JSON. Cannot fail, because model types have only string keys.
pub(super) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns the length of a value's JSON text without building it.
pub(super) fn text_bytes(value: &impl Serialize) -> usize {
    let mut counter = Counter::default();
    // Cannot fail, because model types have only string keys.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Returns the memory use of a document in bytes.
fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| VALUE_BYTES + name.len() + weight(member))
            .sum(),
    };
    inner + VALUE_BYTES
}
