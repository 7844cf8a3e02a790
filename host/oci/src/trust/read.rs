//! Reads trust files, with the files that they name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bulkhead_core::manifest::trust::identity::TrustedRootSource;
use bulkhead_core::manifest::trust::{PluginTrust, TrustKey, TrustRule, images_prefix};
use bulkhead_plugin::{Positions, limits_of_files, read_document};

use super::{Permit, Rule, Rules, Trust, TrustError};
use crate::Digest;
use crate::signature::{Identity, KeyError, PublicKey, Signers, TrustedRoot};

impl Trust {
    /// Reads a trust file, and the keys and the trusted root that it names.
    ///
    /// # Errors
    ///
    /// The file, a key or the trusted root cannot be used.
    pub fn read(path: &Path) -> Result<Self, TrustError> {
        let origin = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| TrustError {
            origin: origin.clone(),
            message: format!("cannot read the trust file: {error}"),
        })?;
        Self::parse(&origin, &text, path.parent().unwrap_or(Path::new(".")))
    }

    pub(super) fn parse(origin: &str, text: &str, folder: &Path) -> Result<Self, TrustError> {
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
        let place = |path: &str| {
            let position = positions.value(0, path);
            let at = position.map_or_else(String::new, |at| format!(":{at}"));
            format!("{origin}{at}: {path}")
        };
        let root = read_root(&file.trusted_root, &place("trustedRoot"), folder)?;
        let mut files: Vec<_> = file.trusted_root.file.iter().map(|file| folder.join(file)).collect();
        let mut rules = Vec::<Rule>::new();
        for (index, rule) in file.rules.into_iter().enumerate() {
            let at = place(&format!("rules[{index}]"));
            files.extend(rule.keys.iter().filter_map(|key| Some(folder.join(key.file.as_ref()?))));
            let rule = read_rule(rule, origin, &at, folder, root.as_ref())?;
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
            let at = place(&format!("revoked[{index}]"));
            let digest = revocation.digest.parse().map_err(|message| TrustError {
                origin: format!("{at}.digest"),
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
            files,
        })
    }
}

/// Reads a rule of a trust file and its signers. `at` is the place of the rule.
fn read_rule(
    rule: TrustRule,
    origin: &str,
    at: &str,
    folder: &Path,
    root: Option<&TrustedRoot>,
) -> Result<Rule, TrustError> {
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
    let mut identities = Vec::new();
    for (index, identity) in rule.identities.into_iter().enumerate() {
        identities.push(Identity::new(identity).map_err(|message| TrustError {
            origin: format!("{at}.identities[{index}]"),
            message,
        })?);
    }
    let signers = match (identities.is_empty(), root) {
        (true, _) => Signers::of_keys(keys),
        (false, Some(root)) => Signers::of_keys(keys).with_identities(identities, Ok(root.clone())),
        (false, None) => {
            return Err(error(
                "identities need trustedRoot, which verifies their certificates".to_owned(),
            ));
        }
    };
    let signers = (!rule.unsigned).then_some(signers);
    Ok(Rule {
        origin: origin.to_owned(),
        prefix,
        permits: Ok(Permit { terms, signers }),
    })
}

fn read_key(key: &TrustKey, at: &str, folder: &Path) -> Result<PublicKey, TrustError> {
    let (origin, pem) = match (&key.file, &key.pem) {
        (Some(file), None) => read_file(&folder.join(file), at)?,
        (None, Some(pem)) => (format!("{at}.pem"), pem.clone()),
        _ => return Err(needs_one("pem", at)),
    };
    let name = key.name.clone().unwrap_or_else(|| origin.clone());
    PublicKey::parse(&name, &origin, &pem).map_err(of_key)
}

/// Reads the trusted root; none if there is none. `at` is its place.
fn read_root(source: &TrustedRootSource, at: &str, folder: &Path) -> Result<Option<TrustedRoot>, TrustError> {
    if source.is_empty() {
        return Ok(None);
    }
    let (origin, json) = match (&source.file, &source.json) {
        (Some(file), None) => read_file(&folder.join(file), at)?,
        (None, Some(json)) => (format!("{at}.json"), json.clone()),
        _ => return Err(needs_one("json", at)),
    };
    TrustedRoot::parse(&origin, &json).map(Some).map_err(of_key)
}

/// Returns the path of a file as messages name it, and its content.
fn read_file(path: &Path, at: &str) -> Result<(String, String), TrustError> {
    let shown = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok((shown, text)),
        Err(problem) => Err(TrustError {
            origin: at.to_owned(),
            message: format!("cannot read {shown}: {problem}"),
        }),
    }
}

fn needs_one(other: &str, at: &str) -> TrustError {
    TrustError {
        origin: at.to_owned(),
        message: format!("needs exactly one of file and {other}"),
    }
}

fn of_key(KeyError { origin, message }: KeyError) -> TrustError {
    TrustError { origin, message }
}
