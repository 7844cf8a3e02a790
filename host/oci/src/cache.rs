//! Cache of images on disk, addressed by content.
//!
//! Blobs are files named by their digest. They are written under another name, synchronized and renamed, and verified
//! each time they are read, so that a torn or changed file is a miss. The least recently used blobs leave first.
//! Beside them are the digests of tags and the signatures of images, so that a process starts with verified plugins
//! while the registry is down.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bulkhead_plugin::write_objection;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::signature::Signature;
use crate::{Digest, Reference};

/// Prefix of the names of unfinished files.
const UNFINISHED: &str = ".unfinished-";
/// Age at which an unfinished file counts as left behind by a process that died.
const UNFINISHED_AGE_MAX: Duration = Duration::from_hours(1);
/// Maximum number of tags and of signed images that are remembered.
const RECORDS_MAX: usize = 1000;
const BLOBS: &str = "blobs/sha256";
const REFERENCES: &str = "references";
const SIGNATURES: &str = "signatures";

/// Cache of images. Other processes may use the same directory.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    bytes_max: u64,
}

/// Reference whose digest is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownReference {
    /// Reference as text.
    pub reference: String,
    /// Digest of the manifest that it had.
    pub digest: Digest,
}

/// Error of the cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The disk is full.
    #[error("cannot keep images in {folder}: the disk is full; free space, or name another folder with --image-cache")]
    Full {
        /// Directory of the cache.
        folder: String,
    },
    /// The directory is not safe to use.
    #[error("images are not kept in {folder}: it {objection}")]
    Unsafe {
        /// Directory of the cache.
        folder: String,
        /// Cause and remedy.
        objection: String,
    },
    /// Another error of the file system.
    #[error("cannot use the image cache {path}: {error}")]
    Io {
        /// File or directory.
        path: String,
        /// Error.
        error: io::Error,
    },
}

impl Cache {
    /// Maximum size of all blobs by default, in bytes: dozens of components in Python, hundreds of others.
    pub const BYTES_MAX: u64 = 1 << 30;

    /// Opens a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, belongs to another user than that of the process and root, or other users can
    /// write to it: they could change the digests of tags.
    pub fn open(path: impl Into<PathBuf>, bytes_max: u64) -> Result<Self, CacheError> {
        let path = path.into();
        for folder in [BLOBS, REFERENCES, SIGNATURES] {
            let folder = path.join(folder);
            create(&folder).map_err(|error| failed(&folder, error))?;
        }
        let metadata = fs::metadata(&path).map_err(|error| failed(&path, error))?;
        if let Some(objection) = write_objection(&metadata) {
            return Err(CacheError::Unsafe {
                folder: path.display().to_string(),
                objection,
            });
        }
        Ok(Self { path, bytes_max })
    }

    /// Returns a blob. One that is damaged is removed and missing.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn blob(&self, digest: &Digest) -> Result<Option<Bytes>, CacheError> {
        let path = self.blob_path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        if Digest::of(&bytes) != *digest {
            let _ = fs::remove_file(&path);
            return Ok(None);
        }
        // An error in a read-only directory only affects the order of removal.
        let _ = File::open(&path).and_then(|file| file.set_modified(now()));
        Ok(Some(bytes.into()))
    }

    /// Keeps a blob, and removes the least recently used ones if there are too many.
    ///
    /// # Errors
    ///
    /// The file cannot be written. There is no partial file then.
    pub fn keep(&self, blob: &[u8]) -> Result<Digest, CacheError> {
        let digest = Digest::of(blob);
        if self.blob(&digest)?.is_none() {
            self.write(&self.blob_path(&digest), |file| file.write_all(blob))?;
            self.shrink(&digest);
        }
        Ok(digest)
    }

    /// Returns the digest that a tag had when it was seen first.
    pub fn known(&self, image: &Reference) -> Option<Digest> {
        let reference = image.to_string();
        let known: KnownReference = self.record(REFERENCES, &Digest::of(reference.as_bytes()))?;
        (known.reference == reference).then_some(known.digest)
    }

    /// Remembers the digest of a reference.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn remember(&self, image: &Reference, digest: &Digest) -> Result<(), CacheError> {
        let reference = image.to_string();
        let name = Digest::of(reference.as_bytes());
        let digest = digest.clone();
        self.keep_record(REFERENCES, &name, &KnownReference { reference, digest })
    }

    /// Returns all references whose digest is known, in their order.
    pub fn references(&self) -> Vec<KnownReference> {
        let files = files(&self.path.join(REFERENCES)).into_iter();
        let read = |(path, _): (PathBuf, Metadata)| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let mut all: Vec<KnownReference> = files.filter_map(read).collect();
        all.sort_by(|one, other| one.reference.cmp(&other.reference));
        all
    }

    /// Returns the signatures of an image that are known.
    pub fn signatures(&self, image: &Digest) -> Option<Vec<Signature>> {
        self.record(SIGNATURES, image)
    }

    /// Keeps the signatures of an image in place of the earlier ones.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn keep_signatures(&self, image: &Digest, signatures: &[Signature]) -> Result<(), CacheError> {
        self.keep_record(SIGNATURES, image, &signatures)
    }

    fn record<T: DeserializeOwned>(&self, folder: &str, name: &Digest) -> Option<T> {
        let path = self.record_path(folder, name);
        let record = serde_json::from_slice(&fs::read(&path).ok()?).ok();
        let _ = File::open(&path).and_then(|file| file.set_modified(now()));
        record
    }

    fn keep_record(&self, folder: &str, name: &Digest, record: &impl Serialize) -> Result<(), CacheError> {
        let text = serde_json::to_vec(record).unwrap_or_default();
        self.write(&self.record_path(folder, name), |file| file.write_all(&text))?;
        let mut files = files(&self.path.join(folder));
        files.sort_by_key(|(_, metadata)| std::cmp::Reverse(metadata.modified().ok()));
        for (path, _) in files.into_iter().skip(RECORDS_MAX) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    fn record_path(&self, folder: &str, name: &Digest) -> PathBuf {
        self.path.join(folder).join(format!("{}.json", name.hex()))
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.path.join(BLOBS).join(digest.hex())
    }

    /// Writes a file that has its name only when it is complete.
    fn write(&self, path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CacheError> {
        let folder = path.parent().unwrap_or(&self.path);
        let written = || {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
            fill(&mut file)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            // The name survives a crash of the machine, too.
            File::open(folder)?.sync_all()
        };
        written().map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CacheError::Full {
                folder: self.path.display().to_string(),
            },
            _ => failed(path, error),
        })
    }

    /// Removes the least recently used blobs but the newest until at most `bytes_max` bytes are left, and files that
    /// processes left behind.
    fn shrink(&self, newest: &Digest) {
        let folder = self.path.join(BLOBS);
        let mut blobs = files(&folder);
        blobs.sort_by_key(|(_, metadata)| std::cmp::Reverse(metadata.modified().ok()));
        blobs.sort_by_key(|(path, _)| *path != self.blob_path(newest));
        let mut bytes = 0_u64;
        for (path, metadata) in blobs {
            bytes = bytes.saturating_add(metadata.len());
            if bytes > self.bytes_max && path != self.blob_path(newest) {
                let _ = fs::remove_file(path);
            }
        }
        for folder in [BLOBS, REFERENCES, SIGNATURES] {
            remove_unfinished(&self.path.join(folder));
        }
    }
}

/// Returns the complete files of a directory.
fn files(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(UNFINISHED));
    named
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .collect()
}

fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = || now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if is_unfinished && age().is_some_and(|age| age > UNFINISHED_AGE_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn failed(path: &Path, error: io::Error) -> CacheError {
    CacheError::Io {
        path: path.display().to_string(),
        error,
    }
}

/// Returns the current time. It affects only the order of removal.
#[expect(
    clippy::disallowed_methods,
    reason = "the age of a file is compared with the file system's clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Creates a directory that is accessible only to this user, with its parents.
fn create(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(bytes_max: u64) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().join("images"), bytes_max).unwrap();
        (folder, cache)
    }

    fn is_kept(cache: &Cache, blob: &[u8]) -> bool {
        cache.blob_path(&Digest::of(blob)).exists()
    }

    #[test]
    fn a_blob_is_verified_when_it_is_read() {
        let (_folder, cache) = cache(100);
        let digest = cache.keep(b"code").unwrap();
        assert_eq!(cache.blob(&digest).unwrap().unwrap(), "code");
        fs::write(cache.blob_path(&digest), "cod").unwrap();
        assert_eq!(cache.blob(&digest).unwrap(), None);
        assert!(!is_kept(&cache, b"code"), "the damaged file is removed");
        cache.keep(b"code").unwrap();
        assert_eq!(cache.blob(&digest).unwrap().unwrap(), "code");
    }

    #[test]
    fn the_oldest_use_leaves_first() {
        let (_folder, cache) = cache(8);
        let age = |blob: &[u8], hours: u64| {
            let file = File::open(cache.blob_path(&Digest::of(blob))).unwrap();
            file.set_modified(now() - Duration::from_hours(hours)).unwrap();
        };
        cache.keep(b"aaa").unwrap();
        cache.keep(b"bbb").unwrap();
        age(b"aaa", 3);
        age(b"bbb", 2);
        // A use makes it the newest.
        cache.blob(&Digest::of(b"aaa")).unwrap();
        cache.keep(b"ccc").unwrap();
        assert_eq!(
            [b"aaa", b"bbb", b"ccc"].map(|blob| is_kept(&cache, blob)),
            [true, false, true]
        );
        // One that is larger than the bound is kept alone.
        cache.keep(b"larger than eight").unwrap();
        assert!(is_kept(&cache, b"larger than eight") && !is_kept(&cache, b"aaa"));
    }

    #[test]
    fn a_full_disk_is_named_and_leaves_no_partial_file() {
        let (_folder, cache) = cache(100);
        let path = cache.blob_path(&Digest::of(b"code"));
        let fill = |file: &mut dyn Write| {
            file.write_all(b"co")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = cache.write(&path, fill).unwrap_err();
        assert!(matches!(error, CacheError::Full { .. }), "{error}");
        assert!(error.to_string().contains("the disk is full; free space"), "{error}");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn tags_and_signatures_are_remembered() {
        let (folder, cache) = cache(100);
        let image: Reference = "r.io/a:1".parse().unwrap();
        let digest = Digest::of(b"manifest");
        assert_eq!((cache.known(&image), cache.signatures(&digest)), (None, None));
        cache.remember(&image, &digest).unwrap();
        let signature = Signature {
            payload: "payload".to_owned(),
            signature: "MEUC".to_owned(),
            payload_type: None,
            bundle: None,
        };
        cache
            .keep_signatures(&digest, std::slice::from_ref(&signature))
            .unwrap();
        let again = Cache::open(folder.path().join("images"), 100).unwrap();
        assert_eq!(again.known(&image), Some(digest.clone()));
        assert_eq!(again.signatures(&digest), Some(vec![signature]));
        let known = KnownReference {
            reference: "r.io/a:1".to_owned(),
            digest,
        };
        assert_eq!(again.references(), [known]);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Cache::open(folder.path(), 100).unwrap_err();
        assert!(
            error.to_string().contains("can be written by others (mode 777)"),
            "{error}"
        );
    }
}
