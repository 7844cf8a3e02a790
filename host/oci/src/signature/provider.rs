//! Primitives of ring for the crates of Sigstore, which come without any.
//!
//! ring has no ML-DSA, and verifies no signature of a digest that was computed before. Certificates, envelopes, logs
//! and timestamps need neither.

use ring::digest::{self, Context};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use sigstore_verify::crypto::error::{Error, Result};
use sigstore_verify::crypto::{CryptoProvider, HashContext, SigningScheme, install_default_provider};
use sigstore_verify::types::HashAlgorithm;

#[derive(Debug)]
struct Ring;

struct Hash(Context);

/// Makes ring the provider of this process. Further calls have no effect.
pub(super) fn install() {
    let _ = install_default_provider(&Ring);
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

fn unsupported(name: &str) -> Error {
    Error::UnsupportedAlgorithm(format!("{name} is not supported"))
}

fn algorithm(scheme: SigningScheme) -> Result<&'static dyn VerificationAlgorithm> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &signature::ED25519,
        SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        _ => return Err(unsupported(scheme.name())),
    })
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(unsupported(&other.to_string())),
        };
        Ok(Box::new(Hash(Context::new(algorithm))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
        let key = UnparsedPublicKey::new(algorithm(scheme)?, key);
        key.verify(data, signature)
            .map_err(|_| Error::Verification(format!("the {} signature is invalid", scheme.name())))
    }

    fn verify_prehashed(&self, scheme: SigningScheme, _: &[u8], _: &[u8], _: &[u8]) -> Result<()> {
        Err(unsupported(&format!("{} over a digest", scheme.name())))
    }
}
