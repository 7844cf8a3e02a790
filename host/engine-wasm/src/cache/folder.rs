//! Directory of compiled code: its permissions and its size.

use std::fs::{self, File, Metadata};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bulkhead_plugin::write_objection;

use super::name::Name;

/// Prefix of the names of unfinished files.
const UNFINISHED: &str = ".unfinished-";
/// Age at which an unfinished file counts as left behind by a process that died.
const UNFINISHED_AGE_MAX: Duration = Duration::from_hours(1);

/// A directory that only its owner can write to.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates the directory if needed and checks its permissions. The error contains a remedy.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        let shown = path.display().to_string();
        let made = if path.is_dir() { Ok(()) } else { create(&path) };
        made.map_err(|error| format!("cannot create the folder {shown} for compiled components: {error}"))?;
        let metadata = fs::metadata(&path).map_err(|error| format!("cannot inspect the folder {shown}: {error}"))?;
        if let Some(objection) = write_objection(&metadata) {
            return Err(format!(
                "compiled components are executed, so they are not kept in {shown}: it {objection}"
            ));
        }
        Ok(Self { path })
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &Name) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// Returns an error if other users can write to a file.
    #[expect(clippy::unused_self, reason = "the folder sets the rule that its files follow")]
    pub(super) fn accept(&self, file: &Metadata) -> Result<(), String> {
        if !file.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        write_objection(file).map_or(Ok(()), |objection| Err(format!("it {objection}")))
    }

    /// Returns the names of our files.
    pub(super) fn names(&self) -> Vec<Name> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Name::parse(entry.file_name().to_str()?))
            .collect()
    }

    /// Records the use of a file. An error in a read-only directory is harmless.
    pub(super) fn touch(&self, name: &Name) {
        let _ = File::open(self.path(name)).and_then(|file| file.set_modified(now()));
    }

    /// Removes a file, unless another process has removed it.
    pub(super) fn remove(&self, name: &Name) {
        let _ = fs::remove_file(self.path(name));
    }

    /// Writes a file atomically: it is complete as soon as it has its name.
    pub(super) fn write(&self, name: &Name, content: &[u8]) -> Result<(), String> {
        let written = || {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.path)?;
            file.write_all(content)?;
            // Without this, a crash of the machine can leave a file with its name but without its content. The name
            // itself may get lost, which only causes a miss.
            file.as_file().sync_all()?;
            file.persist(self.path(name))?;
            Ok(())
        };
        let folder = self.path.display();
        written().map_err(|error: std::io::Error| format!("cannot keep compiled components in {folder}: {error}"))
    }

    /// Removes the least recently used files until at most `bytes_max` bytes are left, and files left behind by
    /// processes that died. Returns the number of complete files that were removed.
    pub(super) fn shrink(&self, bytes_max: u64) -> u64 {
        let mut files: Vec<_> = self.used().into_iter().collect();
        files.sort_by(|(one, ..), (other, ..)| other.cmp(one));
        let mut bytes = 0_u64;
        let mut removed = 0;
        for (_, size, name) in files {
            bytes = bytes.saturating_add(size);
            if bytes > bytes_max {
                self.remove(&name);
                removed += 1;
            }
        }
        self.remove_unfinished();
        removed
    }

    /// Returns our files with the time of their last use and their size.
    fn used(&self) -> Vec<(SystemTime, u64, Name)> {
        let used = |name: Name| {
            let metadata = fs::metadata(self.path(&name)).ok()?;
            Some((metadata.modified().ok()?, metadata.len(), name))
        };
        self.names().into_iter().filter_map(used).collect()
    }

    fn remove_unfinished(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let unfinished = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(UNFINISHED));
            let age = || now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
            if unfinished && age().is_some_and(|age| age > UNFINISHED_AGE_MAX) {
                let _ = fs::remove_file(entry.path());
            }
        }
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
fn create(path: &std::path::Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
