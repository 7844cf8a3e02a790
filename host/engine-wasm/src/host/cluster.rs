//! One member cluster.

use std::sync::Arc;

use bulkhead_core::model::{Cluster, Condition, ConditionStatus, TaintEffect};
use bulkhead_core::time::Time;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::{Document, Host};
use crate::bindings::bulkhead::policy::{cluster, types};

/// A member cluster that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentCluster(pub(super) Arc<Cluster>);

impl From<Arc<Cluster>> for LentCluster {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self(cluster)
    }
}

/// Whole seconds since the Unix epoch, which is how a guest gets a time in a record.
pub(super) fn seconds(time: Time) -> i64 {
    time.as_millis().div_euclid(1000)
}

fn condition(condition: &Condition) -> cluster::Condition {
    cluster::Condition {
        name: condition.type_.clone(),
        status: match condition.status {
            ConditionStatus::True => types::ConditionStatus::True,
            ConditionStatus::False => types::ConditionStatus::False,
            ConditionStatus::Unknown => types::ConditionStatus::Unknown,
        },
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_transition_s: condition.last_transition_time.map(seconds),
    }
}

/// None for an effect that the contract has no word for; such a taint is in the cluster's document only.
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
        Ok(self.table.get(&this)?.0.name.clone())
    }

    fn label(&mut self, this: Resource<LentCluster>, key: String) -> Result<Option<String>> {
        Ok(self.table.get(&this)?.0.labels.get(&key).cloned())
    }

    fn provider(&mut self, this: Resource<LentCluster>) -> Result<String> {
        Ok(self.table.get(&this)?.0.spec.provider.clone())
    }

    fn region(&mut self, this: Resource<LentCluster>) -> Result<String> {
        Ok(self.table.get(&this)?.0.spec.region.clone())
    }

    fn zones(&mut self, this: Resource<LentCluster>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.0.spec.zones.clone())
    }

    fn taints(&mut self, this: Resource<LentCluster>) -> Result<Vec<cluster::Taint>> {
        let taints = self.table.get(&this)?.0.spec.taints.iter().filter_map(|taint| {
            Some(cluster::Taint {
                key: taint.key.clone(),
                value: taint.value.clone(),
                effect: effect(&taint.effect)?,
                time_added_s: taint.time_added.map(seconds),
            })
        });
        Ok(taints.collect())
    }

    fn conditions(&mut self, this: Resource<LentCluster>) -> Result<Vec<cluster::Condition>> {
        Ok(self.table.get(&this)?.0.status.conditions.iter().map(condition).collect())
    }

    fn condition(&mut self, this: Resource<LentCluster>, name: String) -> Result<Option<cluster::Condition>> {
        Ok(Condition::find(&self.table.get(&this)?.0.status.conditions, &name).map(condition))
    }

    fn serves(&mut self, this: Resource<LentCluster>, api_version: String, kind: String) -> Result<bool> {
        Ok(self.table.get(&this)?.0.serves(&api_version, &kind))
    }

    fn document(&mut self, this: Resource<LentCluster>) -> Result<Resource<Document>> {
        let document = Document::of(&*self.table.get(&this)?.0);
        Ok(self.table.push(document)?)
    }

    fn drop(&mut self, this: Resource<LentCluster>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
