//! What a guest sees of the host: documents, candidate clusters and a log.

use std::sync::Arc;

use bulkhead_core::model::{Binding, Cluster};
use serde_json::Value;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime::{ResourceLimiter, Result};

use crate::bindings::bulkhead::policy::{clusters, log, object, types};

/// Most log lines of one call; the rest is dropped.
const LOG_LINES_MAX: usize = 64;
/// Longest log line, in characters.
const LOG_LINE_CHARS_MAX: usize = 512;

/// A JSON document that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Document(pub(crate) Arc<Value>);

/// Candidate clusters that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Candidates {
    pub(crate) clusters: Arc<[Arc<Cluster>]>,
    /// Whether the binding runs on each already.
    pub(crate) current: Vec<bool>,
    /// Documents of the clusters a guest asked for, made once.
    documents: Vec<Option<Arc<Value>>>,
}

impl Candidates {
    /// The candidates of a call.
    pub(crate) fn new(binding: &Binding, clusters: &[Arc<Cluster>]) -> Self {
        let current = clusters.iter().map(|cluster| binding.spec.targets(&cluster.name)).collect();
        Self { clusters: clusters.into(), current, documents: vec![None; clusters.len()] }
    }

    fn document(&mut self, index: u32) -> Option<Arc<Value>> {
        let index = usize::try_from(index).ok()?;
        let (cluster, slot) = (self.clusters.get(index)?, self.documents.get_mut(index)?);
        let made = || Arc::new(serde_json::to_value(&**cluster).unwrap_or_default());
        Some(Arc::clone(slot.get_or_insert_with(made)))
    }
}

/// State of one call.
pub(crate) struct Host {
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimit,
    /// Lines the guest logged, in order: level and text.
    pub(crate) lines: Vec<(log::Level, String)>,
}

impl Host {
    /// A host for one call.
    pub(crate) fn new(memory_bytes_max: usize) -> Self {
        let memory = MemoryLimit { bytes_max: memory_bytes_max, hit: false };
        Self { table: ResourceTable::new(), memory, lines: Vec::new() }
    }
}

/// Limits memory and tables, and remembers that a limit was hit: the guest only sees an allocation that failed.
pub(crate) struct MemoryLimit {
    bytes_max: usize,
    pub(crate) hit: bool,
}

/// Most elements of a table; far more than any guest has functions.
const TABLE_ELEMENTS_MAX: usize = 100_000;

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let allowed = desired <= self.bytes_max;
        self.hit |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let allowed = desired <= TABLE_ELEMENTS_MAX;
        self.hit |= !allowed;
        Ok(allowed)
    }

    fn instances(&self) -> usize {
        16
    }

    fn memories(&self) -> usize {
        4
    }

    fn tables(&self) -> usize {
        16
    }
}

impl types::Host for Host {}

impl object::Host for Host {}

impl object::HostObject for Host {
    fn get(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.table.get(&this)?.0.pointer(&pointer).map(ToString::to_string))
    }

    fn get_string(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.table.get(&this)?.0.pointer(&pointer).and_then(Value::as_str).map(str::to_owned))
    }

    fn get_s64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        Ok(self.table.get(&this)?.0.pointer(&pointer).and_then(Value::as_i64))
    }

    fn get_bool(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<bool>> {
        Ok(self.table.get(&this)?.0.pointer(&pointer).and_then(Value::as_bool))
    }

    fn length(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<u32>> {
        let length = match self.table.get(&this)?.0.pointer(&pointer) {
            Some(Value::Array(items)) => Some(items.len()),
            Some(Value::Object(members)) => Some(members.len()),
            _ => None,
        };
        Ok(length.and_then(|length| u32::try_from(length).ok()))
    }

    fn json(&mut self, this: Resource<Document>) -> Result<String> {
        Ok(self.table.get(&this)?.0.to_string())
    }

    fn drop(&mut self, this: Resource<Document>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl clusters::Host for Host {}

impl clusters::HostClusters for Host {
    fn len(&mut self, this: Resource<Candidates>) -> Result<u32> {
        Ok(u32::try_from(self.table.get(&this)?.clusters.len()).unwrap_or(u32::MAX))
    }

    fn names(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.clusters.iter().map(|cluster| cluster.name.clone()).collect())
    }

    fn ready(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.clusters.iter().map(|cluster| cluster.is_ready()).collect())
    }

    fn current(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.current.clone())
    }

    fn label(&mut self, this: Resource<Candidates>, key: String) -> Result<Vec<Option<String>>> {
        Ok(self.table.get(&this)?.clusters.iter().map(|cluster| cluster.labels.get(&key).cloned()).collect())
    }

    fn get(&mut self, this: Resource<Candidates>, index: u32, pointer: String) -> Result<Option<String>> {
        let document = self.table.get_mut(&this)?.document(index);
        Ok(document.and_then(|document| document.pointer(&pointer).map(ToString::to_string)))
    }

    fn json(&mut self, this: Resource<Candidates>, index: u32) -> Result<Option<String>> {
        Ok(self.table.get_mut(&this)?.document(index).map(|document| document.to_string()))
    }

    fn drop(&mut self, this: Resource<Candidates>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl log::Host for Host {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        if self.lines.len() < LOG_LINES_MAX {
            let line = message.chars().filter(|c| !c.is_control()).take(LOG_LINE_CHARS_MAX).collect();
            self.lines.push((level, line));
        }
        Ok(())
    }
}
