//! `PluginTrust` objects. Each part of an object is read on its own, so that a mistake stops no other part.
//!
//! A mistake permits nothing: a rule with one still covers the images of its prefix, so that no shorter rule trusts
//! them, and refuses them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Revocation, TrustKey, TrustRule, TrustTerms, images_prefix};
use crate::manifest::{check_digest, p256_point};

/// A `PluginTrust` object, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustObject {
    /// Name of the object.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
    /// Its `spec`: `rules` and `revoked` of a trust file, with keys as `pem` only.
    pub spec: Map<String, Value>,
}

/// Content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTrust {
    /// Name of the object.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
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
    /// Keys without mistakes, one of which must have signed; none if no signature is required.
    pub keys: Option<Vec<ObjectKey>>,
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
            rules: Vec::new(),
            revoked: Vec::new(),
            mistakes: Vec::new(),
        };
        for name in self
            .spec
            .keys()
            .filter(|name| !["rules", "revoked"].contains(&name.as_str()))
        {
            let message = "unknown field, expected rules or revoked";
            read.mistakes.push(TrustMistake::new(format!("spec.{name}"), message));
        }
        if self.spec.get("rules").is_none_or(Value::is_null) {
            let message = "is missing; write rules: [] to trust no image";
            read.mistakes.push(TrustMistake::new("spec.rules", message));
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
        let mut keys = None;
        let terms = decode::<TrustRule>(&field, value, "images").and_then(|rule| {
            let terms = rule.terms().map_err(|message| TrustMistake::new(&field, message))?;
            keys = (!rule.unsigned).then(|| self.keys(&format!("{field}.keys"), origin, &rule.keys));
            Ok(terms)
        });
        if let Err(mistake) = &terms {
            self.mistakes.push(mistake.clone());
        }
        self.rules.push(ObjectRule {
            field,
            prefix,
            terms,
            keys,
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
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;
    use crate::call::CallKind;
    use crate::manifest::P256_START;

    fn pem() -> String {
        let der = [&P256_START[..], &[4], &[7; 64]].concat();
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }

    fn object(name: &str, spec: Value) -> TrustObject {
        let Value::Object(spec) = spec else {
            panic!("a spec is a map")
        };
        TrustObject {
            name: name.to_owned(),
            generation: 3,
            spec,
        }
    }

    fn read(spec: Value) -> ReadTrust {
        read_objects(&[object("a", spec)]).remove(0)
    }

    fn mistakes(read: &ReadTrust) -> Vec<String> {
        read.mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_and_revocations_are_read() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let read = read(json!({
            "rules": [
                {"images": "r.io/plugins/", "keys": [{"name": "team", "pem": pem()}, {"pem": pem()}], "kinds": ["health"]},
                {"images": "r.io/open", "unsigned": true},
            ],
            "revoked": [{"digest": digest, "reason": "CVE-2026-1"}],
        }));
        assert_eq!((mistakes(&read), read.generation), (Vec::new(), 3));
        let [signed, open] = &read.rules[..] else {
            panic!("{read:?}")
        };
        assert_eq!(
            (signed.prefix.as_str(), open.prefix.as_str()),
            ("r.io/plugins", "r.io/open")
        );
        let names: Vec<_> = signed.keys.iter().flatten().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["team", "PluginTrust a spec.rules[0].keys[1]"]);
        assert_eq!(open.keys, None);
        let kinds = signed.terms.as_ref().unwrap().kinds.clone();
        assert_eq!(kinds.map(|kinds| kinds.len()), Some(1));
        assert_eq!(read.revoked[0].digest, digest);
    }

    #[test]
    fn a_mistake_is_named_with_its_field_and_stops_no_other_part() {
        let check = |part: Value, expected: &str| {
            let read = read(json!({"rules": [part, {"images": "r.io/sound", "unsigned": true}]}));
            let found = mistakes(&read);
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "no {expected:?} in: {found:?}"
            );
            let sound = read.rules.last().unwrap();
            assert!(sound.prefix == "r.io/sound" && sound.terms.is_ok(), "{read:?}");
            read.rules.len()
        };
        // A rule with a prefix still covers its images.
        let covers = [
            (json!({"images": "r.io"}), "spec.rules[0]: needs either keys"),
            (
                json!({"images": "r.io", "unsigned": "yes"}),
                "spec.rules[0].unsigned: invalid type: string \"yes\", expected a boolean",
            ),
            (
                json!({"images": "r.io", "unsigned": true, "kinds": ["healt"]}),
                "spec.rules[0].kinds: unknown variant `healt`, expected one of `health`",
            ),
            (
                json!({"images": "r.io", "unsigned": true, "kind": []}),
                "spec.rules[0].kind: unknown field `kind`, expected one of `images`",
            ),
            (
                json!({"images": "r.io", "keys": [{"file": "a.pub"}]}),
                "spec.rules[0].keys[0].file: is for trust files; write the key itself into pem",
            ),
            (
                json!({"images": "r.io", "keys": [{}]}),
                "spec.rules[0].keys[0].pem: is missing",
            ),
            (
                json!({"images": "r.io", "keys": [{"pem": "x"}]}),
                "spec.rules[0].keys[0].pem: is not a public key in PEM",
            ),
        ];
        for (rule, expected) in covers {
            assert_eq!(check(rule, expected), 2, "{expected}");
        }
        let without_prefix = [
            (json!({"unsigned": true}), "spec.rules[0]: images is missing"),
            (
                json!({"images": "oci://r.io", "unsigned": true}),
                "spec.rules[0]: images \"oci://r.io\" is not a registry or a repository",
            ),
            (json!("r.io"), "spec.rules[0]: images is missing"),
        ];
        for (rule, expected) in without_prefix {
            assert_eq!(check(rule, expected), 1, "{expected}");
        }
    }

    #[test]
    fn a_key_with_a_mistake_leaves_the_other_keys() {
        let read = read(json!({"rules": [{"images": "r.io", "keys": [{"pem": "x"}, {"name": "b", "pem": pem()}]}]}));
        assert_eq!(read.mistakes.len(), 1, "{read:?}");
        let keys = read.rules[0].keys.as_ref().unwrap();
        assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn lists_and_revocations_with_mistakes_are_named() {
        let check = |spec: Value, expected: &[&str]| {
            let found = mistakes(&read(spec));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "no {expected:?} in: {found}");
            }
        };
        check(json!({}), &["spec.rules: is missing; write rules: []"]);
        check(json!({"rules": []}), &[]);
        check(json!({"rules": {}}), &["spec.rules: is not a list"]);
        check(
            json!({"rules": [], "rule": []}),
            &["spec.rule: unknown field, expected rules or revoked"],
        );
        check(
            json!({"rules": [], "revoked": [{"digest": "abc"}, {"reason": "a"}, {"digest": "a", "why": ""}]}),
            &[
                "spec.revoked[0].digest: \"abc\" is not a digest",
                "spec.revoked[1]: missing field `digest`",
                "spec.revoked[2].why: unknown field `why`",
            ],
        );
    }

    #[test]
    fn a_mistake_beside_a_digest_leaves_it_revoked() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for entry in [
            json!({"digest": digest, "why": "a"}),
            json!({"digest": digest, "reason": 3}),
        ] {
            let read = read(json!({"rules": [], "revoked": [entry]}));
            assert_eq!(read.mistakes.len(), 1, "{read:?}");
            let revoked: Vec<_> = read.revoked.iter().map(|one| one.digest.as_str()).collect();
            assert_eq!(revoked, [digest.as_str()]);
        }
    }

    #[test]
    fn the_first_object_by_name_has_the_prefix() {
        let rule = |kinds: &[&str]| json!({"rules": [{"images": "r.io", "unsigned": true, "kinds": kinds}]});
        let objects = [object("b", rule(&["filter"])), object("a", rule(&["health"]))];
        let read = read_objects(&objects);
        let [first, second] = &read[..] else { panic!("{read:?}") };
        assert_eq!((first.name.as_str(), first.mistakes.len()), ("a", 0));
        let kinds = first.rules[0].terms.as_ref().unwrap().kinds.clone().unwrap();
        assert!(kinds.contains(&CallKind::Health));
        assert!(second.rules.is_empty());
        assert_eq!(
            mistakes(second),
            [
                "spec.rules[0].images: \"r.io\" has a rule already in PluginTrust a spec.rules[0]; put its keys into that one"
            ]
        );
    }
}
