//! Changes of image names (Karmada: `pkg/util/overridemanager/imageoverride.go`, `pkg/util/imageparser`).

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::containers::containers;
use crate::model::{ImageComponent, ImageOverrider, OverriderOperator};
use crate::shape::type_name;

/// Maximum length of a repository without its registry, in bytes.
const REPOSITORY_BYTES_MAX: usize = 255;
const TAG: &str = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
const DIGEST: &str = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}";

/// Grammar of image references (`github.com/distribution/reference`); groups: name, repository without the first part,
/// tag, digest.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let host = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let path = format!("{component}(?:/{component})*");
    compile(&format!("((?:{host}/)?({path}))(?::({TAG}))?(?:@({DIGEST}))?"))
});
static WHOLE_TAG: LazyLock<Regex> = LazyLock::new(|| compile(TAG));
static WHOLE_DIGEST: LazyLock<Regex> = LazyLock::new(|| compile(DIGEST));

/// Compiles one of the patterns above, for the whole text.
fn compile(pattern: &str) -> Regex {
    Regex::new(&format!("^(?:{pattern})$")).expect("the pattern is valid")
}

/// Changes the image at the path of the predicate or, without one, the images of all containers.
pub(super) fn override_images(object: &mut Value, overrider: &ImageOverrider) -> Result<(), String> {
    if let Some(predicate) = &overrider.predicate {
        let path = &predicate.path;
        let image = object.pointer_mut(path);
        let image = image.ok_or_else(|| format!("predicate path {path:?} does not exist"))?;
        return override_image(image, overrider).map_err(|reason| format!("predicate path {path:?}: {reason}"));
    }
    for (index, container) in containers(object)?.iter_mut().enumerate() {
        let image = container.get_mut("image");
        let image = image.ok_or_else(|| format!("container {index} has no image"))?;
        override_image(image, overrider).map_err(|reason| format!("container {index}: {reason}"))?;
    }
    Ok(())
}

fn override_image(image: &mut Value, overrider: &ImageOverrider) -> Result<(), String> {
    let Value::String(text) = image else {
        return Err(format!("the image is {}, not a string", type_name(image)));
    };
    let mut parsed = Image::parse(text).map_err(|reason| format!("cannot parse the image {text:?}: {reason}"))?;
    let changed = |old: &str| match overrider.operator {
        OverriderOperator::Add => format!("{old}{}", overrider.value),
        OverriderOperator::Replace => overrider.value.clone(),
        OverriderOperator::Remove => String::new(),
    };
    match overrider.component {
        ImageComponent::Registry => parsed.registry = changed(&parsed.registry),
        ImageComponent::Repository => parsed.repository = changed(&parsed.repository),
        ImageComponent::Tag => match (overrider.operator, changed(parsed.version.text())) {
            (OverriderOperator::Remove, _) => parsed.version = Version::Absent,
            (_, text) if WHOLE_TAG.is_match(&text) => parsed.version = Version::Tag(text),
            (_, text) if WHOLE_DIGEST.is_match(&text) => parsed.version = Version::Digest(text),
            // Karmada ignores a text that is neither tag nor digest.
            _ => {}
        },
    }
    *text = parsed.to_string();
    Ok(())
}

/// Parts of an image name. An image with tag and digest keeps only its tag, as in Karmada.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    /// Host with its port; empty if absent.
    registry: String,
    repository: String,
    version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    Absent,
    Tag(String),
    Digest(String),
}

impl Version {
    fn text(&self) -> &str {
        match self {
            Self::Absent => "",
            Self::Tag(text) | Self::Digest(text) => text,
        }
    }
}

impl Image {
    /// Parses a reference. The first part of its name is a registry if it has a dot or a port, or is `localhost`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(parts) = REFERENCE.captures(text) else {
            return Err(match text {
                "" => "it is empty",
                _ if REFERENCE.is_match(&text.to_lowercase()) => "the repository must be lower case",
                _ => "it is no image reference",
            });
        };
        let part = |group: usize| parts.get(group).map_or("", |part| part.as_str());
        if part(2).len() > REPOSITORY_BYTES_MAX {
            return Err("the repository is longer than 255 bytes");
        }
        check_digest(part(4))?;
        let is_registry = |host: &str| host.contains(['.', ':']) || host == "localhost";
        let (registry, repository) = match part(1).split_once('/') {
            Some((host, path)) if is_registry(host) => (host, path),
            _ => ("", part(1)),
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            version: match (part(3), part(4)) {
                ("", "") => Version::Absent,
                ("", digest) => Version::Digest(digest.to_owned()),
                (tag, _) => Version::Tag(tag.to_owned()),
            },
        })
    }
}

/// Checks algorithm and length of a digest (`github.com/opencontainers/go-digest`); an empty one is absent.
fn check_digest(digest: &str) -> Result<(), &'static str> {
    let Some((algorithm, encoded)) = digest.split_once(':') else {
        return Ok(());
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err("the algorithm of its digest is not sha256, sha384 or sha512"),
    };
    if encoded.len() != length {
        return Err("its digest has the wrong length");
    }
    if encoded.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err("its digest must be lower case");
    }
    Ok(())
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            registry,
            repository,
            version,
        } = self;
        if !registry.is_empty() {
            write!(f, "{registry}/")?;
        }
        f.write_str(repository)?;
        match version {
            Version::Absent => Ok(()),
            Version::Tag(tag) => write!(f, ":{tag}"),
            Version::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}
