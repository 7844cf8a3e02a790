//! Statements that signed payloads make about images.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Signature;
use crate::{Digest, Reference};

/// Type of the payload of an envelope with an in-toto statement.
pub(super) const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Type of an in-toto statement, and the one before it.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const STATEMENT_BEFORE: &str = "https://in-toto.io/Statement/v0.1";
/// Type of the statement of cosign that an image is signed.
const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// Type of the statement that a plugin has passed the conformance suite.
pub const CONFORMANCE: &str = "https://bulkhead.dev/conformance/v1";
/// Type of a payload of simple signing.
const SIMPLE: &str = "cosign container image signature";

/// Statement about the images with these digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// They are signed.
    Signature(Vec<String>),
    /// They have passed the conformance suite, or failed it.
    Conformance(Vec<String>, Conformance),
    /// Another attestation.
    Other,
}

/// Result of the conformance suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conformance {
    /// Contract of the plugin, such as `bulkhead:policy@0.1.0`; for a script that of the program that ran the suite.
    pub contract: String,
    /// True if no check failed and at least one passed.
    pub passed: bool,
}

/// The fields of a payload of simple signing that count.
#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    r#type: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The fields of an in-toto statement that count.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InToto {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    #[serde(default)]
    predicate: Value,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digests,
}

#[derive(Deserialize)]
struct Digests {
    #[serde(default)]
    sha256: String,
}

impl Statement {
    /// Returns the statement of a payload by any signer; `None` if it is not one.
    pub(super) fn of(signature: &Signature) -> Option<Self> {
        match signature.payload_type.as_deref() {
            None => {
                let Payload { critical } = serde_json::from_str(&signature.payload).ok()?;
                (critical.r#type == SIMPLE).then(|| Self::Signature(vec![critical.image.digest]))
            }
            Some(IN_TOTO) => {
                let statement: InToto = serde_json::from_str(&signature.payload).ok()?;
                if ![STATEMENT, STATEMENT_BEFORE].contains(&statement.kind.as_str()) {
                    return None;
                }
                let digests = statement
                    .subject
                    .into_iter()
                    .map(|one| format!("sha256:{}", one.digest.sha256));
                let digests = digests.collect();
                Some(match statement.predicate_type.as_str() {
                    COSIGN_SIGN => Self::Signature(digests),
                    CONFORMANCE => Self::Conformance(digests, serde_json::from_value(statement.predicate).ok()?),
                    _ => Self::Other,
                })
            }
            Some(_) => None,
        }
    }
}

/// Returns the payload that signs an image in simple signing.
pub(super) fn simple(image: &Reference, digest: &Digest) -> String {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": image.name()},
            "image": {"docker-manifest-digest": digest},
            "type": SIMPLE,
        },
        "optional": null,
    });
    payload.to_string()
}

/// Returns an in-toto statement about an image.
pub(super) fn in_toto(digest: &Digest, predicate_type: &str, predicate: &Value) -> String {
    let statement = json!({
        "_type": STATEMENT,
        "subject": [{"digest": {"sha256": digest.hex()}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    });
    statement.to_string()
}
