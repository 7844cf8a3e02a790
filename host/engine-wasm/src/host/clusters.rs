//! Candidate clusters as columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::model::{Binding, Cluster, ResourceSummary};
use bulkhead_core::quantity::Quantity;
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::document::json;
use super::{Host, LentCluster};
use crate::bindings::bulkhead::policy::clusters;

/// Candidate clusters that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Candidates {
    clusters: Vec<Arc<Cluster>>,
    binding: Arc<Binding>,
}

impl Candidates {
    /// The candidates of a call about a binding.
    pub(crate) fn new(binding: Arc<Binding>, clusters: &[Arc<Cluster>]) -> Self {
        Self { clusters: clusters.to_vec(), binding }
    }

    fn column<T>(&self, value: impl Fn(&Cluster) -> T) -> Vec<T> {
        self.clusters.iter().map(|cluster| value(cluster)).collect()
    }

    /// The replicas that the binding has on each of its clusters.
    fn replicas(&self) -> BTreeMap<&str, u32> {
        let targets = self.binding.spec.clusters.iter();
        targets.map(|target| (target.name.as_str(), u32::try_from(target.replicas).unwrap_or(0))).collect()
    }

    /// What a resource of each cluster's summary amounts to; NaN where there is no summary.
    fn resource(&self, amount: impl Fn(&ResourceSummary) -> Option<f64>) -> Vec<f64> {
        self.column(|cluster| cluster.status.resource_summary.as_ref().and_then(&amount).unwrap_or(f64::NAN))
    }
}

/// An amount in its base unit; absent when it is not there or no quantity.
fn amount(of: &BTreeMap<String, String>, name: &str) -> Option<f64> {
    let quantity: Quantity = of.get(name)?.parse().ok()?;
    // Amounts beyond 2^53 thousandths lose their last digits, which no score can tell.
    Some(quantity.millis() as f64 / 1000.0)
}

fn free(summary: &ResourceSummary, name: &str) -> Option<f64> {
    let taken = |of| amount(of, name).unwrap_or(0.0);
    Some((amount(&summary.allocatable, name)? - taken(&summary.allocated) - taken(&summary.allocating)).max(0.0))
}

/// What a pointer leads to in a cluster's document. Only the part that it leads into becomes JSON: a status lists every
/// API that a cluster serves.
fn looked_up(cluster: &Cluster, pointer: &str) -> Option<Value> {
    let mut segments = pointer.splitn(4, '/').skip(1);
    let (first, second) = (segments.next(), segments.next());
    let status = &cluster.status;
    let (part, depth) = match (first, second) {
        (Some("labels"), _) => (json(&cluster.labels), 1),
        (Some("spec"), _) => (json(&cluster.spec), 1),
        (Some("status"), Some("conditions")) => (json(&status.conditions), 2),
        (Some("status"), Some("nodeSummary")) => (json(&status.node_summary.as_ref()?), 2),
        (Some("status"), Some("resourceSummary")) => (json(&status.resource_summary.as_ref()?), 2),
        (Some("status"), Some("kubernetesVersion")) => (json(&status.kubernetes_version), 2),
        _ => (json(cluster), 0),
    };
    let rest = pointer.match_indices('/').nth(depth).map_or("", |(at, _)| pointer.get(at..).unwrap_or_default());
    let rest = if depth == 0 { pointer } else { rest };
    part.pointer(rest).cloned()
}

impl clusters::Host for Host {}

impl clusters::HostClusters for Host {
    fn len(&mut self, this: Resource<Candidates>) -> Result<u32> {
        Ok(u32::try_from(self.table.get(&this)?.clusters.len()).unwrap_or(u32::MAX))
    }

    fn names(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.column(|cluster| cluster.name.clone()))
    }

    fn ready(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        Ok(self.table.get(&this)?.column(Cluster::is_ready))
    }

    fn current(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        let candidates = self.table.get(&this)?;
        let current = candidates.replicas();
        Ok(candidates.column(|cluster| current.contains_key(cluster.name.as_str())))
    }

    fn replicas(&mut self, this: Resource<Candidates>) -> Result<Vec<u32>> {
        let candidates = self.table.get(&this)?;
        let replicas = candidates.replicas();
        Ok(candidates.column(|cluster| replicas.get(cluster.name.as_str()).copied().unwrap_or(0)))
    }

    fn label(&mut self, this: Resource<Candidates>, key: String) -> Result<Vec<Option<String>>> {
        Ok(self.table.get(&this)?.column(|cluster| cluster.labels.get(&key).cloned()))
    }

    fn regions(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.column(|cluster| cluster.spec.region.clone()))
    }

    fn providers(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        Ok(self.table.get(&this)?.column(|cluster| cluster.spec.provider.clone()))
    }

    fn allocatable(&mut self, this: Resource<Candidates>, name: String) -> Result<Vec<f64>> {
        Ok(self.table.get(&this)?.resource(|summary| amount(&summary.allocatable, &name)))
    }

    fn free(&mut self, this: Resource<Candidates>, name: String) -> Result<Vec<f64>> {
        Ok(self.table.get(&this)?.resource(|summary| free(summary, &name)))
    }

    fn text(&mut self, this: Resource<Candidates>, pointer: String) -> Result<Vec<Option<String>>> {
        let text = |cluster: &Cluster| match looked_up(cluster, &pointer) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(self.table.get(&this)?.column(text))
    }

    fn number(&mut self, this: Resource<Candidates>, pointer: String) -> Result<Vec<f64>> {
        let number = |cluster: &Cluster| looked_up(cluster, &pointer).and_then(|value| value.as_f64());
        Ok(self.table.get(&this)?.column(|cluster| number(cluster).unwrap_or(f64::NAN)))
    }

    fn get(&mut self, this: Resource<Candidates>, index: u32) -> Result<Option<Resource<LentCluster>>> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let cluster = self.table.get(&this)?.clusters.get(index).cloned();
        Ok(cluster.map(|cluster| self.table.push(LentCluster::from(cluster))).transpose()?)
    }

    fn drop(&mut self, this: Resource<Candidates>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::Cluster;
    use serde_json::{Value, json};

    use super::{json as document, looked_up};

    #[test]
    fn a_pointer_finds_the_same_in_a_part_as_in_the_whole() {
        let cluster: Cluster = serde_json::from_value(json!({
            "name": "member1",
            "labels": {"tier": "gold", "example.io/zone": "a"},
            "spec": {"syncMode": "Push", "region": "eu", "zones": ["a", "b"], "other": {"deep": 1}},
            "status": {
                "kubernetesVersion": "v1.35.0",
                "nodeSummary": {"totalNum": 3, "readyNum": 2},
                "resourceSummary": {"allocatable": {"cpu": "4"}},
                "conditions": [{"type": "Ready", "status": "True"}],
                "apiEnablements": [{"groupVersion": "apps/v1"}],
            },
        }))
        .unwrap();
        let whole = document(&cluster);
        let pointers = [
            "",
            "/name",
            "/labels",
            "/labels/tier",
            "/labels/example.io~1zone",
            "/spec",
            "/spec/region",
            "/spec/zones/1",
            "/spec/other/deep",
            "/status",
            "/status/nodeSummary",
            "/status/nodeSummary/readyNum",
            "/status/resourceSummary/allocatable/cpu",
            "/status/conditions/0/status",
            "/status/kubernetesVersion",
            "/status/apiEnablements/0/groupVersion",
            "/status/none",
            "/nowhere/else/at/all",
            "no-pointer",
        ];
        for pointer in pointers {
            assert_eq!(looked_up(&cluster, pointer), whole.pointer(pointer).cloned(), "{pointer}");
        }
        assert_eq!(looked_up(&Cluster::default(), "/status/nodeSummary/readyNum"), None::<Value>);
    }
}
