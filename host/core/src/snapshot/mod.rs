//! Member clusters as scheduling sees them: an immutable, columnar snapshot, shared by `Arc`.
//!
//! Parsing and indexing take place once per cluster version, when the snapshot is created; decisions on bindings only
//! read columns. An updated snapshot reuses the parsed rows of all unchanged clusters ([`ClusterSnapshot::update`]).
//!
//! Start with [`ClusterSnapshot`]; [`Candidates`] is the subset that is passed to a plugin.

mod apis;
mod candidates;
mod columns;
mod labels;
mod models;
mod names;
mod row;

use std::sync::Arc;

use crate::model::Cluster;
pub use apis::Serving;
pub use candidates::Candidates;
pub use columns::{Capacity, ResourceColumn, Topology, TopologyColumns};
use labels::Labels;
pub use models::{Grade, Grades, ModelColumn};
use names::Names;
use row::{Interned, Row};

/// All known clusters, sorted by name. Rows are numbered from 0 in this order.
#[derive(Debug, Default)]
pub struct ClusterSnapshot {
    clusters: Arc<[Arc<Cluster>]>,
    rows: Vec<Arc<Row>>,
    names: Arc<Names>,
    labels: Arc<Labels>,
    present: Vec<u32>,
    tainted: Vec<u32>,
    apis: apis::ApiColumn,
    places: Arc<columns::TopologyColumns>,
    capacity: Arc<columns::Capacity>,
}

impl ClusterSnapshot {
    /// Creates a snapshot of clusters in any order. If several have the same name, the last one counts.
    pub fn new(clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        Self::default().update(clusters)
    }

    /// Creates a snapshot of new cluster versions. Clusters with an unchanged `Arc` are not parsed again. Names,
    /// labels and places are indexed again only if one of them changed, because most updates change only the status.
    pub fn update(&self, clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        let mut clusters: Vec<_> = clusters.into_iter().collect();
        // Most updates have one new version. Clusters that are shared with this snapshot are not read at all.
        let is_same = |of: fn(&Cluster, &Cluster) -> bool, clusters: &[Arc<Cluster>]| {
            let mut pairs = clusters.iter().zip(&*self.clusters);
            clusters.len() == self.clusters.len() && pairs.all(|(new, old)| Arc::ptr_eq(new, old) || of(new, old))
        };
        let same_names = is_same(|new, old| new.name == old.name, &clusters);
        if !same_names {
            clusters.reverse();
            clusters.sort_by(|a, b| a.name.cmp(&b.name));
            clusters.dedup_by(|a, b| a.name == b.name);
        }
        let same_names = same_names || is_same(|new, old| new.name == old.name, &clusters);
        let mut interned = Interned::of(&self.rows);
        let rows: Vec<_> = clusters
            .iter()
            .enumerate()
            .map(|(row, cluster)| self.reuse_or_parse(row, cluster, &mut interned))
            .collect();
        let numbered = || clusters.iter().zip(0_u32..);
        let same_labels = same_names && is_same(|new, old| new.labels == old.labels, &clusters);
        let same_places = same_names
            && is_same(
                |new, old| columns::TopologyColumns::are_same(&new.spec, &old.spec),
                &clusters,
            );
        Self {
            names: if same_names {
                Arc::clone(&self.names)
            } else {
                Arc::new(Names::new(&clusters))
            },
            labels: if same_labels {
                Arc::clone(&self.labels)
            } else {
                Arc::new(Labels::new(&clusters))
            },
            present: numbered()
                .filter(|(cluster, _)| !cluster.is_terminating())
                .map(|(_, row)| row)
                .collect(),
            tainted: rows
                .iter()
                .zip(0..)
                .filter(|(row, _)| row.blocks_scheduling)
                .map(|(_, number)| number)
                .collect(),
            apis: apis::ApiColumn::new(rows.iter().map(|row| &row.apis)),
            places: if same_places {
                Arc::clone(&self.places)
            } else {
                Arc::new(columns::TopologyColumns::new(&clusters))
            },
            capacity: Arc::new(columns::Capacity::new(&rows)),
            clusters: clusters.into(),
            rows,
        }
    }

    /// Returns the row of a cluster that will have this number. Mostly the old row has the same number.
    fn reuse_or_parse(&self, number: usize, cluster: &Arc<Cluster>, interned: &mut Interned) -> Arc<Row> {
        let is_of = |row: &usize| self.clusters.get(*row).is_some_and(|at| Arc::ptr_eq(at, cluster));
        let by_name = || self.row(&cluster.name).map(|row| row as usize).filter(is_of);
        let known = Some(number).filter(is_of).or_else(by_name);
        let row = known.and_then(|row| self.rows.get(row));
        row.cloned().unwrap_or_else(|| Row::parse(cluster, interned))
    }

    /// Returns the number of clusters, including terminating ones.
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// Returns true if there are no clusters.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// Returns all clusters, sorted by name.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }

    /// Returns all clusters with shared ownership, to outlive a borrow of the snapshot.
    pub fn shared_clusters(&self) -> Arc<[Arc<Cluster>]> {
        Arc::clone(&self.clusters)
    }

    /// Returns the cluster in a row of this snapshot.
    pub fn cluster(&self, row: u32) -> Option<&Arc<Cluster>> {
        self.clusters.get(row as usize)
    }

    /// Returns the name of the cluster in a row; empty for a row that does not exist.
    pub fn name(&self, row: u32) -> &str {
        self.names.get(row)
    }

    /// Returns the row of a cluster.
    pub fn row(&self, name: &str) -> Option<u32> {
        self.names.find(name)
    }

    /// Returns all clusters that are not being removed.
    pub fn present(&self) -> Candidates<'_> {
        Candidates::of_rows(self, &self.present)
    }

    /// Returns the rows of clusters with a taint that blocks scheduling, in ascending order.
    pub fn tainted_rows(&self) -> &[u32] {
        &self.tainted
    }

    /// Returns the clusters that serve a kind, by row.
    pub fn serving<'a>(&'a self, api_version: &str, kind: &str) -> apis::Serving<'a> {
        self.apis.serving(api_version, kind)
    }

    /// Returns providers, regions and zones.
    pub fn places(&self) -> &columns::TopologyColumns {
        &self.places
    }

    /// Returns free resources, free pod slots and grades of nodes.
    pub fn capacity(&self) -> &Arc<columns::Capacity> {
        &self.capacity
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(name: &str) -> Arc<Cluster> {
        Arc::new(serde_json::from_value(json!({"name": name, "spec": {"syncMode": "Push"}})).unwrap())
    }

    #[test]
    fn rows_are_in_order_of_name_and_found_by_it() {
        let snapshot = ClusterSnapshot::new(["m2", "m10", "M3", "m1"].map(cluster));
        let names: Vec<_> = snapshot
            .clusters()
            .iter()
            .map(|cluster| cluster.name.as_str())
            .collect();
        assert_eq!(names, ["M3", "m1", "m10", "m2"]);
        for (row, name) in names.into_iter().enumerate() {
            assert_eq!(snapshot.row(name), Some(row as u32), "{name}");
        }
        assert_eq!(snapshot.row("m3"), None);
    }

    #[test]
    fn an_update_parses_only_what_changed() {
        let (kept, old, new) = (cluster("a"), cluster("b"), cluster("b"));
        let before = ClusterSnapshot::new([Arc::clone(&kept), old]);
        let after = before.update([kept, new]);
        let same: Vec<_> = before
            .rows
            .iter()
            .zip(&after.rows)
            .map(|(a, b)| Arc::ptr_eq(a, b))
            .collect();
        assert_eq!(same, [true, false]);
    }

    #[test]
    fn an_update_indexes_names_labels_and_places_only_when_they_changed() {
        let other = |change: fn(&mut serde_json::Value)| {
            let mut cluster = json!({"name": "b", "labels": {"a": "1"}, "spec": {"syncMode": "Push", "region": "r"}});
            change(&mut cluster);
            Arc::new(serde_json::from_value::<Cluster>(cluster).unwrap())
        };
        let before = ClusterSnapshot::new([cluster("a"), other(|_| {})]);
        let check = |change: fn(&mut serde_json::Value), expected: [bool; 3]| {
            let after = before.update([cluster("a"), other(change)]);
            let kept = [
                Arc::ptr_eq(&before.names, &after.names),
                Arc::ptr_eq(&before.labels, &after.labels),
                Arc::ptr_eq(&before.places, &after.places),
            ];
            assert_eq!(kept, expected);
        };
        check(|_| {}, [true; 3]);
        check(
            |cluster| cluster["status"] = json!({"kubernetesVersion": "v1.36.0"}),
            [true; 3],
        );
        check(|cluster| cluster["labels"]["a"] = json!("2"), [true, false, true]);
        check(|cluster| cluster["spec"]["region"] = json!("s"), [true, true, false]);
        check(|cluster| cluster["spec"]["zones"] = json!(["z"]), [true, true, false]);
        check(|cluster| cluster["name"] = json!("c"), [false; 3]);
    }
}
