//! Signers that a rule accepts: keys, and identities in certificates.

use bulkhead_core::manifest::trust::identity::{SubjectMatcher, TrustIdentity};

use super::certificate::{CertificateProblem, CertifiedSigner, TrustedRoot, claimed};
use super::{Conformance, KeyError, NotSigned, PublicKey, Signature, Statement, verify};
use crate::Digest;

/// Identity that a certificate must have.
#[derive(Clone, Debug)]
pub struct Identity {
    wanted: TrustIdentity,
    subject: SubjectMatcher,
}

/// Signers, one of which must have signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signers {
    keys: Vec<PublicKey>,
    identities: Vec<Identity>,
    /// Trusted root, or the reason why it cannot be used; none without identities.
    root: Option<Result<TrustedRoot, KeyError>>,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.wanted == other.wanted
    }
}

impl Eq for Identity {}

impl Identity {
    /// Reads an identity of a rule.
    ///
    /// # Errors
    ///
    /// A field is missing or empty, or the expression is invalid.
    pub fn new(wanted: TrustIdentity) -> Result<Self, String> {
        let subject = wanted.matcher()?;
        Ok(Self { wanted, subject })
    }

    fn is(&self, signer: &CertifiedSigner) -> bool {
        self.wanted.issuer == signer.issuer && self.subject.matches(&signer.subject)
    }

    /// Returns the identity as messages name it.
    fn shown(&self) -> String {
        let subject = self.wanted.subject.as_ref().or(self.wanted.subject_regex.as_ref());
        format!("{} ({})", subject.map_or("", String::as_str), self.wanted.issuer)
    }
}

impl Signers {
    /// Returns signers with keys.
    pub fn of_keys(keys: Vec<PublicKey>) -> Self {
        Self {
            keys,
            ..Self::default()
        }
    }

    /// Adds identities, whose certificates are verified with the trusted root. A root that cannot be used verifies none.
    #[must_use]
    pub fn with_identities(mut self, identities: Vec<Identity>, root: Result<TrustedRoot, KeyError>) -> Self {
        self.identities = identities;
        self.root = Some(root);
        self
    }

    /// Returns the signer of an image. An attestation is no signature.
    ///
    /// # Errors
    ///
    /// No signature by one of the signers is for this image.
    pub fn verify(&self, signatures: &[Signature], image: &Digest) -> Result<String, NotSigned> {
        let by_keys = match verify(signatures, image, &self.keys) {
            Ok(key) => return Ok(key.name.clone()),
            Err(NotSigned::ByOthers(count, _)) => NotSigned::ByOthers(count, self.shown()),
            Err(cause) => cause,
        };
        let signed = signatures.iter().filter(|signature| {
            let statement = Statement::of(signature);
            matches!(statement, Some(Statement::Signature(_)) | None)
        });
        let (certified, others): (Vec<_>, Vec<_>) = signed.partition(|signature| signature.bundle.is_some());
        let Some(first) = certified.first() else {
            return Err(by_keys);
        };
        if self.identities.is_empty() {
            let claimed = claimed(first).filter(|_| others.is_empty());
            return Err(claimed.map_or(by_keys, |name| CertificateProblem::NotConfigured(name).into()));
        }
        let mut nearest = None::<CertificateProblem>;
        for signature in certified {
            match self.identity_of(signature, image) {
                Ok(signer) => return Ok(signer.to_string()),
                Err(problem) => {
                    if nearest.as_ref().is_none_or(|before| rank(&problem) > rank(before)) {
                        nearest = Some(problem);
                    }
                }
            }
        }
        Err(nearest.map_or(by_keys, NotSigned::from))
    }

    /// Returns the conformance reports about an image that one of the signers has signed.
    pub fn conformance_reports(&self, signatures: &[Signature], image: &Digest) -> Vec<Conformance> {
        let of_image = |signature: &Signature| match Statement::of(signature)? {
            Statement::Conformance(digests, report) => {
                digests.iter().any(|digest| digest == image.as_str()).then_some(report)
            }
            _ => None,
        };
        signatures
            .iter()
            .filter_map(|signature| Some((signature, of_image(signature)?)))
            .filter(|(signature, _)| {
                self.keys.iter().any(|key| key.has_signed(signature)) || self.identity_of(signature, image).is_ok()
            })
            .map(|(_, report)| report)
            .collect()
    }

    /// Returns true if each signer has signed the image.
    pub(crate) fn have_all_signed(&self, signatures: &[Signature], image: &Digest) -> bool {
        let by_key = |key: &PublicKey| verify(signatures, image, std::slice::from_ref(key)).is_ok();
        let by_identity = |identity: &Identity| {
            let alone = Self {
                keys: Vec::new(),
                identities: vec![identity.clone()],
                root: self.root.clone(),
            };
            alone.verify(signatures, image).is_ok()
        };
        self.keys.iter().all(by_key) && self.identities.iter().all(by_identity)
    }

    /// Returns the signer of a statement about an image if it is one of the identities.
    fn identity_of(&self, signature: &Signature, image: &Digest) -> Result<CertifiedSigner, CertificateProblem> {
        let root = match &self.root {
            Some(Ok(root)) => root,
            Some(Err(error)) => return Err(CertificateProblem::Root(error.to_string())),
            None => return Err(CertificateProblem::Root("there is none".to_owned())),
        };
        let signer = root.signer(signature, image)?;
        if self.identities.iter().any(|identity| identity.is(&signer)) {
            return Ok(signer);
        }
        let of_subject = |identity: &&Identity| identity.subject.matches(&signer.subject);
        if let Some(identity) = self.identities.iter().find(of_subject) {
            return Err(CertificateProblem::OtherIssuer(signer, identity.wanted.issuer.clone()));
        }
        let wanted: Vec<_> = self.identities.iter().map(Identity::shown).collect();
        Err(CertificateProblem::OtherSubject(signer, wanted.join(" or ")))
    }

    /// Returns the names of all signers.
    fn shown(&self) -> String {
        let keys = self.keys.iter().map(|key| key.name.clone());
        let names: Vec<_> = keys.chain(self.identities.iter().map(Identity::shown)).collect();
        names.join(" or ")
    }
}

/// Returns how near a signature is to one that counts. The nearest one has the most useful remedy.
fn rank(problem: &CertificateProblem) -> u8 {
    match problem {
        CertificateProblem::OtherIssuer(..) => 3,
        CertificateProblem::OtherSubject(..) => 2,
        CertificateProblem::OfAnother => 1,
        _ => 0,
    }
}
