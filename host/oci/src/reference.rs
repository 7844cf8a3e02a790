//! References to images: `REGISTRY/REPOSITORY:TAG`, `REGISTRY/REPOSITORY@sha256:DIGEST`, or both.
//!
//! There is no default registry and no default tag: a plugin decides about evictions, so its origin is written out.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// Maximum length of a registry and a repository together, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Maximum length of a tag, in bytes.
const TAG_BYTES_MAX: usize = 128;
/// Example in messages.
const EXAMPLE: &str = "registry.example.com/plugins/hold:1.0";

/// Reference to an image in a registry. It has a tag, a digest, or both; the digest decides if it has both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Error for a text that is not a reference. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {text:?}: {message}")]
pub struct InvalidReference {
    text: String,
    message: String,
}

impl Reference {
    /// Returns the host of the registry, with its port if it has one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the path of the repository in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns registry and repository, such as `registry.example.com/plugins/hold`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Returns the tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest of the manifest.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Returns the last part of the path of a request for the manifest: the digest, or the tag.
    pub(crate) fn version(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.as_str(),
            (None, tag) => tag.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the reference to another version in the same repository.
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self {
            tag: None,
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// Returns the reference to a tag in the same repository. The tag has to be valid.
    pub(crate) fn with_tag(&self, tag: String) -> Self {
        Self {
            tag: Some(tag),
            digest: None,
            ..self.clone()
        }
    }

    /// Returns the reference to the same version under another name, such as `registry/repository`; `None` if no
    /// reference can have the name.
    pub(crate) fn with_name(&self, name: &str) -> Option<Self> {
        let (registry, repository) = name.split_once('/')?;
        let is_short = registry.len() + repository.len() <= NAME_BYTES_MAX;
        is_short.then(|| Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            ..self.clone()
        })
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        parse(text).map_err(|message| InvalidReference {
            text: text.to_owned(),
            message,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

fn parse(text: &str) -> Result<Reference, String> {
    if let Some((scheme, rest)) = text.split_once("://") {
        return Err(format!("a reference has no scheme; write {rest:?} without {scheme}://"));
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest.parse()?)),
        None => (text, None),
    };
    let Some((registry, path)) = rest.split_once('/') else {
        return Err(format!(
            "it has no registry; write REGISTRY/REPOSITORY:TAG, such as {EXAMPLE}"
        ));
    };
    let (repository, tag) = match path.split_once(':') {
        Some((repository, tag)) => (repository, Some(tag.to_owned())),
        None => (path, None),
    };
    check_registry(registry)?;
    check_repository(repository)?;
    if registry.len() + repository.len() > NAME_BYTES_MAX {
        return Err(format!("its name has more than {NAME_BYTES_MAX} bytes"));
    }
    match &tag {
        Some(tag) => check_tag(tag)?,
        None if digest.is_none() => {
            return Err("it names no version; add :TAG or @sha256:DIGEST".to_owned());
        }
        None => {}
    }
    Ok(Reference {
        registry: registry.to_owned(),
        repository: repository.to_owned(),
        tag,
        digest,
    })
}

/// Checks a registry, or a registry and the start of a repository.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if let Some((scheme, rest)) = name.split_once("://") {
        return Err(format!("a registry has no scheme; write {rest:?} without {scheme}://"));
    }
    match name.split_once('/') {
        Some((registry, repository)) => check_registry(registry).and_then(|()| check_repository(repository)),
        None => check_registry(name),
    }
}

/// Checks the host of a registry. Like other tools, it requires a dot, a port or `localhost`, because the first part of
/// a path without a registry would look like a host.
fn check_registry(registry: &str) -> Result<(), String> {
    let (host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':').map(str::to_owned)),
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port.to_owned())),
            None => (registry, None),
        },
    };
    if port.is_none() && host != "localhost" && !host.contains(['.', ':']) {
        return Err(format!(
            "{registry:?} is not the host of a registry, which has a dot or a port, such as registry.example.com or \
             localhost:5000"
        ));
    }
    let is_address = registry.starts_with('[') && host.parse::<std::net::Ipv6Addr>().is_ok();
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !is_address && !host.split('.').all(is_label) {
        return Err(format!("{host:?} is not the name of a host"));
    }
    match port.map(|port| (port.parse::<u16>(), port)) {
        Some((Err(_) | Ok(0), port)) => Err(format!("{port:?} is not a port; a port is a number from 1 to 65535")),
        _ => Ok(()),
    }
}

fn check_repository(repository: &str) -> Result<(), String> {
    for part in repository.split('/') {
        if !is_component(part) {
            return Err(format!(
                "{part:?} is not a part of a repository; a part has lower-case letters and digits, with single '.' or \
                 '_', '__' or dashes between them"
            ));
        }
    }
    Ok(())
}

fn is_component(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_in_words = part.bytes().next().is_some_and(is_word) && part.bytes().next_back().is_some_and(is_word);
    let mut separators = part.split(|character: char| character.is_ascii_lowercase() || character.is_ascii_digit());
    ends_in_words
        && separators
            .all(|separator| matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

fn check_tag(tag: &str) -> Result<(), String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = tag.len() <= TAG_BYTES_MAX
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-');
    if is_valid {
        return Ok(());
    }
    Err(format!(
        "{tag:?} is not a tag; a tag has at most {TAG_BYTES_MAX} letters, digits, '_', '.' and '-', and does not start \
         with '.' or '-'"
    ))
}

/// Returns true if a name, such as `registry/repository`, has a prefix that ends where a part of it ends.
pub fn is_below(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_reference_is_read_and_printed() {
        let check = |text: &str, registry: &str, repository: &str, tag: Option<&str>, is_pinned: bool| {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(
                (
                    reference.registry(),
                    reference.repository(),
                    reference.tag(),
                    reference.digest().is_some()
                ),
                (registry, repository, tag, is_pinned),
                "{text}"
            );
        };
        check(
            "registry.example.com/hold:1.0",
            "registry.example.com",
            "hold",
            Some("1.0"),
            false,
        );
        check("localhost/a/b:x", "localhost", "a/b", Some("x"), false);
        check(
            "localhost:5000/a__b/c-d:_x",
            "localhost:5000",
            "a__b/c-d",
            Some("_x"),
            false,
        );
        check("[::1]:5000/a:x", "[::1]:5000", "a", Some("x"), false);
        check(&format!("r.io/a--b@{DIGEST}"), "r.io", "a--b", None, true);
        check(&format!("r.io/a.b:1@{DIGEST}"), "r.io", "a.b", Some("1"), true);
    }

    #[test]
    fn a_mistake_names_what_would_be_right() {
        let check = |text: &str, part: &str| {
            let message = text.parse::<Reference>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("image {text:?}: ")), "{message}");
            assert!(message.contains(part), "{text}: no {part:?} in: {message}");
        };
        check("", "it has no registry; write REGISTRY/REPOSITORY:TAG");
        check("hold:1", "it has no registry");
        check(
            "plugins/hold:1",
            "\"plugins\" is not the host of a registry, which has a dot or a port",
        );
        check("oci://r.io/hold:1", "write \"r.io/hold:1\" without oci://");
        check("r.io/hold", "it names no version; add :TAG or @sha256:DIGEST");
        check("r.io/Hold:1", "\"Hold\" is not a part of a repository");
        check("r.io//hold:1", "\"\" is not a part of a repository");
        check("r.io/a..b:1", "\"a..b\" is not a part of a repository");
        check("r.io/../b:1", "\"..\" is not a part of a repository");
        check("r.io/hold:", "\"\" is not a tag");
        check("r.io/hold:.1", "does not start with '.' or '-'");
        check("r.io/hold:a/b", "\"a/b\" is not a tag");
        check("r.io:0/hold:1", "\"0\" is not a port");
        check("r_x.io/hold:1", "\"r_x.io\" is not the name of a host");
        check("r.io/hold@sha256:12", "\"sha256:12\" is not a digest");
        check(&format!("r.io/{}:1", "a".repeat(300)), "more than 255 bytes");
    }
}
