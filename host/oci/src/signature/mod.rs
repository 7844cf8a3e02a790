//! Signatures of images, and signed statements about them, in the formats of cosign.
//!
//! - The older one (`tag`): a manifest under the tag `sha256-DIGEST.sig`, with a layer for each signed payload ("simple
//!   signing") and the signature as an annotation.
//! - The newer one (`bundle`): a manifest that refers to the image, with a Sigstore bundle as its layer. The bundle has
//!   an in-toto statement in an envelope of DSSE. Attestations, such as conformance reports, have this format only.
//!
//! Keys are ECDSA P-256. A bundle may have a certificate instead of a key (`certificate`); a rule names its identity
//! then. A signature binds the digest of a manifest. As with cosign, the name of the repository in the
//! payload is information only, so that images may be copied to a mirror.

#[cfg(test)]
pub(crate) mod authority;
pub(crate) mod bundle;
mod certificate;
mod encrypted;
mod keys;
mod provider;
mod signers;
mod statement;
pub(crate) mod tag;

use serde::{Deserialize, Serialize};
use tracing::warn;

pub use self::certificate::{CertificateProblem, CertifiedSigner, TrustedRoot};
pub use self::keys::{KeyError, PublicKey, SigningKey};
pub use self::signers::{Identity, Signers};
pub use self::statement::{CONFORMANCE, Conformance, Statement};
use crate::client::mirrors::Failures;
use crate::{Client, Digest, Reference, RegistryError};

/// Maximum number of signatures of an image that are read in one format.
pub(crate) const SIGNATURES_MAX: usize = 64;
/// Maximum size of a payload in bytes.
const PAYLOAD_BYTES_MAX: u64 = 64 << 10;

/// A signed payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// Text that is signed.
    pub payload: String,
    /// Signature in base64.
    pub signature: String,
    /// Type of the payload in an envelope of DSSE, which is signed with it; absent for simple signing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_type: Option<String>,
    /// The whole bundle as JSON, if it has a certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

impl Signature {
    /// Returns the bytes that are signed: the payload, or for an envelope its encoding with the type (DSSE, "PAE").
    pub(crate) fn signed_bytes(&self) -> Vec<u8> {
        let payload = &self.payload;
        let text = match &self.payload_type {
            None => payload.clone(),
            Some(kind) => format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len()),
        };
        text.into_bytes()
    }
}

/// Reason why no signature counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// There are no signatures.
    #[error("it has no signature; `bulkhead plugin sign` or `cosign sign --key` makes one")]
    Missing,
    /// None is by a given key.
    #[error("none of its {0} signatures is by {1}; sign it with that key, or add the key of its signer to the rule")]
    ByOthers(usize, String),
    /// A valid signature is for another image.
    #[error("its signature by {0} is for another image, {1}; sign this one")]
    OfAnother(String, String),
    /// A signature with a certificate does not count.
    #[error(transparent)]
    Certificate(#[from] CertificateProblem),
}

/// Returns the key that has signed the image. An attestation is no signature.
///
/// # Errors
///
/// No signature by one of the keys is for this image.
pub fn verify<'a>(signatures: &[Signature], image: &Digest, keys: &'a [PublicKey]) -> Result<&'a PublicKey, NotSigned> {
    let statements: Vec<_> = signatures
        .iter()
        .filter_map(|signature| match Statement::of(signature) {
            Some(Statement::Signature(digests)) => Some((signature, Some(digests))),
            Some(_) => None,
            None => Some((signature, None)),
        })
        .collect();
    if statements.is_empty() {
        return Err(NotSigned::Missing);
    }
    let mut of_another = None;
    for (signature, digests) in &statements {
        for key in keys.iter().filter(|key| key.has_signed(signature)) {
            match digests.as_deref() {
                Some(digests) if digests.iter().any(|digest| digest == image.as_str()) => return Ok(key),
                Some(digests) => {
                    let named = bundle::shown(digests.first());
                    of_another = Some(NotSigned::OfAnother(key.name.clone(), named));
                }
                None => {}
            }
        }
    }
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    Err(of_another.unwrap_or_else(|| NotSigned::ByOthers(statements.len(), names.join(" or "))))
}

/// Adds signatures that are not known yet.
fn add(all: &mut Vec<Signature>, found: Vec<Signature>) {
    for signature in found {
        if !all.contains(&signature) {
            all.push(signature);
        }
    }
}

impl Client {
    /// Returns the signatures and attestations of an image at its mirrors and its registry, in both formats; none if
    /// there are none. A mirror that lacks a signature hides none of the registry.
    ///
    /// # Errors
    ///
    /// The registry does not answer, and no mirror has a signature.
    pub async fn signatures(&self, image: &Reference, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
        let (mut of_mirrors, mut failures) = (Vec::<Signature>::new(), Failures::default());
        let mirrors = self.mirrors_of_signatures(image);
        for mirror in &mirrors {
            match self.signatures_at(mirror, digest).await {
                Ok(found) => add(&mut of_mirrors, found),
                Err(error) => failures.add(image, mirror, error.cause),
            }
        }
        match self.signatures_at(image, digest).await {
            // Those of the registry come first, so that a mirror with many signatures pushes none of them out.
            Ok(mut found) => {
                add(&mut found, of_mirrors);
                Ok(found)
            }
            Err(error) if of_mirrors.is_empty() => Err(failures.with(error)),
            Err(error) => {
                let reason = error.cause.reason();
                warn!(target: "bulkhead::plugin", reason, "the signatures of a mirror count alone: {error}");
                Ok(of_mirrors)
            }
        }
    }

    /// Returns the signatures and attestations of an image at exactly its registry, in both formats.
    async fn signatures_at(&self, image: &Reference, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
        let mut signatures = self.tagged_signatures(image, digest).await?;
        signatures.extend(self.bundles(image, digest).await?);
        Ok(signatures)
    }
}

#[cfg(test)]
mod tests;
