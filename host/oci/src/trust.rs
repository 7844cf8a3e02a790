//! Trust in images: the signers of the images of a registry, and the calls that their plugins may answer.
//!
//! The rule with the longest prefix of an image counts. As soon as there is a trust file or a `PluginTrust` object, an
//! image without a rule is refused. Objects are consulted for images that no rule of the file covers.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::manifest::trust::object::{ObjectRule, ObjectSigners, ReadTrust};
use bulkhead_core::manifest::trust::{ContractVersion, PluginTrust, TrustTerms, contract_version};
use bulkhead_core::manifest::{BudgetLimits, Tenancy};
use bulkhead_plugin::Grant;

use crate::reference::is_below;
use crate::signature::{Identity, KeyError, NotSigned, PublicKey, Signature, Signers, TrustedRoot};
use crate::{Digest, Reference};

/// Maximum length of the reason of a revocation in messages, in characters.
const REASON_CHARS_MAX: usize = 200;

/// Reasons of revocations by digest.
type Revoked = Arc<BTreeMap<Digest, String>>;

/// Trust file, with its keys and its trusted root read.
#[derive(Clone, Debug)]
pub struct Trust {
    origin: String,
    rules: Rules,
    /// Files of the keys and of the trusted root.
    files: Vec<PathBuf>,
}

/// Rules of a trust file, or of all objects. Each prefix has one rule.
#[derive(Clone, Debug, Default)]
struct Rules {
    all: Vec<Rule>,
    revoked: Revoked,
}

#[derive(Clone, Debug)]
struct Rule {
    /// File or object with the rule.
    origin: String,
    prefix: String,
    /// Terms and signers, or the mistake because of which it permits nothing.
    permits: Result<Permit, String>,
}

#[derive(Clone, Debug)]
struct Permit {
    terms: TrustTerms,
    /// Signers; none accepts images without a signature.
    signers: Option<Signers>,
}

/// Rules of the `PluginTrust` objects of a control plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectTrust {
    /// True if there is an object, so that an image without a rule is refused.
    exists: bool,
    rules: Rules,
}

/// Requirements for one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// File or object with the rule, and its prefix.
    origin: String,
    /// Signers, one of which must have signed; none if no signature is required.
    signers: Option<Signers>,
    /// Minimum version of the contract of a conformance report; none if no report is required.
    conformance: Option<ContractVersion>,
    /// Calls that the plugin may answer; none for all.
    kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget of the plugin.
    max_budget: BudgetLimits,
    /// Tenant that the plugin is limited to.
    tenancy: Option<Tenancy>,
    /// Revocations of each source.
    revoked: Vec<Revoked>,
}

/// Error for a trust file that cannot be used, or an image that it refuses. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct TrustError {
    /// File, with line, column and rule if known, or object with the rule.
    pub origin: String,
    /// Cause and remedy.
    pub message: String,
}

impl Trust {
    /// Returns the files of the keys and of the trusted root.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the prefixes of the rules, in order.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.rules.all.iter().map(|rule| rule.prefix.as_str())
    }

    /// Returns true if a rule is for an image.
    pub(crate) fn covers(&self, image: &Reference) -> bool {
        self.rules.of(&image.name()).is_some()
    }

    /// Returns the requirements for an image, without objects.
    ///
    /// # Errors
    ///
    /// No rule is for it, or it lacks a digest.
    pub fn requirements(&self, image: &Reference) -> Result<Requirements, TrustError> {
        let name = image.name();
        let rule = self.rules.of(&name).ok_or_else(|| no_rule(&self.origin, &name))?;
        rule.requirements(image, vec![Arc::clone(&self.rules.revoked)])
    }
}

/// Returns the requirements for an image: those of the trust file if a rule of it is for the image, else those of
/// objects. The revocations of both count. Without a file and objects there are none.
///
/// # Errors
///
/// No rule is for it, the rule has a mistake, or the image lacks a digest.
pub(crate) fn requirements(
    file: Option<&Trust>,
    objects: &ObjectTrust,
    image: &Reference,
) -> Result<Option<Requirements>, TrustError> {
    const OBJECTS: &str = "PluginTrust objects";
    let name = image.name();
    let of_file = file.and_then(|file| file.rules.of(&name));
    let revoked = file
        .map(|file| &file.rules.revoked)
        .into_iter()
        .chain([&objects.rules.revoked]);
    match (of_file.or_else(|| objects.rules.of(&name)), file) {
        (Some(rule), _) => rule.requirements(image, revoked.map(Arc::clone).collect()).map(Some),
        (None, None) if !objects.exists => Ok(None),
        (None, None) => Err(no_rule(OBJECTS, &name)),
        (None, Some(file)) if !objects.exists => Err(no_rule(&file.origin, &name)),
        (None, Some(file)) => Err(no_rule(&format!("{} and the {OBJECTS}", file.origin), &name)),
    }
}

fn no_rule(origin: &str, name: &str) -> TrustError {
    TrustError {
        origin: origin.to_owned(),
        message: format!("no rule trusts {name}; add one with images: {name} and the keys of its signer"),
    }
}

impl ObjectTrust {
    /// Returns the rules of objects, which were read together.
    pub(crate) fn of(objects: Vec<ReadTrust>) -> Self {
        let exists = !objects.is_empty();
        let (mut all, mut revoked) = (Vec::new(), BTreeMap::<Digest, String>::new());
        for object in objects {
            let origin = format!("{} {}", PluginTrust::KIND, object.name);
            let root = object
                .trusted_root
                .map(|json| TrustedRoot::parse(&format!("{origin} spec.trustedRoot.json"), &json));
            let rules = object.rules.into_iter();
            all.extend(rules.map(|rule| Rule::of_object(&origin, rule, root.as_ref())));
            for revocation in object.revoked {
                // The digest was checked.
                if let Ok(digest) = revocation.digest.parse() {
                    revoked.insert(digest, revocation.reason.unwrap_or_default());
                }
            }
        }
        let revoked = Arc::new(revoked);
        Self {
            exists,
            rules: Rules { all, revoked },
        }
    }
}

impl Rules {
    /// Returns the rule with the longest prefix of an image.
    fn of(&self, name: &str) -> Option<&Rule> {
        let found = self.all.iter().filter(|rule| is_below(name, &rule.prefix));
        found.max_by_key(|rule| rule.prefix.len())
    }
}

impl Rule {
    fn of_object(origin: &str, rule: ObjectRule, root: Option<&Result<TrustedRoot, KeyError>>) -> Self {
        let signers = rule.signers.map(|ObjectSigners { keys, identities }| {
            let signers = Signers::of_keys(keys.into_iter().map(PublicKey::of_object).collect());
            // The identities were checked.
            let identities = identities.into_iter().filter_map(|one| Identity::new(one).ok());
            match root {
                Some(root) => signers.with_identities(identities.collect(), root.clone()),
                None => signers,
            }
        });
        let permits = match rule.terms {
            Ok(terms) => Ok(Permit { terms, signers }),
            Err(mistake) => Err(mistake.to_string()),
        };
        Self {
            origin: origin.to_owned(),
            prefix: rule.prefix,
            permits,
        }
    }

    /// Returns the requirements for an image that it covers.
    fn requirements(&self, image: &Reference, revoked: Vec<Revoked>) -> Result<Requirements, TrustError> {
        let origin = format!("{} rule {:?}", self.origin, self.prefix);
        let Permit { terms, signers } = match &self.permits {
            Ok(permit) => permit,
            Err(mistake) => {
                let message = format!("it has a mistake and trusts no image: {mistake} (TrustRuleInvalid)");
                return Err(TrustError { origin, message });
            }
        };
        if terms.requires_digest && image.digest().is_none() {
            return Err(TrustError {
                origin,
                message: format!("{image} has no digest, which requireDigest demands; add @sha256:DIGEST"),
            });
        }
        Ok(Requirements {
            origin,
            signers: signers.clone(),
            conformance: terms.conformance,
            kinds: terms.kinds.clone(),
            max_budget: terms.max_budget,
            tenancy: terms.tenancy.clone(),
            revoked,
        })
    }
}

impl Requirements {
    /// Returns requirements that consist of signers alone. `origin` names their source in messages.
    pub fn of_signers(origin: &str, signers: Signers) -> Self {
        Self {
            origin: origin.to_owned(),
            signers: Some(signers),
            conformance: None,
            kinds: None,
            max_budget: BudgetLimits::default(),
            tenancy: None,
            revoked: Vec::new(),
        }
    }

    /// Returns the limits of the plugin.
    pub fn into_grant(self) -> Grant {
        Grant {
            rule: self.origin,
            kinds: self.kinds,
            max_budget: self.max_budget,
            tenancy: self.tenancy,
        }
    }

    /// Returns true if a signature is required.
    pub fn needs_signature(&self) -> bool {
        self.signers.is_some()
    }

    /// Returns the name of the key that has signed the image, or the identity in the certificate of its signer; none if
    /// no signature is required. `code` is the digest of its code.
    ///
    /// # Errors
    ///
    /// The image is revoked, or no signature counts.
    pub fn verify(
        &self,
        image: &Reference,
        digest: &Digest,
        code: &Digest,
        signatures: &[Signature],
    ) -> Result<Option<String>, TrustError> {
        let refused = |cause: String| TrustError {
            origin: self.origin.clone(),
            message: format!("{}@{digest} is not trusted: {cause}", image.name()),
        };
        for (digest, part) in [(digest, "it"), (code, "its code")] {
            if let Some(reason) = self.revoked.iter().find_map(|revoked| revoked.get(digest)) {
                let reason = bulkhead_plugin::one_line(reason, REASON_CHARS_MAX);
                let reason = if reason.is_empty() {
                    reason
                } else {
                    format!(": {reason}")
                };
                return Err(refused(format!(
                    "{part} is revoked by digest{reason}; list an image that replaces it (ImageRevoked)"
                )));
            }
        }
        let Some(signers) = &self.signers else { return Ok(None) };
        let verified = signers.verify(signatures, digest);
        let signer = verified.map_err(|cause: NotSigned| refused(cause.to_string()))?;
        self.check_conformance(digest, signatures).map_err(refused)?;
        Ok(Some(signer))
    }

    /// Returns the reason why no conformance report counts.
    fn check_conformance(&self, digest: &Digest, signatures: &[Signature]) -> Result<(), String> {
        let (Some(required), Some(signers)) = (self.conformance, &self.signers) else {
            return Ok(());
        };
        let reports = signers.conformance_reports(signatures, digest);
        let passed: Vec<_> = reports.iter().filter(|report| report.passed).collect();
        if passed
            .iter()
            .any(|report| contract_version(&report.contract) >= Some(required))
        {
            return Ok(());
        }
        let cause = match (passed.first(), reports.is_empty()) {
            (Some(report), _) => format!(
                "its conformance report is of {}, and requireConformance demands {}",
                bulkhead_plugin::one_line(&report.contract, REASON_CHARS_MAX),
                required.map(|part| part.to_string()).join(".")
            ),
            (None, false) => "its conformance report has failed checks".to_owned(),
            (None, true) => "it has no conformance report that a key of the rule has signed".to_owned(),
        };
        Err(format!(
            "{cause}; run `bulkhead plugin test -o json`, and attach the result with `bulkhead plugin sign --report` \
             (ConformanceMissing)"
        ))
    }

    /// Returns true if a signer of the rule has not signed, or if a conformance report is missing, so that the registry
    /// may have signatures that matter.
    pub fn lacks_signatures(&self, digest: &Digest, signatures: &[Signature]) -> bool {
        let signers = self.signers.as_ref();
        let has_all = signers.is_none_or(|signers| signers.have_all_signed(signatures, digest));
        !has_all || self.check_conformance(digest, signatures).is_err()
    }
}

#[cfg(test)]
mod tests;
