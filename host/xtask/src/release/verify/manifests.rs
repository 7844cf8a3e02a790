//! Checks of the files for Kubernetes and of the bill of materials.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::super::pack;
use super::super::source::Source;
use super::{contents, open};

/// Checks that the chart has the files which Helm requires, names the image by its digest, and defines our kinds.
pub(super) fn chart(out: &Path, source: &Source, image: &str, digest: &str) -> anyhow::Result<()> {
    let name = format!("bulkhead-{}.tgz", source.version);
    let files = contents(open(&out.join(&name))?).with_context(|| name.clone())?;
    let yaml = |path: &str| -> anyhow::Result<Value> {
        let file = files.get(path).with_context(|| format!("{name}: no {path}"))?;
        parsed(&file.bytes).with_context(|| format!("{name}: {path}"))
    };
    for path in files.keys() {
        ensure!(
            path.starts_with("bulkhead/"),
            "{name}: {path} is outside of the chart's folder"
        );
    }
    let chart = yaml("bulkhead/Chart.yaml")?;
    for (field, expected) in [
        ("name", "bulkhead"),
        ("version", &source.version),
        ("appVersion", &source.version),
    ] {
        ensure!(
            chart[field] == expected,
            "{name}: {field} of Chart.yaml is {}",
            chart[field]
        );
    }
    let values = yaml("bulkhead/values.yaml")?;
    for (field, expected) in [("repository", image), ("digest", digest)] {
        let found = &values["image"][field];
        ensure!(
            found == expected,
            "{name}: image.{field} of values.yaml is {found} instead of {expected:?}"
        );
    }
    for path in ["bulkhead/values.schema.json", "bulkhead/templates/deployment.yaml"] {
        ensure!(files.contains_key(path), "{name}: no {path}");
    }
    let definitions = files
        .get("bulkhead/crds/bulkhead.yaml")
        .with_context(|| format!("{name}: no definitions"))?;
    let file = format!("bulkhead-{}-crds.yaml", source.version);
    let published = fs::read(out.join(&file)).with_context(|| format!("reading {file}"))?;
    ensure!(
        definitions.bytes == published,
        "{name}: the definitions are not those of {file}"
    );
    let documents: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&published))?;
    for document in &documents {
        ensure!(
            document["kind"] == "CustomResourceDefinition",
            "{file}: an object of kind {}",
            document["kind"]
        );
    }
    ensure!(!documents.is_empty(), "{file} has no definitions");
    Ok(())
}

/// Checks that the kustomizations name the image by its digest, and that every path in them leads to a file.
pub(super) fn kustomize(out: &Path, source: &Source, image: &str, digest: &str) -> anyhow::Result<()> {
    let name = format!("bulkhead-{}-kustomize.tar.gz", source.version);
    let files = contents(open(&out.join(&name))?).with_context(|| name.clone())?;
    let mut images = 0;
    for (path, file) in files.iter().filter(|(path, _)| path.ends_with("/kustomization.yaml")) {
        let about = || format!("{name}: {path}");
        let kustomization = parsed(&file.bytes).with_context(about)?;
        for entry in kustomization["images"].as_array().into_iter().flatten() {
            let is_ours = entry["newName"] == image && entry["digest"] == digest;
            ensure!(is_ours, "{name}: {path}: image {entry}");
            images += 1;
        }
        let folder = path.trim_end_matches("/kustomization.yaml");
        for resource in kustomization["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let target = joined(folder, resource);
            let leads = files.contains_key(&target) || files.contains_key(&format!("{target}/kustomization.yaml"));
            ensure!(leads, "{name}: {path} names {resource}, which is not in the archive");
        }
    }
    ensure!(
        images == 2,
        "{name}: {images} kustomizations name an image instead of base and agent"
    );
    Ok(())
}

/// Checks that the manifest of krew has the digest and the files of each archive.
pub(super) fn krew(out: &Path, source: &Source) -> anyhow::Result<()> {
    let name = format!("bulkhead-{}-krew.yaml", source.version);
    let manifest = parsed(&fs::read(out.join(&name))?).with_context(|| name.clone())?;
    ensure!(
        manifest["spec"]["version"] == format!("v{}", source.version),
        "{name}: another version"
    );
    let platforms = manifest["spec"]["platforms"].as_array().context("no platforms")?;
    ensure!(!platforms.is_empty(), "{name}: no platforms");
    for platform in platforms {
        let uri = platform["uri"].as_str().with_context(|| format!("{name}: no uri"))?;
        let archive = uri.rsplit('/').next().unwrap_or(uri);
        let content = fs::read(out.join(archive)).with_context(|| format!("{name}: reading {archive}"))?;
        ensure!(
            platform["sha256"] == pack::sha256(&content),
            "{name}: {archive} has another digest"
        );
        let files = contents(open(&out.join(archive))?).with_context(|| archive.to_owned())?;
        let mut has_program = false;
        for file in platform["files"].as_array().into_iter().flatten() {
            let from = file["from"].as_str().unwrap_or_default();
            let found = files
                .get(from)
                .with_context(|| format!("{name}: {archive} has no {from}"))?;
            has_program |= file["to"] == platform["bin"] && found.mode == pack::PROGRAM;
        }
        ensure!(has_program, "{name}: {archive} has no program {}", platform["bin"]);
    }
    Ok(())
}

/// Checks that every dependency of a bill of materials is a component of it.
pub(super) fn materials(path: &Path) -> anyhow::Result<()> {
    let document: Value = serde_json::from_slice(&fs::read(path)?)?;
    let components = document["components"].as_array().context("no components")?;
    let program = &document["metadata"]["component"];
    let known: BTreeSet<_> = components
        .iter()
        .chain([program])
        .filter_map(|component| component["bom-ref"].as_str())
        .collect();
    ensure!(known.len() == components.len() + 1, "two components with one reference");
    for dependency in document["dependencies"].as_array().context("no dependencies")? {
        let below = dependency["dependsOn"].as_array().into_iter().flatten();
        for name in below.chain([&dependency["ref"]]).filter_map(Value::as_str) {
            if !known.contains(name) {
                bail!("dependency {name} is no component");
            }
        }
    }
    Ok(())
}

fn parsed(bytes: &[u8]) -> anyhow::Result<Value> {
    Ok(serde_saphyr::from_str(&String::from_utf8_lossy(bytes))?)
}

/// Joins a folder and a relative path with `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_kustomizations_are_relative_to_their_folder() {
        assert_eq!(joined("a/kustomize/base", "../../chart/rbac"), "a/chart/rbac");
        assert_eq!(joined("a", "./b.yaml"), "a/b.yaml");
    }

    #[test]
    fn a_dependency_without_a_component_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cdx.json");
        let write = |below: &str| {
            let document = serde_json::json!({
                "metadata": {"component": {"bom-ref": "p"}},
                "components": [{"bom-ref": "a"}],
                "dependencies": [{"ref": "p", "dependsOn": [below]}],
            });
            fs::write(&path, document.to_string()).unwrap();
        };
        write("a");
        materials(&path).unwrap();
        write("b");
        assert_eq!(
            materials(&path).unwrap_err().to_string(),
            "dependency b is no component"
        );
    }

    #[test]
    fn a_manifest_of_krew_with_another_digest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source {
            version: "0.1.0".to_owned(),
            commit: String::new(),
            epoch_s: 7,
        };
        let mut archive = pack::Archive::default();
        archive.file("b/bulkhead", pack::PROGRAM, "program").unwrap();
        let packed = pack::gzip(&archive.tar(7).unwrap()).unwrap();
        fs::write(folder.path().join("b.tar.gz"), &packed).unwrap();
        let write = |digest: &str| {
            let text = format!(
                "spec:\n  version: v0.1.0\n  platforms:\n  - uri: https://example.com/b.tar.gz\n    sha256: {digest}\n    \
                 bin: kubectl-bulkhead\n    files: [{{from: b/bulkhead, to: kubectl-bulkhead}}]\n"
            );
            fs::write(folder.path().join("bulkhead-0.1.0-krew.yaml"), text).unwrap();
        };
        write(&pack::sha256(&packed));
        krew(folder.path(), &source).unwrap();
        write(&pack::sha256(b"other"));
        let error = krew(folder.path(), &source).unwrap_err().to_string();
        assert_eq!(error, "bulkhead-0.1.0-krew.yaml: b.tar.gz has another digest");
    }
}
