//! Reports of member clusters about a workload.

use bulkhead_core::model::{AggregatedStatusItem, Health};
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::allowance::{Copied, Plain, VALUE_BYTES};
use super::lent::{Document, Reports};
use super::{Host, pointer};
use crate::host::bindings::bulkhead::policy::{observations, types};

fn at<'a>(item: &'a AggregatedStatusItem, pointer: &str) -> Option<&'a Value> {
    pointer::pointer(item.status.as_ref()?, pointer)
}

fn health(health: Health) -> types::HealthState {
    match health {
        Health::Healthy => types::HealthState::Healthy,
        Health::Unhealthy => types::HealthState::Unhealthy,
        Health::Unknown => types::HealthState::Unknown,
    }
}

impl Copied for types::HealthState {
    type Copy = Self;

    fn bytes(&self) -> usize {
        VALUE_BYTES
    }

    fn copy(self) -> Self {
        self
    }
}

impl Plain for types::HealthState {}

impl observations::Host for Host {}

impl observations::HostObservations for Host {
    fn len(&mut self, this: Resource<Reports>) -> Result<u32> {
        Ok(u32::try_from(self.table.get(&this)?.items().len()).unwrap_or(u32::MAX))
    }

    fn clusters(&mut self, this: Resource<Reports>) -> Result<Vec<String>> {
        self.asked(&[])?;
        let reports = self.table.get(&this)?.items().iter();
        Ok(self
            .allowance
            .copy_each(reports.map(|item| item.cluster_name.as_str()))?)
    }

    fn applied(&mut self, this: Resource<Reports>) -> Result<Vec<bool>> {
        self.asked(&[])?;
        let reports = self.table.get(&this)?.items().iter();
        Ok(self.allowance.copy_each(reports.map(|item| item.applied))?)
    }

    fn health(&mut self, this: Resource<Reports>) -> Result<Vec<Option<types::HealthState>>> {
        self.asked(&[])?;
        let reports = self.table.get(&this)?.items().iter();
        Ok(self.allowance.copy_each(reports.map(|item| item.health.map(health)))?)
    }

    fn number(&mut self, this: Resource<Reports>, pointer: String) -> Result<Vec<f64>> {
        let number = |item: &AggregatedStatusItem| at(item, &pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        self.asked(&[&pointer])?;
        let reports = self.table.get(&this)?.items().iter();
        Ok(self.allowance.look_up_each(pointer.len(), reports.map(number))?)
    }

    fn text(&mut self, this: Resource<Reports>, pointer: String) -> Result<Vec<Option<String>>> {
        self.asked(&[&pointer])?;
        let reports = self.table.get(&this)?.items().iter();
        let texts = reports.map(|item| at(item, &pointer).and_then(Value::as_str));
        Ok(self.allowance.look_up_each(pointer.len(), texts)?)
    }

    fn status(&mut self, this: Resource<Reports>, index: u32) -> Result<Option<Resource<Document>>> {
        self.charge(VALUE_BYTES)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let status = Document::of_report(self.table.get(&this)?, index);
        Ok(status.map(|status| self.table.push(status)).transpose()?)
    }

    fn drop(&mut self, this: Resource<Reports>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
