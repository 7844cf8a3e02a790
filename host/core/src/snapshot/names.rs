//! From a name to a row: an open hash table of row numbers, because a binding may have a thousand targets.

use std::sync::Arc;

use crate::model::Cluster;
use crate::names::fnv1a_32;

/// Marks a free place.
const FREE: u32 = u32::MAX;

/// Row numbers at the places that the hashes of their names say; at most half of the places are taken.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    places: Vec<u32>,
}

impl NameIndex {
    pub(super) fn new(clusters: &[Arc<Cluster>]) -> Self {
        let mut places = vec![FREE; (clusters.len() * 2).next_power_of_two()];
        for (cluster, row) in clusters.iter().zip(0..) {
            let mut at = start(&cluster.name, places.len());
            while places[at] != FREE {
                at = (at + 1) % places.len();
            }
            places[at] = row;
        }
        Self { places }
    }

    pub(super) fn find(&self, name: &str, clusters: &[Arc<Cluster>]) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = start(name, self.places.len());
        loop {
            let row = self.places[at];
            // A free place ends the search; it also is no row.
            let cluster = clusters.get(row as usize)?;
            if cluster.name == name {
                return Some(row);
            }
            at = (at + 1) % self.places.len();
        }
    }
}

fn start(name: &str, places: usize) -> usize {
    fnv1a_32(name.as_bytes()) as usize % places
}
