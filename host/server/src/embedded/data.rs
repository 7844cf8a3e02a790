//! `--data-dir`: persistent storage of objects.
//!
//! The objects of one API server are stored in a directory of segments in the journal's format: each change is a
//! frame that is written before watchers are notified. A segment starts with all existing objects. When it has grown
//! to several times their size, a new segment replaces all previous ones.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail};
use bulkhead_apiserver::{Change, ChangeType, Contents, Persistence, ResourceKind};
use bulkhead_journal::frame::{Chain, FrameKind, Header, append};
use bulkhead_journal::{JournalError, Problem, private, segment};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::warn;

use super::super::now;

/// Minimum size of a segment before it is replaced, in bytes.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// Minimum size of a segment before it is replaced, as a multiple of the objects' size.
const SEGMENT_OBJECTS_MAX: u64 = 4;

/// Name of the control plane's directory.
pub(super) const HUB: &str = "hub";

/// Key of an object: apiVersion, kind, namespace and name.
type Key = (String, String, String, String);

/// Directory with the data of an embedded federation, locked by one process at a time.
pub(super) struct DataDirectory {
    path: PathBuf,
    _lock: File,
    /// Set when data can no longer be stored.
    failure: Arc<Failure>,
    stores: Mutex<Vec<Arc<Kept>>>,
}

/// Storage failure, and its reason.
#[derive(Default)]
struct Failure {
    why: Mutex<Option<String>>,
    notify: Notify,
}

impl DataDirectory {
    /// Opens the directory, or creates it.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let about = || format!("--data-dir {}", path.display());
        // It contains Secrets.
        private::directory(path).with_context(about)?;
        let lock = private::open(
            OpenOptions::new().create(true).write(true).truncate(false),
            &path.join("lock"),
        );
        let lock = lock.with_context(about)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => bail!("--data-dir {}: another process uses it", path.display()),
            Err(fs::TryLockError::Error(error)) => return Err(error).with_context(about),
        }
        Ok(Self {
            path: path.to_path_buf(),
            _lock: lock,
            failure: Arc::default(),
            stores: Mutex::default(),
        })
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the stored objects of a server, and the storage of its changes.
    pub(super) fn server(&self, name: &str) -> anyhow::Result<(Contents, Arc<dyn Persistence>)> {
        let folder = self.path.join(name);
        // The identity is written after the first segment of the control plane.
        let is_known = folder.exists() || (name == HUB && self.path.join("identity").exists());
        let (contents, kept, losses) = Kept::open(&folder, &self.failure, is_known)
            .with_context(|| format!("--data-dir: reading the objects in {}", folder.display()))?;
        for loss in losses {
            warn!("--data-dir: {loss}");
        }
        self.stores
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&kept));
        let kept: Arc<dyn Persistence> = kept;
        Ok((contents, kept))
    }

    /// Syncs all stored changes to disk.
    pub(super) fn sync(&self) {
        for kept in self.stores.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            kept.attempt(|log| log.file.sync_data());
        }
    }

    /// Waits until data can no longer be stored. Returns the reason.
    pub(super) async fn failed(&self) -> String {
        loop {
            if let Some(why) = &*self.failure.why.lock().unwrap_or_else(PoisonError::into_inner) {
                return why.clone();
            }
            self.failure.notify.notified().await;
        }
    }
}

/// Storage of one server.
struct Kept {
    log: Mutex<Log>,
    failure: Arc<Failure>,
}

struct Log {
    folder: PathBuf,
    number: u64,
    file: File,
    bytes: u64,
    chain: Chain,
    version: u64,
    objects: BTreeMap<Key, Bytes>,
    objects_bytes: u64,
    failed: bool,
}

impl Kept {
    /// Reads the stored objects. Returns a line for each loss; `is_known` is false for a server that is new.
    fn open(
        folder: &Path,
        failure: &Arc<Failure>,
        is_known: bool,
    ) -> anyhow::Result<(Contents, Arc<Self>, Vec<String>)> {
        private::directory(folder)?;
        private::files(folder)?;
        let segments = segment::list(folder)?;
        let last = segments.last().map_or(0, |(number, _)| *number);
        let mut replay = Replay::default();
        if segments.is_empty() && is_known {
            replay.losses.push(format!(
                "{}: no segment is left, so the server starts without its objects; if a file segment-N.journal was \
                 removed, stop the process and restore the directory from a copy",
                folder.display()
            ));
        }
        for (number, path) in &segments {
            replay.segment(path, *number == last)?;
        }
        let losses = std::mem::take(&mut replay.losses);
        let values = replay
            .objects
            .values()
            .map(|bytes| serde_json::from_slice(bytes))
            .collect::<Result<_, _>>()?;
        let contents = Contents {
            version: replay.version,
            objects: values,
        };
        let mut log = Log {
            folder: folder.to_path_buf(),
            number: last,
            // Placeholder, replaced below before the first write.
            file: File::open(folder)?,
            bytes: 0,
            chain: Chain::default(),
            version: replay.version,
            objects_bytes: replay.objects.values().map(|bytes| bytes.len() as u64).sum(),
            objects: replay.objects,
            failed: false,
        };
        log.begin_segment()?;
        Ok((
            contents,
            Arc::new(Self {
                log: Mutex::new(log),
                failure: Arc::clone(failure),
            }),
            losses,
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs an operation on the log, unless an earlier one failed. Reports a failure once.
    fn attempt(&self, act: impl FnOnce(&mut Log) -> std::io::Result<()>) {
        let mut log = self.lock();
        if log.failed {
            return;
        }
        if let Err(error) = act(&mut log) {
            log.failed = true;
            let why = format!(
                "--data-dir: objects cannot be kept in {}: {error}",
                log.folder.display()
            );
            *self.failure.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            self.failure.notify.notify_one();
        }
    }
}

impl Persistence for Kept {
    fn keep(&self, kind: &ResourceKind, change: &Change) {
        let (namespace, name) = (change.key.namespace.clone(), change.key.name.clone());
        let key = (kind.api_version(), kind.kind.to_string(), namespace, name);
        let object = (change.change_type() != ChangeType::Deleted).then(|| change.object.bytes());
        self.attempt(|log| log.keep(key, object, change.resource_version()));
    }
}

impl Log {
    fn keep(&mut self, key: Key, object: Option<Bytes>, version: u64) -> std::io::Result<()> {
        self.version = version;
        let mut frame = Vec::new();
        let chain = match &object {
            Some(object) => append(&mut frame, self.chain, FrameKind::Object, &put(version, object)),
            None => append(
                &mut frame,
                self.chain,
                FrameKind::Removed,
                removed(version, &key).as_bytes(),
            ),
        };
        self.file.write_all(&frame)?;
        self.chain = chain;
        self.bytes += frame.len() as u64;
        self.objects_bytes += object.as_ref().map_or(0, |object| object.len() as u64);
        let before = match object {
            Some(object) => self.objects.insert(key, object),
            None => self.objects.remove(&key),
        };
        self.objects_bytes -= before.map_or(0, |before| before.len() as u64);
        if self.bytes > SEGMENT_BYTES_MIN && self.bytes / SEGMENT_OBJECTS_MAX > self.objects_bytes {
            self.begin_segment()?;
        }
        Ok(())
    }

    /// Starts a segment with all objects, and removes the previous ones. A crash in between leaves both, whose
    /// content is consistent.
    fn begin_segment(&mut self) -> std::io::Result<()> {
        let (mut bytes, mut chain) = Header {
            first_id: self.version,
            first_at_ms: now().as_millisecond(),
            before: self.chain,
        }
        .encode();
        for object in self.objects.values() {
            chain = append(&mut bytes, chain, FrameKind::Object, &put(self.version, object));
        }
        self.number += 1;
        let path = segment::path(&self.folder, self.number);
        let mut file = private::open(OpenOptions::new().append(true).create_new(true), &path)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        (self.file, self.bytes, self.chain) = (file, bytes.len() as u64, chain);
        let older = segment::list(&self.folder).map_err(std::io::Error::other)?;
        for (_, path) in older.into_iter().filter(|(number, _)| *number < self.number) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

fn put(version: u64, object: &[u8]) -> Vec<u8> {
    let mut payload = format!("{{\"version\":{version},\"object\":").into_bytes();
    payload.extend_from_slice(object);
    payload.push(b'}');
    payload
}

fn removed(version: u64, (api_version, kind, namespace, name): &Key) -> String {
    json!({"version": version, "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name})
        .to_string()
}

/// Formats the remedy for a segment that cannot be read.
fn way_out(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    format!(
        "nothing was changed; restore the file from a copy, or move {} away to start without its objects",
        folder.display()
    )
}

/// State reconstructed from the segments.
#[derive(Default)]
struct Replay {
    version: u64,
    objects: BTreeMap<Key, Bytes>,
    /// Log lines about segments that were read in part.
    losses: Vec<String>,
}

impl Replay {
    fn segment(&mut self, path: &Path, is_last: bool) -> anyhow::Result<()> {
        let mut unreadable = None;
        let scanned = segment::scan(path, |at, kind, payload| {
            if let Err(error) = self.frame(kind, payload) {
                unreadable.get_or_insert(format!("{} at byte {at}: {error}", path.display()));
            }
        });
        if let Some(unreadable) = unreadable {
            bail!("{unreadable}; {}", way_out(path));
        }
        let problem = match scanned {
            Ok(scanned) => {
                self.version = self.version.max(scanned.header.first_id);
                scanned.problem
            }
            Err(JournalError::Damaged(problem)) => Some(problem),
            Err(error) => return Err(error.into()),
        };
        match problem {
            None => Ok(()),
            // A crash during a write looks like a file that was cut, so the bytes are kept.
            Some(Problem::Torn { bytes, .. }) if is_last => self.keep_torn(path, bytes),
            Some(Problem::Changed { path, at }) => {
                bail!(
                    "{}: damaged or changed at byte {at}; {}",
                    path.display(),
                    way_out(&path)
                )
            }
            Some(Problem::Torn { path, bytes }) => {
                bail!(
                    "{}: the last {bytes} bytes are incomplete; {}",
                    path.display(),
                    way_out(&path)
                )
            }
            Some(problem) => bail!("{problem}; {}", way_out(path)),
        }
    }

    /// Copies a torn segment, which the next segment replaces, and records the loss.
    fn keep_torn(&mut self, path: &Path, torn_bytes: u64) -> anyhow::Result<()> {
        let size = fs::metadata(path)?.len();
        let copy = (1_u32..=9999)
            .map(|number| path.with_extension(format!("torn-{number}")))
            .find(|copy| !copy.exists())
            .context("no free name for a copy")?;
        fs::copy(path, &copy).with_context(|| format!("copying {} to {}", path.display(), copy.display()))?;
        File::open(&copy)?.sync_all()?;
        let count = self.objects.len();
        self.losses.push(format!(
            "{}: incomplete from byte {} of {size}; {count} objects were read before it, and later changes are lost; \
             the file is kept as {}",
            path.display(),
            size.saturating_sub(torn_bytes),
            copy.display()
        ));
        Ok(())
    }

    fn frame(&mut self, kind: Option<FrameKind>, payload: &[u8]) -> anyhow::Result<()> {
        let frame: Value = serde_json::from_slice(payload)?;
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let version = frame["version"].as_u64().context("it has no version")?;
        match kind {
            Some(FrameKind::Object) => {
                let object = &frame["object"];
                let metadata = &object["metadata"];
                let names = (text(metadata, "namespace"), text(metadata, "name"));
                let key = (text(object, "apiVersion"), text(object, "kind"), names.0, names.1);
                self.objects.insert(key, Bytes::from(object.to_string()));
            }
            Some(FrameKind::Removed) => {
                let key = (
                    text(&frame, "apiVersion"),
                    text(&frame, "kind"),
                    text(&frame, "namespace"),
                    text(&frame, "name"),
                );
                self.objects.remove(&key);
            }
            _ => bail!("it is not an object of a control plane"),
        }
        self.version = self.version.max(version);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
