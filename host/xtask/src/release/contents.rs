//! Files of a release by name, from programs that are built already.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::graph::{self, Key, Package};
use super::image::{self, Texts};
use super::kubernetes::{self, Download, Reference};
use super::pack::{self, Archive, FILE, PROGRAM};
use super::platform::Platform;
use super::source::Source;
use super::{CHECKSUMS, licences, sbom};

/// Input of a release.
pub(crate) struct Inputs {
    /// Commit that the programs were built from.
    pub(crate) source: Source,
    /// Content of the program for each platform.
    pub(crate) programs: BTreeMap<Platform, Vec<u8>>,
    /// Licences of libraries of the toolchain, by name.
    pub(crate) licences: Vec<(&'static str, String)>,
    /// Repository of the image.
    pub(crate) image: String,
    /// URL of the folder with the archives, if it is known.
    pub(crate) download_url: Option<String>,
    /// True if the programs were not compiled for a release.
    pub(crate) is_quick: bool,
}

/// Returns all files but the report.
///
/// # Errors
///
/// A file of the checkout cannot be read, or has another form than expected.
pub(crate) fn of(root: &Path, inputs: &Inputs) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let source = &inputs.source;
    let name = format!("bulkhead-{}", source.version);
    let mut files = BTreeMap::new();
    let mut packages: BTreeMap<Key, Package> = BTreeMap::new();
    for (platform, program) in &inputs.programs {
        let of_platform = graph::read(root, *platform)?;
        let document = sbom::of(&of_platform, source, *platform, program)?;
        let text = serde_json::to_vec_pretty(&document)?;
        files.insert(format!("{name}-{}.cdx.json", platform.triple()), text);
        packages.extend(of_platform);
    }
    let third_party = licences::of(&packages, &inputs.licences)?;
    let licence = read(root, "LICENSE")?;
    let mut downloads = Vec::new();
    for (platform, program) in &inputs.programs {
        let folder = format!("{name}-{}", platform.triple());
        let mut archive = Archive::default();
        // No link `kubectl-bulkhead`: krew refuses archives with links.
        archive.file(&format!("{folder}/bulkhead"), PROGRAM, program.as_slice())?;
        archive.file(&format!("{folder}/LICENSE"), FILE, licence.as_str())?;
        archive.file(&format!("{folder}/THIRD-PARTY-LICENSES"), FILE, third_party.as_str())?;
        archive.file(&format!("{folder}/README.md"), FILE, read(root, "README.md")?)?;
        let packed = pack::gzip(&archive.tar(source.epoch_s)?)?;
        let file = format!("{folder}.tar.gz");
        downloads.push(Download {
            architecture: platform.architecture(),
            folder,
            uri: uri(inputs.download_url.as_deref(), &file),
            sha256: pack::sha256(&packed),
        });
        files.insert(file, packed);
    }
    let texts = Texts {
        licence: &licence,
        third_party: &third_party,
    };
    let image = image::of(&inputs.programs, &texts, source)?;
    let reference = Reference {
        repository: &inputs.image,
        digest: &image.digest,
    };
    files.insert(format!("{name}.tgz"), kubernetes::chart(root, &reference, source)?);
    files.insert(
        format!("{name}-kustomize.tar.gz"),
        kubernetes::kustomize(root, &reference, source)?,
    );
    files.insert(format!("{name}-crds.yaml"), kubernetes::definitions(root)?.into_bytes());
    files.insert(
        format!("{name}-krew.yaml"),
        kubernetes::krew(&downloads, source).into_bytes(),
    );
    files.insert(format!("{name}-image.tar"), image.archive);
    files.insert("THIRD-PARTY-LICENSES".to_owned(), third_party.into_bytes());
    files.insert(CHECKSUMS.to_owned(), checksums(&files).into_bytes());
    Ok(files)
}

fn uri(base: Option<&str>, file: &str) -> String {
    base.map_or_else(
        || file.to_owned(),
        |base| format!("{}/{file}", base.trim_end_matches('/')),
    )
}

/// Returns the digests in the format of `sha256sum --check`.
fn checksums(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut out = String::new();
    for (name, content) in files {
        let _ = writeln!(out, "{}  {name}", pack::sha256(content));
    }
    out
}

fn read(root: &Path, name: &str) -> anyhow::Result<String> {
    let path = root.join(name);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_a_url_if_the_folder_of_downloads_is_known() {
        assert_eq!(uri(None, "a.tar.gz"), "a.tar.gz");
        assert_eq!(
            uri(Some("https://example.com/v1/"), "a.tar.gz"),
            "https://example.com/v1/a.tar.gz"
        );
    }
}
