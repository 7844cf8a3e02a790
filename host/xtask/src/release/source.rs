//! Commit that a release is made from.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::sh::git;

/// Hexadecimal digits of a commit, as `bulkhead version` prints them.
const COMMIT_DIGITS: &str = "--short=12";

/// Checkouts that a release is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Only those without changes that are in no commit, because others cannot be repeated.
    Clean,
    /// Any.
    Any,
}

/// Version, commit and time of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Version of the workspace, such as `0.1.0`.
    pub(crate) version: String,
    /// First 12 digits of the commit.
    pub(crate) commit: String,
    /// Time of the commit, in seconds since 1970: the modification time of every packaged file.
    pub(crate) epoch_s: u64,
}

impl Source {
    /// Reads the commit of a checkout.
    ///
    /// # Errors
    ///
    /// The folder is no git checkout, or it has changes that are in no commit and only clean ones are accepted.
    pub(crate) fn read(root: &Path, accepts: Accepts) -> anyhow::Result<Self> {
        let changes = git(root, &["status", "--porcelain"])?;
        if accepts == Accepts::Clean && !changes.is_empty() {
            bail!(
                "the checkout has changes that are in no commit:\n{changes}\ncommit or remove them, or use \
                 --allow-dirty for a release that cannot be repeated"
            );
        }
        let time = git(root, &["log", "-1", "--format=%ct"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: git(root, &["rev-parse", COMMIT_DIGITS, "HEAD"])?,
            epoch_s: time.parse().with_context(|| format!("time of the commit: {time}"))?,
        })
    }

    /// Returns the time of the commit in RFC 3339.
    ///
    /// # Errors
    ///
    /// The time is after the year 9999.
    pub(crate) fn timestamp(&self) -> anyhow::Result<String> {
        let time = i64::try_from(self.epoch_s).context("time of the commit")?;
        Ok(jiff::Timestamp::from_second(time)?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_commit_is_in_utc() {
        let source = Source {
            version: "1.2.3".to_owned(),
            commit: "3f9a1c2e55ab".to_owned(),
            epoch_s: 1_700_000_000,
        };
        assert_eq!(source.timestamp().unwrap(), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn changes_without_a_commit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for arguments in [
            &["init", "--quiet"][..],
            &[
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "commit",
                "--quiet",
                "--allow-empty",
                "-m",
                "first",
            ],
        ] {
            git(folder.path(), arguments).unwrap();
        }
        let clean = Source::read(folder.path(), Accepts::Clean).unwrap();
        assert_eq!(clean.commit.len(), 12);
        std::fs::write(folder.path().join("new.rs"), "").unwrap();
        let error = Source::read(folder.path(), Accepts::Clean).unwrap_err().to_string();
        assert!(error.contains("new.rs") && error.contains("--allow-dirty"), "{error}");
        assert_eq!(Source::read(folder.path(), Accepts::Any).unwrap(), clean);
    }
}
