//! Index of the records: a short row for each, the states of the clusters, and the answers of the policies.
//!
//! It is bounded and kept in memory, so that a page costs milliseconds. Inputs of decisions are not in it; a page that
//! shows them reads its few records again.

mod clusters;
mod policies;
mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::journal::{Limits, Outcome, Subject};
use bulkhead_core::time::Time;
use bulkhead_journal::{DecisionOutline, Stored};

pub use self::clusters::{ClusterState, Clusters};
pub use self::policies::{Policies, PolicyRow};
pub use self::row::Row;
use crate::source::Place;

/// Maximum number of rows. The default size of a journal holds fewer records.
const ROWS_MAX: usize = 200_000;
/// Number of rows by which the limit is exceeded before the oldest are removed.
const SLACK: usize = 10_000;

/// Index of the records of all processes, as one list in order of time.
#[derive(Default)]
pub struct History {
    rows: Vec<Row>,
    /// Number of rows that were removed to make room.
    dropped: usize,
    /// Changes with each change of the content.
    version: u64,
    processes: BTreeMap<(usize, String), Progress>,
    subjects: BTreeSet<Arc<Subject>>,
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
    /// Adds records that a source passes to `take`.
    pub fn add(&mut self, place: Option<Place>, stored: &Stored<DecisionOutline>) {
        let record = &stored.record;
        let key = (place.map_or(0, |place| place.journal), record.process.clone());
        let progress = self.processes.entry(key).or_default();
        if record.id <= progress.id {
            if record.outcome == Outcome::Abandoned {
                self.abandon(place, stored);
            }
            return;
        }
        // The clock of a process may be set back; its decisions keep their order.
        let order_ms = record.entry.at.as_millis().max(progress.order_ms);
        *progress = Progress {
            id: record.id,
            order_ms,
        };
        let subject = self.subject(&record.entry.subject);
        let row = Row::new(order_ms, place, subject, stored);
        self.index(order_ms, stored);
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
            self.subjects.retain(|subject| Arc::strong_count(subject) > 1);
        }
    }

    fn subject(&mut self, subject: &Subject) -> Arc<Subject> {
        if let Some(known) = self.subjects.get(subject) {
            return Arc::clone(known);
        }
        let shared = Arc::new(subject.clone());
        self.subjects.insert(Arc::clone(&shared));
        shared
    }

    fn abandon(&mut self, place: Option<Place>, stored: &Stored<DecisionOutline>) {
        let id = stored.record.decision_id();
        let is_it = |row: &&mut Row| row.id == id && row.place.map(|at| at.journal) == place.map(|at| at.journal);
        if let Some(row) = self.rows.iter_mut().rev().find(is_it)
            && row.outcome != Outcome::Abandoned
        {
            row.abandon();
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

#[cfg(test)]
pub(crate) mod tests;
