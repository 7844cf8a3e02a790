//! What a guest sees of the host: documents, candidate clusters and a log.

use std::sync::Arc;

use bulkhead_core::model::{Binding, Cluster};
use serde::Serialize;
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::{Resource, ResourceTable};

use crate::bindings::bulkhead::policy::{clusters, log, object, types};
use crate::limits::Limits;
use crate::log::{Level, Lines};

/// State of one call.
pub(crate) struct Host {
    pub(crate) table: ResourceTable,
    pub(crate) limits: Limits,
    pub(crate) lines: Lines,
}

impl Host {
    /// A host for one call.
    pub(crate) fn new(memory_bytes_max: usize) -> Self {
        Self { table: ResourceTable::new(), limits: Limits::new(memory_bytes_max), lines: Lines::default() }
    }
}

/// A JSON document that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Document(Value);

impl Document {
    /// A document that says what a value of the model says on the wire.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(json(value))
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

/// Model types have string keys only, so they always become JSON.
pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Candidate clusters that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Candidates {
    clusters: Vec<Candidate>,
}

struct Candidate {
    cluster: Arc<Cluster>,
    /// Whether the binding runs there already.
    current: bool,
    /// `spec` and the whole, each made when it is first asked for: a status lists every API that a cluster serves.
    spec: Option<Value>,
    whole: Option<Value>,
}

impl Candidates {
    /// The candidates of a call.
    pub(crate) fn new(binding: &Binding, clusters: bulkhead_core::snapshot::Candidates<'_>) -> Self {
        let candidate = |cluster: &Arc<Cluster>| Candidate {
            cluster: Arc::clone(cluster),
            current: binding.spec.targets(&cluster.name),
            spec: None,
            whole: None,
        };
        Self { clusters: clusters.iter().map(candidate).collect() }
    }

    fn get(&mut self, index: u32) -> Option<&mut Candidate> {
        self.clusters.get_mut(usize::try_from(index).ok()?)
    }

    fn column<T>(&self, value: impl Fn(&Candidate) -> T) -> Vec<T> {
        self.clusters.iter().map(value).collect()
    }
}

impl Candidate {
    fn whole(&mut self) -> &Value {
        self.whole.get_or_insert_with(|| json(&*self.cluster))
    }

    fn pointer(&mut self, pointer: &str) -> Option<&Value> {
        match pointer.strip_prefix("/spec").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => self.spec.get_or_insert_with(|| json(&self.cluster.spec)).pointer(rest),
            None => self.whole().pointer(pointer),
        }
    }
}

impl Host {
    fn at(&self, this: &Resource<Document>, pointer: &str) -> Result<Option<&Value>> {
        Ok(self.table.get(this)?.0.pointer(pointer))
    }
}

impl types::Host for Host {}

impl object::Host for Host {}

impl object::HostObject for Host {
    fn get(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.at(&this, &pointer)?.map(ToString::to_string))
    }

    fn get_string(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_str).map(str::to_owned))
    }

    fn get_s64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_i64))
    }

    fn get_f64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<f64>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_f64))
    }

    fn get_bool(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<bool>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_bool))
    }

    fn length(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<u32>> {
        let length = match self.at(&this, &pointer)? {
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
        Ok(self.table.get(&this)?.column(|candidate| candidate.cluster.name.clone()))
    }

    fn ready(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.column(|candidate| candidate.cluster.is_ready()))
    }

    fn current(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.column(|candidate| candidate.current))
    }

    fn label(&mut self, this: Resource<Candidates>, key: String) -> Result<Vec<Option<String>>> {
        Ok(self.table.get(&this)?.column(|candidate| candidate.cluster.labels.get(&key).cloned()))
    }

    fn get(&mut self, this: Resource<Candidates>, index: u32, pointer: String) -> Result<Option<String>> {
        let candidate = self.table.get_mut(&this)?.get(index);
        Ok(candidate.and_then(|candidate| candidate.pointer(&pointer)).map(ToString::to_string))
    }

    fn json(&mut self, this: Resource<Candidates>, index: u32) -> Result<Option<String>> {
        Ok(self.table.get_mut(&this)?.get(index).map(|candidate| candidate.whole().to_string()))
    }

    fn drop(&mut self, this: Resource<Candidates>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl log::Host for Host {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
        };
        self.lines.push(level, &message);
        Ok(())
    }
}
