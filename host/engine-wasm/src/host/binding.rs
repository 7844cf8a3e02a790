//! Bindings and their graceful eviction tasks.

use bulkhead_core::model::{ObjectReference, TargetCluster};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::Host;
use super::allowance::{Copied, VALUE_BYTES};
use super::cluster::seconds;
use super::lent::{Document, LentBinding, LentTask, Reports};
use super::trees::{json as document, text_bytes};
use crate::host::bindings::bulkhead::policy::binding;
use crate::host::bindings::bulkhead::policy::types::ObjectKind;

impl Copied for &TargetCluster {
    type Copy = binding::Target;

    fn bytes(&self) -> usize {
        VALUE_BYTES + self.name.len()
    }

    fn copy(self) -> binding::Target {
        binding::Target {
            cluster: self.name.clone(),
            replicas: natural(self.replicas),
        }
    }
}

impl Copied for &ObjectReference {
    type Copy = ObjectKind;

    fn bytes(&self) -> usize {
        2 * VALUE_BYTES + self.api_version.len() + self.kind.len()
    }

    fn copy(self) -> ObjectKind {
        ObjectKind {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
        }
    }
}

fn natural(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

impl binding::Host for Host {}

impl binding::HostBinding for Host {
    fn namespace(&mut self, this: Resource<LentBinding>) -> Result<Option<String>> {
        self.asked(&[])?;
        Ok(self
            .allowance
            .copy(self.table.get(&this)?.binding.namespace.as_deref())?)
    }

    fn name(&mut self, this: Resource<LentBinding>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.binding.name.as_str())?)
    }

    fn workload_kind(&mut self, this: Resource<LentBinding>) -> Result<ObjectKind> {
        self.asked(&[])?;
        Ok(self.allowance.copy(&self.table.get(&this)?.binding.spec.resource)?)
    }

    fn workload_name(&mut self, this: Resource<LentBinding>) -> Result<String> {
        self.asked(&[])?;
        Ok(self
            .allowance
            .copy(self.table.get(&this)?.binding.spec.resource.name.as_str())?)
    }

    fn replicas(&mut self, this: Resource<LentBinding>) -> Result<u32> {
        Ok(natural(self.table.get(&this)?.binding.spec.replicas))
    }

    fn targets(&mut self, this: Resource<LentBinding>) -> Result<Vec<binding::Target>> {
        self.asked(&[])?;
        Ok(self
            .allowance
            .copy_each(self.table.get(&this)?.binding.spec.clusters.iter())?)
    }

    fn evicting_from(&mut self, this: Resource<LentBinding>) -> Result<Vec<String>> {
        self.asked(&[])?;
        let tasks = self.table.get(&this)?.binding.spec.graceful_eviction_tasks.iter();
        Ok(self.allowance.copy_each(tasks.map(|task| task.from_cluster.as_str()))?)
    }

    fn observed(&mut self, this: Resource<LentBinding>) -> Result<Resource<Reports>> {
        self.charge(VALUE_BYTES)?;
        let reports = self.table.get(&this)?.reports();
        Ok(self.table.push(reports)?)
    }

    fn document(&mut self, this: Resource<LentBinding>) -> Result<Resource<Document>> {
        self.asked(&[])?;
        let binding = self.table.get(&this)?;
        let text_bytes = || binding.text_bytes();
        let tree = self
            .trees
            .of(binding, &mut self.allowance, text_bytes, LentBinding::document)?;
        Ok(self.table.push(Document::from(tree))?)
    }

    fn drop(&mut self, this: Resource<LentBinding>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl binding::HostEvictionTask for Host {
    fn from_cluster(&mut self, this: Resource<LentTask>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.from_cluster.as_str())?)
    }

    fn reason(&mut self, this: Resource<LentTask>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.reason.as_str())?)
    }

    fn producer(&mut self, this: Resource<LentTask>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.producer.as_str())?)
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
        self.asked(&[])?;
        let task = &self.table.get(&this)?.0;
        let tree = self
            .trees
            .of(task, &mut self.allowance, || text_bytes(task), document)?;
        Ok(self.table.push(Document::from(tree))?)
    }

    fn drop(&mut self, this: Resource<LentTask>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
