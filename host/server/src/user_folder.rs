//! Folders of the user that the program keeps files in.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Folder given as an argument, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FolderOrOff {
    /// The feature is off.
    Off,
    /// Path of the folder.
    Folder(PathBuf),
}

impl FromStr for FolderOrOff {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "off" {
            Self::Off
        } else {
            Self::Folder(PathBuf::from(text))
        })
    }
}

/// Kind of a user's files (XDG Base Directory Specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Files that can be created again.
    Cache,
    /// Files that should persist between restarts.
    State,
}

/// Returns Bulkhead's folder for files of a kind, if the environment names one.
pub fn default_folder(kind: Kind) -> Option<PathBuf> {
    folder(kind, |name| std::env::var_os(name))
}

/// Returns the folder for given environment variables. Relative paths are ignored, as the specification demands.
fn folder(kind: Kind, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let (name, below_home) = match kind {
        Kind::Cache => ("XDG_CACHE_HOME", ".cache"),
        Kind::State => ("XDG_STATE_HOME", ".local/state"),
    };
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let files = absolute(name).or_else(|| absolute("HOME").map(|home| home.join(below_home)))?;
    Some(files.join(Path::new("bulkhead")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_where_a_user_keeps_them() {
        let check = |kind: Kind, variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.into())
            };
            assert_eq!(
                folder(kind, variable).as_deref(),
                expected.map(Path::new),
                "{kind:?} {variables:?}"
            );
        };
        check(Kind::Cache, &[("HOME", "/home/me")], Some("/home/me/.cache/bulkhead"));
        check(
            Kind::Cache,
            &[("HOME", "/home/me"), ("XDG_CACHE_HOME", "/var/caches")],
            Some("/var/caches/bulkhead"),
        );
        check(
            Kind::Cache,
            &[("HOME", "/home/me"), ("XDG_CACHE_HOME", "")],
            Some("/home/me/.cache/bulkhead"),
        );
        check(
            Kind::Cache,
            &[("HOME", "/home/me"), ("XDG_CACHE_HOME", "caches")],
            Some("/home/me/.cache/bulkhead"),
        );
        check(
            Kind::Cache,
            &[("XDG_CACHE_HOME", "/var/caches")],
            Some("/var/caches/bulkhead"),
        );
        check(
            Kind::State,
            &[("HOME", "/home/me")],
            Some("/home/me/.local/state/bulkhead"),
        );
        check(
            Kind::State,
            &[("HOME", "/home/me"), ("XDG_STATE_HOME", "/var/state")],
            Some("/var/state/bulkhead"),
        );
        check(Kind::State, &[("XDG_CACHE_HOME", "/var/caches")], None);
        check(Kind::State, &[("HOME", "")], None);
        check(Kind::Cache, &[], None);
    }
}
