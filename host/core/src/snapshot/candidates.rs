use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::ClusterSnapshot;
use crate::model::Cluster;

/// Subset of the clusters of a snapshot, sorted by name. Cheap to copy.
///
/// Plugins that do not use columns iterate over the clusters; the others use [`Candidates::rows`]. Serializes as the
/// list of clusters.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    snapshot: &'a ClusterSnapshot,
    rows: &'a [u32],
}

impl<'a> Candidates<'a> {
    /// Selects rows of a snapshot; `rows` must be in ascending order and exist in the snapshot.
    pub fn of_rows(snapshot: &'a ClusterSnapshot, rows: &'a [u32]) -> Self {
        debug_assert!(rows.is_sorted() && rows.last().is_none_or(|row| (*row as usize) < snapshot.len()));
        Self { snapshot, rows }
    }

    /// Returns the snapshot of the rows.
    pub fn snapshot(&self) -> &'a ClusterSnapshot {
        self.snapshot
    }

    /// Returns the row numbers, in ascending order.
    pub fn rows(&self) -> &'a [u32] {
        self.rows
    }

    /// Returns the number of candidates.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns an iterator over the clusters, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a Arc<Cluster>> + use<'a> {
        let clusters = self.snapshot.clusters();
        self.rows.iter().map(move |row| &clusters[*row as usize])
    }

    /// Returns the position of a row among the candidates.
    pub fn position(&self, row: u32) -> Option<usize> {
        // If no cluster was left out, row and position are equal.
        if self.rows.get(row as usize) == Some(&row) {
            return Some(row as usize);
        }
        self.rows.binary_search(&row).ok()
    }

    /// Returns the position of a cluster among the candidates.
    pub fn position_of(&self, name: &str) -> Option<usize> {
        self.position(self.snapshot.row(name)?)
    }
}

impl Serialize for Candidates<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_only_the_candidates() {
        let cluster = |name: &str| {
            Arc::new(Cluster {
                name: name.to_owned(),
                ..Cluster::default()
            })
        };
        let snapshot = ClusterSnapshot::new(["a", "b", "c", "d"].map(cluster));
        let candidates = Candidates::of_rows(&snapshot, &[0, 2, 3]);
        let positions: Vec<_> = ["a", "b", "c", "d", "e"]
            .map(|name| candidates.position_of(name))
            .to_vec();
        assert_eq!(positions, [Some(0), None, Some(1), Some(2), None]);
        assert_eq!(
            candidates
                .iter()
                .map(|cluster| cluster.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "c", "d"]
        );
    }
}
