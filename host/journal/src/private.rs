//! Files and directories that only their owner may access.
//!
//! A journal and the objects of an embedded control plane hold names, addresses and credentials. The mode is set when
//! a file is created and when an existing one is opened, regardless of the umask.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// Creates a directory with its parents, or removes the rights of other users from an existing one.
///
/// # Errors
///
/// The directory cannot be created, or belongs to another user.
pub fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)?;
    restrict(&fs::metadata(path)?.permissions(), DIRECTORY, |mode| {
        fs::set_permissions(path, mode)
    })
}

/// Opens a file with `options`, and removes the rights of other users from it.
///
/// # Errors
///
/// The file cannot be opened, or other users may access it and its mode cannot be changed.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(FILE).open(path)?;
    restrict(&file.metadata()?.permissions(), FILE, |mode| file.set_permissions(mode))?;
    Ok(file)
}

/// Removes the rights of other users from every file of a directory, not recursively.
///
/// # Errors
///
/// The directory cannot be read, or a file belongs to another user.
pub fn files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A link may point outside of the directory.
        if entry.file_type()?.is_file() {
            restrict(&entry.metadata()?.permissions(), FILE, |mode| {
                fs::set_permissions(entry.path(), mode)
            })?;
        }
    }
    Ok(())
}

fn restrict(now: &Permissions, most: u32, set: impl FnOnce(Permissions) -> io::Result<()>) -> io::Result<()> {
    let mode = now.mode() & 0o777;
    let of_others = mode & 0o077;
    if of_others == 0 {
        return Ok(());
    }
    set(Permissions::from_mode(mode & most)).map_err(|error| {
        let why = format!("other users may access it (mode {mode:04o}) and this user cannot change that: {error}");
        io::Error::new(error.kind(), why)
    })
}
