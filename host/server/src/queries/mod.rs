//! Endpoint of the leader's answers: recorded decisions and queued evictions, read-only and over TLS.
//!
//! The API server authenticates and authorizes each request (`access`). The address and the authority of the
//! certificate are in the Lease of the leader election ([`advertised`]), where [`client`] finds them. Explanations are
//! made by the client: it gets the records.

pub(crate) mod access;
pub mod advertised;
pub mod client;
pub(crate) mod identity;
mod records;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_controllers::EvictionsQueued;
use bytes::Bytes;
use clap::Args;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use k8s_openapi::jiff::tz::TimeZone;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use self::access::{Access, Denied};
use self::advertised::Advertised;
use self::records::Query;
use super::endpoint;
use super::server::{self, Application, Gate, Limits, Refusal, Transport};
use super::usage_error::UsageError;
use crate::help;
use crate::https_url::host_of;

/// Path of recorded decisions.
pub const RECORDS: &str = "/bulkhead/records";
/// Path of queued evictions.
pub const EVICTIONS: &str = "/bulkhead/evictions";

/// Limits for a few people and their tools. Requests have no body.
const LIMITS: Limits = Limits {
    connections: 32,
    body_bytes: 4 << 10,
    buffered_bytes: 64 << 10,
};
/// Maximum number of journals that are read at the same time. A read takes a processor for seconds.
const READS_MAX: usize = 2;

/// Arguments of the endpoint.
#[derive(Args)]
pub(super) struct QueryArguments {
    /// Address at which this process answers `bulkhead history`, `explain` and `top` over TLS; without it, they read
    /// journals and the control plane. The API server checks the bearer token of each request.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::address, help_heading = help::ENDPOINTS)]
    pub(super) query_bind_address: Option<SocketAddr>,

    /// URL at which people reach the address; it is published in the Lease. Defaults to the address.
    #[arg(long, value_name = "URL", requires = "query_bind_address", help_heading = help::ENDPOINTS)]
    pub(super) query_url: Option<String>,
}

impl QueryArguments {
    /// Checks the arguments for conflicts. `elects` is true if the process takes part in an election.
    pub(super) fn check(&self, elects: bool) -> Result<(), UsageError> {
        let Some(address) = self.query_bind_address else {
            return Ok(());
        };
        if !elects {
            let why = "clients find the address in the Lease of the leader election, which this process does not take \
                       part in: leave out leader-elect=false, embedded, and mode report, or read the journal";
            return Err(UsageError::new("query-bind-address", why));
        }
        match &self.query_url {
            Some(url) => host_of("query-url", url).map(drop),
            None if address.ip().is_unspecified() => {
                let why = format!("{address} stands for all interfaces; name the URL that clients use");
                Err(UsageError::new("query-url", why))
            }
            None => Ok(()),
        }
    }
}

/// Sources of the answers.
pub(super) struct Sources {
    /// Client that sends reviews.
    pub(super) reviews: Client,
    /// Directory of the journal of this process.
    pub(super) journal: Option<PathBuf>,
    /// Evictions that this process has queued.
    pub(super) queued: Arc<EvictionsQueued>,
}

/// Running endpoint. Dropping it stops the endpoint.
pub(super) struct Endpoint {
    /// Address and authority for the Lease.
    pub(super) advertised: Advertised,
    _tasks: JoinSet<()>,
}

/// Starts the endpoint, if the arguments have an address.
pub(super) async fn start(arguments: &QueryArguments, sources: Sources) -> anyhow::Result<Option<Endpoint>> {
    let Some(address) = arguments.query_bind_address else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--query-bind-address: listening on {address}"))?;
    let address = listener.local_addr()?;
    let url = arguments
        .query_url
        .clone()
        .unwrap_or_else(|| format!("https://{address}"));
    let host = host_of("query-url", &url)?;
    let today = crate::now().to_zoned(TimeZone::UTC).date();
    let certificate = identity::certificate(
        host.trim_matches(['[', ']']),
        today,
        sources.journal.as_deref(),
        identity::QUERIES,
    )?;
    let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config(None)?));
    let transport = Transport::Tls(Box::new(move || acceptor.clone()));
    let mut tasks = JoinSet::new();
    let application = Queries::new(sources);
    tasks.spawn(server::serve(
        listener,
        transport,
        application,
        LIMITS,
        "the query endpoint",
    ));
    Ok(Some(Endpoint {
        advertised: Advertised {
            url: url.trim_end_matches('/').to_owned(),
            ca: certificate.ca_pem,
        },
        _tasks: tasks,
    }))
}

/// Application for queries.
struct Queries {
    access: Access,
    sources: Sources,
    reads: Gate,
}

impl Queries {
    fn new(sources: Sources) -> Self {
        Self {
            access: Access::new(sources.reviews.clone()),
            sources,
            reads: Gate::new(READS_MAX, 0),
        }
    }

    async fn result(&self, path: &str, query: &str, headers: &HeaderMap) -> Result<(HeaderValue, String), Denied> {
        self.access.check(headers, path).await?;
        if path == EVICTIONS {
            let evictions = self.sources.queued.list();
            let evictions = evictions.ok_or_else(|| {
                Denied::unavailable("this process evicts nothing: it is on standby, or its mode has no taint manager")
            })?;
            let json = HeaderValue::from_static("application/json");
            return Ok((json, json!({ "evictions": evictions }).to_string()));
        }
        let query = Query::parse(query).map_err(Denied::bad_request)?;
        let journal = self.sources.journal.clone();
        let journal =
            journal.ok_or_else(|| Denied::unavailable("this process keeps no journal: it has no --journal"))?;
        let read = self.reads.run(0, move || records::read(&journal, &query)).await;
        let lines = read.map_err(|overloaded| Denied::unavailable(&overloaded.to_string()))?;
        let lines = lines.map_err(|error| Denied::unavailable(&format!("cannot read the journal: {error}")))?;
        Ok((HeaderValue::from_static("application/x-ndjson"), lines))
    }
}

impl Application for Queries {
    type Body = Full<Bytes>;
    type Error = Infallible;

    fn answer_head(&self, head: &Parts) -> Option<Response<Full<Bytes>>> {
        if ![RECORDS, EVICTIONS].contains(&head.uri.path()) {
            let why = format!("there are {RECORDS} and {EVICTIONS}");
            return Some(status(StatusCode::NOT_FOUND, "NotFound", &why));
        }
        let is_get = head.method == Method::GET;
        (!is_get).then(|| {
            status(
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                "the endpoint is read-only",
            )
        })
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Full<Bytes>>, Infallible> {
        let uri = request.uri();
        let result = self.result(uri.path(), uri.query().unwrap_or_default(), request.headers());
        Ok(match result.await {
            Ok((content_type, text)) => {
                let mut response = Response::new(Full::from(text));
                response.headers_mut().insert(CONTENT_TYPE, content_type);
                response
            }
            Err(denied) => status(denied.code, denied.reason, &denied.message),
        })
    }

    fn refuse(&self, refusal: &Refusal) -> Response<Full<Bytes>> {
        status(refusal.status(), "BadRequest", &refusal.to_string())
    }
}

/// Builds the response for an error, in the form of the Kubernetes API, which clients of it read.
fn status(code: StatusCode, reason: &str, message: &str) -> Response<Full<Bytes>> {
    let body: Value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    let mut response = Response::new(Full::from(body.to_string()));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
pub(crate) mod tests;
