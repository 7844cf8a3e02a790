//! Signatures with certificates: a bundle is verified with a trusted root, and without a network.
//!
//! The crates of Sigstore verify the chain of the certificate, its entry in a certificate transparency log, the times
//! of signing, the entry of the transparency log, and the signature over the statement. Anyone can get a certificate,
//! so a verified signer counts only if it is an identity of a rule.
//!
//! The result does not depend on the time of verification, except that no time of signing may be in the future.

use std::fmt;
use std::sync::Arc;

use bulkhead_core::manifest::trust::identity::check_trusted_root;
use sigstore_verify::bundle::Error as BundleError;
use sigstore_verify::crypto::parse_certificate_info;
use sigstore_verify::trust_root::TrustedRoot as Root;
use sigstore_verify::types::Sha256Hash;
use sigstore_verify::types::bundle::{Bundle, MediaType, SignatureContent};
use sigstore_verify::{CertificateError, Error, TimestampError, TransparencyLogError, VerificationPolicy, Verifier};

use super::{KeyError, Signature, provider};
use crate::Digest;

/// Maximum length of a cause, an issuer or a subject in messages, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// Authorities and logs that certificates are verified with.
#[derive(Clone)]
pub struct TrustedRoot {
    json: Arc<str>,
    verifier: Arc<Verifier>,
    policy: VerificationPolicy,
}

/// Signer of a bundle, as its certificate names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedSigner {
    /// Issuer of the identity token.
    pub issuer: String,
    /// Email address, or URI of a workload.
    pub subject: String,
}

/// Reason why a signature with a certificate does not count. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateProblem {
    /// The rule has no identities.
    #[error(
        "it is signed with a certificate for {0}, and the rule has no identities; if you trust the signer, add it to \
         identities (IdentityNotConfigured)"
    )]
    NotConfigured(String),
    /// The trusted root of the rule cannot be used.
    #[error("the trusted root cannot be used: {0}; replace it (TrustedRootInvalid)")]
    Root(String),
    /// The subject is not one of the rule.
    #[error(
        "it is signed by {0}, and the rule has {1}; sign it with an identity of the rule, or add this one \
         (IdentityMismatch)"
    )]
    OtherSubject(CertifiedSigner, String),
    /// The subject is one of the rule, and the issuer is another one.
    #[error(
        "it is signed by {0}, and the rule has this subject with the issuer {1}; sign it with an identity of that \
         issuer, or add this one (IssuerMismatch)"
    )]
    OtherIssuer(CertifiedSigner, String),
    /// The statement is about another image.
    #[error("its signature with a certificate is for another image; sign this one (SignatureOfAnother)")]
    OfAnother,
    /// The chain of the certificate ends at no authority of the trusted root.
    #[error(
        "its certificate is not by an authority of the trusted root: {0}; use the trusted root of the authority that \
         issued it (CertificateUntrusted)"
    )]
    UnknownAuthority(String),
    /// It was signed outside of the validity of the certificate.
    #[error("it was not signed within the validity of its certificate: {0}; sign it again (CertificateExpired)")]
    OutsideValidity(String),
    /// It was signed outside of the validity of the authorities.
    #[error(
        "no authority of the trusted root was valid when it was signed: {0}; use a trusted root of that time \
         (TrustedRootExpired)"
    )]
    RootExpired(String),
    /// The certificate is in no log of certificates.
    #[error(
        "its certificate is not proven to be in a certificate transparency log of the trusted root: {0}; sign it \
         again (CertificateNotLogged)"
    )]
    NotLogged(String),
    /// Nothing proves the time of signing.
    #[error(
        "its bundle has neither an entry of the transparency log nor a timestamp that the trusted root demands: {0}; \
         sign it again, with upload to the log (LogEntryMissing)"
    )]
    LogEntryMissing(String),
    /// The entry of the transparency log is forged, or for another signature.
    #[error("its entry of the transparency log does not count: {0}; sign it again (LogEntryInvalid)")]
    LogEntryInvalid(String),
    /// A signed timestamp is forged, or by another authority.
    #[error("its timestamp does not count: {0}; sign it again (TimestampInvalid)")]
    Timestamp(String),
    /// The key of the certificate has not signed.
    #[error("its signature is not by the key of its certificate: {0}; sign it again (SignatureInvalid)")]
    Forged(String),
    /// The bundle has another format.
    #[error("its bundle cannot be verified: {0}; sign it with a current cosign (BundleInvalid)")]
    Bundle(String),
}

fn short(text: impl ToString) -> String {
    bulkhead_plugin::one_line(&text.to_string(), TEXT_CHARS_MAX)
}

/// Formats the subject and the issuer, as decisions record them.
impl fmt::Display for CertifiedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", short(&self.subject), short(&self.issuer))
    }
}

/// Formats no key or certificate.
impl fmt::Debug for TrustedRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrustedRoot")
    }
}

impl PartialEq for TrustedRoot {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for TrustedRoot {}

impl TrustedRoot {
    /// Parses a trusted root in Sigstore's format (`trusted_root.json`).
    ///
    /// Certificates need an entry in a certificate transparency log if the root has such logs. Signatures need an entry
    /// in a transparency log if the root has one, and a signed timestamp otherwise.
    ///
    /// # Errors
    ///
    /// It is not a trusted root, or a key or a certificate in it cannot be read.
    pub fn parse(origin: &str, json: &str) -> Result<Self, KeyError> {
        let error = |message: String| KeyError {
            origin: origin.to_owned(),
            message,
        };
        provider::install();
        check_trusted_root(json).map_err(error)?;
        let unusable = |cause: String| error(format!("is not a valid trusted root: {}", short(cause)));
        let root = Root::from_json(json).map_err(|cause| unusable(cause.to_string()))?;
        let mut policy = VerificationPolicy::any_identity();
        if root.ctlogs.is_empty() {
            policy = policy.skip_sct();
        }
        if root.tlogs.is_empty() {
            policy = policy.skip_tlog_unsafe();
        }
        let verifier = Verifier::new(&root).map_err(|cause| unusable(cause.to_string()))?;
        Ok(Self {
            json: json.into(),
            verifier: Arc::new(verifier),
            policy,
        })
    }

    /// Returns the signer of a statement about an image.
    ///
    /// # Errors
    ///
    /// A check of the bundle fails, or the statement is about another image.
    pub(super) fn signer(&self, signature: &Signature, image: &Digest) -> Result<CertifiedSigner, CertificateProblem> {
        let unreadable = |cause: String| CertificateProblem::Bundle(short(cause));
        let bundle = parse(signature).map_err(unreadable)?;
        let image = Sha256Hash::from_hex(image.hex()).map_err(|cause| unreadable(cause.to_string()))?;
        let verified = self.verifier.verify(image, &bundle, &self.policy).map_err(problem)?;
        match (verified.issuer(), verified.identity()) {
            (Some(issuer), Some(subject)) => Ok(CertifiedSigner {
                issuer: issuer.to_owned(),
                subject: subject.as_str().to_owned(),
            }),
            _ => Err(unreadable("its certificate names no issuer or no subject".to_owned())),
        }
    }
}

/// Returns the bundle of a signature, which has the same statement.
fn parse(signature: &Signature) -> Result<Bundle, String> {
    let json = signature.bundle.as_deref().ok_or("it has no certificate")?;
    let bundle = Bundle::from_json(json).map_err(|cause| cause.to_string())?;
    if bundle.media_type() != MediaType::Bundle0_3 {
        return Err(format!(
            "its media type is {}, and not {}",
            bundle.media_type(),
            MediaType::Bundle0_3
        ));
    }
    match &bundle.content {
        // The caller has read the statement of the signature.
        SignatureContent::DsseEnvelope(envelope)
            if envelope.payload.as_bytes() == signature.payload.as_bytes()
                && Some(envelope.payload_type.as_str()) == signature.payload_type.as_deref() =>
        {
            Ok(bundle)
        }
        _ => Err("its envelope has another statement".to_owned()),
    }
}

/// Returns the signer that a certificate claims. Nothing is verified.
pub(super) fn claimed(signature: &Signature) -> Option<String> {
    let bundle = Bundle::from_json(signature.bundle.as_deref()?).ok()?;
    let info = parse_certificate_info(bundle.signing_certificate()?).ok()?;
    let (issuer, subject) = (info.issuer?, info.identity?.as_str().to_owned());
    Some(CertifiedSigner { issuer, subject }.to_string())
}

/// Returns the reason behind an error of verification.
fn problem(error: Error) -> CertificateProblem {
    let cause = short(&error);
    match error {
        Error::ArtifactMismatch(_) => CertificateProblem::OfAnother,
        Error::SignatureInvalid(_) => CertificateProblem::Forged(cause),
        Error::Certificate(CertificateError::NoValidAuthority { .. }) => CertificateProblem::RootExpired(cause),
        Error::Certificate(CertificateError::Sct(_)) | Error::InvalidTrustRoot(_) => {
            CertificateProblem::NotLogged(cause)
        }
        Error::Certificate(CertificateError::Expired { .. } | CertificateError::NotYetValid { .. })
        | Error::TransparencyLog(TransparencyLogError::IntegratedTime(_)) => CertificateProblem::OutsideValidity(cause),
        // The chain is verified at the time of signing, and its error is a text.
        Error::Certificate(CertificateError::ChainInvalid(text))
            if ["CertExpired", "CertNotValidYet"]
                .iter()
                .any(|name| text.contains(name)) =>
        {
            CertificateProblem::OutsideValidity(cause)
        }
        Error::Certificate(_) => CertificateProblem::UnknownAuthority(cause),
        Error::Timestamp(TimestampError::NoVerifiedTimestamp(_))
        | Error::Bundle(
            BundleError::MissingInclusionProof(_)
            | BundleError::MissingInclusionPromise(_)
            | BundleError::MissingCheckpoint
            | BundleError::MissingSigningTimeEvidence
            | BundleError::MissingTimestamp,
        ) => CertificateProblem::LogEntryMissing(cause),
        Error::TransparencyLog(_) => CertificateProblem::LogEntryInvalid(cause),
        Error::Timestamp(_) => CertificateProblem::Timestamp(cause),
        _ => CertificateProblem::Bundle(cause),
    }
}

#[cfg(test)]
mod tests;
