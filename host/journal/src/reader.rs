//! Reading of a journal, even while another process writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::journal::{DecisionRecord, Outcome};
use bulkhead_core::model::Cluster;
use serde_json::Value;

use crate::error::{JournalError, Problem};
use crate::frame::FrameKind;
use crate::segment::{self, SegmentScan};
use crate::stored::{Raw, Stored, StoredDecision, decode, key};

/// Contents of a journal.
#[derive(Debug, Default)]
pub struct Contents {
    /// Records that can be read, in order of id.
    pub records: Vec<Stored>,
    /// Problems with the other parts.
    pub problems: Vec<Problem>,
}

/// Reads a journal.
///
/// Damaged parts are left out and reported in [`Contents::problems`]; the rest is read.
///
/// # Errors
///
/// The directory cannot be read, or has no journal.
pub fn read(directory: &Path) -> Result<Contents, JournalError> {
    let mut records = Vec::new();
    let problems = visit(directory, |stored| records.push(stored))?;
    Ok(Contents { records, problems })
}

/// Passes every record of a journal to `record`, in order of id. Returns the problems with the other parts. Holds the
/// records of two segments at a time.
///
/// # Errors
///
/// The directory cannot be read, or has no journal.
pub fn visit(directory: &Path, mut record: impl FnMut(Stored)) -> Result<Vec<Problem>, JournalError> {
    visit_segments(directory, |_| true, |_, stored| record(stored))
}

/// Passes the records of some segments of a journal to `record`, each with the number of its segment, in order of id.
/// `wants` returns true for the numbers of these segments. The abandonment of a record may be in the next segment.
/// Returns the problems with the other parts of these segments.
///
/// # Errors
///
/// Those of [`visit`].
pub fn visit_segments(
    directory: &Path,
    wants: impl Fn(u64) -> bool,
    mut record: impl FnMut(u64, Stored),
) -> Result<Vec<Problem>, JournalError> {
    let segments = segment::list(directory)?;
    let Some(last) = segments.last().map(|(number, _)| *number) else {
        return Err(JournalError::Empty(directory.to_path_buf()));
    };
    let mut problems = Vec::new();
    let mut before: Option<(PathBuf, Option<SegmentScan>)> = None;
    // The next segment may mark a record of this one as abandoned.
    let mut waiting: Vec<Stored> = Vec::new();
    let mut waiting_of = 0;
    for (number, path) in segments {
        if !wants(number) {
            waiting.drain(..).for_each(|stored| record(waiting_of, stored));
            // The chain cannot be checked across a segment that is not read.
            before = None;
            continue;
        }
        let mut open = Open::new(&path, std::mem::take(&mut waiting));
        let scanned = match segment::scan(&path, |at, kind, payload| open.frame(at, kind, payload)) {
            Ok(scanned) => Some(scanned),
            // The writer removed the segment to make room, or created it and has recorded nothing yet.
            Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                waiting = open.before;
                // The chain cannot be checked across a segment that is gone.
                before = None;
                continue;
            }
            Err(JournalError::Damaged(Problem::Torn { bytes: 0, .. })) if number == last => {
                waiting = open.before;
                continue;
            }
            Err(JournalError::Damaged(problem)) => {
                problems.push(problem);
                None
            }
            Err(error) => return Err(error),
        };
        problems.append(&mut open.problems);
        open.before.into_iter().for_each(|stored| record(waiting_of, stored));
        waiting = open.records;
        waiting_of = number;
        let Some(mut scanned) = scanned else {
            before = Some((path, None));
            continue;
        };
        // Only the last segment may end in an unfinished write.
        if number != last
            && let Some(Problem::Torn { .. }) = scanned.problem
        {
            scanned.problem = Some(Problem::Changed {
                path: path.clone(),
                at: scanned.intact_bytes,
            });
        }
        problems.extend(scanned.problem.clone());
        if let Some((previous, Some(end))) = &before
            && end.problem.is_none()
            && end.chain != scanned.header.before
        {
            problems.push(Problem::Gap {
                path: path.clone(),
                before: previous.clone(),
            });
        }
        before = Some((path, Some(scanned)));
    }
    for stored in waiting {
        record(waiting_of, stored);
    }
    Ok(problems)
}

/// Segment that is being read.
struct Open<'a> {
    path: &'a Path,
    clusters: BTreeMap<String, Arc<Cluster>>,
    fleets: BTreeMap<String, Arc<[Arc<Cluster>]>>,
    decisions: BTreeMap<u64, Arc<StoredDecision>>,
    /// Records of the previous segment.
    before: Vec<Stored>,
    records: Vec<Stored>,
    problems: Vec<Problem>,
}

impl<'a> Open<'a> {
    fn new(path: &'a Path, before: Vec<Stored>) -> Self {
        Self {
            path,
            before,
            clusters: BTreeMap::new(),
            fleets: BTreeMap::new(),
            decisions: BTreeMap::new(),
            records: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn frame(&mut self, at: u64, kind: Option<FrameKind>, payload: &[u8]) {
        let understood = match kind {
            Some(FrameKind::Cluster) => self.cluster(payload),
            Some(FrameKind::Fleet) => self.fleet(payload),
            Some(FrameKind::Record) => self.record(payload),
            Some(FrameKind::Abandoned) => self.abandoned(payload),
            Some(FrameKind::Object | FrameKind::Removed) | None => Err(segment::not_of_a_journal(kind)),
        };
        if let Err(why) = understood {
            self.problems.push(Problem::Unreadable {
                path: self.path.to_path_buf(),
                at,
                why,
            });
        }
    }

    fn cluster(&mut self, payload: &[u8]) -> Result<(), String> {
        let cluster: Cluster = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        self.clusters.insert(key(payload), Arc::new(cluster));
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
        let fleet: Result<Vec<_>, String> = keys.iter().map(cluster).collect();
        self.fleets.insert(key(payload), fleet?.into());
        Ok(())
    }

    fn record(&mut self, payload: &[u8]) -> Result<(), String> {
        let Raw {
            record,
            decision,
            decision_of,
        } = decode(payload)?;
        let decision = match (decision, decision_of) {
            (Some(decision), _) => match self.decision(decision) {
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
        // If a newer program wrote the decision record, the record itself can still be read.
        let (decision, result) = match decision {
            Ok(decision) => (decision, Ok(())),
            Err(why) => (None, Err(why)),
        };
        self.records.push(Stored { record, decision });
        result
    }

    fn decision(&self, mut kept: Value) -> Result<StoredDecision, String> {
        let members = kept.as_object_mut().ok_or("not an object")?;
        let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
        let fleet = text(members.remove("fleet"));
        let snapshot = text(members.remove("snapshot")).ok_or("snapshot: is missing")?;
        let redacted = members.remove("redacted").and_then(|count| count.as_u64()).unwrap_or(0);
        let mut decision: DecisionRecord = serde_json::from_value(kept).map_err(|error| error.to_string())?;
        if let Some(fleet) = fleet {
            decision.clusters = self
                .fleets
                .get(&fleet)
                .cloned()
                .ok_or_else(|| format!("no clusters {fleet}"))?;
        }
        Ok(StoredDecision {
            decision,
            snapshot,
            redacted: usize::try_from(redacted).unwrap_or(usize::MAX),
        })
    }

    fn abandoned(&mut self, payload: &[u8]) -> Result<(), String> {
        let id: u64 = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        // The record may be in a segment that was removed to make room.
        let found = self
            .records
            .iter_mut()
            .rev()
            .chain(self.before.iter_mut().rev())
            .find(|stored| stored.record.id == id);
        if let Some(stored) = found {
            stored.record.outcome = Outcome::Abandoned;
        }
        Ok(())
    }
}
