//! A release that is in a folder already.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::platform::Platform;
use super::source::Source;
use super::{REPORT, verify};

/// Release in a folder, whose files have been checked.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// Absolute path of the folder.
    pub(crate) folder: PathBuf,
    /// Version, such as `0.1.0`.
    pub(crate) version: String,
    /// First 12 digits of the commit.
    pub(crate) commit: String,
    /// Repository of the image, as the chart names it.
    pub(crate) repository: String,
    /// Digest of the image for all platforms, `sha256:…`.
    pub(crate) digest: String,
    /// True if the programs were not compiled for a release.
    pub(crate) is_quick: bool,
}

/// Part of the report that the checks need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    version: String,
    commit: String,
    source_date_epoch: u64,
    quick: bool,
}

impl Finished {
    /// Reads and checks a release.
    ///
    /// # Errors
    ///
    /// The folder has no release, or a check of its files fails.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let about = || format!("{} has no release; `cargo xtask release` makes one", folder.display());
        let folder = folder.canonicalize().with_context(about)?;
        let text = fs::read_to_string(folder.join(REPORT)).with_context(about)?;
        let report: Report = serde_json::from_str(&text).with_context(|| format!("reading {REPORT}"))?;
        let chart = folder.join(format!("bulkhead-{}.tgz", report.version));
        let values = read_from(&chart, "bulkhead/values.yaml")?;
        let values: Value = serde_saphyr::from_str(&String::from_utf8_lossy(&values))?;
        let text = |field: &str| -> anyhow::Result<String> {
            let value = values["image"][field].as_str();
            Ok(value
                .with_context(|| format!("{}: no image.{field}", chart.display()))?
                .to_owned())
        };
        let (repository, digest) = (text("repository")?, text("digest")?);
        let source = Source {
            version: report.version,
            commit: report.commit,
            epoch_s: report.source_date_epoch,
        };
        verify::folder(&folder, &source, &repository)?;
        Ok(Self {
            folder,
            version: source.version,
            commit: source.commit,
            repository,
            digest,
            is_quick: report.quick,
        })
    }

    /// Returns the archive with the program for a platform, and the path of the program in it.
    pub(crate) fn archive(&self, platform: Platform) -> (PathBuf, String) {
        let name = format!("bulkhead-{}-{}", self.version, platform.triple());
        (self.folder.join(format!("{name}.tar.gz")), format!("{name}/bulkhead"))
    }
}

/// Returns the content of a file in an archive.
///
/// # Errors
///
/// The archive cannot be read, or has no such file.
pub(super) fn read_from(archive: &Path, path: &str) -> anyhow::Result<Vec<u8>> {
    let mut reader = verify::open(archive)?;
    for entry in reader.entries()? {
        let mut entry = entry.with_context(|| format!("reading {}", archive.display()))?;
        if entry.path()?.as_os_str() == path {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            return Ok(content);
        }
    }
    bail!("{} has no {path}", archive.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_release_is_an_error_that_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("missing")] {
            let error = Finished::read(&path).unwrap_err().to_string();
            assert!(
                error.ends_with("has no release; `cargo xtask release` makes one"),
                "{error}"
            );
        }
    }
}
