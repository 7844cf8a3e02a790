//! Identities of signers without keys: certificates that Sigstore issues for an account or a workload.
//!
//! The checks here are those that need no cryptography. The processes that pull images make the others.

use std::path::PathBuf;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// Start of the media types of trusted roots of all versions.
const TRUSTED_ROOTS: &str = "application/vnd.dev.sigstore.trustedroot";
/// Maximum size of a trusted root in bytes.
pub const TRUSTED_ROOT_BYTES_MAX: usize = 256 << 10;

/// Identity in the certificate of a signer. Exactly one of `subject` and `subjectRegex` must be set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustIdentity {
    /// Issuer of the identity token, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// Subject of the certificate: an email address, or the URI of a workload.
    #[serde(default)]
    pub subject: Option<String>,
    /// Regular expression that the whole subject must match.
    #[serde(default)]
    pub subject_regex: Option<String>,
}

/// Trusted root of Sigstore, the authorities and logs that certificates are verified with. Exactly one of `file` and
/// `json` must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustedRootSource {
    /// Path of a file such as `trusted_root.json`, relative to the trust file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The trusted root itself, as JSON.
    #[serde(default)]
    pub json: Option<String>,
}

/// Condition for the subject of a certificate.
#[derive(Clone, Debug)]
pub enum SubjectMatcher {
    /// The subject is this text.
    Exact(String),
    /// The whole subject matches.
    Pattern(Regex),
}

impl TrustIdentity {
    /// Returns the condition for the subject.
    ///
    /// # Errors
    ///
    /// A field is missing or empty, or the expression is invalid.
    pub fn matcher(&self) -> Result<SubjectMatcher, String> {
        if self.issuer.is_empty() {
            return Err("issuer is empty; write the URL of the issuer, such as https://accounts.google.com".to_owned());
        }
        match (&self.subject, &self.subject_regex) {
            (Some(subject), None) if subject.is_empty() => {
                Err("subject is empty; write an email address or the URI of a workload".to_owned())
            }
            (Some(subject), None) => Ok(SubjectMatcher::Exact(subject.clone())),
            (None, Some(pattern)) => whole(pattern).map(SubjectMatcher::Pattern),
            _ => Err("needs exactly one of subject and subjectRegex".to_owned()),
        }
    }
}

/// Returns the expression for a whole text.
fn whole(pattern: &str) -> Result<Regex, String> {
    let invalid = |error: regex::Error| format!("subjectRegex {pattern:?} is not a regular expression: {error}");
    // Alone first: `a)|(b` is valid only with the parentheses around it.
    Regex::new(pattern).map_err(invalid)?;
    Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(invalid)
}

impl SubjectMatcher {
    /// Returns true if a subject fulfils the condition.
    pub fn matches(&self, subject: &str) -> bool {
        match self {
            Self::Exact(expected) => subject == expected,
            Self::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

impl TrustedRootSource {
    /// Returns true if there is no trusted root.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.json.is_none()
    }
}

/// Checks the form of a trusted root: its media type, and that it has an authority and a source of signing times.
///
/// # Errors
///
/// It is not a trusted root, or nothing can be verified with it.
pub fn check_trusted_root(json: &str) -> Result<(), String> {
    const REMEDY: &str = "write the content of trusted_root.json, which `cosign trusted-root create` makes";
    if json.len() > TRUSTED_ROOT_BYTES_MAX {
        return Err(format!("is longer than {TRUSTED_ROOT_BYTES_MAX} bytes"));
    }
    let root: Value = serde_json::from_str(json).map_err(|error| format!("is not JSON: {error}; {REMEDY}"))?;
    let media_type = root["mediaType"].as_str().unwrap_or_default();
    if !media_type.starts_with(TRUSTED_ROOTS) {
        return Err(format!(
            "has the media type {media_type:?} and not {TRUSTED_ROOTS:?}; {REMEDY}"
        ));
    }
    let has = |list: &str| root[list].as_array().is_some_and(|items| !items.is_empty());
    if !has("certificateAuthorities") {
        return Err(format!("has no certificateAuthorities; {REMEDY}"));
    }
    if !has("tlogs") && !has("timestampAuthorities") {
        return Err(format!(
            "has neither tlogs nor timestampAuthorities, so that no signature has a time; {REMEDY}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(subject: Option<&str>, pattern: Option<&str>) -> TrustIdentity {
        TrustIdentity {
            issuer: "https://issuer.example.com".to_owned(),
            subject: subject.map(str::to_owned),
            subject_regex: pattern.map(str::to_owned),
        }
    }

    #[test]
    fn a_subject_is_equal_or_matches_as_a_whole() {
        let check = |identity: TrustIdentity, subject: &str, expected: bool| {
            assert_eq!(
                identity.matcher().unwrap().matches(subject),
                expected,
                "{identity:?} {subject}"
            );
        };
        check(identity(Some("a@example.com"), None), "a@example.com", true);
        check(identity(Some("a@example.com"), None), "b.a@example.com", false);
        let pattern = r"https://github\.com/acme/.+@refs/tags/v\d+";
        check(
            identity(None, Some(pattern)),
            "https://github.com/acme/hold@refs/tags/v1",
            true,
        );
        for other in [
            "https://github.com/acme/hold@refs/tags/v1-fork",
            "x https://github.com/acme/hold@refs/tags/v1",
            "https://github.com/acme/hold@refs/tags/v1\nmore",
        ] {
            check(identity(None, Some(pattern)), other, false);
        }
        check(identity(None, Some("a|b")), "ab", false);
    }

    #[test]
    fn mistakes_of_an_identity_have_a_remedy() {
        let check = |identity: TrustIdentity, part: &str| {
            let message = identity.matcher().unwrap_err();
            assert!(message.contains(part), "no {part:?} in: {message}");
        };
        check(identity(None, None), "needs exactly one of subject and subjectRegex");
        check(identity(Some("a"), Some("a")), "needs exactly one of");
        check(identity(Some(""), None), "subject is empty");
        check(
            identity(None, Some("a)|(b")),
            "subjectRegex \"a)|(b\" is not a regular expression",
        );
        let without_issuer = TrustIdentity {
            issuer: String::new(),
            ..identity(Some("a"), None)
        };
        check(without_issuer, "issuer is empty");
    }

    #[test]
    fn a_trusted_root_has_authorities_and_times() {
        let check = |json: &str, part: Option<&str>| match (check_trusted_root(json), part) {
            (Ok(()), None) => {}
            (Err(message), Some(part)) => assert!(message.contains(part), "no {part:?} in: {message}"),
            (found, _) => panic!("{json}: {found:?}"),
        };
        let root = |rest: &str| {
            format!("{{\"mediaType\": \"{TRUSTED_ROOTS}+json;version=0.1\", \"certificateAuthorities\": [{{}}]{rest}}}")
        };
        check(&root(", \"tlogs\": [{}]"), None);
        check(&root(", \"timestampAuthorities\": [{}]"), None);
        check(&root(""), Some("has neither tlogs nor timestampAuthorities"));
        check("x", Some("is not JSON"));
        check("{}", Some("has the media type \"\""));
        check(
            &root("").replace("[{}]", "[]"),
            Some("has no certificateAuthorities; write"),
        );
        check(&" ".repeat(TRUSTED_ROOT_BYTES_MAX + 1), Some("is longer than"));
    }
}
