//! API of the control plane and of the simulated members over HTTPS on loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_apiserver::{ApiBody, ApiService, ConnectionError, StatusError};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::server::{Application, Limits, Refusal};

/// Limits for the watches of the controllers on a hundred members and for users; same request size as in Kubernetes.
pub(super) const LIMITS: Limits = Limits {
    connections: 4096,
    body_bytes: 3 << 20,
    buffered_bytes: 64 << 20,
};
/// Path prefix of the members.
const MEMBERS: &str = "/members/";

/// Served API servers and the required token.
pub(super) struct Api {
    /// Control plane.
    pub(super) hub: ApiService,
    /// Members by name, each behind its link.
    pub(super) members: BTreeMap<String, ApiService>,
    /// Bearer token that clients must present.
    pub(super) token: String,
}

/// Returns the path prefix of a member.
pub(super) fn member_path(name: &str) -> String {
    format!("{MEMBERS}{name}")
}

/// Listens on an address. With port 0, tries the preferred port before a free one.
pub(super) async fn listen(address: SocketAddr, preferred: Option<u16>) -> anyhow::Result<TcpListener> {
    if let Some(port) = preferred.filter(|_| address.port() == 0)
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(address.ip(), port)).await
    {
        return Ok(listener);
    }
    TcpListener::bind(address)
        .await
        .with_context(|| format!("--bind-address: listening on {address}"))
}

impl Api {
    /// Returns the service for a path, with the path relative to it.
    fn route(&self, uri: &Uri) -> Option<(ApiService, Uri)> {
        let Some(rest) = uri.path().strip_prefix(MEMBERS) else {
            return Some((self.hub.clone(), uri.clone()));
        };
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        let member = self.members.get(name)?;
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Some((member.clone(), format!("/{path}{query}").parse().ok()?))
    }
}

impl Application for Api {
    type Body = ApiBody;
    /// An error closes the connection without a response, as with an unreachable member.
    type Error = ConnectionError;

    fn answer_head(&self, head: &Parts) -> Option<Response<ApiBody>> {
        let shown = head
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let is_known = shown.strip_prefix("Bearer ") == Some(&self.token);
        (!is_known).then(|| refusal(&StatusError::unauthorized()))
    }

    /// Returns the timeout of a watch.
    fn lifetime(&self, head: &Parts) -> Option<Duration> {
        let seconds = head
            .uri
            .query()?
            .split('&')
            .find_map(|pair| pair.strip_prefix("timeoutSeconds="))?;
        seconds
            .parse()
            .ok()
            .filter(|seconds: &u64| *seconds > 0)
            .map(Duration::from_secs)
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<ApiBody>, ConnectionError> {
        let (mut head, body) = request.into_parts();
        let Some((service, uri)) = self.route(&head.uri) else {
            return Ok(refusal(&StatusError::unknown_path(head.uri.path())));
        };
        head.uri = uri;
        service
            .oneshot(Request::from_parts(head, kube::client::Body::from(body)))
            .await
    }

    fn refuse(&self, why: &Refusal) -> Response<ApiBody> {
        refusal(&match why {
            Refusal::TooLarge(limit) => StatusError::too_large(*limit),
            Refusal::Unreadable(_) => StatusError::bad_request(why.to_string()),
        })
    }
}

fn refusal(error: &StatusError) -> Response<ApiBody> {
    let body = Full::new(error.to_bytes())
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(error.code).unwrap_or(http::StatusCode::BAD_REQUEST);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
