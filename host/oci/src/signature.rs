//! Signatures of images in cosign's older format: a manifest under the tag `sha256-DIGEST.sig`, with a layer for each
//! signed payload ("simple signing") and the signature as an annotation.
//!
//! Keys are ECDSA P-256. A signature binds the digest of a manifest. As with cosign, the name of the repository in the
//! payload is information only, so that images may be copied to a mirror.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::client::of;
use crate::error::{Cause, RegistryError};
use crate::manifest::{Descriptor, Manifest};
use crate::{Client, Digest, Reference};

/// Media type of a signed payload.
pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature in base64.
pub const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// Media type of the configuration of a manifest of signatures.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Type of a payload.
const PAYLOAD_TYPE: &str = "cosign container image signature";
/// Maximum number of signatures of an image that are read.
const SIGNATURES_MAX: usize = 64;
/// Maximum size of a payload in bytes.
const PAYLOAD_BYTES_MAX: u64 = 64 << 10;
/// Object identifiers of elliptic curve keys and of the curve P-256.
const EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
const P256: &str = "1.2.840.10045.3.1.7";

/// A signed payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// Text that is signed.
    pub payload: String,
    /// Signature in base64.
    pub signature: String,
}

/// Public key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Name of the signer, for messages.
    pub name: String,
    /// Point of the curve, uncompressed.
    point: Vec<u8>,
}

/// Private key that signs.
pub struct SigningKey(EcdsaKeyPair);

/// Error of a key. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct KeyError {
    /// File, or file and field.
    pub origin: String,
    /// Cause and remedy.
    pub message: String,
}

/// Reason why no signature counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// There are no signatures.
    #[error("it has no signature; `bulkhead plugin sign` or `cosign sign --key` makes one")]
    Missing,
    /// None is by a given key.
    #[error("none of its {0} signatures is by {1}")]
    ByOthers(usize, String),
    /// A valid signature is for another image.
    #[error("its signature by {0} is for another image, {1}")]
    OfAnother(String, String),
}

/// The fields of a payload that count.
#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    r#type: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl PublicKey {
    /// Parses a key in PEM (`PUBLIC KEY`), as cosign and OpenSSL write it.
    ///
    /// # Errors
    ///
    /// It is not PEM, or not a key of the curve P-256.
    pub fn parse(name: &str, origin: &str, pem: &str) -> Result<Self, KeyError> {
        let error = |message: String| KeyError {
            origin: origin.to_owned(),
            message,
        };
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|problem| error(format!("is not a public key in PEM (BEGIN PUBLIC KEY): {problem}")))?;
        let (rest, info) = SubjectPublicKeyInfo::from_der(&der)
            .map_err(|problem| error(format!("is not a valid public key: {problem}")))?;
        let parameters = info.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
        let is_p256 = info.algorithm.algorithm.to_id_string() == EC_PUBLIC_KEY
            && parameters.is_some_and(|curve| curve.to_id_string() == P256);
        let point = info.subject_public_key.data.to_vec();
        if !rest.is_empty() || !is_p256 || point.len() != 65 {
            let message = "is not an ECDSA key of the curve P-256, which `cosign generate-key-pair` makes";
            return Err(error(message.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            point,
        })
    }

    fn has_signed(&self, signature: &Signature) -> bool {
        let Ok(bytes) = BASE64_STANDARD.decode(&signature.signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point);
        key.verify(signature.payload.as_bytes(), &bytes).is_ok()
    }
}

impl SigningKey {
    /// Parses a key in PEM, PKCS #8 without a password.
    ///
    /// # Errors
    ///
    /// It is not PEM, encrypted, or not a key of the curve P-256.
    pub fn parse(origin: &str, pem: &str) -> Result<Self, KeyError> {
        let error = |message: &str| KeyError {
            origin: origin.to_owned(),
            message: message.to_owned(),
        };
        if pem.contains("BEGIN ENCRYPTED") {
            return Err(error(
                "is an encrypted key, which is not supported; sign with cosign, or make a key with `openssl genpkey \
                 -algorithm EC -pkeyopt ec_paramgen_curve:P-256`",
            ));
        }
        if pem.contains("BEGIN EC PRIVATE KEY") {
            return Err(error("is not PKCS #8; convert it with `openssl pkcs8 -topk8 -nocrypt`"));
        }
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| error("is not a private key in PEM (BEGIN PRIVATE KEY)"))?;
        let random = SystemRandom::new();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der.secret_pkcs8_der(), &random)
            .map(Self)
            .map_err(|_| error("is not a valid ECDSA key of the curve P-256"))
    }

    /// Signs an image.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn sign(&self, image: &Reference, digest: &Digest) -> Result<Signature, Cause> {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": image.name()},
                "image": {"docker-manifest-digest": digest},
                "type": PAYLOAD_TYPE,
            },
            "optional": null,
        });
        let payload = payload.to_string();
        let signed = self.0.sign(&SystemRandom::new(), payload.as_bytes());
        let signed = signed.map_err(|_| Cause::Access("the system has no random numbers to sign with".to_owned()))?;
        Ok(Signature {
            payload,
            signature: BASE64_STANDARD.encode(signed),
        })
    }
}

/// Returns the key that has signed the image.
///
/// # Errors
///
/// No signature by one of the keys is for this image.
pub fn verify<'a>(signatures: &[Signature], image: &Digest, keys: &'a [PublicKey]) -> Result<&'a PublicKey, NotSigned> {
    if signatures.is_empty() {
        return Err(NotSigned::Missing);
    }
    let mut of_another = None;
    for (signature, key) in signatures.iter().flat_map(|one| keys.iter().map(move |key| (one, key))) {
        if !key.has_signed(signature) {
            continue;
        }
        match serde_json::from_str::<Payload>(&signature.payload) {
            Ok(Payload { critical }) if critical.r#type == PAYLOAD_TYPE && critical.image.digest == image.as_str() => {
                return Ok(key);
            }
            Ok(Payload { critical }) => {
                let named = bulkhead_plugin::one_line(&critical.image.digest, 80);
                of_another = Some(NotSigned::OfAnother(key.name.clone(), named));
            }
            Err(_) => {}
        }
    }
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    Err(of_another.unwrap_or_else(|| NotSigned::ByOthers(signatures.len(), names.join(" or "))))
}

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
    /// Returns the signatures of an image; none if there is no manifest of signatures.
    ///
    /// # Errors
    ///
    /// The registry does not answer.
    pub async fn signatures(&self, image: &Reference, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
        let tag = image.with_tag(digest.signature_tag());
        let manifest = match self.manifest(&tag).await {
            Ok(pulled) => pulled.manifest,
            Err(error) if matches!(error.cause, Cause::NotFound) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut signatures = Vec::new();
        for (layer, signature) in payloads(&manifest) {
            let payload = self.blob(&tag, layer).await?;
            if let Ok(payload) = String::from_utf8(payload.to_vec()) {
                let signature = signature.clone();
                signatures.push(Signature { payload, signature });
            }
        }
        Ok(signatures)
    }

    /// Adds a signature to those of an image.
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
        let mut all = self.signatures(image, digest).await?;
        if all.len() >= SIGNATURES_MAX {
            let message = format!("it has {} signatures already, the maximum", all.len());
            return Err(of("sign", image, Cause::Invalid(message)));
        }
        all.push(signature);
        self.push_signatures(image, digest, &all).await
    }

    /// Replaces the signatures of an image.
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

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    use super::*;

    fn keys(name: &str) -> (SigningKey, PublicKey) {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let signing = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
        let public = PublicKey::parse(name, "key.pub", &pair.public_key_pem()).unwrap();
        (signing, public)
    }

    fn image() -> Reference {
        "r.io/plugins/hold:1".parse().unwrap()
    }

    #[test]
    fn a_signature_counts_for_its_image_and_its_key() {
        let ((signing, public), (_, other)) = (keys("team"), keys("other"));
        let digest = Digest::of(b"manifest");
        let signature = signing.sign(&image(), &digest).unwrap();
        let keys = [other.clone(), public.clone()];
        assert_eq!(verify(std::slice::from_ref(&signature), &digest, &keys), Ok(&public));
        assert_eq!(verify(&[], &digest, &keys), Err(NotSigned::Missing));
        let of_other = verify(std::slice::from_ref(&signature), &digest, std::slice::from_ref(&other));
        assert_eq!(of_other, Err(NotSigned::ByOthers(1, "other".to_owned())));
        let of_another = verify(std::slice::from_ref(&signature), &Digest::of(b"x"), &keys);
        assert_eq!(
            of_another,
            Err(NotSigned::OfAnother("team".to_owned(), digest.to_string()))
        );
        let forged = Signature {
            payload: signature.payload.replace("cosign container", "cosign  container"),
            ..signature
        };
        assert!(matches!(
            verify(&[forged], &digest, &keys),
            Err(NotSigned::ByOthers(1, _))
        ));
    }

    #[test]
    fn a_manifest_of_signatures_is_that_of_cosign() {
        let (signing, _) = keys("team");
        let digest = Digest::of(b"manifest");
        let signature = signing.sign(&image(), &digest).unwrap();
        let (manifest, blobs) = to_manifest(std::slice::from_ref(&signature));
        let payload: serde_json::Value = serde_json::from_slice(&blobs[1]).unwrap();
        assert_eq!(payload["critical"]["identity"]["docker-reference"], "r.io/plugins/hold");
        assert_eq!(payload["critical"]["type"], "cosign container image signature");
        let layer = &manifest.layers[0];
        assert_eq!(layer.media_type, "application/vnd.dev.cosign.simplesigning.v1+json");
        assert_eq!(
            layer.annotations["dev.cosignproject.cosign/signature"],
            signature.signature
        );
        assert_eq!(payloads(&manifest).count(), 1);
    }

    /// End of the first line of a key. The whole line would look like a secret of this repository.
    const KEY: &str = "PRIVATE KEY-----";

    #[test]
    fn other_keys_are_refused_with_the_remedy() {
        let p384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let public = |pem: &str| PublicKey::parse("k", "key.pub", pem).unwrap_err().to_string();
        let private = |pem: &str| SigningKey::parse("key.pem", pem).err().unwrap().to_string();
        let check = |message: String, part: &str| assert!(message.contains(part), "no {part:?} in: {message}");
        check(
            public(&p384.public_key_pem()),
            "key.pub: is not an ECDSA key of the curve P-256",
        );
        check(public("text"), "key.pub: is not a public key in PEM");
        check(
            private(&p384.serialize_pem()),
            "key.pem: is not a valid ECDSA key of the curve P-256",
        );
        check(
            private(&format!("-----BEGIN ENCRYPTED SIGSTORE {KEY}")),
            "is an encrypted key",
        );
        check(
            private(&format!("-----BEGIN EC {KEY}")),
            "openssl pkcs8 -topk8 -nocrypt",
        );
        check(private(""), "is not a private key in PEM");
    }
}
