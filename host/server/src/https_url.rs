//! URLs of endpoints, as arguments give them.

use super::usage_error::UsageError;

/// Returns the host of the HTTPS URL of an argument.
pub(super) fn host_of(argument: &'static str, url: &str) -> Result<String, UsageError> {
    let parsed = url
        .parse::<http::Uri>()
        .ok()
        .filter(|parsed| parsed.scheme_str() == Some("https"));
    let host = parsed.as_ref().and_then(http::Uri::host).map(str::to_owned);
    host.ok_or_else(|| UsageError::new(argument, format!("{url} must begin with https:// and a host")))
}
