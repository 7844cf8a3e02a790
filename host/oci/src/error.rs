//! Errors of registries. Each cause has a name that conditions and tests use.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use crate::Digest;

/// A failed operation on an image.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {image}: {cause}{}", shown(mirrors))]
pub struct RegistryError {
    /// Operation, as a verb: `pull`, `push`, `resolve`.
    pub operation: &'static str,
    /// Image, or the repository.
    pub image: String,
    /// Cause at the registry of the image.
    pub cause: Cause,
    /// Mirrors that were asked before the registry, and have failed too.
    pub mirrors: Vec<MirrorFailure>,
}

/// Failure of a mirror.
#[derive(Debug)]
pub struct MirrorFailure {
    /// Registry and repository of the mirror.
    pub mirror: String,
    /// Cause at the mirror.
    pub cause: Cause,
}

/// Returns the failures of mirrors, each after a semicolon.
fn shown(mirrors: &[MirrorFailure]) -> String {
    let shown = |MirrorFailure { mirror, cause }: &MirrorFailure| {
        format!("; its mirror {mirror} failed, too: {cause} ({})", cause.reason())
    };
    mirrors.iter().map(shown).collect()
}

/// Cause of a failed operation.
#[derive(Debug)]
pub enum Cause {
    /// 401: the registry wants credentials, or other ones.
    Unauthorized {
        /// Host whose credentials were missing or rejected.
        registry: String,
        /// True if credentials were sent.
        had_credentials: bool,
    },
    /// 403: the credentials do not permit it.
    Forbidden(String),
    /// 404: there is no such repository, manifest or blob.
    NotFound,
    /// 429: too many requests.
    TooManyRequests {
        /// Pause that the registry asks for.
        retry_after: Option<Duration>,
    },
    /// 5xx: the registry has failed.
    ServerError(u16),
    /// Another status than the distribution API has.
    Unexpected(String),
    /// There was no connection.
    Unreachable(String),
    /// The certificate of the registry, or that of the client, was rejected.
    Certificate(String),
    /// A time limit was exceeded.
    TimedOut,
    /// The body ended early.
    Truncated {
        /// Bytes that arrived.
        received: u64,
        /// Size of the blob.
        expected: u64,
    },
    /// The content has another digest.
    WrongDigest {
        /// Digest that was asked for.
        expected: Digest,
        /// Digest of the content.
        found: Digest,
    },
    /// The artifact, its configuration or its layer has a media type that no plugin has.
    WrongMediaType(String),
    /// A body or a blob is larger than the limit.
    TooLarge {
        /// Limit in bytes.
        bytes_max: u64,
    },
    /// The answer is not one of the distribution API, or the manifest is not that of a plugin.
    Invalid(String),
    /// A redirect that is not followed.
    Redirect(String),
    /// Credentials or certificates cannot be used.
    Access(String),
}

impl Cause {
    /// Returns the name of the cause, as conditions have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "RegistryUnauthorized",
            Self::Forbidden(_) => "RegistryForbidden",
            Self::NotFound => "ImageNotFound",
            Self::TooManyRequests { .. } => "RegistryTooManyRequests",
            Self::ServerError(_) => "RegistryServerError",
            Self::Unexpected(_) => "RegistryUnexpectedAnswer",
            Self::Unreachable(_) => "RegistryUnreachable",
            Self::Certificate(_) => "RegistryCertificateInvalid",
            Self::TimedOut => "RegistryTimeout",
            Self::Truncated { .. } => "BlobTruncated",
            Self::WrongDigest { .. } => "DigestMismatch",
            Self::WrongMediaType(_) => "MediaTypeUnknown",
            Self::TooLarge { .. } => "ImageTooLarge",
            Self::Invalid(_) => "ImageInvalid",
            Self::Redirect(_) => "RegistryRedirect",
            Self::Access(_) => "RegistryAccessInvalid",
        }
    }

    /// Returns the pause that the registry asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after } => *retry_after,
            _ => None,
        }
    }

    /// Returns the cause of a request without an answer.
    pub(crate) fn of_request(error: &reqwest::Error) -> Self {
        if let Some(certificate) = certificate_error(error) {
            return Self::Certificate(certificate);
        }
        if error.is_timeout() {
            return Self::TimedOut;
        }
        let innermost = innermost(error);
        if error.is_redirect() {
            return Self::Redirect(innermost);
        }
        if error.is_builder() {
            return Self::Invalid(innermost);
        }
        Self::Unreachable(innermost)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unauthorized {
                registry,
                had_credentials: false,
            } => write!(
                f,
                "the registry requires credentials (401); add {registry} to the auths of the Docker configuration"
            ),
            Self::Unauthorized { registry, .. } => {
                write!(
                    f,
                    "the registry rejected the credentials of {registry} (401); renew them"
                )
            }
            Self::Forbidden(message) => {
                write!(
                    f,
                    "the credentials do not permit it (403){message}; grant the account access"
                )
            }
            Self::NotFound => f.write_str("the registry does not have it (404); check repository, tag and digest"),
            Self::TooManyRequests { retry_after: None } => f.write_str("the registry limits requests (429); try later"),
            Self::TooManyRequests {
                retry_after: Some(after),
            } => write!(
                f,
                "the registry limits requests (429); try again after {} s",
                after.as_secs()
            ),
            Self::ServerError(status) => write!(f, "the registry has failed ({status}); try later"),
            Self::Unexpected(message) => write!(f, "unexpected answer of the registry: {message}"),
            Self::Unreachable(message) => write!(f, "the registry is unreachable: {message}"),
            Self::Certificate(message) => write!(
                f,
                "TLS certificate: {message}; --registry-ca names the certificates of a private authority"
            ),
            Self::TimedOut => f.write_str("the registry did not answer in time"),
            Self::Truncated { received, expected } => {
                write!(f, "the download was cut off: {received} of {expected} bytes arrived")
            }
            Self::WrongDigest { expected, found } => {
                write!(f, "the content has digest {found}, and must have {expected}")
            }
            Self::WrongMediaType(message) | Self::Invalid(message) | Self::Access(message) => f.write_str(message),
            Self::TooLarge { bytes_max } => write!(f, "it is larger than {bytes_max} bytes"),
            Self::Redirect(message) => write!(f, "redirect not followed: {message}"),
        }
    }
}

/// Returns the message of an error of TLS among the sources of an error.
fn certificate_error(error: &reqwest::Error) -> Option<String> {
    let mut source = error.source();
    while let Some(error) = source {
        let in_io = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref())
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(tls) = error.downcast_ref::<rustls::Error>().or(in_io) {
            return Some(tls.to_string());
        }
        source = error.source();
    }
    // A connector may keep the text only.
    Some(innermost(error)).filter(|text| {
        ["invalid peer certificate", "received fatal alert"]
            .iter()
            .any(|start| text.starts_with(start))
    })
}

/// Returns the message of the innermost source, which names the failed system call.
fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
