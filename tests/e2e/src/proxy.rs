//! Small proxy in front of an API server that can simulate overload and cut connections.
//!
//! Clients connect over plain HTTP on this machine. The proxy forwards their requests over TLS, including their
//! credentials.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// A running proxy. It stops on drop.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    overloaded: AtomicBool,
    refused: AtomicU64,
    connections: Mutex<JoinSet<()>>,
}

impl Proxy {
    /// Starts a proxy for the server of a kubeconfig. The proxy adds no credentials to requests.
    pub(crate) async fn start(mut upstream: Config) -> anyhow::Result<Self> {
        upstream.auth_info = Default::default();
        upstream.default_retry = false;
        let client = Client::try_from(upstream).context("making the proxy's client")?;
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("listening for the proxy")?;
        let (address, shared) = (listener.local_addr()?, Arc::<Shared>::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, client, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _accepting: accepting,
        })
    }

    /// Returns the URL of the proxy.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// While set, every request is answered with 429; otherwise requests are forwarded.
    pub(crate) fn set_overloaded(&self, overloaded: bool) {
        self.shared.overloaded.store(overloaded, Ordering::Relaxed);
    }

    /// Returns the number of requests rejected so far.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Closes every open connection, including watches.
    pub(crate) fn cut(&self) {
        *self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner) = JoinSet::new();
    }
}

async fn accept(listener: TcpListener, client: Client, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (client, answering) = (client.clone(), Arc::clone(&shared));
        let service = service_fn(move |request| answer(request, client.clone(), Arc::clone(&answering)));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let mut connections = shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.spawn(async move { drop(connection.await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(request: Request<Incoming>, client: Client, shared: Arc<Shared>) -> Result<Answer, kube::Error> {
    if shared.overloaded.load(Ordering::Relaxed) {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return Ok(refusal());
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(http::header::HOST);
    let body = body
        .collect()
        .await
        .map_err(|error| kube::Error::Service(error.into()))?
        .to_bytes();
    let response = client
        .send(Request::from_parts(parts, Body::from(body.to_vec())))
        .await?;
    Ok(response.map(BodyExt::boxed_unsync))
}

/// Returns a 429 response in the form of a Kubernetes API server.
fn refusal() -> Answer {
    let text = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests",
        "message": "too many requests, please try again later", "code": 429}"#;
    let body = Full::from(text).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
        .headers_mut()
        .insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    response
}
