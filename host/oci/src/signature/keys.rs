//! Keys of signers.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulkhead_core::manifest::trust::object::ObjectKey;
use bulkhead_core::manifest::{P256_START, p256_point};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

use super::{Signature, encrypted, statement};
use crate::error::Cause;
use crate::{Digest, Reference};

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

/// Formats no part of the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

/// Error of a key, or of a trusted root. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct KeyError {
    /// File, or file and field.
    pub origin: String,
    /// Cause and remedy.
    pub message: String,
}

impl PublicKey {
    /// Parses a key in PEM (`PUBLIC KEY`), as cosign and OpenSSL write it.
    ///
    /// # Errors
    ///
    /// It is not PEM, or not a key of the curve P-256.
    pub fn parse(name: &str, origin: &str, pem: &str) -> Result<Self, KeyError> {
        let point = p256_point(pem).map_err(|message| KeyError {
            origin: origin.to_owned(),
            message,
        })?;
        Ok(Self {
            name: name.to_owned(),
            point,
        })
    }

    /// Returns the key of an object.
    pub(crate) fn of_object(key: ObjectKey) -> Self {
        let ObjectKey { name, point } = key;
        Self { name, point }
    }

    pub(super) fn has_signed(&self, signature: &Signature) -> bool {
        let Ok(bytes) = BASE64_STANDARD.decode(&signature.signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point);
        key.verify(&signature.signed_bytes(), &bytes).is_ok()
    }
}

impl SigningKey {
    /// Returns true if a key in PEM is one that cosign has encrypted, so that [`SigningKey::decrypt`] reads it.
    pub fn is_encrypted(pem: &str) -> bool {
        encrypted::is_encrypted(pem)
    }

    /// Decrypts a key that cosign has encrypted.
    ///
    /// # Errors
    ///
    /// The format is another one, the password is wrong, or it is not a key of the curve P-256.
    pub fn decrypt(origin: &str, pem: &str, password: &str) -> Result<Self, KeyError> {
        let error = |message: String| KeyError {
            origin: origin.to_owned(),
            message,
        };
        let der = encrypted::decrypt(pem, password).map_err(error)?;
        Self::of_der(&der).ok_or_else(|| error("is not a valid ECDSA key of the curve P-256".to_owned()))
    }

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
                "is an encrypted key; of those, only the format of cosign is supported: `cosign import-key-pair` \
                 converts it",
            ));
        }
        if pem.contains("BEGIN EC PRIVATE KEY") {
            return Err(error("is not PKCS #8; convert it with `openssl pkcs8 -topk8 -nocrypt`"));
        }
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| error("is not a private key in PEM (BEGIN PRIVATE KEY)"))?;
        Self::of_der(der.secret_pkcs8_der()).ok_or_else(|| error("is not a valid ECDSA key of the curve P-256"))
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new());
        key.ok().map(Self)
    }

    /// Signs an image in the older format.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn sign(&self, image: &Reference, digest: &Digest) -> Result<Signature, Cause> {
        self.sign_payload(statement::simple(image, digest), None)
    }

    /// Signs a statement about an image in an envelope.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn attest(
        &self,
        digest: &Digest,
        predicate_type: &str,
        predicate: &serde_json::Value,
    ) -> Result<Signature, Cause> {
        let payload = statement::in_toto(digest, predicate_type, predicate);
        self.sign_payload(payload, Some(statement::IN_TOTO.to_owned()))
    }

    fn sign_payload(&self, payload: String, payload_type: Option<String>) -> Result<Signature, Cause> {
        let unsigned = Signature {
            payload,
            signature: String::new(),
            payload_type,
            bundle: None,
        };
        let signed = self.0.sign(&SystemRandom::new(), &unsigned.signed_bytes());
        let signed = signed.map_err(|_| Cause::Access("the system has no random numbers to sign with".to_owned()))?;
        Ok(Signature {
            signature: BASE64_STANDARD.encode(signed),
            ..unsigned
        })
    }

    /// Returns the hint at the public key that bundles have: the SHA-256 of its DER in base64.
    pub fn hint(&self) -> String {
        let der = [&P256_START[..], self.0.public_key().as_ref()].concat();
        BASE64_STANDARD.encode(digest(&SHA256, &der))
    }
}
