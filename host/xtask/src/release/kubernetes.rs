//! Files for Kubernetes: chart, kustomize folder, definitions of our kinds, and the manifest of the kubectl plugin.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use super::pack::{self, Archive, FILE};
use super::source::Source;

/// Image that manifests name.
pub(crate) struct Reference<'r> {
    /// Repository, such as `registry.example.com/bulkhead`.
    pub(crate) repository: &'r str,
    /// Digest, `sha256:…`.
    pub(crate) digest: &'r str,
}

/// Folder of the manifests.
const DEPLOY: &str = "host/deploy";
/// Definitions of the kinds of `bulkhead.dev`.
const DEFINITIONS: &str = "crds/bulkhead.yaml";

/// Returns the definitions of the kinds of `bulkhead.dev`.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) fn definitions(root: &Path) -> anyhow::Result<String> {
    read(&root.join(DEPLOY).join(DEFINITIONS))
}

/// Returns the chart as `helm package` lays it out, with the image and with the definitions in `crds`, which Helm
/// installs if they are missing and never changes.
///
/// # Errors
///
/// A file cannot be read, or a value that is to be set is not in `values.yaml`.
pub(crate) fn chart(root: &Path, image: &Reference, source: &Source) -> anyhow::Result<Vec<u8>> {
    let folder = root.join(DEPLOY).join("chart");
    let ignored = Ignored::parse(&read(&folder.join(".helmignore"))?)?;
    let mut archive = Archive::default();
    for path in files(&folder)?.into_iter().filter(|path| !ignored.has(path)) {
        let mut text = read(&folder.join(&path))?;
        match path.as_str() {
            "Chart.yaml" => {
                for field in ["version", "appVersion"] {
                    let line = format!("\n{field}: {}\n", source.version);
                    ensure!(
                        text.contains(&line),
                        "chart/Chart.yaml: {field} is not {}",
                        source.version
                    );
                }
            }
            "values.yaml" => {
                let repository = format!("\n  repository: {}\n", image.repository);
                text = replaced(&text, "\n  repository: bulkhead\n", &repository).context("chart/values.yaml")?;
                let digest = format!("\n  digest: {}\n", image.digest);
                text = replaced(&text, "\n  digest: \"\"\n", &digest).context("chart/values.yaml")?;
            }
            _ => {}
        }
        archive.file(&format!("bulkhead/{path}"), FILE, text)?;
    }
    archive.file(&format!("bulkhead/{DEFINITIONS}"), FILE, definitions(root)?)?;
    pack::gzip(&archive.tar(source.epoch_s)?)
}

/// Returns the kustomize folders with the image, beside roles and definitions.
///
/// # Errors
///
/// A file cannot be read, or a kustomization does not name the image.
pub(crate) fn kustomize(root: &Path, image: &Reference, source: &Source) -> anyhow::Result<Vec<u8>> {
    let deploy = root.join(DEPLOY);
    let name = format!("bulkhead-{}-kustomize", source.version);
    let (mut archive, mut images) = (Archive::default(), 0);
    // Paths as in the checkout, because kustomizations name the roles by them.
    for part in ["kustomize", "chart/rbac", "crds"] {
        let folder = deploy.join(part);
        for path in files(&folder)? {
            let mut text = read(&folder.join(&path))?;
            let tag = format!("- {{name: bulkhead, newTag: {}}}", source.version);
            if path.ends_with("kustomization.yaml") && text.contains(&tag) {
                let digest = format!(
                    "- {{name: bulkhead, newName: {}, digest: \"{}\"}}",
                    image.repository, image.digest
                );
                text = replaced(&text, &tag, &digest)?;
                images += 1;
            }
            archive.file(&format!("{name}/{part}/{path}"), FILE, text)?;
        }
    }
    ensure!(
        images > 0,
        "no kustomization names the image with newTag: {}",
        source.version
    );
    pack::gzip(&archive.tar(source.epoch_s)?)
}

/// Archive with a program for one platform.
pub(crate) struct Download {
    /// Architecture in the names of Go.
    pub(crate) architecture: &'static str,
    /// Name of the folder in the archive.
    pub(crate) folder: String,
    /// URL, or the file name if no URL is known.
    pub(crate) uri: String,
    /// SHA-256 of the archive, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// Returns the manifest with which krew installs `kubectl bulkhead`.
pub(crate) fn krew(downloads: &[Download], source: &Source) -> String {
    let mut out = format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2\nkind: Plugin\nmetadata:\n  name: bulkhead\nspec:\n  \
         version: v{}\n  shortDescription: Operate failover of member clusters\n  description: |\n    Shows, drains, \
         pauses and explains the failover of workloads between the\n    member clusters of a Karmada-style control \
         plane, and simulates it before.\n  caveats: |\n    Commands use the current context of the kubeconfig, \
         which has to be the one\n    of Karmada's API server. `kubectl bulkhead doctor` checks it.\n  platforms:\n",
        source.version
    );
    for download in downloads {
        let Download {
            architecture,
            folder,
            uri,
            sha256,
        } = download;
        let _ = write!(
            out,
            "  - selector:\n      matchLabels: {{os: linux, arch: {architecture}}}\n    uri: {uri}\n    sha256: \
             {sha256}\n    bin: kubectl-bulkhead\n    files:\n    - {{from: {folder}/bulkhead, to: \
             kubectl-bulkhead}}\n    - {{from: {folder}/LICENSE, to: .}}\n"
        );
    }
    out
}

/// Patterns of `.helmignore`, in the part of its syntax that the chart uses: a folder with `/` at its end, or a path
/// in which `*` stands for one part.
struct Ignored(Vec<String>);

impl Ignored {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let patterns: Vec<_> = lines.map(str::to_owned).collect();
        for pattern in &patterns {
            let is_known = pattern
                .split('/')
                .all(|part| part == "*" || !part.contains(['*', '?', '[', '!', '\\']));
            if !is_known {
                bail!("chart/.helmignore: pattern {pattern:?} is not supported; write a folder or a path");
            }
        }
        Ok(Self(patterns))
    }

    fn has(&self, path: &str) -> bool {
        path == ".helmignore" || self.0.iter().any(|pattern| fits(pattern, path))
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    if pattern.ends_with('/') {
        return path.starts_with(pattern);
    }
    let (parts, given): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    parts.len() == given.len()
        && parts
            .iter()
            .zip(given)
            .all(|(part, given)| *part == "*" || *part == given)
}

/// Replaces a part that occurs exactly once.
fn replaced(text: &str, part: &str, with: &str) -> anyhow::Result<String> {
    let count = text.matches(part).count();
    ensure!(count == 1, "{:?} occurs {count} times instead of once", part.trim());
    Ok(text.replace(part, with))
}

/// Returns the files below a folder as sorted paths relative to it.
fn files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        let here = folder.join(&prefix);
        for entry in fs::read_dir(&here).with_context(|| format!("reading {}", here.display()))? {
            let entry = entry?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                open.push(format!("{path}/"));
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_folders_and_paths_with_any_part() {
        let ignored = Ignored::parse("# comment\nci/\nrbac/*/kustomization.yaml\n").unwrap();
        for path in ["ci/alone-values.yaml", "rbac/all/kustomization.yaml", ".helmignore"] {
            assert!(ignored.has(path), "{path}");
        }
        for path in [
            "values.yaml",
            "rbac/all/rbac.yaml",
            "rbac/kustomization.yaml",
            "templates/ci/x",
        ] {
            assert!(!ignored.has(path), "{path}");
        }
        let error = Ignored::parse("!values.yaml").err().unwrap().to_string();
        assert!(error.contains("\"!values.yaml\""), "{error}");
    }

    #[test]
    fn a_value_that_is_missing_or_ambiguous_is_an_error() {
        assert_eq!(replaced("a: 1\n", "a: 1", "a: 2").unwrap(), "a: 2\n");
        for text in ["", "a: 1 a: 1"] {
            let error = replaced(text, "a: 1", "a: 2").unwrap_err().to_string();
            assert!(error.contains("instead of once"), "{error}");
        }
    }

    #[test]
    fn the_chart_of_another_version_is_refused() {
        let source = Source {
            version: "9.9.9".to_owned(),
            commit: String::new(),
            epoch_s: 0,
        };
        let image = Reference {
            repository: "bulkhead",
            digest: "sha256:0",
        };
        let error = chart(&crate::root(), &image, &source).unwrap_err().to_string();
        assert_eq!(error, "chart/Chart.yaml: version is not 9.9.9");
    }
}
