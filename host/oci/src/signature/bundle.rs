//! Signatures and attestations as Sigstore bundles in manifests that refer to an image.
//!
//! A bundle with a certificate is kept whole, for [`super::certificate`]. With a key, its entries of a transparency log
//! do not count.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{SIGNATURES_MAX, Signature};
use crate::error::RegistryError;
use crate::manifest::{Descriptor, Manifest};
use crate::{Client, Digest, Reference};

/// Start of the media types of bundles of all versions.
const BUNDLES: &str = "application/vnd.dev.sigstore.bundle";
/// Media type of the bundles that are written.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Annotations that cosign looks for.
const CONTENT: &str = "dev.sigstore.bundle.content";
const PREDICATE_TYPE: &str = "dev.sigstore.bundle.predicateType";
/// Media type of a configuration without content.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Maximum size of a bundle in bytes.
const BUNDLE_BYTES_MAX: u64 = 256 << 10;
/// Maximum length of a text of a stranger in messages, in characters.
pub(super) const SHOWN_CHARS_MAX: usize = 80;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    #[serde(default)]
    verification_material: Value,
    dsse_envelope: Envelope,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Serialize, Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// Returns a text of a stranger in one line.
pub(super) fn shown(text: Option<&String>) -> String {
    bulkhead_plugin::one_line(text.map_or("none", String::as_str), SHOWN_CHARS_MAX)
}

/// Returns the signatures in a bundle; none if it has no envelope or cannot be read.
pub(crate) fn parse(bundle: &[u8]) -> Vec<Signature> {
    let Ok(Bundle {
        dsse_envelope,
        verification_material,
        ..
    }) = serde_json::from_slice(bundle)
    else {
        return Vec::new();
    };
    let is_certified = verification_material.get("certificate").is_some() && dsse_envelope.signatures.len() == 1;
    let whole = is_certified.then(|| String::from_utf8_lossy(bundle).into_owned());
    let payload = BASE64_STANDARD.decode(&dsse_envelope.payload).ok();
    let Some(payload) = payload.and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return Vec::new();
    };
    let of_one = |one: EnvelopeSignature| Signature {
        payload: payload.clone(),
        signature: one.sig,
        payload_type: Some(dsse_envelope.payload_type.clone()),
        bundle: whole.clone(),
    };
    dsse_envelope
        .signatures
        .into_iter()
        .take(SIGNATURES_MAX)
        .map(of_one)
        .collect()
}

/// Returns the manifest that attaches a signed statement to an image, with its configuration and its bundle; `None` for
/// a signature of the older format. `hint` names the key.
pub(crate) fn to_manifest(subject: Descriptor, signature: &Signature, hint: &str) -> Option<(Manifest, Vec<Bytes>)> {
    let of_key = Bundle {
        media_type: BUNDLE.to_owned(),
        verification_material: json!({"publicKey": {"hint": hint}}),
        dsse_envelope: Envelope {
            payload: BASE64_STANDARD.encode(&signature.payload),
            payload_type: signature.payload_type.clone()?,
            signatures: vec![EnvelopeSignature {
                sig: signature.signature.clone(),
            }],
        },
    };
    let bundle = match &signature.bundle {
        Some(whole) => Bytes::from(whole.clone()),
        None => Bytes::from(serde_json::to_vec(&of_key).unwrap_or_default()),
    };
    let config = Bytes::from_static(b"{}");
    let statement: Value = serde_json::from_str(&signature.payload).unwrap_or_default();
    let predicate_type = statement["predicateType"].as_str().unwrap_or_default().to_owned();
    let annotations = BTreeMap::from([
        (CONTENT.to_owned(), "dsse-envelope".to_owned()),
        (PREDICATE_TYPE.to_owned(), predicate_type),
    ]);
    let layers = vec![Descriptor::of(BUNDLE, &bundle)];
    let manifest = Manifest {
        artifact_type: Some(BUNDLE.to_owned()),
        subject: Some(subject),
        ..Manifest::new(Descriptor::of(EMPTY, &config), layers, annotations)
    };
    Some((manifest, vec![config, bundle]))
}

/// Returns the descriptors of the bundles in a manifest that refers to an image.
pub(crate) fn layers(manifest: &Manifest) -> impl Iterator<Item = &Descriptor> {
    let bundles = manifest
        .layers
        .iter()
        .filter(|layer| layer.media_type.starts_with(BUNDLES));
    bundles.filter(|layer| layer.size <= BUNDLE_BYTES_MAX)
}

impl Client {
    /// Returns the signatures in the bundles that refer to an image at exactly its registry.
    pub(super) async fn bundles(&self, image: &Reference, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
        let all = self.referrers(image, digest).await?;
        let bundles = all.into_iter().filter(|one| {
            let kind = one.artifact_type.as_deref();
            kind.is_none_or(|kind| kind.starts_with(BUNDLES))
        });
        let mut signatures = Vec::new();
        for referrer in bundles.take(SIGNATURES_MAX) {
            let manifest = self.manifest_at(&image.with_digest(referrer.digest)).await?.manifest;
            for layer in layers(&manifest) {
                signatures.extend(parse(&self.blob_at(image, layer).await?));
            }
        }
        Ok(signatures)
    }

    /// Attaches a signed statement to an image. `subject` describes the manifest of the image.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub async fn push_attestation(
        &self,
        image: &Reference,
        subject: Descriptor,
        signature: &Signature,
        hint: &str,
    ) -> Result<(), RegistryError> {
        let Some((manifest, blobs)) = to_manifest(subject, signature, hint) else {
            return Ok(());
        };
        for blob in blobs {
            self.push_blob(image, blob).await?;
        }
        self.push_referrer(image, &manifest).await
    }
}
