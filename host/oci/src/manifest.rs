//! Manifests of images, as the OCI image specification defines them, reduced to the fields that plugins have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::error::Cause;

/// Media type of the manifest of one image.
pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of Docker's manifests, which have the same fields.
pub(crate) const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of a list of manifests.
pub(crate) const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Version of the format.
const SCHEMA_VERSION: u32 = 2;

/// Manifest of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// 2.
    pub schema_version: u32,
    /// Media type of the manifest; old tools leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Type of an artifact that is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Configuration.
    pub config: Descriptor,
    /// Layers.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// Manifest that this one refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Reference to a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the blob.
    pub media_type: String,
    /// Digest of the blob.
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub size: u64,
    /// Type of the artifact, if the blob is the manifest of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Returns the descriptor of a blob.
    pub fn of(media_type: &str, blob: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(blob),
            size: u64::try_from(blob.len()).unwrap_or(u64::MAX),
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }
}

impl Manifest {
    /// Returns the manifest of an image with these parts.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>, annotations: BTreeMap<String, String>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            media_type: Some(IMAGE_MANIFEST.to_owned()),
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations,
        }
    }

    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// The text is not the manifest of one image.
    pub fn parse(text: &[u8]) -> Result<Self, Cause> {
        /// The fields that tell formats apart.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Format {
            #[serde(default)]
            schema_version: u32,
            #[serde(default)]
            media_type: Option<String>,
            #[serde(default)]
            manifests: Option<serde_json::Value>,
        }
        let invalid = |error| Cause::Invalid(format!("its manifest is not valid: {error}"));
        let format: Format = serde_json::from_slice(text).map_err(invalid)?;
        let media_type = format.media_type.as_deref().unwrap_or(IMAGE_MANIFEST);
        if format.manifests.is_some() || media_type == IMAGE_INDEX {
            return Err(Cause::WrongMediaType(
                "it is an index of several images; a plugin is one image, so name the digest of one of them".to_owned(),
            ));
        }
        if ![IMAGE_MANIFEST, DOCKER_MANIFEST].contains(&media_type) {
            return Err(Cause::WrongMediaType(format!(
                "its manifest has media type {media_type:?}; that of a plugin has {IMAGE_MANIFEST}"
            )));
        }
        if format.schema_version != SCHEMA_VERSION {
            return Err(Cause::Invalid(format!(
                "its manifest has schemaVersion {}; plugins have {SCHEMA_VERSION}",
                format.schema_version
            )));
        }
        serde_json::from_slice(text).map_err(invalid)
    }

    /// Returns the manifest as text. The same manifest has the same text, and so the same digest.
    pub fn to_text(&self) -> Vec<u8> {
        // Structs and maps with text keys always have a text.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let layer = Descriptor::of("application/wasm", b"\0asm");
        let annotations = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let manifest = Manifest::new(Descriptor::of("application/json", b"{}"), vec![layer], annotations);
        assert_eq!(Manifest::parse(&manifest.to_text()).unwrap(), manifest);
    }

    #[test]
    fn other_formats_are_named() {
        let check = |text: &str, reason: &str, part: &str| {
            let cause = Manifest::parse(text.as_bytes()).unwrap_err();
            let message = cause.to_string();
            assert_eq!(cause.reason(), reason, "{message}");
            assert!(message.contains(part), "no {part:?} in: {message}");
        };
        check("[", "ImageInvalid", "its manifest is not valid");
        check(
            r#"{"schemaVersion": 1}"#,
            "ImageInvalid",
            "has schemaVersion 1; plugins have 2",
        );
        check(
            r#"{"schemaVersion": 2, "manifests": []}"#,
            "MediaTypeUnknown",
            "an index of several images",
        );
        check(
            r#"{"schemaVersion": 2, "mediaType": "text/plain"}"#,
            "MediaTypeUnknown",
            "\"text/plain\"",
        );
        check(r#"{"schemaVersion": 2}"#, "ImageInvalid", "missing field `config`");
        let digest = r#"{"schemaVersion": 2, "config": {"mediaType": "x", "digest": "sha256:1", "size": 1}}"#;
        check(digest, "ImageInvalid", "is not a digest");
    }
}
