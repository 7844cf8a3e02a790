//! Index of the records: a short row for each, the states of the clusters, and the answers of the policies.
//!
//! It is bounded and kept in memory, so that a page costs milliseconds. Inputs of decisions are not in it; a page that
//! shows them reads its few records again.

mod clusters;
mod policies;
mod pool;
mod row;

use std::collections::BTreeMap;

use bulkhead_core::journal::{Limits, Outcome};
use bulkhead_core::time::Time;
use bulkhead_journal::{DecisionOutline, News, Stored};

pub use self::clusters::{ClusterState, Clusters};
pub use self::policies::{Policies, PolicyRow};
use self::row::Pools;
pub use self::row::Row;
use crate::source::Place;

/// Maximum number of rows. The default size of a journal holds fewer records.
const ROWS_MAX: usize = 200_000;
/// Number of rows by which the limit is exceeded before the oldest are removed.
const SLACK: usize = 10_000;
/// Growth of the list of rows: one part in this many.
const GROWTH: usize = 8;

/// Index of the records of all processes, as one list in order of time.
#[derive(Default)]
pub struct History {
    rows: Vec<Row>,
    /// Number of rows that were removed to make room.
    dropped: usize,
    /// Changes with each change of the content.
    version: u64,
    processes: BTreeMap<(usize, String), Progress>,
    pools: Pools,
    clusters: Clusters,
    policies: Policies,
    /// Eviction rates with the times from which they were seen, in order.
    limits: Vec<(i64, Limits)>,
}

/// Last record of a process.
#[derive(Clone, Copy, Default)]
struct Progress {
    id: u64,
    order_ms: i64,
}

impl History {
    /// Takes what a source passes to `take`.
    pub fn add(&mut self, place: Option<Place>, news: News<DecisionOutline>) {
        match news {
            News::Record(stored) => self.add_record(place, &stored),
            News::Abandoned(id) => self.abandon(|row| row.number == id && is_of_journal(row, place)),
        }
    }

    fn add_record(&mut self, place: Option<Place>, stored: &Stored<DecisionOutline>) {
        let record = &stored.record;
        let key = (place.map_or(0, |place| place.journal), record.process.clone());
        let progress = self.processes.entry(key).or_default();
        if record.id <= progress.id {
            if record.outcome == Outcome::Abandoned {
                let id = record.decision_id();
                self.abandon(|row| row.is(&id) && is_of_journal(row, place));
            }
            return;
        }
        // The clock of a process may be set back; its decisions keep their order.
        let order_ms = record.entry.at.as_millis().max(progress.order_ms);
        *progress = Progress {
            id: record.id,
            order_ms,
        };
        let row = Row::new(order_ms, place, stored, &mut self.pools);
        self.index(order_ms, stored);
        if self.rows.len() == self.rows.capacity() {
            // Rows are most of the index, and a list that doubles would be half empty for long.
            self.rows.reserve_exact(self.rows.len() / GROWTH + SLACK / GROWTH);
        }
        self.rows.push(row);
        self.version += 1;
    }

    /// Puts the rows in order and bounds them. Called after records were added.
    pub fn finish(&mut self) {
        if !self.rows.is_sorted_by_key(|row| row.order_ms) {
            self.rows.sort_by_key(|row| row.order_ms);
        }
        self.clusters.finish();
        if self.rows.len() > ROWS_MAX + SLACK {
            let surplus = self.rows.len() - ROWS_MAX;
            self.rows.drain(..surplus);
            self.dropped += surplus;
            self.pools.retain_used();
        }
    }

    /// Marks the last row that `is_it` returns true for as abandoned.
    fn abandon(&mut self, is_it: impl Fn(&Row) -> bool) {
        if let Some(row) = self.rows.iter_mut().rev().find(|row| is_it(row))
            && row.outcome != Outcome::Abandoned
        {
            row.outcome = Outcome::Abandoned;
            self.version += 1;
        }
    }

    fn index(&mut self, order_ms: i64, stored: &Stored<DecisionOutline>) {
        let decision = stored.decision.as_deref();
        if let Some(decision) = decision {
            self.clusters.observe(order_ms, decision);
            if let Some(limits) = &decision.limits
                && self.limits.last().is_none_or(|(_, last)| last != limits)
            {
                self.limits.push((order_ms, limits.clone()));
            }
        }
        if stored.record.outcome == Outcome::Taken {
            self.clusters.apply(order_ms, &stored.record.entry);
        }
        self.policies.count(stored);
    }

    /// Returns a number that changes with the content.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of rows that were removed to make room.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns the times of the first and the last row.
    pub fn extent(&self) -> Option<(Time, Time)> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        Some((Time::from_millis(first.order_ms), Time::from_millis(last.order_ms)))
    }

    /// Returns all rows, oldest first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the rows until a time, included. Without a time, all.
    pub fn until(&self, time: Option<Time>) -> &[Row] {
        let Some(time) = time else { return &self.rows };
        let count = self.rows.partition_point(|row| row.order_ms <= time.as_millis());
        self.rows.get(..count).unwrap_or_default()
    }

    /// Returns the rows from one time until another, both included.
    pub fn between(&self, from: Option<Time>, until: Option<Time>) -> &[Row] {
        let rows = self.until(until);
        let first = from.map_or(0, |from| rows.partition_point(|row| row.order_ms < from.as_millis()));
        rows.get(first..).unwrap_or_default()
    }

    /// Returns the states of the clusters.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Returns the policies with their answers.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Returns the eviction rates that applied at a time. Without a time, the last ones.
    pub fn limits(&self, time: Option<Time>) -> Option<&Limits> {
        let is_earlier = |(at, _): &&(i64, Limits)| time.is_none_or(|time| *at <= time.as_millis());
        self.limits.iter().rev().find(is_earlier).map(|(_, limits)| limits)
    }
}

/// Returns true if a row is of the journal of a place.
fn is_of_journal(row: &Row, place: Option<Place>) -> bool {
    row.origin.place.map(|at| at.journal) == place.map(|at| at.journal)
}

#[cfg(test)]
pub(crate) mod tests;
