//! Records of one segment, from its frames.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bulkhead_core::journal::Outcome;

use crate::cluster_outline::ClusterForm as _;
use crate::decode::{DecisionForm, Decoded, Fleet, decode};
use crate::error::{JournalError, Problem};
use crate::frame::FrameKind;
use crate::news::News;
use crate::segment::{self, SegmentScan};
use crate::stored::{Stored, key};

/// Number of records that are decoded before a follower passes them on. A segment has thousands.
const GROUP: usize = 64;

/// Segment whose frames are read.
#[derive(Debug)]
pub(crate) struct Open<D: DecisionForm> {
    /// Number of the segment.
    pub(crate) number: u64,
    /// Path of the segment.
    pub(crate) path: PathBuf,
    /// Part that was read; `None` if the header could not be read.
    pub(crate) read: Option<SegmentScan>,
    /// Records to pass on, in order of id.
    pub(crate) waiting: Vec<Stored<D>>,
    /// Ids of the records that were passed on and may be abandoned later.
    passed: Vec<u64>,
    /// Ids of records that were abandoned after they had been passed on.
    revoked: Vec<u64>,
    /// Versions of the clusters, by key. Equal outlines of successive versions are one.
    clusters: BTreeMap<String, Arc<D::Cluster>>,
    /// Last version of each cluster, by name.
    newest: BTreeMap<String, Arc<D::Cluster>>,
    fleets: BTreeMap<String, Fleet<D::Cluster>>,
    newest_fleet: Option<Fleet<D::Cluster>>,
    decisions: BTreeMap<u64, Arc<D>>,
}

impl<D: DecisionForm> Open<D> {
    /// Starts with a segment of which nothing was read.
    pub(crate) fn new(number: u64, path: PathBuf) -> Self {
        Self {
            number,
            path,
            read: None,
            waiting: Vec::new(),
            passed: Vec::new(),
            revoked: Vec::new(),
            clusters: BTreeMap::new(),
            newest: BTreeMap::new(),
            fleets: BTreeMap::new(),
            newest_fleet: None,
            decisions: BTreeMap::new(),
        }
    }

    /// Reads the frames that were not read before. Returns the problems with single frames. `before` is the previous
    /// segment, whose records may be abandoned in this one. If `follows` is true, records are passed on in groups as
    /// they are read; otherwise all wait for [`Open::pass`].
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no valid header.
    pub(crate) fn read_on(
        &mut self,
        before: Option<&mut Self>,
        follows: bool,
        take: &mut dyn FnMut(u64, News<D>),
    ) -> Result<Vec<Problem>, JournalError> {
        let (path, earlier) = (self.path.clone(), self.read.take());
        let (mut problems, mut abandoned) = (Vec::new(), Vec::new());
        let mut frame = |at, kind, payload: &[u8]| {
            if let Err(why) = self.frame(kind, payload, &mut abandoned) {
                let path = self.path.clone();
                problems.push(Problem::Unreadable { path, at, why });
            }
            if follows && self.waiting.len() >= GROUP {
                self.pass(true, take);
            }
        };
        let read = match &earlier {
            Some(earlier) => segment::scan_rest(&path, earlier, &mut frame)?,
            None => segment::scan(&path, &mut frame)?,
        };
        self.read = Some(read);
        if let Some(before) = before {
            before.abandon(abandoned);
        }
        Ok(problems)
    }

    /// Passes the news on. `keeps` is true if records may be abandoned later.
    pub(crate) fn pass(&mut self, keeps: bool, take: &mut dyn FnMut(u64, News<D>)) {
        for id in self.revoked.drain(..) {
            take(self.number, News::Abandoned(id));
        }
        for stored in self.waiting.drain(..) {
            if keeps && stored.record.outcome != Outcome::Abandoned {
                self.passed.push(stored.record.id);
            }
            take(self.number, News::Record(stored));
        }
    }

    fn frame(&mut self, kind: Option<FrameKind>, payload: &[u8], abandoned: &mut Vec<u64>) -> Result<(), String> {
        match kind {
            Some(FrameKind::Cluster) => self.cluster(payload),
            Some(FrameKind::Fleet) => self.fleet(payload),
            Some(FrameKind::Record) => self.record(payload),
            Some(FrameKind::Abandoned) => {
                let id = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
                abandoned.extend(self.abandon([id]));
                Ok(())
            }
            Some(FrameKind::Object | FrameKind::Removed) | None => Err(segment::not_of_a_journal(kind)),
        }
    }

    fn cluster(&mut self, payload: &[u8]) -> Result<(), String> {
        let cluster: D::Cluster = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        let version = match self.newest.get(cluster.name()) {
            Some(newest) if **newest == cluster => Arc::clone(newest),
            _ => {
                let version = Arc::new(cluster);
                self.newest.insert(version.name().to_owned(), Arc::clone(&version));
                version
            }
        };
        self.clusters.insert(key(payload), version);
        Ok(())
    }

    fn fleet(&mut self, payload: &[u8]) -> Result<(), String> {
        let keys: Vec<String> = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        let cluster = |key: &String| {
            self.clusters
                .get(key)
                .cloned()
                .ok_or_else(|| format!("no cluster {key}"))
        };
        let clusters = keys.iter().map(cluster).collect::<Result<Vec<_>, String>>()?;
        let is_same = |newest: &&Fleet<D::Cluster>| {
            newest.len() == clusters.len() && newest.iter().zip(&clusters).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let fleet = match self.newest_fleet.as_ref().filter(is_same) {
            Some(newest) => Arc::clone(newest),
            None => clusters.into(),
        };
        self.newest_fleet = Some(Arc::clone(&fleet));
        self.fleets.insert(key(payload), fleet);
        Ok(())
    }

    fn record(&mut self, payload: &[u8]) -> Result<(), String> {
        let Decoded {
            record,
            head,
            decision_of,
        } = decode::<D::Head>(payload)?;
        let fleet = |key: &str| {
            self.fleets
                .get(key)
                .cloned()
                .ok_or_else(|| format!("no clusters {key}"))
        };
        let decision = match (head, decision_of) {
            (Some(head), _) => match head.and_then(|head| D::complete(head, payload, &fleet)) {
                Ok(decision) => {
                    let decision = Arc::new(decision);
                    self.decisions = BTreeMap::from([(record.id, Arc::clone(&decision))]);
                    Ok(Some(decision))
                }
                Err(why) => Err(format!("the inputs of record {}: {why}", record.id)),
            },
            (None, Some(id)) => Ok(self.decisions.get(&id).cloned()),
            (None, None) => Ok(None),
        };
        let (decision, result) = match decision {
            Ok(decision) => (decision, Ok(())),
            Err(why) => (None, Err(why)),
        };
        self.waiting.push(Stored { record, decision });
        result
    }

    /// Marks records as abandoned. Returns the ids of records that are not in this segment; they are in the previous
    /// one, or in one that was removed to make room.
    fn abandon(&mut self, ids: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut others = Vec::new();
        for id in ids {
            if let Some(stored) = self.waiting.iter_mut().rev().find(|stored| stored.record.id == id) {
                stored.record.outcome = Outcome::Abandoned;
            } else if let Some(at) = self.passed.iter().rposition(|passed| *passed == id) {
                self.passed.remove(at);
                self.revoked.push(id);
            } else {
                others.push(id);
            }
        }
        others
    }
}
