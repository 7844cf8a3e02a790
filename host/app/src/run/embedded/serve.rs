//! The API of the control plane and of the simulated members over HTTPS on loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_controlplane::{ApiBody, ApiService, ConnectionError, StatusError};
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// Largest request that is read, as in Kubernetes.
const REQUEST_BYTES_MAX: usize = 3 << 20;
/// Paths below this lead to members.
const MEMBERS: &str = "/members/";

/// Who is served, and to whom.
pub(super) struct Api {
    /// The control plane.
    pub(super) hub: ApiService,
    /// The members by name, each behind its link.
    pub(super) members: BTreeMap<String, ApiService>,
    /// What a client has to show.
    pub(super) token: String,
}

/// The path below which a member is served.
pub(super) fn member_path(name: &str) -> String {
    format!("{MEMBERS}{name}")
}

/// Listens on an address; when a preferred port is taken, on a free one.
pub(super) async fn listen(address: SocketAddr, preferred: Option<u16>) -> anyhow::Result<TcpListener> {
    if let Some(port) = preferred.filter(|_| address.port() == 0)
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(address.ip(), port)).await
    {
        return Ok(listener);
    }
    TcpListener::bind(address).await.with_context(|| format!("--bind-address: listening on {address}"))
}

/// Accepts connections until it is dropped.
pub(super) async fn accept(listener: TcpListener, acceptor: TlsAcceptor, api: Arc<Api>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // The process is out of file handles, for example; connections end, so it is worth waiting.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, api) = (acceptor.clone(), Arc::clone(&api));
        connections.spawn(async move {
            // Events of a watch are small and must not wait for more of them.
            let _ = stream.set_nodelay(true);
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(move |request| answer(request, Arc::clone(&api)));
            let connection = auto::Builder::new(TokioExecutor::new());
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// An error ends the connection without an answer: that is how a member that cannot be reached behaves.
async fn answer(request: Request<Incoming>, api: Arc<Api>) -> Result<Response<ApiBody>, ConnectionError> {
    let (mut parts, body) = request.into_parts();
    let shown = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if shown.strip_prefix("Bearer ") != Some(&api.token) {
        return Ok(refusal(&StatusError::unauthorized()));
    }
    let service = match parts.uri.path().strip_prefix(MEMBERS) {
        None => api.hub.clone(),
        Some(rest) => {
            let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
            let Some(member) = api.members.get(name) else {
                return Ok(refusal(&StatusError::unknown_path(parts.uri.path())));
            };
            let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let Ok(inner) = format!("/{path}{query}").parse::<Uri>() else {
                return Ok(refusal(&StatusError::unknown_path(parts.uri.path())));
            };
            parts.uri = inner;
            member.clone()
        }
    };
    let body = match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(body) => kube::client::Body::from(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Ok(refusal(&StatusError::too_large(REQUEST_BYTES_MAX)));
        }
        Err(error) => return Ok(refusal(&StatusError::bad_request(format!("reading the request: {error}")))),
    };
    service.oneshot(Request::from_parts(parts, body)).await
}

fn refusal(error: &StatusError) -> Response<ApiBody> {
    let body = Full::new(error.to_bytes()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(error.code).unwrap_or(http::StatusCode::BAD_REQUEST);
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
