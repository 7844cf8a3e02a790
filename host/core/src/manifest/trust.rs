//! Rules about the origin of plugins: the content of a trust file and of a `PluginTrust` object.
//!
//! The checks here need no file and no registry, so that admission, the status of objects and the processes that pull
//! images agree about them. [`object`] reads objects.

pub mod identity;
pub mod object;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use self::identity::{TrustIdentity, TrustedRootSource};
use super::{BudgetLimits, NamePattern, Tenancy, check_digest};
use crate::call::CallKind;

/// Rules about the origin of plugins, as in the file of `--plugin-trust`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginTrust {
    /// `bulkhead.dev/v1alpha1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PluginTrust::API_VERSION)))]
    pub api_version: String,
    /// `PluginTrust`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PluginTrust::KIND)))]
    pub kind: String,
    /// Rules. The one with the longest prefix of an image counts; an image without a rule is refused.
    pub rules: Vec<TrustRule>,
    /// Trusted root of Sigstore. Required if a rule has identities.
    #[serde(default)]
    pub trusted_root: TrustedRootSource,
    /// Images that no rule trusts any more, signed or not.
    #[serde(default)]
    pub revoked: Vec<Revocation>,
}

impl PluginTrust {
    /// `apiVersion` of a trust file and of an object.
    pub const API_VERSION: &'static str = "bulkhead.dev/v1alpha1";
    /// `kind` of a trust file and of an object.
    pub const KIND: &'static str = "PluginTrust";
}

/// Revocation of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revocation {
    /// Digest of the manifest, or of the code: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Reason, for messages.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Rule for the images with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustRule {
    /// Registry, or registry and start of the repository, such as `registry.example.com/plugins`.
    pub images: String,
    /// Keys. A key or an identity of the rule must have signed the image, unless `unsigned` is set.
    #[serde(default)]
    pub keys: Vec<TrustKey>,
    /// Identities of signers without keys, whose certificates the trusted root verifies.
    #[serde(default)]
    pub identities: Vec<TrustIdentity>,
    /// Accepts images without a signature. Excludes `keys` and `identities`.
    #[serde(default)]
    pub unsigned: bool,
    /// Calls that the plugins may answer; by default all.
    #[serde(default)]
    pub kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget of one call of the plugins. A plugin that asks for more is refused.
    #[serde(default)]
    pub max_budget: BudgetLimits,
    /// Namespaces of the workloads that the plugins are asked about; by default all. A name may end with `*`. Such
    /// plugins may only answer `health` and `eviction-check`, and can only hold: their releases and healthy verdicts
    /// do not count.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub namespaces: Option<Vec<NamePattern>>,
    /// Refuses references without a digest.
    #[serde(default)]
    pub require_digest: bool,
    /// Requires a passed conformance report that a key or an identity of the rule has signed, of at least this version
    /// of the contract, such as `0.1.0`. Excludes `unsigned`.
    #[serde(default)]
    pub require_conformance: Option<String>,
}

/// Public key of a signer. Exactly one of `file` and `pem` must be set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustKey {
    /// Name of the signer, for messages; by default the file.
    #[serde(default)]
    pub name: Option<String>,
    /// Path of a PEM file with an ECDSA P-256 key, relative to the trust file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The key itself, in PEM.
    #[serde(default)]
    pub pem: Option<String>,
}

/// Version of the contract: major, minor and patch.
pub type ContractVersion = [u32; 3];

/// Terms of a rule without mistakes, except for its keys and identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustTerms {
    /// Calls that the plugins may answer; none for all.
    pub kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget of the plugins.
    pub max_budget: BudgetLimits,
    /// Tenant that the plugins are limited to; none for all namespaces.
    pub tenancy: Option<Tenancy>,
    /// True if a reference needs a digest.
    pub requires_digest: bool,
    /// Minimum version of the contract of a conformance report; none if no report is required.
    pub conformance: Option<ContractVersion>,
}

/// Returns the prefix of images that a rule names, without a slash at its end.
///
/// # Errors
///
/// It is not a registry or a repository.
pub fn images_prefix(images: &str) -> Result<String, String> {
    let prefix = images.trim_end_matches('/');
    if prefix.is_empty() || prefix.contains(['@', '*', ' ']) || prefix.contains("://") {
        return Err(format!(
            "images {images:?} is not a registry or a repository; write registry.example.com/plugins"
        ));
    }
    Ok(prefix.to_owned())
}

/// Returns the version in a text such as `bulkhead:policy@0.1.0` or `0.1.0`.
pub fn contract_version(text: &str) -> Option<ContractVersion> {
    let version = text.rsplit('@').next().unwrap_or(text);
    let parts: Vec<_> = version
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

impl TrustRule {
    /// Checks everything but the prefix, and the keys and identities themselves.
    ///
    /// # Errors
    ///
    /// The first mistake, with the field and the remedy.
    pub fn terms(&self) -> Result<TrustTerms, String> {
        if (self.keys.is_empty() && self.identities.is_empty()) != self.unsigned {
            return Err("needs either keys or identities, one of which must have signed, or unsigned: true".to_owned());
        }
        if self.kinds.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err("kinds is empty, so that no plugin could answer; leave it out for all".to_owned());
        }
        let kinds = self.permitted_kinds()?;
        if let Some(field) = self.max_budget.zero() {
            return Err(format!(
                "maxBudget.{field} is 0, so that no plugin could answer; leave it out for no limit"
            ));
        }
        if self.unsigned && self.require_conformance.is_some() {
            return Err(
                "requireConformance needs keys or identities: only a signed report proves something".to_owned(),
            );
        }
        let conformance =
            match &self.require_conformance {
                None => None,
                Some(text) => Some(contract_version(text).ok_or_else(|| {
                    format!("requireConformance {text:?} is not a version of the contract; write 0.1.0")
                })?),
            };
        let namespaces = self.namespaces.clone();
        Ok(TrustTerms {
            kinds,
            max_budget: self.max_budget,
            tenancy: namespaces.map(|namespaces| Tenancy { namespaces }),
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

impl Revocation {
    /// Checks the digest.
    ///
    /// # Errors
    ///
    /// It is not a digest.
    pub fn check(&self) -> Result<(), String> {
        check_digest(&self.digest)
    }
}
