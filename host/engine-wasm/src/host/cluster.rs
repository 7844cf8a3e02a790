//! One member cluster.

use bulkhead_core::model::{Condition, ConditionStatus, Taint, TaintEffect};
use bulkhead_core::time::Time;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::Host;
use super::allowance::{Copied, VALUE_BYTES};
use super::lent::{Document, LentCluster};
use super::trees::{json, text_bytes};
use crate::host::bindings::bulkhead::policy::{cluster, types};

/// Converts a time to whole seconds since the Unix epoch, the format in records.
pub(super) fn seconds(time: Time) -> i64 {
    time.as_millis().div_euclid(1000)
}

impl Copied for &Condition {
    type Copy = cluster::Condition;

    fn bytes(&self) -> usize {
        4 * VALUE_BYTES + self.type_.len() + self.reason.len() + self.message.len()
    }

    fn copy(self) -> cluster::Condition {
        cluster::Condition {
            name: self.type_.clone(),
            status: match self.status {
                ConditionStatus::True => types::ConditionStatus::True,
                ConditionStatus::False => types::ConditionStatus::False,
                ConditionStatus::Unknown => types::ConditionStatus::Unknown,
            },
            reason: self.reason.clone(),
            message: self.message.clone(),
            last_transition_s: self.last_transition_time.map(seconds),
        }
    }
}

impl Copied for (&Taint, types::TaintEffect) {
    type Copy = cluster::Taint;

    fn bytes(&self) -> usize {
        3 * VALUE_BYTES + self.0.key.len() + self.0.value.len()
    }

    fn copy(self) -> cluster::Taint {
        let (taint, effect) = self;
        let (key, value) = (taint.key.clone(), taint.value.clone());
        cluster::Taint {
            key,
            value,
            effect,
            time_added_s: taint.time_added.map(seconds),
        }
    }
}

/// Converts an effect. Returns `None` for an effect that the contract does not define; such a taint is only in the
/// cluster's document.
fn effect(effect: &TaintEffect) -> Option<types::TaintEffect> {
    match effect {
        TaintEffect::NoSchedule => Some(types::TaintEffect::NoSchedule),
        TaintEffect::PreferNoSchedule => Some(types::TaintEffect::PreferNoSchedule),
        TaintEffect::NoExecute => Some(types::TaintEffect::NoExecute),
        TaintEffect::PreferNoExecute | TaintEffect::Other(_) => None,
    }
}

impl cluster::Host for Host {}

impl cluster::HostCluster for Host {
    fn name(&mut self, this: Resource<LentCluster>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.name.as_str())?)
    }

    fn label(&mut self, this: Resource<LentCluster>, key: String) -> Result<Option<String>> {
        self.asked(&[&key])?;
        Ok(self
            .allowance
            .copy(self.table.get(&this)?.0.labels.get(&key).map(String::as_str))?)
    }

    fn provider(&mut self, this: Resource<LentCluster>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.spec.provider.as_str())?)
    }

    fn region(&mut self, this: Resource<LentCluster>) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.table.get(&this)?.0.spec.region.as_str())?)
    }

    fn zones(&mut self, this: Resource<LentCluster>) -> Result<Vec<String>> {
        self.asked(&[])?;
        Ok(self
            .allowance
            .copy_each(self.table.get(&this)?.0.spec.zones.iter().map(String::as_str))?)
    }

    fn taints(&mut self, this: Resource<LentCluster>) -> Result<Vec<cluster::Taint>> {
        self.asked(&[])?;
        let taints = self.table.get(&this)?.0.spec.taints.iter();
        Ok(self
            .allowance
            .copy_each(taints.filter_map(|taint| Some((taint, effect(&taint.effect)?))))?)
    }

    fn conditions(&mut self, this: Resource<LentCluster>) -> Result<Vec<cluster::Condition>> {
        self.asked(&[])?;
        Ok(self
            .allowance
            .copy_each(self.table.get(&this)?.0.status.conditions.iter())?)
    }

    fn condition(&mut self, this: Resource<LentCluster>, name: String) -> Result<Option<cluster::Condition>> {
        self.asked(&[&name])?;
        Ok(self
            .allowance
            .copy(Condition::find(&self.table.get(&this)?.0.status.conditions, &name))?)
    }

    fn serves(&mut self, this: Resource<LentCluster>, api_version: String, kind: String) -> Result<bool> {
        self.asked(&[&api_version, &kind])?;
        Ok(self
            .allowance
            .copy(self.table.get(&this)?.0.serves(&api_version, &kind))?)
    }

    fn document(&mut self, this: Resource<LentCluster>) -> Result<Resource<Document>> {
        self.asked(&[])?;
        let cluster = &*self.table.get(&this)?.0;
        let tree = self
            .trees
            .of(cluster, &mut self.allowance, || text_bytes(cluster), json)?;
        Ok(self.table.push(Document::from(tree))?)
    }

    fn drop(&mut self, this: Resource<LentCluster>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
