//! Mapping between rows and names. A hash table of row numbers finds a row, because a binding may have a thousand
//! targets. All names are stored in one string, so a lookup touches little memory.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::model::Cluster;

/// Names of a snapshot, by row.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    /// End offset of each name in `text`.
    ends: Vec<u32>,
    rows: HashTable<u32>,
}

/// Hashes a name without a random seed, so the result is the same in every process.
fn hash(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

impl Names {
    /// Indexes the names of clusters, which must be unique.
    pub(super) fn new(clusters: &[Arc<Cluster>]) -> Self {
        let mut names = Self {
            rows: HashTable::with_capacity(clusters.len()),
            ..Self::default()
        };
        for (cluster, row) in clusters.iter().zip(0..) {
            names.text.push_str(&cluster.name);
            names.ends.push(names.text.len() as u32);
            let Self { text, ends, rows } = &mut names;
            rows.insert_unique(hash(&cluster.name), row, |row| hash(name(text, ends, *row)));
        }
        names
    }

    /// Returns the name in a row; empty for a row that does not exist.
    pub(super) fn get(&self, row: u32) -> &str {
        name(&self.text, &self.ends, row)
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.rows.find(hash(name), |row| self.get(*row) == name).copied()
    }
}

fn name<'a>(text: &'a str, ends: &[u32], row: u32) -> &'a str {
    let row = row as usize;
    let start = row
        .checked_sub(1)
        .and_then(|before| ends.get(before))
        .copied()
        .unwrap_or(0);
    let end = ends.get(row).copied().unwrap_or(start);
    text.get(start as usize..end as usize).unwrap_or_default()
}
