//! Mirrors of registries: other places that have the same images.
//!
//! A mirror is asked before the registry that a reference names. Content of a mirror is verified by digest, and
//! signatures by the keys of the trust file, so a mirror can withhold an image but not change it. Only a tag is what
//! the mirror says, so tags are resolved at the registry unless the configuration says otherwise.

use std::fmt;
use std::str::FromStr;

use tracing::warn;

use super::of;
use crate::error::{Cause, MirrorFailure, RegistryError};
use crate::reference::{check_name, is_below};
use crate::{Client, Reference};

/// Mirror of the images whose names have a prefix, written as `PREFIX=MIRROR`.
///
/// Both are a registry, or a registry and the start of a repository. The mirror replaces the prefix in the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    prefix: String,
    target: String,
}

/// Error for a text that is not a mirror. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mirror {text:?}: {message}")]
pub struct InvalidMirror {
    text: String,
    message: String,
}

impl FromStr for Mirror {
    type Err = InvalidMirror;

    fn from_str(text: &str) -> Result<Self, InvalidMirror> {
        let error = |message: String| InvalidMirror {
            text: text.to_owned(),
            message,
        };
        let Some((prefix, target)) = text.split_once('=') else {
            let example = "registry.example.com/plugins=mirror.example.com/plugins";
            return Err(error(format!("write PREFIX=MIRROR, such as {example}")));
        };
        for name in [prefix, target] {
            check_name(name).map_err(error)?;
        }
        if prefix.contains('/') && !target.contains('/') {
            return Err(error(format!(
                "the image {prefix} would have no repository at {target}; add one to the mirror"
            )));
        }
        if prefix == target {
            return Err(error("the registry is no mirror of itself; remove it".to_owned()));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            target: target.to_owned(),
        })
    }
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.prefix, self.target)
    }
}

/// Mirrors of registries.
#[derive(Clone, Debug, Default)]
pub struct Mirrors {
    /// Mirrors, in the order in which those of one prefix are asked.
    pub all: Vec<Mirror>,
    /// True if mirrors resolve tags too; otherwise they are asked for digests only.
    pub resolve_tags: bool,
}

impl Mirrors {
    /// Returns the places of an image at the mirrors of its longest prefix, in order. A reference without a digest has
    /// none unless mirrors resolve tags.
    pub(crate) fn of(&self, image: &Reference) -> Vec<Reference> {
        if image.digest().is_none() && !self.resolve_tags {
            return Vec::new();
        }
        self.of_any(image)
    }

    /// Returns the places of an image with or without a digest.
    fn of_any(&self, image: &Reference) -> Vec<Reference> {
        let name = image.name();
        let below = || self.all.iter().filter(|mirror| is_below(&name, &mirror.prefix));
        let longest = below().map(|mirror| mirror.prefix.len()).max();
        below()
            .filter(|mirror| Some(mirror.prefix.len()) == longest)
            // A name that gets too long for a reference has no place there.
            .filter_map(|mirror| image.with_name(&format!("{}{}", mirror.target, &name[mirror.prefix.len()..])))
            .collect()
    }
}

/// Mirrors that have failed during one operation.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<MirrorFailure>);

impl Failures {
    /// Records and logs the failure of a mirror.
    pub(crate) fn add(&mut self, image: &Reference, mirror: &Reference, cause: Cause) {
        let (reason, mirror) = (cause.reason(), mirror.name());
        warn!(target: "bulkhead::plugin", mirror, reason, "cannot pull {image} from its mirror: {cause}");
        self.0.push(MirrorFailure { mirror, cause });
    }

    /// Returns the error of the operation after the registry has failed too.
    pub(crate) fn with(self, error: RegistryError) -> RegistryError {
        RegistryError {
            mirrors: self.0,
            ..error
        }
    }

    /// Returns the error of a pull after the registry has failed too.
    pub(super) fn of_pull(self, image: &Reference, cause: Cause) -> RegistryError {
        self.with(of("pull", image, cause))
    }
}

impl Client {
    /// Returns the places of an image at its mirrors, for content that is verified by keys.
    pub(crate) fn mirrors_of_signatures(&self, image: &Reference) -> Vec<Reference> {
        self.mirrors.of_any(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn mirrors(all: &[&str], resolve_tags: bool) -> Mirrors {
        Mirrors {
            all: all.iter().map(|text| text.parse().unwrap()).collect(),
            resolve_tags,
        }
    }

    #[test]
    fn the_mirrors_of_the_longest_prefix_are_asked_in_order() {
        let mirrors = mirrors(
            &[
                "r.io=m.io",
                "r.io/plugins=a.io/copies/plugins",
                "r.io/plugins=localhost:5000/plugins",
            ],
            false,
        );
        let check = |image: &str, expected: &[&str]| {
            let image: Reference = format!("{image}@{DIGEST}").parse().unwrap();
            let places: Vec<_> = mirrors.of(&image).iter().map(ToString::to_string).collect();
            let expected: Vec<_> = expected.iter().map(|name| format!("{name}@{DIGEST}")).collect();
            assert_eq!(places, expected, "{image}");
        };
        check("r.io/hold", &["m.io/hold"]);
        check("r.io/pluginsets/hold", &["m.io/pluginsets/hold"]);
        check(
            "r.io/plugins/hold",
            &["a.io/copies/plugins/hold", "localhost:5000/plugins/hold"],
        );
        check("r.io/plugins", &["a.io/copies/plugins", "localhost:5000/plugins"]);
        check("r.io.example/hold", &[]);
        check("q.io/plugins/hold", &[]);
        // The name at the mirror has 257 bytes, more than a reference can have.
        check(&format!("r.io/plugins/{}", "a".repeat(240)), &[]);
    }

    #[test]
    fn a_tag_has_mirrors_only_if_they_resolve_tags() {
        let tag: Reference = "r.io/hold:1".parse().unwrap();
        assert_eq!(mirrors(&["r.io=m.io"], false).of(&tag), []);
        let places = mirrors(&["r.io=m.io"], true).of(&tag);
        assert_eq!(places[0].to_string(), "m.io/hold:1");
        let both: Reference = format!("r.io/hold:1@{DIGEST}").parse().unwrap();
        assert_eq!(mirrors(&["r.io=m.io"], false).of(&both).len(), 1);
    }

    #[test]
    fn a_mistake_names_what_would_be_right() {
        let check = |text: &str, part: &str| {
            let message = text.parse::<Mirror>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("mirror {text:?}: ")), "{message}");
            assert!(message.contains(part), "{text}: no {part:?} in: {message}");
        };
        check("r.io", "write PREFIX=MIRROR, such as registry.example.com/plugins=");
        check("plugins=m.io", "\"plugins\" is not the host of a registry");
        check("r.io=https://m.io", "write \"m.io\" without https://");
        check("r.io/=m.io", "\"\" is not a part of a repository");
        check("r.io=m.io/A", "\"A\" is not a part of a repository");
        check("r.io/plugins=m.io", "would have no repository at m.io");
        check("r.io=r.io", "no mirror of itself");
        assert_eq!(
            "r.io=m.io:5000/a".parse::<Mirror>().unwrap().to_string(),
            "r.io=m.io:5000/a"
        );
    }
}
