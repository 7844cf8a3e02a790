//! Keys of signers.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{Signature, encrypted, statement};
use crate::error::Cause;
use crate::{Digest, Reference};

/// Object identifiers of elliptic curve keys and of the curve P-256.
const EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
const P256: &str = "1.2.840.10045.3.1.7";
/// Start of the DER of every public key of the curve P-256, before its uncompressed point.
const SPKI_START: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

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

/// Error of a key. The message contains a remedy.
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
        let der = [&SPKI_START[..], self.0.public_key().as_ref()].concat();
        BASE64_STANDARD.encode(digest(&SHA256, &der))
    }
}
