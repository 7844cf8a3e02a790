//! Writing of a journal: by one process, in order, within bounds.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_core::journal::redact::{Echoes, redact, redact_decision_record};
use bulkhead_core::journal::{DecisionRecord, Record, Sink, canonical};
use bulkhead_core::model::Cluster;
use serde_json::Value;

use crate::end::{Closed, End};
use crate::error::{JournalError, Problem};
use crate::frame::{Chain, FrameKind, HEADER_BYTES, Header, append};
use crate::private;
use crate::segment;
use crate::storage::{Disk, Storage, is_full};
use crate::stored::{self, DecisionLocation, encode, key};

/// Bounds of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum size of all segments together, in bytes; the oldest segment is removed first. At least two segments
    /// stay, unless the disk is full.
    pub bytes_max: u64,
    /// Maximum age of the newest record of a segment, in milliseconds, relative to the record that is being written.
    /// Clocks can be wrong, so one segment is removed when another one is begun, and one per call of
    /// [`Writer::expire`].
    pub age_max_ms: i64,
    /// Size at which a segment is closed and another one begun, in bytes.
    pub segment_bytes: u64,
}

impl Default for Bounds {
    /// Returns 256 MiB, 30 days, and segments of 8 MiB.
    fn default() -> Self {
        Self {
            bytes_max: 256 << 20,
            age_max_ms: 30 * 24 * 3600 * 1000,
            segment_bytes: 8 << 20,
        }
    }
}

/// Journal that was opened for writing.
pub struct Opened {
    /// Writer of new records.
    pub writer: Writer,
    /// Id of the last existing record; 0 for a new journal.
    pub last_id: u64,
    /// Number of existing records.
    pub records: u64,
    /// Torn end that was cut off; a copy is beside the segment if the disk had room for it.
    pub cut: Option<Problem>,
}

type OnFailure = Box<dyn Fn(&JournalError) + Send + Sync>;

/// Writer at the end of a journal.
pub struct Writer {
    state: Mutex<State>,
    on_failure: OnFailure,
}

struct State {
    directory: PathBuf,
    bounds: Bounds,
    /// Lock of the journal, held while it is open for writing.
    _lock: File,
    storage: Box<dyn Storage>,
    number: u64,
    file: File,
    bytes: u64,
    chain: Chain,
    /// Closed segments, oldest first.
    closed: Vec<Closed>,
    /// Time of the last record.
    last_at_ms: i64,
    known: SegmentContents,
    failed: bool,
}

/// Data that the open segment holds already.
#[derive(Default)]
struct SegmentContents {
    /// Newest version of each cluster with its key.
    clusters: BTreeMap<String, (Arc<Cluster>, String)>,
    fleet: Option<(Arc<[Arc<Cluster>]>, String)>,
    /// Last decision record, and the id of the record that it is stored with.
    decision: Option<(Arc<DecisionRecord>, u64)>,
}

impl Writer {
    /// Opens a journal, or creates one. `on_failure` is called once if a record cannot be kept. After that nothing
    /// more is written, and the caller must stop carrying out decisions.
    ///
    /// # Errors
    ///
    /// The directory cannot be written, the disk is full, another process writes the journal, or it is damaged.
    pub fn open(
        directory: &Path,
        bounds: Bounds,
        on_failure: impl Fn(&JournalError) + Send + Sync + 'static,
    ) -> Result<Opened, JournalError> {
        Self::open_on(directory, bounds, Disk, on_failure)
    }

    /// Opens a journal as [`Writer::open`] does, on a disk of the caller's choice.
    ///
    /// # Errors
    ///
    /// As [`Writer::open`].
    pub fn open_on(
        directory: &Path,
        bounds: Bounds,
        storage: impl Storage + 'static,
        on_failure: impl Fn(&JournalError) + Send + Sync + 'static,
    ) -> Result<Opened, JournalError> {
        private::directory(directory).map_err(JournalError::io("creating the directory", directory))?;
        let lock = lock(directory)?;
        private::files(directory).map_err(JournalError::io("restricting the files in", directory))?;
        let mut storage: Box<dyn Storage> = Box::new(storage);
        let end = End::of(directory, storage.as_mut())?;
        let (number, path) = (end.number, segment::path(directory, end.number));
        let file = private::open(OpenOptions::new().append(true).create(true), &path);
        let file = file.map_err(JournalError::io("opening", &path))?;
        let mut state = State {
            directory: directory.to_path_buf(),
            bounds,
            _lock: lock,
            storage,
            number,
            file,
            bytes: end.bytes,
            chain: end.chain,
            closed: end.closed,
            last_at_ms: end.last_at_ms,
            known: SegmentContents::default(),
            failed: false,
        };
        // A file without a header is a cut file, so a new journal has its header before it has a record.
        if state.bytes == 0 && state.closed.is_empty() {
            state.begin(end.last_id + 1, 0)?;
        }
        let writer = Self {
            state: Mutex::new(state),
            on_failure: Box::new(on_failure),
        };
        Ok(Opened {
            writer,
            last_id: end.last_id,
            records: end.records,
            cut: end.cut,
        })
    }

    /// Makes all records that were kept so far survive a crash of the machine.
    ///
    /// # Errors
    ///
    /// The disk reports an error.
    pub fn sync(&self) -> Result<(), JournalError> {
        let state = self.lock();
        let path = segment::path(&state.directory, state.number);
        state.file.sync_data().map_err(JournalError::io("syncing", &path))
    }

    /// Removes the oldest segment if it exceeds the maximum age. A clock that jumps makes every segment look old, so
    /// callers must limit the frequency of calls by another clock.
    pub fn expire(&self) {
        self.attempt(State::drop_aged);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt(&self, attempt: impl FnOnce(&mut State) -> Result<(), JournalError>) {
        let mut state = self.lock();
        if state.failed {
            return;
        }
        if let Err(error) = attempt(&mut state) {
            state.failed = true;
            drop(state);
            (self.on_failure)(&error);
        }
    }
}

impl Sink for Writer {
    fn keep(&self, record: &Record, decision: Option<&Arc<DecisionRecord>>) {
        self.attempt(|state| state.keep(record, decision));
    }

    fn abandon(&self, id: u64) {
        self.attempt(|state| {
            let mut bytes = Vec::new();
            let chain = append(&mut bytes, state.chain, FrameKind::Abandoned, id.to_string().as_bytes());
            state.write(&bytes, chain)
        });
    }
}

fn lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join("lock");
    let file = private::open(OpenOptions::new().create(true).write(true).truncate(false), &path);
    let file = file.map_err(JournalError::io("opening", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(JournalError::InUse(directory.to_path_buf())),
        Err(fs::TryLockError::Error(error)) => Err(JournalError::io("locking", &path)(error)),
    }
}

impl State {
    fn keep(&mut self, record: &Record, decision: Option<&Arc<DecisionRecord>>) -> Result<(), JournalError> {
        let at_ms = record.entry.at.as_millis();
        if self.bytes == 0 {
            self.begin(record.id, at_ms)?;
        } else if self.bytes > HEADER_BYTES as u64 && self.bytes >= self.bounds.segment_bytes {
            self.close(at_ms)?;
            self.begin(record.id, at_ms)?;
            self.last_at_ms = at_ms;
            self.make_room()?;
        }
        self.last_at_ms = at_ms;
        let mut bytes = Vec::new();
        let mut chain = self.chain;
        let echoes = decision.map(|decision| Echoes::of(decision)).unwrap_or_default();
        let kept = match (decision, &self.known.decision) {
            (None, _) => None,
            (Some(decision), Some((last, id))) if Arc::ptr_eq(decision, last) => Some(DecisionLocation::With(*id)),
            (Some(decision), _) => {
                let fleet;
                (fleet, chain) = self.known.fleet(&decision.clusters, &mut bytes, chain);
                self.known.decision = Some((Arc::clone(decision), record.id));
                Some(DecisionLocation::Whole(encode_decision(decision, fleet, &echoes)))
            }
        };
        let chain = append(&mut bytes, chain, FrameKind::Record, &encode(record, kept, &echoes));
        self.write(&bytes, chain)
    }

    fn write(&mut self, bytes: &[u8], chain: Chain) -> Result<(), JournalError> {
        let path = segment::path(&self.directory, self.number);
        self.with_room("writing", &path, |state| {
            let written = state.storage.append(&mut state.file, bytes);
            // No part of the record stays, so that it can be written again after making room.
            if written.is_err() {
                state.file.set_len(state.bytes)?;
            }
            written
        })?;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.chain = chain;
        Ok(())
    }

    /// Runs an operation that needs space on the disk. Removes the oldest segments while the disk is full.
    fn with_room<T>(
        &mut self,
        operation: &'static str,
        path: &Path,
        mut act: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> Result<T, JournalError> {
        loop {
            match act(self) {
                Ok(done) => return Ok(done),
                Err(error) if !is_full(&error) => return Err(JournalError::io(operation, path)(error)),
                // A new segment without records cannot replace the one before it, so that one stays.
                Err(source) if self.closed.len() <= usize::from(self.bytes <= HEADER_BYTES as u64) => {
                    return Err(JournalError::Full {
                        path: path.to_path_buf(),
                        source,
                    });
                }
                Err(_) => self.drop_oldest()?,
            }
        }
    }

    fn begin(&mut self, first_id: u64, first_at_ms: i64) -> Result<(), JournalError> {
        let (header, chain) = Header {
            first_id,
            first_at_ms,
            before: self.chain,
        }
        .encode();
        self.known = SegmentContents::default();
        self.write(&header, chain)
    }

    /// Closes the segment, syncs it to the disk, and creates the next one.
    fn close(&mut self, now_ms: i64) -> Result<(), JournalError> {
        let path = segment::path(&self.directory, self.number);
        self.file.sync_data().map_err(JournalError::io("syncing", &path))?;
        self.closed.push(Closed {
            path,
            bytes: self.bytes,
            ended_at_ms: now_ms,
        });
        (self.number, self.bytes) = (self.number + 1, 0);
        let path = segment::path(&self.directory, self.number);
        self.file = self.with_room("making", &path, |state| state.storage.create(&path))?;
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), JournalError> {
        // The newest closed segment stays, because the open one may have no records yet.
        while self.closed.len() > 1 {
            let total = self.closed.iter().map(|closed| closed.bytes).sum::<u64>() + self.bytes;
            if total <= self.bounds.bytes_max {
                break;
            }
            self.drop_oldest()?;
        }
        self.drop_aged()
    }

    /// Removes one segment, if it is too old.
    fn drop_aged(&mut self) -> Result<(), JournalError> {
        let oldest_ms = self.last_at_ms.saturating_sub(self.bounds.age_max_ms);
        let is_old = self.closed.len() > 1 && self.closed.first().is_some_and(|oldest| oldest.ended_at_ms < oldest_ms);
        if is_old { self.drop_oldest() } else { Ok(()) }
    }

    fn drop_oldest(&mut self) -> Result<(), JournalError> {
        if self.closed.is_empty() {
            return Ok(());
        }
        let Closed { path, .. } = self.closed.remove(0);
        self.storage
            .remove(&path)
            .map_err(JournalError::io("removing", &path))?;
        let torn = path.with_extension("torn");
        self.storage.remove(&torn).map_err(JournalError::io("removing", &torn))
    }
}

impl SegmentContents {
    /// Returns the key of a list of clusters. Versions that the segment does not hold yet are appended to `bytes`.
    fn fleet(&mut self, clusters: &Arc<[Arc<Cluster>]>, bytes: &mut Vec<u8>, chain: Chain) -> (Option<String>, Chain) {
        if clusters.is_empty() {
            return (None, chain);
        }
        if let Some((known, key)) = &self.fleet
            && known.len() == clusters.len()
            && known
                .iter()
                .zip(clusters.iter())
                .all(|(known, cluster)| Arc::ptr_eq(known, cluster))
        {
            return (Some(key.clone()), chain);
        }
        let mut chain = chain;
        let mut keys = Vec::with_capacity(clusters.len());
        for cluster in clusters.iter() {
            let known;
            (known, chain) = self.cluster(cluster, bytes, chain);
            keys.push(known);
        }
        let payload = stored::bytes(&canonical(&keys));
        let fleet = key(&payload);
        if self.fleet.as_ref().is_none_or(|(_, known)| *known != fleet) {
            chain = append(bytes, chain, FrameKind::Fleet, &payload);
        }
        self.fleet = Some((Arc::clone(clusters), fleet.clone()));
        (Some(fleet), chain)
    }

    fn cluster(&mut self, cluster: &Arc<Cluster>, bytes: &mut Vec<u8>, chain: Chain) -> (String, Chain) {
        let before = self.clusters.get(&cluster.name);
        if let Some((known, key)) = before
            && Arc::ptr_eq(known, cluster)
        {
            return (key.clone(), chain);
        }
        let mut value = canonical(&**cluster);
        redact(&mut value);
        let payload = stored::bytes(&value);
        let own = key(&payload);
        let known = before.is_some_and(|(_, key)| *key == own);
        let chain = if known {
            chain
        } else {
            append(bytes, chain, FrameKind::Cluster, &payload)
        };
        self.clusters
            .insert(cluster.name.clone(), (Arc::clone(cluster), own.clone()));
        (own, chain)
    }
}

/// Encodes a decision record for storage: everything but clusters and secrets.
fn encode_decision(decision: &DecisionRecord, fleet: Option<String>, echoes: &Echoes) -> Value {
    let mut value = canonical(decision);
    let redacted = echoes.remove(&mut value) + redact_decision_record(&mut value);
    let mut seen = stored::bytes(&value["now"]);
    seen.extend(stored::bytes(&value["question"]));
    seen.extend(fleet.iter().flat_map(|fleet| fleet.bytes()));
    let snapshot = key(&seen);
    if let Value::Object(members) = &mut value {
        members.insert("snapshot".to_owned(), snapshot.into());
        if redacted > 0 {
            members.insert("redacted".to_owned(), redacted.into());
        }
        if let Some(fleet) = fleet {
            members.insert("fleet".to_owned(), fleet.into());
        }
    }
    value
}
