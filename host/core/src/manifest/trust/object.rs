//! `PluginTrust` objects. Each part of an object is read on its own, so that a mistake stops no other part.
//!
//! A mistake permits nothing: a rule with one still covers the images of its prefix, so that no shorter rule trusts
//! them, and refuses them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::identity::{TrustIdentity, TrustedRootSource, check_trusted_root};
use super::{Revocation, TrustKey, TrustRule, TrustTerms, images_prefix};
use crate::manifest::{check_digest, p256_point};

/// Fields of a `spec`.
const FIELDS: [&str; 3] = ["rules", "trustedRoot", "revoked"];

/// A `PluginTrust` object, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustObject {
    /// Name of the object.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
    /// Its `spec`: `rules`, `trustedRoot` and `revoked` of a trust file, with keys as `pem` and the root as `json` only.
    pub spec: Map<String, Value>,
}

/// Content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTrust {
    /// Name of the object.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
    /// Trusted root without a known mistake, as JSON.
    pub trusted_root: Option<String>,
    /// Rules whose prefix is readable and unique, in order.
    pub rules: Vec<ObjectRule>,
    /// Revocations whose digest is readable.
    pub revoked: Vec<Revocation>,
    /// All mistakes.
    pub mistakes: Vec<TrustMistake>,
}

/// Rule of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRule {
    /// Field of the rule, such as `spec.rules[0]`.
    pub field: String,
    /// Prefix of the images that it covers.
    pub prefix: String,
    /// Terms, or the mistake because of which it permits nothing.
    pub terms: Result<TrustTerms, TrustMistake>,
    /// Signers without mistakes, one of which must have signed; none if no signature is required.
    pub signers: Option<ObjectSigners>,
}

/// Signers of a rule of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSigners {
    /// Keys.
    pub keys: Vec<ObjectKey>,
    /// Identities. The trusted root verifies their certificates.
    pub identities: Vec<TrustIdentity>,
}

/// Key of a rule of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    /// Name of the signer, for messages.
    pub name: String,
    /// Point of the curve P-256, uncompressed.
    pub point: Vec<u8>,
}

/// Mistake in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustMistake {
    /// Path of the field, such as `spec.rules[0]`.
    pub field: String,
    /// Cause and remedy.
    pub message: String,
}

impl fmt::Display for TrustMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl TrustMistake {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// Reads objects in the order of their names. Of several rules with the same prefix, the first one counts.
pub fn read_objects(objects: &[TrustObject]) -> Vec<ReadTrust> {
    let mut sorted: Vec<_> = objects.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    let mut first_by_prefix = BTreeMap::new();
    let mut all = Vec::new();
    for object in sorted {
        let mut read = object.read();
        for rule in std::mem::take(&mut read.rules) {
            if let Some(first) = first_by_prefix.get(&rule.prefix) {
                let message = format!(
                    "{:?} has a rule already in {first}; put its keys into that one",
                    rule.prefix
                );
                read.mistakes
                    .push(TrustMistake::new(format!("{}.images", rule.field), message));
                continue;
            }
            first_by_prefix.insert(rule.prefix.clone(), format!("{} {}", object.origin(), rule.field));
            read.rules.push(rule);
        }
        all.push(read);
    }
    all
}

impl TrustObject {
    /// Returns the object as messages name it.
    pub fn origin(&self) -> String {
        format!("PluginTrust {}", self.name)
    }

    fn read(&self) -> ReadTrust {
        let mut read = ReadTrust {
            name: self.name.clone(),
            generation: self.generation,
            trusted_root: None,
            rules: Vec::new(),
            revoked: Vec::new(),
            mistakes: Vec::new(),
        };
        for name in self.spec.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            let message = "unknown field, expected rules, trustedRoot or revoked";
            read.mistakes.push(TrustMistake::new(format!("spec.{name}"), message));
        }
        if self.spec.get("rules").is_none_or(Value::is_null) {
            let message = "is missing; write rules: [] to trust no image";
            read.mistakes.push(TrustMistake::new("spec.rules", message));
        }
        if let Some(value) = self.spec.get("trustedRoot").filter(|value| !value.is_null()) {
            read.trusted_root(value);
        }
        for (field, value) in read.items(&self.spec, "rules") {
            read.rule(&self.origin(), field, value);
        }
        for (field, value) in read.items(&self.spec, "revoked") {
            read.revocation(&field, value);
        }
        read
    }
}

impl ReadTrust {
    /// Returns the elements of a list of the spec, each with its path.
    fn items<'a>(&mut self, spec: &'a Map<String, Value>, name: &str) -> Vec<(String, &'a Value)> {
        let path = format!("spec.{name}");
        match spec.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                items.map(|(index, item)| (format!("{path}[{index}]"), item)).collect()
            }
            Some(_) => {
                self.mistakes.push(TrustMistake::new(path, "is not a list"));
                Vec::new()
            }
        }
    }

    fn rule(&mut self, origin: &str, field: String, value: &Value) {
        let images = value.get("images").and_then(Value::as_str);
        let prefix = images.map_or_else(
            || Err("images is missing; write registry.example.com/plugins".to_owned()),
            images_prefix,
        );
        let prefix = match prefix {
            Ok(prefix) => prefix,
            Err(message) => {
                self.mistakes.push(TrustMistake::new(field, message));
                return;
            }
        };
        let mut signers = None;
        let terms = decode::<TrustRule>(&field, value, "images").and_then(|rule| {
            let terms = rule.terms().map_err(|message| TrustMistake::new(&field, message))?;
            signers = (!rule.unsigned).then(|| ObjectSigners {
                keys: self.keys(&format!("{field}.keys"), origin, &rule.keys),
                identities: self.identities(&format!("{field}.identities"), rule.identities),
            });
            Ok(terms)
        });
        if let Err(mistake) = &terms {
            self.mistakes.push(mistake.clone());
        }
        self.rules.push(ObjectRule {
            field,
            prefix,
            terms,
            signers,
        });
    }

    /// Returns the keys without mistakes. A key that cannot be read verifies nothing, so the others count.
    fn keys(&mut self, path: &str, origin: &str, keys: &[TrustKey]) -> Vec<ObjectKey> {
        let mut read = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let field = format!("{path}[{index}]");
            match point(&field, key) {
                Err(mistake) => self.mistakes.push(mistake),
                Ok(point) => {
                    let name = key.name.clone().unwrap_or_else(|| format!("{origin} {field}"));
                    read.push(ObjectKey { name, point });
                }
            }
        }
        read
    }

    /// Returns the identities without mistakes. Without a trusted root there are none.
    fn identities(&mut self, path: &str, identities: Vec<TrustIdentity>) -> Vec<TrustIdentity> {
        let mut read = Vec::new();
        for (index, identity) in identities.into_iter().enumerate() {
            match identity.matcher() {
                Err(message) => self
                    .mistakes
                    .push(TrustMistake::new(format!("{path}[{index}]"), message)),
                Ok(_) => read.push(identity),
            }
        }
        if self.trusted_root.is_none() && !read.is_empty() {
            let message = "need a valid spec.trustedRoot, which verifies their certificates";
            self.mistakes.push(TrustMistake::new(path, message));
            return Vec::new();
        }
        read
    }

    fn trusted_root(&mut self, value: &Value) {
        const PATH: &str = "spec.trustedRoot";
        let read = decode::<TrustedRootSource>(PATH, value, "json").and_then(|source| {
            if source.file.is_some() {
                let message = "is for trust files; write the trusted root itself into json";
                return Err(TrustMistake::new(format!("{PATH}.file"), message));
            }
            let path = format!("{PATH}.json");
            let Some(json) = source.json else {
                return Err(TrustMistake::new(path, "is missing; it has the trusted root"));
            };
            let checked = check_trusted_root(&json);
            checked.map_err(|message| TrustMistake::new(path, message))?;
            Ok(json)
        });
        match read {
            Ok(json) => self.trusted_root = Some(json),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    fn revocation(&mut self, field: &str, value: &Value) {
        let read = decode::<Revocation>(field, value, "digest").and_then(|revocation| {
            let checked = revocation.check();
            checked.map_err(|message| TrustMistake::new(format!("{field}.digest"), message))?;
            Ok(revocation)
        });
        match read {
            Ok(revocation) => self.revoked.push(revocation),
            Err(mistake) => {
                self.mistakes.push(mistake);
                // A digest revokes alone: a mistake beside it must not trust the image again.
                let digest = value.get("digest").and_then(Value::as_str);
                self.revoked.extend(
                    digest
                        .filter(|digest| check_digest(digest).is_ok())
                        .map(|digest| Revocation {
                            digest: digest.to_owned(),
                            reason: None,
                        }),
                );
            }
        }
    }
}

fn point(field: &str, key: &TrustKey) -> Result<Vec<u8>, TrustMistake> {
    if key.file.is_some() {
        let message = "is for trust files; write the key itself into pem";
        return Err(TrustMistake::new(format!("{field}.file"), message));
    }
    let path = format!("{field}.pem");
    let Some(pem) = &key.pem else {
        return Err(TrustMistake::new(path, "is missing; it has the key"));
    };
    p256_point(pem).map_err(|message| TrustMistake::new(path, message))
}

/// Decodes a map whose only required field is a text. The mistake names the first field that does not fit.
fn decode<T: DeserializeOwned>(path: &str, value: &Value, required: &str) -> Result<T, TrustMistake> {
    let error = match serde_json::from_value(value.clone()) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    let misfit = |(name, inner): (&String, &Value)| {
        let mut alone = Map::from_iter([(required.to_owned(), Value::from("a"))]);
        alone.insert(name.clone(), inner.clone());
        let error = serde_json::from_value::<T>(Value::Object(alone)).err()?;
        Some(TrustMistake::new(format!("{path}.{name}"), error.to_string()))
    };
    let first = value.as_object().into_iter().flatten().find_map(misfit);
    Err(first.unwrap_or_else(|| TrustMistake::new(path, error.to_string())))
}

#[cfg(test)]
mod tests;
