//! Trust in images: which keys have to sign the images of a registry, and what their plugins may answer.
//!
//! The rule with the longest prefix of an image counts. As soon as there is a trust file, an image without a rule is
//! refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::manifest::{BudgetLimits, NamePattern, Tenancy};
use bulkhead_plugin::{Grant, Positions, limits_of_files, read_document};
use serde::Deserialize;

use crate::reference::is_below;
use crate::signature::{NotSigned, PublicKey, Signature, conformance_reports, verify};
use crate::{Digest, Reference};

/// `apiVersion` of a trust file.
const API_VERSION: &str = "bulkhead.dev/v1alpha1";
/// `kind` of a trust file.
const KIND: &str = "PluginTrust";
/// Maximum length of the reason of a revocation in messages, in characters.
const REASON_CHARS_MAX: usize = 200;

/// Rules about the origin of plugins, as in the file of `--plugin-trust`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginTrust {
    /// `bulkhead.dev/v1alpha1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = API_VERSION)))]
    api_version: String,
    /// `PluginTrust`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = KIND)))]
    kind: String,
    /// Rules. The one with the longest prefix of an image counts; an image without a rule is refused.
    rules: Vec<TrustRule>,
    /// Images that no rule trusts any more, signed or not.
    #[serde(default)]
    revoked: Vec<Revocation>,
}

/// Revocation of an image.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revocation {
    /// Digest of the manifest, or of the code: `sha256:` and 64 hexadecimal digits.
    digest: String,
    /// Reason, for messages.
    #[serde(default)]
    reason: Option<String>,
}

/// Rule for the images with a prefix.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustRule {
    /// Registry, or registry and start of the repository, such as `registry.example.com/plugins`.
    images: String,
    /// Keys, one of which must have signed the image. Required unless `unsigned` is set.
    #[serde(default)]
    keys: Vec<TrustKey>,
    /// Accepts images without a signature. Excludes `keys`.
    #[serde(default)]
    unsigned: bool,
    /// Calls that the plugins may answer; by default all.
    #[serde(default)]
    kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget of one call of the plugins. A plugin that asks for more is refused.
    #[serde(default)]
    max_budget: BudgetLimits,
    /// Namespaces of the workloads that the plugins are asked about; by default all. A name may end with `*`. Such
    /// plugins may only answer `health` and `eviction-check`, and can only hold: their releases and healthy verdicts
    /// do not count.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    namespaces: Option<Vec<NamePattern>>,
    /// Refuses references without a digest.
    #[serde(default)]
    require_digest: bool,
    /// Requires a passed conformance report that one of the keys has signed, of at least this version of the contract,
    /// such as `0.1.0`. Excludes `unsigned`.
    #[serde(default)]
    require_conformance: Option<String>,
}

/// Public key of a signer. Exactly one of `file` and `pem` must be set.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustKey {
    /// Name of the signer, for messages; by default the file.
    #[serde(default)]
    name: Option<String>,
    /// Path of a PEM file with an ECDSA P-256 key, relative to the trust file.
    #[serde(default)]
    file: Option<PathBuf>,
    /// The key itself, in PEM.
    #[serde(default)]
    pem: Option<String>,
}

/// Trust in images, with its keys read.
#[derive(Clone, Debug)]
pub struct Trust {
    origin: String,
    rules: Vec<Rule>,
    /// Reasons by digest.
    revoked: Arc<BTreeMap<Digest, String>>,
    /// Files of the keys.
    key_files: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct Rule {
    prefix: String,
    /// Keys; none accepts images without a signature.
    keys: Option<Vec<PublicKey>>,
    kinds: Option<BTreeSet<CallKind>>,
    max_budget: BudgetLimits,
    tenancy: Option<Tenancy>,
    requires_digest: bool,
    conformance: Option<Version>,
}

/// Version of the contract: major, minor and patch.
type Version = [u32; 3];

/// Requirements for one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// File with the rule, and its prefix.
    origin: String,
    /// Keys, one of which must have signed; none if no signature is required.
    keys: Option<Vec<PublicKey>>,
    /// Minimum version of the contract of a conformance report; none if no report is required.
    conformance: Option<Version>,
    /// Calls that the plugin may answer; none for all.
    kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget of the plugin.
    max_budget: BudgetLimits,
    /// Tenant that the plugin is limited to.
    tenancy: Option<Tenancy>,
    revoked: Arc<BTreeMap<Digest, String>>,
}

/// Error for a trust file that cannot be used, or an image that it refuses. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct TrustError {
    /// File, with line, column and rule if known.
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
        if file.api_version != API_VERSION || file.kind != KIND {
            let found = format!("{} {}", file.api_version, file.kind);
            return Err(error(format!("is a {found:?}; a trust file is {API_VERSION} {KIND}")));
        }
        let positions = Positions::read(text, &limits_of_files());
        let (mut rules, mut key_files) = (Vec::<Rule>::new(), Vec::new());
        for (index, rule) in file.rules.into_iter().enumerate() {
            let path = format!("rules[{index}]");
            let position = positions.value(0, &path);
            let at = position.map_or_else(String::new, |at| format!(":{at}"));
            let at = format!("{origin}{at}: {path}");
            key_files.extend(rule.keys.iter().filter_map(|key| Some(folder.join(key.file.as_ref()?))));
            let rule = rule.read(&at, folder)?;
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
        let mut revoked = BTreeMap::new();
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
            rules,
            revoked: Arc::new(revoked),
            key_files,
        })
    }

    /// Returns the files of the keys.
    pub(crate) fn key_files(&self) -> &[PathBuf] {
        &self.key_files
    }

    /// Returns the requirements for an image.
    ///
    /// # Errors
    ///
    /// No rule is for it, or it lacks a digest.
    pub fn requirements(&self, image: &Reference) -> Result<Requirements, TrustError> {
        let name = image.name();
        let found = self.rules.iter().filter(|rule| is_below(&name, &rule.prefix));
        let Some(rule) = found.max_by_key(|rule| rule.prefix.len()) else {
            return Err(TrustError {
                origin: self.origin.clone(),
                message: format!("no rule trusts {name}; add one with images: {name} and the keys of its signer"),
            });
        };
        let origin = format!("{} rule {:?}", self.origin, rule.prefix);
        if rule.requires_digest && image.digest().is_none() {
            return Err(TrustError {
                origin,
                message: format!("{image} has no digest, which requireDigest demands; add @sha256:DIGEST"),
            });
        }
        Ok(Requirements {
            origin,
            keys: rule.keys.clone(),
            conformance: rule.conformance,
            kinds: rule.kinds.clone(),
            max_budget: rule.max_budget,
            tenancy: rule.tenancy.clone(),
            revoked: Arc::clone(&self.revoked),
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
            revoked: Arc::default(),
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
            if let Some(reason) = self.revoked.get(digest) {
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
            .any(|report| version_of(&report.contract) >= Some(required))
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

impl TrustRule {
    fn read(self, at: &str, folder: &Path) -> Result<Rule, TrustError> {
        let error = |message: String| TrustError {
            origin: at.to_owned(),
            message,
        };
        let prefix = self.images.trim_end_matches('/').to_owned();
        if prefix.is_empty() || prefix.contains(['@', '*', ' ']) || prefix.contains("://") {
            return Err(error(format!(
                "images {:?} is not a registry or a repository; write registry.example.com/plugins",
                self.images
            )));
        }
        if self.keys.is_empty() != self.unsigned {
            return Err(error(
                "needs either keys, one of which must have signed, or unsigned: true".to_owned(),
            ));
        }
        if self.kinds.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(error(
                "kinds is empty, so that no plugin could answer; leave it out for all".to_owned(),
            ));
        }
        let kinds = self.permitted_kinds().map_err(error)?;
        if let Some(field) = self.max_budget.zero() {
            return Err(error(format!(
                "maxBudget.{field} is 0, so that no plugin could answer; leave it out for no limit"
            )));
        }
        if self.unsigned && self.require_conformance.is_some() {
            return Err(error(
                "requireConformance needs keys: only a signed report proves something".to_owned(),
            ));
        }
        let conformance = match &self.require_conformance {
            None => None,
            Some(text) => Some(version_of(text).ok_or_else(|| {
                error(format!(
                    "requireConformance {text:?} is not a version of the contract; write 0.1.0"
                ))
            })?),
        };
        let mut keys = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            keys.push(key.read(&format!("{at}.keys[{index}]"), folder)?);
        }
        Ok(Rule {
            prefix,
            keys: (!self.unsigned).then_some(keys),
            kinds,
            max_budget: self.max_budget,
            tenancy: self.namespaces.map(|namespaces| Tenancy { namespaces }),
            requires_digest: self.require_digest,
            conformance,
        })
    }

    /// Returns the calls that the plugins may answer; none for all. Those of a tenant may only answer some.
    fn permitted_kinds(&self) -> Result<Option<BTreeSet<CallKind>>, String> {
        let Some(namespaces) = &self.namespaces else {
            return Ok(self.kinds.clone());
        };
        if namespaces.is_empty() {
            return Err("namespaces is empty, so that no plugin could be asked; leave it out for all".to_owned());
        }
        let of_tenants = BTreeSet::from(Tenancy::KINDS);
        let kinds = self.kinds.as_ref().unwrap_or(&of_tenants);
        match kinds.difference(&of_tenants).next() {
            Some(other) => Err(format!(
                "kinds has {other}, and the plugins of namespaces may only answer health and eviction-check; remove \
                 the kind, or use a rule without namespaces"
            )),
            None => Ok(Some(kinds.clone())),
        }
    }
}

impl TrustKey {
    fn read(&self, at: &str, folder: &Path) -> Result<PublicKey, TrustError> {
        let error = |message: String| TrustError {
            origin: at.to_owned(),
            message,
        };
        let (origin, pem) = match (&self.file, &self.pem) {
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
        let name = self.name.clone().unwrap_or_else(|| origin.clone());
        PublicKey::parse(&name, &origin, &pem).map_err(|problem| TrustError {
            origin: problem.origin,
            message: problem.message,
        })
    }
}

/// Returns the version in a text such as `bulkhead:policy@0.1.0` or `0.1.0`.
fn version_of(text: &str) -> Option<Version> {
    let version = text.rsplit('@').next().unwrap_or(text);
    let parts: Vec<_> = version
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests;
