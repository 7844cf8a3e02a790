//! Archives whose bytes depend on their content only: sorted entries, one time, no owner.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, ensure};
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

pub(crate) use crate::digest::sha256;

/// Mode of a program.
pub(crate) const PROGRAM: u32 = 0o755;
/// Mode of any other file.
pub(crate) const FILE: u32 = 0o644;

/// Files and folders of an archive by path. Paths are relative, with `/`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    mode: u32,
    /// Owner and group.
    owner: u64,
    /// Content of a file; `None` for a folder.
    content: Option<Vec<u8>>,
}

impl Archive {
    /// Adds a file of root.
    ///
    /// # Errors
    ///
    /// The path is taken, absolute, or leaves the archive.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) -> anyhow::Result<()> {
        let entry = Entry {
            mode,
            owner: 0,
            content: Some(content.into()),
        };
        self.insert(path, entry)
    }

    /// Adds a folder of a user with its own group. Folders that are not added belong to root.
    ///
    /// # Errors
    ///
    /// The path is taken, absolute, or leaves the archive.
    pub(crate) fn folder(&mut self, path: &str, mode: u32, owner: u64) -> anyhow::Result<()> {
        let entry = Entry {
            mode,
            owner,
            content: None,
        };
        self.insert(path, entry)
    }

    fn insert(&mut self, path: &str, entry: Entry) -> anyhow::Result<()> {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        ensure!(
            path.split('/').all(is_plain),
            "path {path:?} of an archive is not relative and plain"
        );
        ensure!(
            self.entries.insert(path.to_owned(), entry).is_none(),
            "two entries {path:?} in an archive"
        );
        Ok(())
    }

    /// Returns the archive as tar, in order of path, with one modification time in seconds since 1970.
    ///
    /// # Errors
    ///
    /// A path is longer than the format allows.
    pub(crate) fn tar(&self, epoch_s: u64) -> anyhow::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let content = entry.content.as_deref().unwrap_or_default();
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner);
            header.set_gid(entry.owner);
            header.set_mtime(epoch_s);
            header.set_size(content.len() as u64);
            let (kind, path) = if entry.content.is_some() {
                (EntryType::Regular, path.clone())
            } else {
                (EntryType::Directory, format!("{path}/"))
            };
            header.set_entry_type(kind);
            builder
                .append_data(&mut header, &path, content)
                .with_context(|| format!("packing {path}"))?;
        }
        builder.into_inner().context("packing")
    }
}

/// Compresses bytes with gzip, without a time and a name.
///
/// # Errors
///
/// None in memory; the type is the library's.
pub(crate) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes).context("compressing")?;
    encoder.finish().context("compressing")
}

/// A higher level takes twice the time for a hundredth of the size.
const LEVEL: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Archive {
        let mut archive = Archive::default();
        archive.file("b/program", PROGRAM, "binary").unwrap();
        archive.file("a", FILE, "text").unwrap();
        archive.folder("b/state", 0o700, 65532).unwrap();
        archive
    }

    #[test]
    fn entries_are_sorted_and_have_one_time_and_no_owner() {
        let bytes = two().tar(7).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                let owners = (header.uid().unwrap(), header.gid().unwrap());
                (path, header.mode().unwrap(), owners, header.mtime().unwrap())
            })
            .collect();
        let expected = [
            ("a".to_owned(), 0o644, (0, 0), 7),
            ("b/program".to_owned(), 0o755, (0, 0), 7),
            ("b/state/".to_owned(), 0o700, (65532, 65532), 7),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let packed = || gzip(&two().tar(7).unwrap()).unwrap();
        assert_eq!(packed(), packed());
        assert_ne!(packed(), gzip(&two().tar(8).unwrap()).unwrap());
    }

    #[test]
    fn a_path_that_leaves_the_archive_is_refused() {
        for path in ["/etc/passwd", "../up", "a//b", "a/./b", ""] {
            let error = Archive::default().file(path, FILE, "").unwrap_err().to_string();
            assert!(error.contains(&format!("{path:?}")), "{error}");
        }
        let error = two().file("a", FILE, "").unwrap_err().to_string();
        assert_eq!(error, "two entries \"a\" in an archive");
    }
}
