//! A workload, and what is on its way out.

use std::sync::Arc;

use bulkhead_core::model::{AggregatedStatusItem, Binding, GracefulEvictionTask};
use serde_json::{Value, json};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::cluster::seconds;
use super::document::json as document;
use super::{Document, Host, Reports};
use crate::bindings::bulkhead::policy::binding;
use crate::bindings::bulkhead::policy::types::ObjectKind;

/// A binding that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentBinding {
    binding: Arc<Binding>,
    /// What was observed, when the call knows better than the binding's own status.
    observed: Option<Arc<[AggregatedStatusItem]>>,
}

impl LentBinding {
    /// A binding that tells what is in its status.
    pub(crate) fn new(binding: Arc<Binding>) -> Self {
        Self { binding, observed: None }
    }

    /// A binding with what the call says was observed.
    pub(crate) fn observed(binding: Arc<Binding>, observed: &[AggregatedStatusItem]) -> Self {
        let differs = binding.status.aggregated_status != observed;
        Self { binding, observed: differs.then(|| observed.into()) }
    }

    fn reports(&self) -> Arc<[AggregatedStatusItem]> {
        let own = || self.binding.status.aggregated_status.clone().into();
        self.observed.clone().unwrap_or_else(own)
    }

    fn document(&self) -> Value {
        let mut document = document(&*self.binding);
        if let Some(observed) = &self.observed {
            if !document["status"].is_object() {
                document["status"] = json!({});
            }
            document["status"]["aggregatedStatus"] = super::document::json(&observed.as_ref());
        }
        document
    }
}

/// A graceful eviction task that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentTask(pub(crate) GracefulEvictionTask);

fn natural(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

impl binding::Host for Host {}

impl binding::HostBinding for Host {
    fn namespace(&mut self, this: Resource<LentBinding>) -> Result<Option<String>> {
        Ok(self.table.get(&this)?.binding.namespace.clone())
    }

    fn name(&mut self, this: Resource<LentBinding>) -> Result<String> {
        Ok(self.table.get(&this)?.binding.name.clone())
    }

    fn workload_kind(&mut self, this: Resource<LentBinding>) -> Result<ObjectKind> {
        let resource = &self.table.get(&this)?.binding.spec.resource;
        Ok(ObjectKind { api_version: resource.api_version.clone(), kind: resource.kind.clone() })
    }

    fn workload_name(&mut self, this: Resource<LentBinding>) -> Result<String> {
        Ok(self.table.get(&this)?.binding.spec.resource.name.clone())
    }

    fn replicas(&mut self, this: Resource<LentBinding>) -> Result<u32> {
        Ok(natural(self.table.get(&this)?.binding.spec.replicas))
    }

    fn targets(&mut self, this: Resource<LentBinding>) -> Result<Vec<binding::Target>> {
        let targets = &self.table.get(&this)?.binding.spec.clusters;
        let target = targets
            .iter()
            .map(|target| binding::Target { cluster: target.name.clone(), replicas: natural(target.replicas) });
        Ok(target.collect())
    }

    fn evicting_from(&mut self, this: Resource<LentBinding>) -> Result<Vec<String>> {
        let tasks = &self.table.get(&this)?.binding.spec.graceful_eviction_tasks;
        Ok(tasks.iter().map(|task| task.from_cluster.clone()).collect())
    }

    fn observed(&mut self, this: Resource<LentBinding>) -> Result<Resource<Reports>> {
        let reports = Reports::new(self.table.get(&this)?.reports());
        Ok(self.table.push(reports)?)
    }

    fn document(&mut self, this: Resource<LentBinding>) -> Result<Resource<Document>> {
        let document = Document::from(Arc::new(self.table.get(&this)?.document()));
        Ok(self.table.push(document)?)
    }

    fn drop(&mut self, this: Resource<LentBinding>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl binding::HostEvictionTask for Host {
    fn from_cluster(&mut self, this: Resource<LentTask>) -> Result<String> {
        Ok(self.table.get(&this)?.0.from_cluster.clone())
    }

    fn reason(&mut self, this: Resource<LentTask>) -> Result<String> {
        Ok(self.table.get(&this)?.0.reason.clone())
    }

    fn producer(&mut self, this: Resource<LentTask>) -> Result<String> {
        Ok(self.table.get(&this)?.0.producer.clone())
    }

    fn since_s(&mut self, this: Resource<LentTask>) -> Result<Option<i64>> {
        Ok(self.table.get(&this)?.0.creation_timestamp.map(seconds))
    }

    fn grace_period_s(&mut self, this: Resource<LentTask>) -> Result<Option<u32>> {
        Ok(self.table.get(&this)?.0.grace_period_seconds.map(natural))
    }

    fn replicas(&mut self, this: Resource<LentTask>) -> Result<Option<u32>> {
        Ok(self.table.get(&this)?.0.replicas.map(natural))
    }

    fn document(&mut self, this: Resource<LentTask>) -> Result<Resource<Document>> {
        let document = Document::of(&self.table.get(&this)?.0);
        Ok(self.table.push(document)?)
    }

    fn drop(&mut self, this: Resource<LentTask>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
