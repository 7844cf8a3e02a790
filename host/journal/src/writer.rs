//! Writing a journal: one process, in order, with bounds.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Case, Record, Sink, canonical};
use bulkhead_core::model::Cluster;
use serde_json::Value;

use crate::error::{JournalError, Problem};
use crate::frame::{Chain, Header, Sort, append};
use crate::reader::read;
use crate::segment::{self, Scanned};
use crate::stored::{self, Kept, encode, key};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes of all segments together; the oldest segment goes first. At least two segments stay.
    pub bytes_max: u64,
    /// A segment whose newest record is older than this goes, in milliseconds, measured by the newest record of all.
    pub age_max_ms: i64,
    /// A segment that has this many bytes is closed, and another one begun.
    pub segment_bytes: u64,
}

impl Default for Bounds {
    /// 256 MiB, 30 days, segments of 8 MiB.
    fn default() -> Self {
        Self { bytes_max: 256 << 20, age_max_ms: 30 * 24 * 3600 * 1000, segment_bytes: 8 << 20 }
    }
}

/// A journal that was opened to be written.
pub struct Opened {
    /// Where records go.
    pub writer: Writer,
    /// Id of the last record that is there already; 0 for a new journal.
    pub last_id: u64,
    /// How many records are there already.
    pub records: usize,
    /// What was torn and has been cut off; it is kept beside the segment.
    pub cut: Option<Problem>,
}

type OnFailure = Box<dyn Fn(&JournalError) + Send + Sync>;

/// The end of a journal.
pub struct Writer {
    state: Mutex<State>,
    on_failure: OnFailure,
}

struct State {
    directory: PathBuf,
    bounds: Bounds,
    /// Held for as long as the journal is written.
    _lock: File,
    number: u64,
    file: File,
    bytes: u64,
    chain: Chain,
    /// Closed segments, oldest first: path, bytes, time of the last record before it was closed.
    closed: Vec<(PathBuf, u64, i64)>,
    last_at_ms: i64,
    known: Known,
    failed: bool,
}

/// What the segment holds already.
#[derive(Default)]
struct Known {
    /// Newest version of each cluster with its key.
    clusters: BTreeMap<String, (Arc<Cluster>, String)>,
    fleet: Option<(Arc<[Arc<Cluster>]>, String)>,
    /// The last case, and the record that it is with.
    case: Option<(Arc<Case>, u64)>,
}

impl Writer {
    /// Opens a journal, or makes one. `on_failure` is told once if a record cannot be kept; nothing more is written from
    /// then on, and whoever decides must stop acting.
    ///
    /// # Errors
    ///
    /// The directory cannot be written, another process writes the journal, or it is damaged.
    pub fn open(
        directory: &Path,
        bounds: Bounds,
        on_failure: impl Fn(&JournalError) + Send + Sync + 'static,
    ) -> Result<Opened, JournalError> {
        fs::create_dir_all(directory).map_err(JournalError::io("making the directory", directory))?;
        let lock = lock(directory)?;
        let end = End::of(directory)?;
        let (number, path) = (end.number, segment::path(directory, end.number));
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(JournalError::io("opening", &path))?;
        let state = State {
            directory: directory.to_path_buf(),
            bounds,
            _lock: lock,
            number,
            file,
            bytes: end.bytes,
            chain: end.chain,
            closed: end.closed,
            last_at_ms: end.last_at_ms,
            known: Known::default(),
            failed: false,
        };
        let writer = Self { state: Mutex::new(state), on_failure: Box::new(on_failure) };
        Ok(Opened { writer, last_id: end.last_id, records: end.records, cut: end.cut })
    }

    /// Makes what was kept so far outlive the machine.
    ///
    /// # Errors
    ///
    /// The disk says no.
    pub fn sync(&self) -> Result<(), JournalError> {
        let state = self.lock();
        let path = segment::path(&state.directory, state.number);
        state.file.sync_data().map_err(JournalError::io("syncing", &path))
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
    fn keep(&self, record: &Record, case: Option<&Arc<Case>>) {
        self.attempt(|state| state.keep(record, case));
    }

    fn abandon(&self, id: u64) {
        self.attempt(|state| {
            let mut bytes = Vec::new();
            let chain = append(&mut bytes, state.chain, Sort::Abandoned, id.to_string().as_bytes());
            state.write(&bytes, chain)
        });
    }
}

fn lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join("lock");
    let file = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
    let file = file.map_err(JournalError::io("opening", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(JournalError::InUse(directory.to_path_buf())),
        Err(fs::TryLockError::Error(error)) => Err(JournalError::io("locking", &path)(error)),
    }
}

impl State {
    fn keep(&mut self, record: &Record, case: Option<&Arc<Case>>) -> Result<(), JournalError> {
        let at_ms = record.entry.at.as_millis();
        if self.bytes == 0 {
            self.begin(record.id, at_ms)?;
        } else if self.bytes >= self.bounds.segment_bytes {
            self.close()?;
            self.begin(record.id, at_ms)?;
            self.make_room(at_ms)?;
        }
        self.last_at_ms = self.last_at_ms.max(at_ms);
        let mut bytes = Vec::new();
        let mut chain = self.chain;
        let kept = match (case, &self.known.case) {
            (None, _) => None,
            (Some(case), Some((last, id))) if Arc::ptr_eq(case, last) => Some(Kept::With(*id)),
            (Some(case), _) => {
                let fleet;
                (fleet, chain) = self.known.fleet(&case.clusters, &mut bytes, chain);
                self.known.case = Some((Arc::clone(case), record.id));
                Some(Kept::Whole(encode_case(case, fleet)))
            }
        };
        let chain = append(&mut bytes, chain, Sort::Record, &encode(record, kept));
        self.write(&bytes, chain)
    }

    fn write(&mut self, bytes: &[u8], chain: Chain) -> Result<(), JournalError> {
        let path = segment::path(&self.directory, self.number);
        self.file.write_all(bytes).map_err(JournalError::io("writing", &path))?;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.chain = chain;
        Ok(())
    }

    fn begin(&mut self, first_id: u64, first_at_ms: i64) -> Result<(), JournalError> {
        let (header, chain) = Header { first_id, first_at_ms, before: self.chain }.encode();
        self.known = Known::default();
        self.write(&header, chain)
    }

    /// Ends the segment. What it holds outlives the machine from now on.
    fn close(&mut self) -> Result<(), JournalError> {
        let path = segment::path(&self.directory, self.number);
        self.file.sync_data().map_err(JournalError::io("syncing", &path))?;
        self.closed.push((path, self.bytes, self.last_at_ms));
        self.number += 1;
        let path = segment::path(&self.directory, self.number);
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        self.file = file.map_err(JournalError::io("making", &path))?;
        self.bytes = 0;
        Ok(())
    }

    fn make_room(&mut self, now_ms: i64) -> Result<(), JournalError> {
        // The newest of the closed ones stays: one that was only just begun explains nothing.
        while self.closed.len() > 1 {
            let total = self.closed.iter().map(|(_, bytes, _)| bytes).sum::<u64>() + self.bytes;
            let Some((path, _, last_at_ms)) = self.closed.first() else { break };
            let too_old = *last_at_ms < now_ms.saturating_sub(self.bounds.age_max_ms);
            if total <= self.bounds.bytes_max && !too_old {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(JournalError::io("removing", path)(error));
                }
                _ => drop(self.closed.remove(0)),
            }
        }
        Ok(())
    }
}

impl Known {
    /// The key of a list of clusters. Versions that the segment does not hold yet are added to `bytes`.
    fn fleet(&mut self, clusters: &Arc<[Arc<Cluster>]>, bytes: &mut Vec<u8>, chain: Chain) -> (Option<String>, Chain) {
        if clusters.is_empty() {
            return (None, chain);
        }
        if let Some((known, key)) = &self.fleet
            && known.len() == clusters.len()
            && known.iter().zip(clusters.iter()).all(|(known, cluster)| Arc::ptr_eq(known, cluster))
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
            chain = append(bytes, chain, Sort::Fleet, &payload);
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
        let chain = if known { chain } else { append(bytes, chain, Sort::Cluster, &payload) };
        self.clusters.insert(cluster.name.clone(), (Arc::clone(cluster), own.clone()));
        (own, chain)
    }
}

/// What is kept of a case: everything but clusters and secrets.
fn encode_case(case: &Case, fleet: Option<String>) -> Value {
    let mut value = canonical(case);
    let redacted = redact(&mut value);
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

/// Where a journal goes on.
struct End {
    number: u64,
    bytes: u64,
    chain: Chain,
    closed: Vec<(PathBuf, u64, i64)>,
    last_id: u64,
    last_at_ms: i64,
    records: usize,
    cut: Option<Problem>,
}

impl End {
    fn of(directory: &Path) -> Result<Self, JournalError> {
        let segments = segment::list(directory)?;
        let Some((number, last)) = segments.last().cloned() else { return Ok(Self::new()) };
        let contents = read(directory)?;
        // A header that is not complete is a segment that was just begun, and nothing is in it.
        let cut = contents.problems.iter().find(|problem| problem.is_harmless()).cloned();
        if let Some(damage) = contents.problems.iter().find(|problem| !problem.is_harmless()) {
            return Err(JournalError::Damaged(damage.clone()));
        }
        let newest = contents.records.last().map(|stored| &stored.record);
        let last_id = newest.map_or(0, |record| record.id);
        let last_at_ms = newest.map_or(i64::MIN, |record| record.entry.at.as_millis());
        let mut closed = Vec::new();
        for (_, path) in segments.iter().filter(|(other, _)| *other != number) {
            let bytes = fs::metadata(path).map_err(JournalError::io("reading", path))?.len();
            let last_at_ms = contents.newest.get(path).copied().unwrap_or(i64::MIN);
            closed.push((path.clone(), bytes, last_at_ms));
        }
        let records = contents.records.len();
        let (bytes, chain) = match contents.last {
            Some(Scanned { intact_bytes, chain, .. }) => (intact_bytes, chain),
            None => (0, end_of_closed(&closed)?),
        };
        if cut.is_some() {
            cut_off(&last, bytes)?;
        }
        Ok(Self { number, bytes, chain, closed, last_id, last_at_ms, records, cut })
    }

    fn new() -> Self {
        Self {
            number: 1,
            bytes: 0,
            chain: Chain::default(),
            closed: Vec::new(),
            last_id: 0,
            last_at_ms: i64::MIN,
            records: 0,
            cut: None,
        }
    }
}

/// The chain at the end of the newest closed segment.
fn end_of_closed(closed: &[(PathBuf, u64, i64)]) -> Result<Chain, JournalError> {
    let Some((path, ..)) = closed.last() else { return Ok(Chain::default()) };
    let bytes = fs::read(path).map_err(JournalError::io("reading", path))?;
    segment::scan(path, &bytes, |_, _, _| {}).map(|scanned| scanned.chain).map_err(JournalError::Damaged)
}

/// Cuts the torn end off a segment and keeps it beside it: should it not be torn after all, nothing is lost.
fn cut_off(path: &Path, intact_bytes: u64) -> Result<(), JournalError> {
    let bytes = fs::read(path).map_err(JournalError::io("reading", path))?;
    let torn = bytes.get(usize::try_from(intact_bytes).unwrap_or(usize::MAX)..).unwrap_or_default();
    let aside = path.with_extension("torn");
    fs::write(&aside, torn).map_err(JournalError::io("writing", &aside))?;
    let file = OpenOptions::new().write(true).open(path).map_err(JournalError::io("opening", path))?;
    file.set_len(intact_bytes).map_err(JournalError::io("cutting", path))
}
