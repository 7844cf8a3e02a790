//! Classification of errors of API server connections, with remedies.

use std::error::Error as StdError;
use std::fmt;

use bulkhead_runtime::causes::causes;

/// Error of a connection to an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    /// Description of the problem.
    pub what: String,
    /// Recommended action.
    pub remedy: String,
    /// True if the problem may disappear without a change of arguments or files.
    pub is_transient: bool,
    /// True if the server did not answer at all.
    pub is_silent: bool,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl StdError for ConnectError {}

impl ConnectError {
    /// Creates a problem that needs manual action.
    pub fn permanent(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
            is_transient: false,
            is_silent: false,
        }
    }

    fn transient(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
            is_transient: true,
            is_silent: false,
        }
    }

    /// Classifies an error of a request to `address`.
    pub fn of(address: &str, error: &kube::Error) -> Self {
        let said = causes(error);
        match error {
            kube::Error::Api(status) => Self::of_status(address, status.code, &status.message),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Self::permanent(
                format!("{address} did not return a Kubernetes API response: {said}"),
                "fix the server's address in the kubeconfig",
            ),
            _ => Self::of_connection(address, &said),
        }
    }

    fn of_status(address: &str, code: u16, message: &str) -> Self {
        // Other servers may respond with a whole page.
        let message = message.lines().next().unwrap_or_default();
        match code {
            401 => Self::permanent(
                format!("{address} rejects the credentials (401): {message}"),
                "renew the token or the client certificate of the kubeconfig",
            ),
            403 => Self::transient(
                format!("{address} refuses the request (403): {message}"),
                "give the account the role of the mode: bulkhead account --mode MODE --apply",
            ),
            404 => Self::permanent(
                format!("{address} has no such API (404): {message}"),
                "fix the server's address in the kubeconfig",
            ),
            _ => Self::transient(
                format!("{address} answers with {code}: {message}"),
                "check the API server's log; it may be starting or overloaded",
            ),
        }
    }

    fn of_connection(address: &str, said: &str) -> Self {
        let says = |part: &str| said.contains(part);
        if says("UnknownIssuer")
            || says("BadSignature")
            || says("NotValidForName")
            || says("certificate not valid for name")
        {
            Self::permanent(
                format!("the certificate of {address} is not trusted by the kubeconfig: {said}"),
                "fix certificate-authority-data or the address in the kubeconfig; a proxy in between is another cause",
            )
        } else if says("received fatal alert") {
            Self::permanent(
                format!("{address} refuses the client certificate: {said}"),
                "renew the client certificate of the kubeconfig",
            )
        } else if says("Expired") || says("certificate expired") {
            Self::transient(
                format!("the certificate of {address} has expired: {said}"),
                "renew the certificate of the API server",
            )
        } else if says("InvalidMessage") || says("InvalidContentType") || says("corrupt message") {
            Self::permanent(
                format!("{address} does not speak TLS: {said}"),
                "fix the server's address in the kubeconfig",
            )
        } else if says("dns error") || says("failed to lookup") {
            Self::transient(
                format!("the name in {address} cannot be resolved: {said}"),
                "fix the name or the DNS",
            )
        } else {
            let remedy = "check that it runs and that no firewall or NetworkPolicy blocks the connection";
            Self {
                is_silent: true,
                ..Self::transient(format!("{address} does not answer: {said}"), remedy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        let status = |code| ConnectError::of_status("https://hub", code, "no");
        let connection = |said| ConnectError::of_connection("https://hub", said);
        for (error, is_transient, part) in [
            (status(401), false, "renew the token"),
            (status(403), true, "role of the mode"),
            (status(404), false, "address in the kubeconfig"),
            (status(429), true, "answers with 429"),
            (status(503), true, "answers with 503"),
            (
                connection("tcp connect error: Connection refused"),
                true,
                "does not answer",
            ),
            (connection("deadline has elapsed"), true, "does not answer"),
            (connection("dns error: no such name"), true, "cannot be resolved"),
            (
                connection("invalid peer certificate: UnknownIssuer"),
                false,
                "certificate-authority-data",
            ),
            (connection("invalid peer certificate: Expired"), true, "has expired"),
            (
                connection("received fatal alert: CertificateExpired"),
                false,
                "client certificate",
            ),
            (
                connection("received corrupt message of type InvalidContentType"),
                false,
                "does not speak TLS",
            ),
        ] {
            let text = error.to_string();
            assert!(
                error.is_transient == is_transient && text.contains(part) && text.contains("https://hub"),
                "{text}"
            );
            assert_eq!(error.is_silent, part == "does not answer", "{text}");
        }
    }
}
