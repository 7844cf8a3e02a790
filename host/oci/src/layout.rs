//! OCI image layouts: images with their signatures in a directory or in a tar archive, for sites without access to a
//! registry. `oras` and other tools read and write the same format.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::client::PulledManifest;
use crate::manifest::{Descriptor, IMAGE_INDEX, IMAGE_MANIFEST, Manifest};
use crate::signature::{Signature, bundle, tag};
use crate::{Digest, Reference, artifact};

/// File that marks a layout.
const MARKER: &str = "oci-layout";
const MARKER_TEXT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// File that lists the manifests.
const INDEX: &str = "index.json";
/// Annotation with the tag of a manifest.
const TAG: &str = "org.opencontainers.image.ref.name";
/// Annotation with the whole reference, which containerd reads and writes.
const NAME: &str = "io.containerd.image.name";
/// Maximum number of files.
const FILES_MAX: usize = 10_000;
/// Maximum size of all files in bytes.
const BYTES_MAX: u64 = 1 << 30;

/// An image with its blobs and signatures.
#[derive(Clone, Debug)]
pub struct SavedImage {
    /// Reference that the image had, if the layout has it.
    pub reference: Option<Reference>,
    /// Manifest.
    pub manifest: PulledManifest,
    /// Configuration and layers, in the order of the manifest.
    pub blobs: Vec<Bytes>,
    /// Signatures.
    pub signatures: Vec<Signature>,
}

/// Error of a layout. The message contains a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct LayoutError {
    /// Archive or directory, with the file if known.
    pub origin: String,
    /// Cause and remedy.
    pub message: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
}

/// Files of a layout by path.
type Files = BTreeMap<String, Bytes>;

/// Writes images as a tar archive, or as a directory if the path is one or ends with a slash.
///
/// # Errors
///
/// A file cannot be written. There is no partial archive then.
pub fn write(path: &Path, images: &[SavedImage]) -> Result<(), LayoutError> {
    let files = to_files(images);
    let is_folder = path.is_dir() || path.to_string_lossy().ends_with('/');
    let written = if is_folder {
        write_folder(path, &files)
    } else {
        write_archive(path, &files)
    };
    written.map_err(|error| failed(path, format!("cannot write the image layout: {error}")))
}

/// Reads the plugins of a layout. Every blob is verified.
///
/// # Errors
///
/// It is not a layout, a blob is missing or changed, or an image is not a plugin.
pub fn read(path: &Path) -> Result<Vec<SavedImage>, LayoutError> {
    let files = if path.is_dir() {
        read_folder(path)
    } else {
        read_archive(path)
    };
    let files = files.map_err(|error| failed(path, format!("cannot read the image layout: {error}")))?;
    of_files(&files).map_err(|message| failed(path, message))
}

fn failed(path: &Path, message: String) -> LayoutError {
    LayoutError {
        origin: path.display().to_string(),
        message,
    }
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn to_files(images: &[SavedImage]) -> Files {
    let mut files = Files::from([(MARKER.to_owned(), Bytes::from_static(MARKER_TEXT.as_bytes()))]);
    let mut manifests = Vec::new();
    let mut add = |text: Bytes, annotations: BTreeMap<String, String>, blobs: &[Bytes]| {
        manifests.push(Descriptor {
            annotations,
            ..Descriptor::of(IMAGE_MANIFEST, &text)
        });
        for blob in std::iter::once(&text).chain(blobs) {
            files.insert(blob_path(&Digest::of(blob)), blob.clone());
        }
    };
    for image in images {
        let mut annotations = BTreeMap::new();
        if let Some(reference) = &image.reference {
            annotations.insert(NAME.to_owned(), reference.to_string());
            annotations.extend(reference.tag().map(|tag| (TAG.to_owned(), tag.to_owned())));
        }
        add(image.manifest.text.clone(), annotations, &image.blobs);
        let (bundled, tagged): (Vec<_>, Vec<_>) = image
            .signatures
            .iter()
            .cloned()
            .partition(|one| one.payload_type.is_some());
        if !tagged.is_empty() {
            let (manifest, blobs) = tag::to_manifest(&tagged);
            let annotations = BTreeMap::from([(TAG.to_owned(), image.manifest.digest.signature_tag())]);
            add(manifest.to_text().into(), annotations, &blobs);
        }
        for signature in bundled {
            let subject = Descriptor::of(IMAGE_MANIFEST, &image.manifest.text);
            if let Some((manifest, blobs)) = bundle::to_manifest(subject, &signature, "") {
                add(manifest.to_text().into(), BTreeMap::new(), &blobs);
            }
        }
    }
    let index = Index {
        schema_version: 2,
        media_type: Some(IMAGE_INDEX.to_owned()),
        manifests,
    };
    files.insert(INDEX.to_owned(), serde_json::to_vec(&index).unwrap_or_default().into());
    files
}

fn of_files(files: &Files) -> Result<Vec<SavedImage>, String> {
    let file = |name: &str| {
        let missing = || format!("it has no {name}; an OCI image layout has {MARKER}, {INDEX} and blobs");
        files.get(name).ok_or_else(missing)
    };
    file(MARKER)?;
    let index: Index = serde_json::from_slice(file(INDEX)?).map_err(|error| format!("{INDEX}: {error}"))?;
    let blob = |descriptor: &Descriptor| {
        let bytes = file(&blob_path(&descriptor.digest))?;
        let found = Digest::of(bytes);
        if found == descriptor.digest {
            Ok(bytes.clone())
        } else {
            Err(format!(
                "{}: the content has digest {found}",
                blob_path(&descriptor.digest)
            ))
        }
    };
    let of_entry = |entry: &Descriptor| {
        let text = blob(entry)?;
        let manifest = Manifest::parse(&text).map_err(|cause| format!("{}: {cause}", entry.digest))?;
        let digest = entry.digest.clone();
        Ok::<_, String>(PulledManifest { digest, text, manifest })
    };
    let is_signature = |entry: &&Descriptor| {
        let tag = entry.annotations.get(TAG);
        tag.is_some_and(|tag| Digest::is_signature_tag(tag))
    };
    let mut images = Vec::new();
    let mut referrers = Vec::new();
    let mut plugins = Vec::new();
    for entry in index.manifests.iter().filter(|entry| !is_signature(entry)) {
        let manifest = of_entry(entry)?;
        match &manifest.manifest.subject {
            Some(subject) => referrers.push((subject.digest.clone(), manifest.manifest)),
            None => plugins.push((entry, manifest)),
        }
    }
    for (entry, manifest) in plugins {
        artifact::layer(&manifest.manifest).map_err(|cause| format!("{}: {cause}", entry.digest))?;
        let parts = std::iter::once(&manifest.manifest.config).chain(&manifest.manifest.layers);
        let blobs = parts.map(blob).collect::<Result<_, _>>()?;
        let mut signatures = Vec::new();
        let tag = entry.digest.signature_tag();
        for signed in index
            .manifests
            .iter()
            .filter(|entry| entry.annotations.get(TAG) == Some(&tag))
        {
            for (payload, signature) in tag::payloads(&of_entry(signed)?.manifest) {
                let payload = String::from_utf8(blob(payload)?.to_vec()).map_err(|error| error.to_string())?;
                let signature = signature.clone();
                signatures.push(Signature {
                    payload,
                    signature,
                    payload_type: None,
                    bundle: None,
                });
            }
        }
        for (_, referrer) in referrers.iter().filter(|(subject, _)| *subject == entry.digest) {
            for layer in bundle::layers(referrer) {
                signatures.extend(bundle::parse(&blob(layer)?));
            }
        }
        let reference = entry.annotations.get(NAME).and_then(|name| name.parse().ok());
        images.push(SavedImage {
            reference,
            manifest,
            blobs,
            signatures,
        });
    }
    Ok(images)
}

fn write_folder(path: &Path, files: &Files) -> io::Result<()> {
    for (name, content) in files {
        let path = path.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Writes a tar archive whose bytes depend only on the images.
fn write_archive(path: &Path, files: &Files) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut archive = tar::Builder::new(&mut file);
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_ref())?;
    }
    archive.finish()?;
    drop(archive);
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn read_folder(path: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let mut bytes = 0;
    let blobs = Path::new("blobs/sha256");
    let mut names = vec![MARKER.to_owned(), INDEX.to_owned()];
    for entry in fs::read_dir(path.join(blobs))? {
        names.push(blobs.join(entry?.file_name()).to_string_lossy().into_owned());
    }
    for name in names {
        match File::open(path.join(&name)) {
            Ok(file) => add(&mut files, name, file, &mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

fn read_archive(path: &Path) -> io::Result<Files> {
    let mut archive = tar::Archive::new(File::open(path)?);
    let (mut files, mut bytes) = (Files::new(), 0);
    for entry in archive.entries()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        // Nothing is written by these names, so that other paths are just not found.
        let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
        let name = parts.collect::<std::path::PathBuf>().to_string_lossy().into_owned();
        add(&mut files, name, entry, &mut bytes)?;
    }
    Ok(files)
}

/// Adds a file, within the limits of a layout.
fn add(files: &mut Files, name: String, content: impl io::Read, bytes: &mut u64) -> io::Result<()> {
    let mut read = Vec::new();
    let remaining = BYTES_MAX.saturating_sub(*bytes);
    let length = content.take(remaining.saturating_add(1)).read_to_end(&mut read)?;
    *bytes = bytes.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
    if *bytes > BYTES_MAX || files.len() >= FILES_MAX {
        return Err(io::Error::other(format!(
            "it has more than {FILES_MAX} files or {BYTES_MAX} bytes"
        )));
    }
    files.insert(name, read.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use bulkhead_core::policy::EngineKind;

    use super::*;
    use crate::artifact::{Artifact, Metadata};

    fn image() -> SavedImage {
        let code = Bytes::from_static(b"function Score() end");
        let artifact = Artifact::of(EngineKind::Lua, code, &Metadata::default()).unwrap();
        let signature = |payload_type: Option<&str>| Signature {
            payload: "{}".to_owned(),
            signature: "MEUC".to_owned(),
            payload_type: payload_type.map(str::to_owned),
            bundle: None,
        };
        SavedImage {
            reference: Some("r.io/plugins/hold:1".parse().unwrap()),
            manifest: artifact.manifest,
            blobs: vec![artifact.config, artifact.code],
            signatures: vec![signature(None), signature(Some("application/vnd.in-toto+json"))],
        }
    }

    #[test]
    fn an_archive_and_a_folder_hold_images_with_their_signatures() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str| {
            let path = folder.path().join(name);
            write(&path, &[image()]).unwrap();
            let [found] = &read(&path).unwrap()[..] else {
                panic!("one image")
            };
            let expected = image();
            assert_eq!(found.reference, expected.reference);
            assert_eq!(found.manifest.digest, expected.manifest.digest);
            assert_eq!(
                (&found.blobs, &found.signatures),
                (&expected.blobs, &expected.signatures)
            );
            assert_eq!(found.blobs[1], "function Score() end");
        };
        check("images.tar");
        check("images/");
        let (one, other) = (folder.path().join("images.tar"), folder.path().join("again.tar"));
        write(&other, &[image()]).unwrap();
        assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap());
    }

    #[test]
    fn a_changed_or_incomplete_layout_is_refused() {
        let check = |change: &dyn Fn(&mut Files), part: &str| {
            let mut files = to_files(&[image()]);
            change(&mut files);
            let message = of_files(&files).unwrap_err();
            assert!(message.contains(part), "no {part:?} in: {message}");
        };
        let layer = blob_path(&Digest::of(b"function Score() end"));
        check(
            &|files| drop(files.insert(layer.clone(), "x".into())),
            "the content has digest sha256:2d71",
        );
        check(&|files| drop(files.remove(&layer)), "it has no blobs/sha256/");
        check(&|files| drop(files.remove(MARKER)), "it has no oci-layout");
        check(
            &|files| drop(files.insert(INDEX.to_owned(), "{}".into())),
            "index.json: missing field",
        );
    }

    #[test]
    fn a_file_that_is_no_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images.tar");
        fs::write(&path, "no archive").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("images.tar: "), "{message}");
        assert!(
            read(&folder.path().join("gone.tar"))
                .unwrap_err()
                .to_string()
                .contains("cannot read")
        );
    }
}
