//! Columns over the rows of a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::models::{Grades, ModelColumn, NodeCounts};
use super::row::Row;
use crate::model::{Cluster, ClusterSpec};

/// Providers, regions and zones of the clusters.
#[derive(Debug, Default)]
pub struct TopologyColumns {
    regions: Vec<String>,
    region_of: Vec<u32>,
    zonal: Vec<Topology>,
}

/// Topology properties of a cluster, as required by spread constraints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// `spec.provider` is set.
    pub provider: bool,
    /// `spec.region` is set.
    pub region: bool,
    /// `spec.zones` has an entry.
    pub zones: bool,
}

impl TopologyColumns {
    pub(super) fn new(clusters: &[Arc<Cluster>]) -> Self {
        let names: BTreeSet<&str> = clusters.iter().map(|cluster| cluster.spec.region.as_str()).collect();
        let numbers: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let number = |cluster: &Arc<Cluster>| numbers.get(cluster.spec.region.as_str()).copied().unwrap_or_default();
        let zonal = |cluster: &Arc<Cluster>| Topology {
            provider: !cluster.spec.provider.is_empty(),
            region: !cluster.spec.region.is_empty(),
            zones: !cluster.spec.zones.is_empty(),
        };
        Self {
            region_of: clusters.iter().map(number).collect(),
            zonal: clusters.iter().map(zonal).collect(),
            regions: names.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Returns true if region, provider and zones are equal.
    pub(super) fn are_same(new: &ClusterSpec, old: &ClusterSpec) -> bool {
        (&new.region, &new.provider, &new.zones) == (&old.region, &old.provider, &old.zones)
    }

    /// Returns the sorted names of all regions; the index is the region number. Clusters without a region have an
    /// empty name.
    pub fn regions(&self) -> &[String] {
        &self.regions
    }

    /// Returns the number of the region of the cluster in a row.
    pub fn region(&self, row: u32) -> usize {
        self.region_of.get(row as usize).copied().unwrap_or_default() as usize
    }

    /// Returns the topology properties of the cluster in a row.
    pub fn zonal(&self, row: u32) -> Topology {
        self.zonal.get(row as usize).copied().unwrap_or_default()
    }
}

/// Free capacity of the clusters.
#[derive(Debug, Default)]
pub struct Capacity {
    /// Free pod slots; `None` for a cluster without a resource summary.
    pods: Vec<Option<i64>>,
    resources: BTreeMap<String, ResourceColumn>,
    definitions: Vec<Arc<Grades>>,
    models: Vec<Models>,
    node_counts: Vec<i64>,
}

/// Location of the models of a row.
#[derive(Clone, Copy, Debug)]
enum Models {
    None,
    Unusable,
    Counts { definition: u32, start: u32, len: u32 },
}

/// Free amount of one resource, by row.
#[derive(Debug, Default)]
pub struct ResourceColumn {
    /// True if the cluster offers the resource.
    pub offered: Vec<bool>,
    /// Free amount in units, rounded away from zero.
    pub units: Vec<i64>,
    /// Free amount in thousandths, rounded away from zero.
    pub millis: Vec<i64>,
    /// True if the quantity has binary format.
    pub binary: Vec<bool>,
    /// Free amount as plugins see it: in base units (cores, bytes, pieces), never below 0; NaN if not offered.
    pub amounts: Vec<f64>,
    /// Total allocatable amount of all nodes, in base units; NaN if not offered.
    pub allocatable: Vec<f64>,
}

impl ResourceColumn {
    fn empty(rows: usize) -> Self {
        Self {
            offered: vec![false; rows],
            units: vec![0; rows],
            millis: vec![0; rows],
            binary: vec![false; rows],
            amounts: vec![f64::NAN; rows],
            allocatable: vec![f64::NAN; rows],
        }
    }
}

impl Capacity {
    pub(super) fn new(rows: &[Arc<Row>]) -> Self {
        let mut capacity = Self::default();
        let mut numbers: BTreeMap<*const Grades, u32> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            capacity.pods.push(row.summary.as_ref().map(|summary| summary.pods));
            for (name, free) in row.summary.iter().flat_map(|summary| &summary.free) {
                if !capacity.resources.contains_key(name) {
                    capacity
                        .resources
                        .insert(name.clone(), ResourceColumn::empty(rows.len()));
                }
                if let Some(column) = capacity.resources.get_mut(name) {
                    column.offered[index] = true;
                    column.units[index] = free.units;
                    column.millis[index] = free.millis;
                    column.binary[index] = free.binary;
                    column.amounts[index] = free.amount;
                    column.allocatable[index] = free.allocatable;
                }
            }
            let models = match &row.counts {
                NodeCounts::None => Models::None,
                NodeCounts::Unusable => Models::Unusable,
                NodeCounts::Counts(counts) => {
                    let definition = *numbers.entry(Arc::as_ptr(&row.grades)).or_insert_with(|| {
                        capacity.definitions.push(Arc::clone(&row.grades));
                        capacity.definitions.len() as u32 - 1
                    });
                    let start = capacity.node_counts.len() as u32;
                    capacity.node_counts.extend(counts);
                    Models::Counts {
                        definition,
                        start,
                        len: counts.len() as u32,
                    }
                }
            };
            capacity.models.push(models);
        }
        capacity
    }

    /// Returns the free pod slots, which may be negative; `None` for a cluster without a resource summary.
    pub fn pods(&self, row: u32) -> Option<i64> {
        self.pods.get(row as usize).copied().flatten()
    }

    /// Returns the free amounts of a resource; `None` if no cluster offers it.
    pub fn resource(&self, name: &str) -> Option<&ResourceColumn> {
        self.resources.get(name)
    }

    /// Returns the distinct grade definitions that [`ModelColumn::Counts`] refers to.
    pub fn definitions(&self) -> &[Arc<Grades>] {
        &self.definitions
    }

    /// Returns the models of the cluster in a row.
    pub fn models(&self, row: u32) -> ModelColumn<'_> {
        match self.models.get(row as usize) {
            None | Some(Models::None) => ModelColumn::None,
            Some(Models::Unusable) => ModelColumn::Unusable,
            Some(Models::Counts { definition, start, len }) => {
                let nodes = self
                    .node_counts
                    .get(*start as usize..(*start + *len) as usize)
                    .unwrap_or_default();
                ModelColumn::Counts {
                    definition: *definition,
                    nodes,
                }
            }
        }
    }
}
