//! Candidate clusters as columns.

use bulkhead_core::model::Cluster;
use serde::Serialize;
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::Host;
use super::allowance::{Allowance, Copied, Exceeded, VALUE_BYTES};
use super::lent::{Candidates, LentCluster};
use super::trees::{json, text_bytes};
use crate::host::bindings::bulkhead::policy::clusters;

/// Finds a value in a cluster's document. Only the part selected by the pointer is converted to JSON, after `spend`
/// was called with the length of its text: a status lists every API that a cluster serves.
fn looked_up(cluster: &Cluster, pointer: &str, spend: &mut Spend<'_>) -> Result<Option<Value>, Exceeded> {
    let mut segments = pointer.splitn(4, '/').skip(1);
    let (first, second) = (segments.next(), segments.next());
    let status = &cluster.status;
    let (part, depth) = match (first, second) {
        (Some("labels"), _) => (made(&cluster.labels, spend)?, 1),
        (Some("spec"), _) => (made(&cluster.spec, spend)?, 1),
        (Some("status"), Some("conditions")) => (made(&status.conditions, spend)?, 2),
        (Some("status"), Some("nodeSummary")) if status.node_summary.is_none() => return Ok(None),
        (Some("status"), Some("nodeSummary")) => (made(&status.node_summary, spend)?, 2),
        (Some("status"), Some("resourceSummary")) if status.resource_summary.is_none() => return Ok(None),
        (Some("status"), Some("resourceSummary")) => (made(&status.resource_summary, spend)?, 2),
        (Some("status"), Some("kubernetesVersion")) => (made(&status.kubernetes_version, spend)?, 2),
        _ => (made(cluster, spend)?, 0),
    };
    let rest = pointer
        .match_indices('/')
        .nth(depth)
        .map_or("", |(at, _)| pointer.get(at..).unwrap_or_default());
    let rest = if depth == 0 { pointer } else { rest };
    Ok(part.pointer(rest).cloned())
}

/// Function that spends steps.
type Spend<'a> = dyn FnMut(usize) -> Result<(), Exceeded> + 'a;

fn made(part: &impl Serialize, spend: &mut Spend<'_>) -> Result<Value, Exceeded> {
    spend(text_bytes(part))?;
    Ok(json(part))
}

impl Host {
    /// Copies one value of each candidate.
    fn column<'h, T: Copied>(
        &'h mut self,
        this: &Resource<Candidates>,
        value: impl Fn(&'h Cluster) -> T,
    ) -> Result<Vec<T::Copy>> {
        self.asked(&[])?;
        Ok(self.allowance.copy_each(self.table.get(this)?.iter().map(value))?)
    }

    /// Finds a value in each candidate by pointer, and converts it.
    fn looked_up<T>(
        &mut self,
        this: &Resource<Candidates>,
        pointer: &str,
        read: impl Fn(&mut Allowance, Option<&Value>) -> Result<T, Exceeded>,
    ) -> Result<Vec<T>> {
        self.asked(&[pointer])?;
        let mut values = Vec::new();
        for cluster in self.table.get(this)?.iter() {
            self.allowance.spend(pointer.len())?;
            let found = looked_up(cluster, pointer, &mut |steps| self.allowance.spend(steps))?;
            values.push(read(&mut self.allowance, found.as_ref())?);
        }
        Ok(values)
    }
}

impl clusters::Host for Host {}

impl clusters::HostClusters for Host {
    fn len(&mut self, this: Resource<Candidates>) -> Result<u32> {
        Ok(u32::try_from(self.table.get(&this)?.rows.len()).unwrap_or(u32::MAX))
    }

    fn names(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        self.column(&this, |cluster| cluster.name.as_str())
    }

    fn ready(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        self.column(&this, Cluster::is_ready)
    }

    fn current(&mut self, this: Resource<Candidates>) -> Result<Vec<bool>> {
        self.asked(&[])?;
        let candidates = self.table.get(&this)?;
        let current = candidates.replicas();
        let current = candidates
            .iter()
            .map(|cluster| current.contains_key(cluster.name.as_str()));
        Ok(self.allowance.copy_each(current)?)
    }

    fn replicas(&mut self, this: Resource<Candidates>) -> Result<Vec<u32>> {
        self.asked(&[])?;
        let candidates = self.table.get(&this)?;
        let replicas = candidates.replicas();
        let replicas = candidates
            .iter()
            .map(|cluster| replicas.get(cluster.name.as_str()).copied().unwrap_or(0));
        Ok(self.allowance.copy_each(replicas)?)
    }

    fn label(&mut self, this: Resource<Candidates>, key: String) -> Result<Vec<Option<String>>> {
        self.asked(&[&key])?;
        let labels = self
            .table
            .get(&this)?
            .iter()
            .map(|cluster| cluster.labels.get(&key).map(String::as_str));
        Ok(self.allowance.look_up_each(key.len(), labels)?)
    }

    fn regions(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        self.column(&this, |cluster| cluster.spec.region.as_str())
    }

    fn providers(&mut self, this: Resource<Candidates>) -> Result<Vec<String>> {
        self.column(&this, |cluster| cluster.spec.provider.as_str())
    }

    fn allocatable(&mut self, this: Resource<Candidates>, name: String) -> Result<Vec<f64>> {
        self.asked(&[&name])?;
        let amounts = self.table.get(&this)?.amounts(&name, |column| &column.allocatable);
        Ok(self.allowance.copy_column(amounts)?)
    }

    fn free(&mut self, this: Resource<Candidates>, name: String) -> Result<Vec<f64>> {
        self.asked(&[&name])?;
        let amounts = self.table.get(&this)?.amounts(&name, |column| &column.amounts);
        Ok(self.allowance.copy_column(amounts)?)
    }

    fn text(&mut self, this: Resource<Candidates>, pointer: String) -> Result<Vec<Option<String>>> {
        self.looked_up(&this, &pointer, |allowance, found| {
            allowance.copy(found.and_then(Value::as_str))
        })
    }

    fn number(&mut self, this: Resource<Candidates>, pointer: String) -> Result<Vec<f64>> {
        let number = |found: Option<&Value>| found.and_then(Value::as_f64).unwrap_or(f64::NAN);
        self.looked_up(&this, &pointer, |allowance, found| allowance.copy(number(found)))
    }

    fn get(&mut self, this: Resource<Candidates>, index: u32) -> Result<Option<Resource<LentCluster>>> {
        self.charge(VALUE_BYTES)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let cluster = self.table.get(&this)?.get(index).cloned();
        Ok(cluster
            .map(|cluster| self.table.push(LentCluster::from(cluster)))
            .transpose()?)
    }

    fn drop(&mut self, this: Resource<Candidates>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bulkhead_core::model::{Binding, Cluster};
    use bulkhead_core::snapshot::{self, ClusterSnapshot};
    use serde_json::{Value, json};

    use super::{Candidates, json as document, looked_up};

    #[test]
    fn amounts_are_in_base_units_and_those_of_the_candidates_only() {
        let cluster = |(name, summary): (&str, Value)| {
            let value = json!({"name": name, "spec": {"syncMode": "Push"}, "status": {"resourceSummary": summary}});
            Arc::new(serde_json::from_value::<Cluster>(value).unwrap())
        };
        let snapshot = ClusterSnapshot::new([
            cluster((
                "a",
                json!({"allocatable": {"cpu": "4"}, "allocated": {"cpu": "500m"}, "allocating": {"cpu": "1"}}),
            )),
            cluster(("b", json!({"allocatable": {"cpu": "9"}}))),
            cluster(("c", json!({"allocatable": {"cpu": "2"}, "allocated": {"cpu": "3"}}))),
            cluster(("d", json!({"allocatable": {"cpu": "many"}}))),
            cluster(("e", Value::Null)),
            cluster((
                "f",
                json!({"allocatable": {"memory": "50Pi"}, "allocated": {"cpu": "1"}}),
            )),
        ]);
        let candidates = snapshot::Candidates::of_rows(&snapshot, &[0, 2, 3, 4, 5]);
        let candidates = Candidates::new(Arc::new(Binding::default()), candidates);
        let check = |name: &str, allocatable: [Option<f64>; 5], free: [Option<f64>; 5]| {
            let known = |amount: f64| Some(amount).filter(|amount| !amount.is_nan());
            let actual: Vec<_> = candidates
                .amounts(name, |column| &column.allocatable)
                .map(known)
                .collect();
            assert_eq!(actual, allocatable, "allocatable {name}");
            let actual: Vec<_> = candidates.amounts(name, |column| &column.amounts).map(known).collect();
            assert_eq!(actual, free, "free {name}");
        };
        check(
            "cpu",
            [Some(4.0), Some(2.0), None, None, None],
            [Some(2.5), Some(0.0), None, None, None],
        );
        let all = 50.0 * 2_f64.powi(50);
        check(
            "memory",
            [None, None, None, None, Some(all)],
            [None, None, None, None, Some(all)],
        );
        check("gpu", [None; 5], [None; 5]);
    }

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
            let found = looked_up(&cluster, pointer, &mut |_| Ok(()));
            assert_eq!(found, Ok(whole.pointer(pointer).cloned()), "{pointer}");
        }
        let found = looked_up(&Cluster::default(), "/status/nodeSummary/readyNum", &mut |_| Ok(()));
        assert_eq!(found, Ok(None::<Value>));
    }
}
