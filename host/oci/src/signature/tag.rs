//! Signatures in cosign's older format.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::json;

use super::{PAYLOAD_BYTES_MAX, SIGNATURES_MAX, Signature};
use crate::client::of;
use crate::error::{Cause, RegistryError};
use crate::manifest::{Descriptor, Manifest};
use crate::{Client, Digest, Reference};

/// Media type of a signed payload.
pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature in base64.
const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// Media type of the configuration of a manifest of signatures.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// Returns the manifest of signatures, its configuration and its payloads, in the format of cosign.
pub(crate) fn to_manifest(signatures: &[Signature]) -> (Manifest, Vec<Bytes>) {
    let payloads: Vec<_> = signatures.iter().map(|one| Bytes::from(one.payload.clone())).collect();
    let layers: Vec<_> = signatures
        .iter()
        .zip(&payloads)
        .map(|(signature, payload)| Descriptor {
            annotations: BTreeMap::from([(ANNOTATION.to_owned(), signature.signature.clone())]),
            ..Descriptor::of(SIMPLE_SIGNING, payload)
        })
        .collect();
    let digests: Vec<_> = layers.iter().map(|layer| &layer.digest).collect();
    let config = json!({
        "architecture": "",
        "config": {},
        "created": "0001-01-01T00:00:00Z",
        "history": vec![json!({"created": "0001-01-01T00:00:00Z"}); layers.len()],
        "os": "",
        "rootfs": {"diff_ids": digests, "type": "layers"},
    });
    let config = Bytes::from(config.to_string());
    let manifest = Manifest::new(Descriptor::of(CONFIG, &config), layers, BTreeMap::new());
    let blobs = std::iter::once(config).chain(payloads).collect();
    (manifest, blobs)
}

/// Returns the descriptors of payloads in a manifest of signatures, with their signatures.
pub(crate) fn payloads(manifest: &Manifest) -> impl Iterator<Item = (&Descriptor, &String)> {
    let signed = manifest
        .layers
        .iter()
        .filter(|layer| layer.media_type == SIMPLE_SIGNING);
    let small = signed.filter(|layer| layer.size <= PAYLOAD_BYTES_MAX);
    small
        .filter_map(|layer| Some((layer, layer.annotations.get(ANNOTATION)?)))
        .take(SIGNATURES_MAX)
}

impl Client {
    /// Returns the signatures of an image at exactly its registry; none if there is no manifest of signatures.
    ///
    /// # Errors
    ///
    /// The registry does not answer.
    pub(super) async fn tagged_signatures(
        &self,
        image: &Reference,
        digest: &Digest,
    ) -> Result<Vec<Signature>, RegistryError> {
        let tag = image.with_tag(digest.signature_tag());
        let manifest = match self.manifest_at(&tag).await {
            Ok(pulled) => pulled.manifest,
            Err(error) if matches!(error.cause, Cause::NotFound) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut signatures = Vec::new();
        for (layer, signature) in payloads(&manifest) {
            let payload = self.blob_at(&tag, layer).await?;
            if let Ok(payload) = String::from_utf8(payload.to_vec()) {
                let signature = signature.clone();
                signatures.push(Signature {
                    payload,
                    signature,
                    payload_type: None,
                    bundle: None,
                });
            }
        }
        Ok(signatures)
    }

    /// Adds a signature to those of an image in the older format.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub async fn push_signature(
        &self,
        image: &Reference,
        digest: &Digest,
        signature: Signature,
    ) -> Result<(), RegistryError> {
        let mut all = self.tagged_signatures(image, digest).await?;
        if all.len() >= SIGNATURES_MAX {
            let message = format!("it has {} signatures already, the maximum", all.len());
            return Err(of("sign", image, Cause::Invalid(message)));
        }
        all.push(signature);
        self.push_signatures(image, digest, &all).await
    }

    /// Replaces the signatures of an image in the older format.
    ///
    /// # Errors
    ///
    /// The registry does not accept them.
    pub async fn push_signatures(
        &self,
        image: &Reference,
        digest: &Digest,
        signatures: &[Signature],
    ) -> Result<(), RegistryError> {
        let tag = image.with_tag(digest.signature_tag());
        let (manifest, blobs) = to_manifest(signatures);
        for blob in blobs {
            self.push_blob(&tag, blob).await?;
        }
        self.push_manifest(&tag, manifest.to_text().into()).await.map(drop)
    }
}
