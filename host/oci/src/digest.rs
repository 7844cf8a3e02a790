//! Digests of blobs.

use std::fmt;
use std::str::FromStr;

use bulkhead_core::manifest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Algorithm of all digests. Registries may support others, which no tool uses by default.
const PREFIX: &str = "sha256:";

/// Start and end of the tags of signatures.
const SIGNATURE_PREFIX: &str = "sha256-";
const SIGNATURE_SUFFIX: &str = ".sig";

/// SHA-256 of a blob, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("{PREFIX}{}", manifest::Digest::of(std::iter::once(bytes))))
    }

    /// Returns the 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(PREFIX).unwrap_or_default()
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the tag under which cosign keeps the signatures of the manifest with this digest.
    pub fn signature_tag(&self) -> String {
        format!("{SIGNATURE_PREFIX}{}{SIGNATURE_SUFFIX}", self.hex())
    }

    /// Returns true for a tag in the form of a [`signature_tag`](Self::signature_tag).
    pub(crate) fn is_signature_tag(tag: &str) -> bool {
        tag.starts_with(SIGNATURE_PREFIX) && tag.ends_with(SIGNATURE_SUFFIX)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        manifest::check_digest(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_other_tools_and_is_read_strictly() {
        let abc = Digest::of(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((abc.hex(), abc.to_string()), (hex, format!("sha256:{hex}")));
        assert_eq!(abc.to_string().parse(), Ok(abc.clone()));
        assert_eq!(abc.signature_tag(), format!("sha256-{hex}.sig"));
        let wrong = [
            hex.to_owned(),
            format!("sha512:{hex}"),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}/", &hex[1..]),
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }
}
