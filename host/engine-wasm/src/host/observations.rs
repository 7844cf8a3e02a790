//! What member clusters report about a workload.

use std::sync::Arc;

use bulkhead_core::model::{AggregatedStatusItem, Health};
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::{Document, Host, pointer};
use crate::bindings::bulkhead::policy::{observations, types};

/// Reports that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Reports(Arc<[AggregatedStatusItem]>);

impl Reports {
    /// Reports of one call.
    pub(crate) fn new(items: Arc<[AggregatedStatusItem]>) -> Self {
        Self(items)
    }

    fn column<T>(&self, value: impl Fn(&AggregatedStatusItem) -> T) -> Vec<T> {
        self.0.iter().map(value).collect()
    }
}

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

impl observations::Host for Host {}

impl observations::HostObservations for Host {
    fn len(&mut self, this: Resource<Reports>) -> Result<u32> {
        Ok(u32::try_from(self.table.get(&this)?.0.len()).unwrap_or(u32::MAX))
    }

    fn clusters(&mut self, this: Resource<Reports>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.column(|item| item.cluster_name.clone()))
    }

    fn applied(&mut self, this: Resource<Reports>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.column(|item| item.applied))
    }

    fn health(&mut self, this: Resource<Reports>) -> Result<Vec<Option<types::HealthState>>> {
        Ok(self.table.get(&this)?.column(|item| item.health.map(health)))
    }

    fn number(&mut self, this: Resource<Reports>, pointer: String) -> Result<Vec<f64>> {
        let number = |item: &AggregatedStatusItem| at(item, &pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        Ok(self.table.get(&this)?.column(number))
    }

    fn text(&mut self, this: Resource<Reports>, pointer: String) -> Result<Vec<Option<String>>> {
        let text = |item: &AggregatedStatusItem| at(item, &pointer).and_then(Value::as_str).map(str::to_owned);
        Ok(self.table.get(&this)?.column(text))
    }

    fn status(&mut self, this: Resource<Reports>, index: u32) -> Result<Option<Resource<Document>>> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let status = self.table.get(&this)?.0.get(index).and_then(|item| item.status.clone());
        Ok(status.map(|status| self.table.push(Document::from(Arc::new(status)))).transpose()?)
    }

    fn drop(&mut self, this: Resource<Reports>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
