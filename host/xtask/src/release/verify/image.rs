//! Checks of the image layout, read as a registry and a container runtime read it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

use super::super::image::{PATH, USER};
use super::super::pack;
use super::super::source::Source;
use super::{Content, contents, open};

/// Checks the layout. Returns the digest of the index over all platforms.
///
/// # Errors
///
/// A digest, a size or a reference is wrong, or an image could not start its program as its user.
pub(super) fn check(path: &Path, source: &Source) -> anyhow::Result<String> {
    let about = || path.display().to_string();
    let layout = Layout(contents(open(path)?).with_context(about)?);
    layout.check(source).with_context(about)
}

struct Layout(BTreeMap<String, Content>);

impl Layout {
    fn check(&self, source: &Source) -> anyhow::Result<String> {
        ensure!(
            self.json("oci-layout")?["imageLayoutVersion"] == "1.0.0",
            "oci-layout has another version"
        );
        let top = self.json("index.json")?;
        let entry = &top["manifests"][0];
        let name = &entry["annotations"]["org.opencontainers.image.ref.name"];
        ensure!(*name == source.version.as_str(), "index.json names the image {name}");
        let mut used = BTreeSet::new();
        let index: Value = serde_json::from_slice(self.blob(entry, &mut used)?)?;
        let manifests = index["manifests"].as_array().context("the index has no manifests")?;
        ensure!(!manifests.is_empty(), "the index has no manifests");
        for descriptor in manifests {
            let platform = &descriptor["platform"]["architecture"];
            self.image(descriptor, &mut used)
                .with_context(|| format!("image for {platform}"))?;
        }
        let stored = self.0.keys().filter(|path| path.starts_with("blobs/")).count();
        ensure!(used.len() == stored, "{} of {stored} blobs are used", used.len());
        Ok(text(entry, "/digest")?.to_owned())
    }

    /// Checks the image of a platform.
    fn image(&self, descriptor: &Value, used: &mut BTreeSet<String>) -> anyhow::Result<()> {
        let manifest: Value = serde_json::from_slice(self.blob(descriptor, used)?)?;
        let config: Value = serde_json::from_slice(self.blob(&manifest["config"], used)?)?;
        for field in ["architecture", "os"] {
            ensure!(
                config[field] == descriptor["platform"][field],
                "the configuration has another {field}"
            );
        }
        let layers = manifest["layers"].as_array().context("no layers")?;
        let digests = config["rootfs"]["diff_ids"].as_array().context("no diff_ids")?;
        ensure!(
            layers.len() == digests.len(),
            "{} layers, {} diff_ids",
            layers.len(),
            digests.len()
        );
        let mut files = BTreeMap::new();
        for (layer, digest) in layers.iter().zip(digests) {
            let mut tar = Vec::new();
            std::io::copy(&mut GzDecoder::new(self.blob(layer, used)?), &mut tar)?;
            ensure!(
                *digest == format!("sha256:{}", pack::sha256(&tar)),
                "diff_id {digest} of another layer"
            );
            files.extend(contents(Archive::new(&tar[..]))?);
        }
        let user = text(&config, "/config/User")?;
        ensure!(user == format!("{USER}:{USER}"), "the user is {user}");
        let users = files.get("etc/passwd").context("no etc/passwd")?;
        let has_user = String::from_utf8_lossy(&users.bytes).contains(&format!(":x:{USER}:{USER}:"));
        ensure!(has_user, "etc/passwd has no user {USER}");
        ensure!(
            files.contains_key("etc/ssl/certs/ca-certificates.crt"),
            "no certificates"
        );
        let entrypoint = text(&config, "/config/Entrypoint/0")?;
        ensure!(entrypoint == format!("/{PATH}"), "the entry point is {entrypoint}");
        let program = files.get(PATH).with_context(|| format!("no {PATH}"))?;
        ensure!(program.mode & 0o005 == 0o005, "{PATH} has the mode {:o}", program.mode);
        Ok(())
    }

    /// Returns the content that a descriptor refers to.
    fn blob(&self, descriptor: &Value, used: &mut BTreeSet<String>) -> anyhow::Result<&[u8]> {
        let digest = text(descriptor, "/digest")?;
        let hex = digest
            .strip_prefix("sha256:")
            .with_context(|| format!("digest {digest}"))?;
        let blob = self
            .0
            .get(&format!("blobs/sha256/{hex}"))
            .with_context(|| format!("no blob {digest}"))?;
        ensure!(pack::sha256(&blob.bytes) == hex, "blob {digest} has another digest");
        ensure!(
            descriptor["size"] == blob.bytes.len(),
            "blob {digest} has another size than {}",
            descriptor["size"]
        );
        used.insert(digest.to_owned());
        Ok(&blob.bytes)
    }

    fn json(&self, path: &str) -> anyhow::Result<Value> {
        let content = self.0.get(path).with_context(|| format!("no {path}"))?;
        serde_json::from_slice(&content.bytes).with_context(|| path.to_owned())
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> anyhow::Result<&'v str> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .with_context(|| format!("no {pointer}"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::super::image::{Image, Texts, of};
    use super::super::super::platform::Platform;
    use super::*;

    fn source() -> Source {
        Source {
            version: "0.1.0".to_owned(),
            commit: "3f9a1c2e55ab".to_owned(),
            epoch_s: 1_700_000_000,
        }
    }

    fn image() -> Image {
        let programs = BTreeMap::from([(Platform::X86, b"x86".to_vec()), (Platform::Arm, b"arm".to_vec())]);
        let texts = Texts {
            licence: "licence",
            third_party: "others",
        };
        of(&programs, &texts, &source()).unwrap()
    }

    fn layout() -> Layout {
        Layout(contents(Archive::new(&image().archive[..])).unwrap())
    }

    #[test]
    fn an_image_for_two_platforms_shares_the_layer_below_the_programs() {
        let layout = layout();
        assert_eq!(layout.check(&source()).unwrap(), image().digest);
        // The index; a manifest, a configuration and a program for each platform; one base.
        let blobs = layout.0.keys().filter(|path| path.starts_with("blobs/")).count();
        assert_eq!(blobs, 1 + 2 * 3 + 1);
    }

    #[test]
    fn a_program_is_in_the_image_of_its_platform() {
        let layout = layout();
        let mut used = BTreeSet::new();
        let json = |value: &Value| -> Value {
            serde_json::from_slice(layout.blob(value, &mut BTreeSet::new()).unwrap()).unwrap()
        };
        let index = json(&layout.json("index.json").unwrap()["manifests"][0]);
        for (number, (architecture, program)) in [("amd64", "x86"), ("arm64", "arm")].into_iter().enumerate() {
            let descriptor = &index["manifests"][number];
            assert_eq!(descriptor["platform"]["architecture"], architecture);
            let manifest = json(descriptor);
            let mut tar = Vec::new();
            let layer = layout.blob(&manifest["layers"][1], &mut used).unwrap();
            GzDecoder::new(layer).read_to_end(&mut tar).unwrap();
            let files = contents(Archive::new(&tar[..])).unwrap();
            assert_eq!(files[PATH].bytes, program.as_bytes());
        }
    }

    #[test]
    fn a_damaged_layout_is_refused() {
        let (mut damaged, original) = (layout(), layout());
        let blob = damaged
            .0
            .iter_mut()
            .find(|(path, _)| path.starts_with("blobs/"))
            .unwrap();
        blob.1.bytes.push(b' ');
        let error = format!("{:#}", damaged.check(&source()).unwrap_err());
        assert!(error.contains("has another digest"), "{error}");

        let mut surplus = original;
        let bytes = b"surplus".to_vec();
        surplus.0.insert(
            format!("blobs/sha256/{}", pack::sha256(&bytes)),
            Content { mode: 0o644, bytes },
        );
        assert_eq!(
            surplus.check(&source()).unwrap_err().to_string(),
            "8 of 9 blobs are used"
        );

        let other = Source {
            version: "0.2.0".to_owned(),
            ..source()
        };
        let error = layout().check(&other).unwrap_err().to_string();
        assert_eq!(error, "index.json names the image \"0.1.0\"");
    }
}
