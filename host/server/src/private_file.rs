//! Atomic replacement of files with credentials.
//!
//! A reader finds either the old content or the new one, also after a crash: the content is written to a temporary file
//! in the same directory, which then takes the place of the old file. Only the owner may read the file.
//!
//! Directories and files that grow, such as a journal, are restricted by `bulkhead_journal::private` instead.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Maximum number of symbolic links that are followed, as in Linux.
const LINKS_MAX: usize = 40;

/// Replacement of a file. It takes the file's place when it is written, and is removed when it is dropped.
pub struct Replacement {
    /// Path of the file, without symbolic links at its end.
    path: PathBuf,
    file: NamedTempFile,
}

impl Replacement {
    /// Creates the temporary file, so that an unwritable directory fails before any other work. A symbolic link is
    /// followed: its target is replaced, and the link stays.
    ///
    /// # Errors
    ///
    /// The directory does not exist or is not writable, or the path is not that of a regular file.
    pub fn new(path: &Path) -> io::Result<Self> {
        let path = target(path)?;
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // The mode of a temporary file is 0600.
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        let file = Builder::new()
            .prefix(&prefix)
            .suffix(".new")
            .tempfile_in(directory(&path))?;
        Ok(Self { path, file })
    }

    /// Writes the content and moves it to its place.
    ///
    /// # Errors
    ///
    /// The content cannot be stored; the old file is unchanged.
    pub fn write(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        File::open(directory(&self.path))?.sync_all()
    }
}

/// Replaces a file at once.
///
/// # Errors
///
/// As [`Replacement::new`] and [`Replacement::write`].
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Replacement::new(path)?.write(content)
}

/// Returns the directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Follows symbolic links, also to a file that does not exist yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(link) => path = directory(&path).join(link),
            // Not a link, or no file.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_content_until_it_is_replaced_and_no_other_user_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        fs::write(&path, "an older text, which is longer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut old = File::open(&path).unwrap();
        let replacement = Replacement::new(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "an older text, which is longer");
        replacement.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A process that has the former file open reads all of it.
        assert_eq!(io::read_to_string(&mut old).unwrap(), "an older text, which is longer");
        assert_eq!(names(directory.path()), ["kubeconfig"]);
    }

    #[test]
    fn a_replacement_that_is_dropped_leaves_the_directory_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        drop(Replacement::new(&path).unwrap());
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn a_symbolic_link_stays_and_its_target_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink("real/middle", &link).unwrap();
        symlink("kubeconfig", real.join("middle")).unwrap();
        // The first one creates the target of the link.
        for text in ["first", "second"] {
            replace(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(real.join("kubeconfig")).unwrap(), text);
        }
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real/middle"));
        assert_eq!(names(&real), ["kubeconfig", "middle"]);
    }

    #[test]
    fn a_path_that_cannot_be_replaced_is_an_error_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |path: &Path| {
            Replacement::new(path)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(refused(directory.path()), "not a regular file");
        let missing = directory.path().join("missing/kubeconfig");
        assert!(
            refused(&missing).contains("No such file or directory"),
            "{}",
            refused(&missing)
        );
        let circle = directory.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert_eq!(refused(&circle), "too many levels of symbolic links");
    }
}
