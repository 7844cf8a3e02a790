//! Trust in images: which keys have to sign the images of a registry, and what their plugins may answer.
//!
//! The rule with the longest prefix of an image counts. As soon as there is a trust file, an image without a rule is
//! refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bulkhead_core::call::CallKind;
use bulkhead_plugin::{Positions, limits_of_files, read_document};
use serde::Deserialize;

use crate::reference::is_below;
use crate::signature::{NotSigned, PublicKey, Signature, verify};
use crate::{Digest, Reference};

/// `apiVersion` of a trust file.
const API_VERSION: &str = "bulkhead.dev/v1alpha1";
/// `kind` of a trust file.
const KIND: &str = "PluginTrust";

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
    /// Refuses references without a digest.
    #[serde(default)]
    require_digest: bool,
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
}

#[derive(Clone, Debug)]
struct Rule {
    prefix: String,
    /// Keys; none accepts images without a signature.
    keys: Option<Vec<PublicKey>>,
    kinds: Option<BTreeSet<CallKind>>,
    requires_digest: bool,
}

/// Requirements for one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// File with the rule, and its prefix.
    origin: String,
    /// Keys, one of which must have signed; none if no signature is required.
    keys: Option<Vec<PublicKey>>,
    /// Calls that the plugin may answer; none for all.
    pub kinds: Option<BTreeSet<CallKind>>,
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
        let mut rules: Vec<Rule> = Vec::new();
        for (index, rule) in file.rules.into_iter().enumerate() {
            let path = format!("rules[{index}]");
            let position = positions.value(0, &path);
            let at = position.map_or_else(String::new, |at| format!(":{at}"));
            let at = format!("{origin}{at}: {path}");
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
        Ok(Self {
            origin: origin.to_owned(),
            rules,
        })
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
            kinds: rule.kinds.clone(),
        })
    }
}

impl Requirements {
    /// Returns requirements that consist of keys alone.
    pub fn of_keys(keys: Vec<PublicKey>) -> Self {
        Self {
            origin: "--key".to_owned(),
            keys: Some(keys),
            kinds: None,
        }
    }

    /// Returns true if a signature is required.
    pub fn needs_signature(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns the key that has signed the image; none if no signature is required.
    ///
    /// # Errors
    ///
    /// No signature counts.
    pub fn verify(
        &self,
        image: &Reference,
        digest: &Digest,
        signatures: &[Signature],
    ) -> Result<Option<&PublicKey>, TrustError> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let refused = |cause: NotSigned| TrustError {
            origin: self.origin.clone(),
            message: format!("{}@{digest} is not trusted: {cause}", image.name()),
        };
        verify(signatures, digest, keys).map(Some).map_err(refused)
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
        let mut keys = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            keys.push(key.read(&format!("{at}.keys[{index}]"), folder)?);
        }
        Ok(Rule {
            prefix,
            keys: (!self.unsigned).then_some(keys),
            kinds: self.kinds,
            requires_digest: self.require_digest,
        })
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

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

    use super::*;
    use crate::signature::SigningKey;

    fn parse(rules: &str) -> Result<Trust, TrustError> {
        let text = format!("apiVersion: {API_VERSION}\nkind: {KIND}\nrules:\n{rules}");
        Trust::parse("trust.yaml", &text, Path::new("/nowhere"))
    }

    fn image(text: &str) -> Reference {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_prefix_counts_and_an_image_without_a_rule_is_refused() {
        let trust = parse(
            "- {images: r.io/plugins/, unsigned: true}\n\
             - {images: r.io/plugins/team, unsigned: true, kinds: [health], requireDigest: true}\n",
        )
        .unwrap();
        let check = |text: &str, expected: Result<bool, &str>| match (trust.requirements(&image(text)), expected) {
            (Ok(requirements), Ok(is_limited)) => assert_eq!(requirements.kinds.is_some(), is_limited, "{text}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "no {part:?} in: {error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        let digest = Digest::of(b"x");
        check("r.io/plugins/a:1", Ok(false));
        check(&format!("r.io/plugins/team/a@{digest}"), Ok(true));
        check(&format!("r.io/plugins/team@{digest}"), Ok(true));
        check("r.io/plugins/teams:1", Ok(false));
        check(
            "r.io/plugins/team/a:1",
            Err("r.io/plugins/team/a:1 has no digest, which requireDigest demands"),
        );
        check(
            "r.io/plugins-of-others/a:1",
            Err("trust.yaml: no rule trusts r.io/plugins-of-others/a"),
        );
        check("other.io/a:1", Err("no rule trusts other.io/a"));
    }

    #[test]
    fn a_key_of_the_rule_must_have_signed() {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let pem = pair.public_key_pem().replace('\n', "\n      ");
        let trust = parse(&format!(
            "- images: r.io\n  keys:\n  - name: team\n    pem: |\n      {pem}\n"
        ))
        .unwrap();
        let (image, digest) = (image("r.io/a:1"), Digest::of(b"manifest"));
        let signing = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
        let signature = signing.sign(&image, &digest).unwrap();
        let requirements = trust.requirements(&image).unwrap();
        assert!(requirements.needs_signature());
        let signer = requirements.verify(&image, &digest, &[signature]).unwrap();
        assert_eq!(signer.map(|key| key.name.as_str()), Some("team"));
        let error = requirements.verify(&image, &digest, &[]).unwrap_err().to_string();
        let expected = format!("trust.yaml rule \"r.io\": r.io/a@{digest} is not trusted: it has no signature");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn mistakes_name_the_rule_and_the_remedy() {
        let check = |rules: &str, part: &str| {
            let message = parse(rules).unwrap_err().to_string();
            assert!(message.contains(part), "{rules}: no {part:?} in: {message}");
        };
        check("- {images: r.io}", "trust.yaml:4:3: rules[0]: needs either keys");
        check(
            "- {images: r.io, unsigned: true, keys: [{file: a.pub}]}",
            "rules[0]: needs either keys",
        );
        check(
            "- {images: 'oci://r.io', unsigned: true}",
            "is not a registry or a repository",
        );
        check("- {images: r.io, unsigned: true, kinds: []}", "kinds is empty");
        check(
            "- {images: r.io, unsigned: true, kind: [health]}",
            "rules[0].kind: unknown field, did you mean kinds?",
        );
        check(
            "- {images: r.io, keys: [{name: a}]}",
            "rules[0].keys[0]: needs exactly one of file and pem",
        );
        check("- {images: r.io, keys: [{file: a.pub}]}", "cannot read /nowhere/a.pub");
        check(
            "- {images: r.io, keys: [{pem: x}]}",
            "rules[0].keys[0].pem: is not a public key in PEM",
        );
        check(
            "- {images: r.io, unsigned: true}\n- {images: r.io/, unsigned: true}",
            "rules[1]: images \"r.io\" has a rule",
        );
        let other = Trust::parse("t", "apiVersion: v1\nkind: PluginTrust\nrules: []", Path::new("."));
        assert!(
            other
                .unwrap_err()
                .to_string()
                .contains("a trust file is bulkhead.dev/v1alpha1 PluginTrust")
        );
    }
}
