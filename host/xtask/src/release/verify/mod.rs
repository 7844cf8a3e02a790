//! Checks of a finished release, from its files alone: digests, archives, image, and the references between them.

mod image;
mod manifests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use flate2::read::GzDecoder;
use tar::Archive;

use super::source::Source;
use super::{CHECKSUMS, REPORT, pack, sign};

/// Checks the folder of a release of a commit, whose manifests name an image.
///
/// # Errors
///
/// The first file that is wrong, with the reason.
pub(crate) fn folder(out: &Path, source: &Source, image: &str) -> anyhow::Result<()> {
    checksums(out)?;
    let names = names(out)?;
    for name in names.iter().filter(|name| is_archive(name)) {
        entries(out, name, source)?;
    }
    let version = &source.version;
    let digest = image::check(&out.join(format!("bulkhead-{version}-image.tar")), source)?;
    manifests::chart(out, source, image, &digest)?;
    manifests::kustomize(out, source, image, &digest)?;
    manifests::krew(out, source)?;
    for name in names.iter().filter(|name| name.ends_with(".cdx.json")) {
        manifests::materials(&out.join(name)).with_context(|| name.clone())?;
    }
    Ok(())
}

fn is_archive(name: &str) -> bool {
    [".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending))
}

/// Returns the names of the files, and refuses folders.
fn names(out: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(out).with_context(|| format!("reading {}", out.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        ensure!(entry.file_type()?.is_file(), "{name} is no file");
        names.insert(name);
    }
    Ok(names)
}

/// Compares the digests of all files with `SHA256SUMS`.
fn checksums(out: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(out.join(CHECKSUMS)).with_context(|| format!("reading {CHECKSUMS}"))?;
    let mut listed = BTreeSet::from([CHECKSUMS.to_owned()]);
    for line in text.lines() {
        let (digest, name) = line
            .split_once("  ")
            .with_context(|| format!("{CHECKSUMS}: line {line:?}"))?;
        let content = fs::read(out.join(name)).with_context(|| format!("reading {name}"))?;
        let found = pack::sha256(&content);
        ensure!(
            found == digest,
            "{name} has the digest {found}, and {CHECKSUMS} has {digest}"
        );
        listed.insert(name.to_owned());
    }
    listed.extend([REPORT, sign::SIGNATURE, sign::PUBLIC_KEY].map(str::to_owned));
    let missing: Vec<_> = names(out)?.into_iter().filter(|name| !listed.contains(name)).collect();
    ensure!(missing.is_empty(), "{CHECKSUMS} does not list {}", missing.join(", "));
    Ok(())
}

/// Opens an archive, compressed or not, by its name.
///
/// # Errors
///
/// The file cannot be opened.
pub(crate) fn open(path: &Path) -> anyhow::Result<Archive<Box<dyn Read>>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let is_plain = path.extension().is_some_and(|extension| extension == "tar");
    let reader: Box<dyn Read> = if is_plain {
        Box::new(BufReader::new(file))
    } else {
        Box::new(GzDecoder::new(BufReader::new(file)))
    };
    Ok(Archive::new(reader))
}

/// Checks that the entries of an archive are sorted, and have the time of the commit and no owner.
fn entries(out: &Path, name: &str, source: &Source) -> anyhow::Result<()> {
    let (mut last, mut archive) = (String::new(), open(&out.join(name))?);
    for entry in archive.entries()? {
        let entry = entry.with_context(|| name.to_owned())?;
        let path = entry.path()?.display().to_string();
        let header = entry.header();
        ensure!(path > last, "{name}: {path} is not in order after {last}");
        ensure!(
            header.mtime()? == source.epoch_s,
            "{name}: {path} has another time than the commit"
        );
        ensure!(header.uid()? == 0 && header.gid()? == 0, "{name}: {path} has an owner");
        last = path;
    }
    if last.is_empty() {
        bail!("{name} is empty");
    }
    Ok(())
}

/// File of an archive.
struct Content {
    /// Permissions.
    mode: u32,
    bytes: Vec<u8>,
}

/// Returns the files of an archive by path.
fn contents(mut archive: Archive<impl Read>) -> anyhow::Result<BTreeMap<String, Content>> {
    let mut found = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let (path, mode) = (entry.path()?.display().to_string(), entry.header().mode()?);
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        found.insert(path, Content { mode, bytes });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_an_unlisted_and_a_missing_file_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.yaml", "one");
        write(CHECKSUMS, &format!("{}  a.yaml\n", pack::sha256(b"one")));
        write(REPORT, "{}");
        checksums(folder.path()).unwrap();
        write("b.yaml", "two");
        assert_eq!(
            checksums(folder.path()).unwrap_err().to_string(),
            "SHA256SUMS does not list b.yaml"
        );
        fs::remove_file(folder.path().join("b.yaml")).unwrap();
        write("a.yaml", "another");
        let error = checksums(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("a.yaml has the digest "), "{error}");
        fs::remove_file(folder.path().join("a.yaml")).unwrap();
        assert_eq!(checksums(folder.path()).unwrap_err().to_string(), "reading a.yaml");
    }

    #[test]
    fn an_archive_of_another_time_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = pack::Archive::default();
        archive.file("a", pack::FILE, "text").unwrap();
        let source = |epoch_s| Source {
            version: "0.1.0".to_owned(),
            commit: String::new(),
            epoch_s,
        };
        fs::write(folder.path().join("a.tar"), archive.tar(7).unwrap()).unwrap();
        entries(folder.path(), "a.tar", &source(7)).unwrap();
        let error = entries(folder.path(), "a.tar", &source(8)).unwrap_err().to_string();
        assert_eq!(error, "a.tar: a has another time than the commit");
    }
}
