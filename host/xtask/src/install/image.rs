//! Images as folders: `root` has the files, `config.json` the configuration of the image.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

use crate::digest::sha256;
use crate::release::Platform;
use crate::sh;

/// Path of the program in an image.
const PROGRAM: &str = "usr/local/bin/bulkhead";

/// Pulls an image by its digest, and unpacks it. Returns its folder.
///
/// # Errors
///
/// The registry does not have it, a digest is wrong, or a layer cannot be unpacked.
pub(super) fn pull(
    root: &Path,
    oras: &Path,
    reference: &str,
    platform: Platform,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let layout = folder.join("layout");
    let platform = format!("linux/{}", platform.architecture());
    let target = format!("{}:pulled", layout.display());
    let arguments = [
        "copy",
        "--from-plain-http",
        "--platform",
        &platform,
        "--to-oci-layout",
        reference,
        &target,
    ];
    sh::run(root, oras, &arguments)?;
    let index = fs::read(layout.join("index.json")).context("reading the index of the pulled image")?;
    let index: Value = serde_json::from_slice(&index).context("reading the index of the pulled image")?;
    let manifest: Value = serde_json::from_slice(&blob(&layout, &index["manifests"][0])?)?;
    let config = blob(&layout, &manifest["config"])?;
    fs::write(folder.join("config.json"), config).context("writing the configuration of the image")?;
    let files = folder.join("root");
    fs::create_dir_all(&files).with_context(|| format!("creating {}", files.display()))?;
    let layers = manifest["layers"].as_array().context("the image has no layers")?;
    for layer in layers {
        let content = blob(&layout, layer)?;
        let mut archive = Archive::new(GzDecoder::new(&content[..]));
        archive.set_preserve_permissions(true);
        archive.set_preserve_ownerships(true);
        archive
            .unpack(&files)
            .with_context(|| format!("unpacking a layer of {reference} with its owners, which needs root"))?;
    }
    Ok(folder.to_path_buf())
}

/// Returns the content of a descriptor, after a check of its digest.
fn blob(layout: &Path, descriptor: &Value) -> anyhow::Result<Vec<u8>> {
    let digest = descriptor["digest"].as_str().context("a descriptor without a digest")?;
    let hex = digest
        .strip_prefix("sha256:")
        .with_context(|| format!("digest {digest}"))?;
    let content = fs::read(layout.join("blobs/sha256").join(hex)).with_context(|| format!("reading {digest}"))?;
    ensure!(sha256(&content) == hex, "{digest} has another content");
    Ok(content)
}

/// Copies an image with another program in place of its own, and with the libraries of that program. Returns the folder
/// of the copy.
///
/// # Errors
///
/// A file cannot be copied.
pub(super) fn with_program(image: &Path, program: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let from = format!("{}/.", image.join("root").display());
    let to = folder.join("root");
    sh::run(folder, Path::new("cp"), &["-a", &from, &to.display().to_string()])?;
    fs::copy(image.join("config.json"), folder.join("config.json")).context("copying the configuration")?;
    let own = to.join(PROGRAM);
    fs::remove_file(&own).with_context(|| format!("removing {}", own.display()))?;
    for (from, to) in std::iter::once((program.to_path_buf(), own)).chain(
        libraries(program)?
            .into_iter()
            .map(|library| (library.clone(), to.join(library.strip_prefix("/").unwrap_or(&library)))),
    ) {
        let parent = to.parent().context("a file without a folder")?;
        fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    Ok(folder.to_path_buf())
}

/// Returns the shared libraries of a program, as `ldd` lists them; none for a static one.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("starting ldd")?;
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        line.split_whitespace()
            .find(|word| word.starts_with('/'))
            .map(PathBuf::from)
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_listed_with_the_loader() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1a)\n\t\
                    /lib64/ld-linux-x86-64.so.2 (0x00007f1b)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(listed(text), expected);
        assert!(listed("\tstatically linked\n").is_empty());
    }

    #[test]
    fn content_with_another_digest_is_refused() {
        let layout = tempfile::tempdir().unwrap();
        let folder = layout.path().join("blobs/sha256");
        fs::create_dir_all(&folder).unwrap();
        let digest = sha256(b"content");
        let descriptor = serde_json::json!({"digest": format!("sha256:{digest}")});
        fs::write(folder.join(&digest), "content").unwrap();
        assert_eq!(blob(layout.path(), &descriptor).unwrap(), b"content");
        fs::write(folder.join(&digest), "other").unwrap();
        let error = blob(layout.path(), &descriptor).unwrap_err().to_string();
        assert!(error.ends_with("has another content"), "{error}");
    }
}
