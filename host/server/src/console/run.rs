//! Console of `bulkhead run`: arguments, TLS, and the review of each request.
//!
//! A browser sends the token as the password of HTTP basic authentication; tools send it as a bearer token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulkhead_controllers::EvictionsQueued;
use bulkhead_plugin::Registry;
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use k8s_openapi::jiff::tz::TimeZone;
use kube::Client;
use tokio_rustls::TlsAcceptor;

use super::{Guard, Pages, Running, serve, serve_local};
use crate::https_url::host_of;
use crate::queries::access::{Access, Denied};
use crate::queries::{RECORDS, identity};
use crate::server::{Transport, plain};
use crate::usage_error::UsageError;
use crate::{endpoint, help};

/// Challenge to a browser, which asks its user for a name and a password.
const CHALLENGE: &str =
    "Basic realm=\"Bulkhead console: any name, and a bearer token of the control plane\", charset=\"UTF-8\"";

/// Arguments of the console.
#[derive(Args)]
pub(crate) struct ConsoleArguments {
    /// Address of the web console over TLS, read-only; without it, there is none. Needs --journal. The API server checks
    /// the token of each request, which a browser sends as a password. With --embedded, a loopback address without TLS
    /// and tokens.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::address, help_heading = help::ENDPOINTS)]
    console_bind_address: Option<SocketAddr>,

    /// URL at which people reach the console; the certificate has its host. Defaults to the address.
    #[arg(long, value_name = "URL", requires = "console_bind_address", help_heading = help::ENDPOINTS)]
    console_url: Option<String>,
}

/// Control plane of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosting {
    /// In the process. It reviews no tokens.
    Embedded,
    /// A real one, which the process only reads.
    ReportOnly,
    /// A real one.
    ControlPlane,
}

impl ConsoleArguments {
    /// Checks the arguments for conflicts.
    ///
    /// # Errors
    ///
    /// A [`UsageError`] of one argument.
    pub(crate) fn check(&self, hosting: Hosting, journal: Option<&Path>) -> Result<(), UsageError> {
        let Some(address) = self.console_bind_address else {
            return Ok(());
        };
        let refuse = |name, why: &str| Err(UsageError::new(name, why));
        if journal.is_none() {
            return refuse(
                "console-bind-address",
                "the console shows recorded decisions: name a directory with journal",
            );
        }
        match (hosting, &self.console_url) {
            (Hosting::ReportOnly, _) => refuse(
                "console-bind-address",
                "mode report has no permission to review tokens: leave it out, and run `bulkhead console` with the journal",
            ),
            (Hosting::Embedded, _) if !address.ip().is_loopback() => refuse(
                "console-bind-address",
                "an embedded control plane reviews no tokens: name a loopback address such as 127.0.0.1:10372",
            ),
            (Hosting::Embedded, Some(_)) => refuse("console-url", "leave it out: the console is at a loopback address"),
            (Hosting::ControlPlane, None) if address.ip().is_unspecified() => refuse(
                "console-url",
                "the address stands for all interfaces; name the URL that people use",
            ),
            (Hosting::ControlPlane, Some(url)) => host_of("console-url", url).map(drop),
            _ => Ok(()),
        }
    }
}

/// Sources of the pages.
pub struct Sources {
    /// Directory of the journal of this process.
    pub journal: PathBuf,
    /// Evictions that this process has queued.
    pub queued: Arc<EvictionsQueued>,
    /// Policies in force.
    pub registry: Arc<Registry>,
}

/// Function of the program that makes the pages.
pub type MakePages = fn(Sources) -> Arc<dyn Pages>;

/// Starts the console, if the arguments have an address. Returns it with its URL. `reviews` sends reviews.
pub(crate) async fn start(
    arguments: &ConsoleArguments,
    hosting: Hosting,
    sources: Sources,
    reviews: Client,
    make: MakePages,
) -> anyhow::Result<Option<(Running, String)>> {
    let Some(address) = arguments.console_bind_address else {
        return Ok(None);
    };
    let journal = sources.journal.clone();
    let pages = make(sources);
    let running = if hosting == Hosting::Embedded {
        serve_local(address, pages).await
    } else {
        let transport = tls(arguments, address, &journal)?;
        serve(
            address,
            transport,
            Guard::Reviews(Box::new(Access::new(reviews))),
            pages,
        )
        .await
    };
    let running = running.context("--console-bind-address")?;
    let scheme = if hosting == Hosting::Embedded { "http" } else { "https" };
    let url = arguments.console_url.clone();
    let url = url.unwrap_or_else(|| format!("{scheme}://{}", running.address));
    Ok(Some((running, url)))
}

fn tls(arguments: &ConsoleArguments, address: SocketAddr, journal: &Path) -> anyhow::Result<Transport> {
    let host = match &arguments.console_url {
        Some(url) => host_of("console-url", url)?,
        None => address.ip().to_string(),
    };
    let today = crate::now().to_zoned(TimeZone::UTC).date();
    let certificate = identity::certificate(host.trim_matches(['[', ']']), today, Some(journal), identity::CONSOLE)?;
    let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config(None)?));
    Ok(Transport::Tls(Box::new(move || acceptor.clone())))
}

/// Checks that the token of a request belongs to a user who may read decisions.
pub(super) async fn review(access: &Access, headers: &HeaderMap) -> Result<(), Denied> {
    match basic_token(headers) {
        Some(token) => access.check_token(&token, RECORDS).await,
        None => access.check(headers, RECORDS).await,
    }
}

/// Returns the password of basic authentication.
fn basic_token(headers: &HeaderMap) -> Option<String> {
    let (scheme, encoded) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let decoded = STANDARD
        .decode(encoded.trim())
        .ok()
        .filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (_, token) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    (!token.trim().is_empty()).then(|| token.trim().to_owned())
}

/// Builds the response to a request that was denied.
pub(super) fn refused(denied: &Denied) -> Response<Full<Bytes>> {
    let mut response = plain(denied.code, format!("{}: {}\n", denied.reason, denied.message));
    // A user without the permission may have another token.
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&denied.code) {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_browser_is_the_token() {
        let token = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            basic_token(&headers)
        };
        let encoded = STANDARD.encode("me: a.b:c ");
        assert_eq!(token(&format!("Basic {encoded}")).as_deref(), Some("a.b:c"));
        assert_eq!(token(&format!("basic {encoded}")).as_deref(), Some("a.b:c"));
        for other in [
            "Bearer x",
            "Basic",
            "Basic !",
            &format!("Basic {}", STANDARD.encode("me:")),
        ] {
            assert_eq!(token(other), None, "{other}");
        }
    }

    #[test]
    fn arguments_that_leave_the_console_open_or_empty_are_refused() {
        let journal = Some(Path::new("journal"));
        let check = |address: &str, url: Option<&str>, hosting: Hosting, journal: Option<&Path>, expected: &str| {
            let arguments = ConsoleArguments {
                console_bind_address: Some(address.parse().unwrap()),
                console_url: url.map(str::to_owned),
            };
            let error = arguments.check(hosting, journal).err().map(|error| error.to_string());
            assert_eq!(error.is_none(), expected.is_empty(), "{error:?}");
            assert!(error.unwrap_or_default().contains(expected), "{expected}");
        };
        check("127.0.0.1:0", None, Hosting::Embedded, journal, "");
        check("0.0.0.0:0", None, Hosting::Embedded, journal, "reviews no tokens");
        check(
            "127.0.0.1:0",
            Some("https://x"),
            Hosting::Embedded,
            journal,
            "leave it out",
        );
        check("10.0.0.1:0", None, Hosting::ControlPlane, journal, "");
        check("0.0.0.0:0", None, Hosting::ControlPlane, journal, "all interfaces");
        check(
            "0.0.0.0:0",
            Some("https://console.example"),
            Hosting::ControlPlane,
            journal,
            "",
        );
        check(
            "0.0.0.0:0",
            Some("http://console.example"),
            Hosting::ControlPlane,
            journal,
            "must begin with https://",
        );
        check(
            "10.0.0.1:0",
            None,
            Hosting::ControlPlane,
            None,
            "name a directory with journal",
        );
        check(
            "10.0.0.1:0",
            None,
            Hosting::ReportOnly,
            journal,
            "no permission to review tokens",
        );
    }
}
