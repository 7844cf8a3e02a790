//! Trust in images: which keys have to sign the images of a registry, and what their plugins may answer.
//!
//! The rule with the longest prefix of an image counts. As soon as there is a trust file or a `PluginTrust` object, an
//! image without a rule is refused. Objects are consulted for images that no rule of the file covers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::manifest::trust::object::{ObjectRule, ReadTrust};
use bulkhead_core::manifest::trust::{
    ContractVersion, PluginTrust, TrustKey, TrustRule, TrustTerms, contract_version, images_prefix,
};
use bulkhead_core::manifest::{BudgetLimits, Tenancy};
use bulkhead_plugin::{Grant, Positions, limits_of_files, read_document};

use crate::reference::is_below;
use crate::signature::{NotSigned, PublicKey, Signature, conformance_reports, verify};
use crate::{Digest, Reference};

/// Maximum length of the reason of a revocation in messages, in characters.
const REASON_CHARS_MAX: usize = 200;

/// Reasons of revocations by digest.
type Revoked = Arc<BTreeMap<Digest, String>>;

/// Trust file, with its keys read.
#[derive(Clone, Debug)]
pub struct Trust {
    origin: String,
    rules: Rules,
    /// Files of the keys.
    key_files: Vec<PathBuf>,
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
    /// Terms and keys, or the mistake because of which it permits nothing.
    permits: Result<Permit, String>,
}

#[derive(Clone, Debug)]
struct Permit {
    terms: TrustTerms,
    /// Keys; none accepts images without a signature.
    keys: Option<Vec<PublicKey>>,
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
    /// Keys, one of which must have signed; none if no signature is required.
    keys: Option<Vec<PublicKey>>,
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
    /// Reads a trust file and the keys that it names.
    ///
    /// # Errors
    ///
    /// The file or a key cannot be used.
    pub fn read(path: &Path) -> Result<Self, TrustError> {
        let origin = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| TrustError {
            origin: origin.clone(),
            message: format!("cannot read the trust file: {error}"),
        })?;
        Self::parse(&origin, &text, path.parent().unwrap_or(Path::new(".")))
    }

    fn parse(origin: &str, text: &str, folder: &Path) -> Result<Self, TrustError> {
        let error = |message: String| TrustError {
            origin: origin.to_owned(),
            message,
        };
        // The message names the file.
        let file: PluginTrust = read_document(origin, text).map_err(|message| {
            error(message.strip_prefix(origin).map_or_else(
                || message.clone(),
                |rest| rest.trim_start_matches([':', ' ']).to_owned(),
            ))
        })?;
        let (api_version, kind) = (PluginTrust::API_VERSION, PluginTrust::KIND);
        if file.api_version != api_version || file.kind != kind {
            let found = format!("{} {}", file.api_version, file.kind);
            return Err(error(format!("is a {found:?}; a trust file is {api_version} {kind}")));
        }
        let positions = Positions::read(text, &limits_of_files());
        let (mut rules, mut key_files) = (Vec::<Rule>::new(), Vec::new());
        for (index, rule) in file.rules.into_iter().enumerate() {
            let path = format!("rules[{index}]");
            let position = positions.value(0, &path);
            let at = position.map_or_else(String::new, |at| format!(":{at}"));
            let at = format!("{origin}{at}: {path}");
            key_files.extend(rule.keys.iter().filter_map(|key| Some(folder.join(key.file.as_ref()?))));
            let rule = read_rule(rule, origin, &at, folder)?;
            if rules.iter().any(|other| other.prefix == rule.prefix) {
                return Err(TrustError {
                    origin: at,
                    message: format!(
                        "images {:?} has a rule already; put its keys into that one",
                        rule.prefix
                    ),
                });
            }
            rules.push(rule);
        }
        let mut revoked = BTreeMap::<Digest, String>::new();
        for (index, revocation) in file.revoked.into_iter().enumerate() {
            let path = format!("revoked[{index}]");
            let at = positions
                .value(0, &path)
                .map_or_else(String::new, |at| format!(":{at}"));
            let digest = revocation.digest.parse().map_err(|message| TrustError {
                origin: format!("{origin}{at}: {path}.digest"),
                message,
            })?;
            revoked.insert(digest, revocation.reason.unwrap_or_default());
        }
        Ok(Self {
            origin: origin.to_owned(),
            rules: Rules {
                all: rules,
                revoked: Arc::new(revoked),
            },
            key_files,
        })
    }

    /// Returns the files of the keys.
    pub(crate) fn key_files(&self) -> &[PathBuf] {
        &self.key_files
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
            all.extend(object.rules.into_iter().map(|rule| Rule::of_object(&origin, rule)));
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
    fn of_object(origin: &str, rule: ObjectRule) -> Self {
        let keys = rule
            .keys
            .map(|keys| keys.into_iter().map(PublicKey::of_object).collect());
        let permits = match rule.terms {
            Ok(terms) => Ok(Permit { terms, keys }),
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
        let Permit { terms, keys } = match &self.permits {
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
            keys: keys.clone(),
            conformance: terms.conformance,
            kinds: terms.kinds.clone(),
            max_budget: terms.max_budget,
            tenancy: terms.tenancy.clone(),
            revoked,
        })
    }
}

impl Requirements {
    /// Returns requirements that consist of keys alone.
    pub fn of_keys(keys: Vec<PublicKey>) -> Self {
        Self {
            origin: "--key".to_owned(),
            keys: Some(keys),
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
        self.keys.is_some()
    }

    /// Returns the key that has signed the image; none if no signature is required. `code` is the digest of its code.
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
    ) -> Result<Option<&PublicKey>, TrustError> {
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
        let Some(keys) = &self.keys else { return Ok(None) };
        let key = verify(signatures, digest, keys).map_err(|cause: NotSigned| refused(cause.to_string()))?;
        self.check_conformance(digest, signatures).map_err(refused)?;
        Ok(Some(key))
    }

    /// Returns the reason why no conformance report counts.
    fn check_conformance(&self, digest: &Digest, signatures: &[Signature]) -> Result<(), String> {
        let (Some(required), Some(keys)) = (self.conformance, &self.keys) else {
            return Ok(());
        };
        let reports = conformance_reports(signatures, digest, keys);
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

    /// Returns true if a key of the rule has not signed, or if a conformance report is missing, so that the registry
    /// may have signatures that matter.
    pub fn lacks_signatures(&self, digest: &Digest, signatures: &[Signature]) -> bool {
        let has_signed = |key: &PublicKey| verify(signatures, digest, std::slice::from_ref(key)).is_ok();
        let has_all = self.keys.as_ref().is_none_or(|keys| keys.iter().all(has_signed));
        !has_all || self.check_conformance(digest, signatures).is_err()
    }
}

/// Reads a rule of a trust file and its keys. `at` is the place of the rule.
fn read_rule(rule: TrustRule, origin: &str, at: &str, folder: &Path) -> Result<Rule, TrustError> {
    let error = |message: String| TrustError {
        origin: at.to_owned(),
        message,
    };
    let prefix = images_prefix(&rule.images).map_err(error)?;
    let terms = rule.terms().map_err(error)?;
    let mut keys = Vec::new();
    for (index, key) in rule.keys.iter().enumerate() {
        keys.push(read_key(key, &format!("{at}.keys[{index}]"), folder)?);
    }
    let keys = (!rule.unsigned).then_some(keys);
    Ok(Rule {
        origin: origin.to_owned(),
        prefix,
        permits: Ok(Permit { terms, keys }),
    })
}

fn read_key(key: &TrustKey, at: &str, folder: &Path) -> Result<PublicKey, TrustError> {
    let error = |message: String| TrustError {
        origin: at.to_owned(),
        message,
    };
    let (origin, pem) = match (&key.file, &key.pem) {
        (Some(file), None) => {
            let path = folder.join(file);
            let shown = path.display().to_string();
            let pem = fs::read_to_string(&path);
            (
                shown.clone(),
                pem.map_err(|problem| error(format!("cannot read {shown}: {problem}")))?,
            )
        }
        (None, Some(pem)) => (format!("{at}.pem"), pem.clone()),
        _ => return Err(error("needs exactly one of file and pem".to_owned())),
    };
    let name = key.name.clone().unwrap_or_else(|| origin.clone());
    PublicKey::parse(&name, &origin, &pem).map_err(|problem| TrustError {
        origin: problem.origin,
        message: problem.message,
    })
}

#[cfg(test)]
mod tests;
