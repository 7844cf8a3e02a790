//! Names by row, and from a name to its row: an open hash table of row numbers, because a binding may have a
//! thousand targets. All names are in one text, so that a look-up touches little memory.

use std::sync::Arc;

use crate::model::Cluster;
use crate::names::fnv1a_32;

/// Marks a free place.
const FREE: u32 = u32::MAX;

/// The names of a snapshot, by row.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<u32>,
    /// Hash and row at the places that the hashes say; at most half of the places are taken, and their number is a
    /// power of two.
    places: Vec<(u32, u32)>,
}

impl Names {
    pub(super) fn new(clusters: &[Arc<Cluster>]) -> Self {
        let mut names = Self { places: vec![(0, FREE); (clusters.len() * 2).next_power_of_two()], ..Self::default() };
        for (cluster, row) in clusters.iter().zip(0..) {
            names.text.push_str(&cluster.name);
            names.ends.push(names.text.len() as u32);
            let hash = fnv1a_32(cluster.name.as_bytes());
            let mut at = hash as usize & (names.places.len() - 1);
            while names.places[at].1 != FREE {
                at = (at + 1) & (names.places.len() - 1);
            }
            names.places[at] = (hash, row);
        }
        names
    }

    /// The name in a row; empty for a row that does not exist.
    pub(super) fn get(&self, row: u32) -> &str {
        let row = row as usize;
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(row).copied().unwrap_or(start);
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let hash = fnv1a_32(name.as_bytes());
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let (there, row) = *self.places.get(at)?;
            if row == FREE {
                return None;
            }
            if there == hash && self.get(row) == name {
                return Some(row);
            }
            at = (at + 1) & mask;
        }
    }
}
