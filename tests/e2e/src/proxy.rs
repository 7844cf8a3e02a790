//! Small proxy in front of an API server or a registry that can simulate overload, delay, truncate and change answers,
//! and cut connections.
//!
//! Clients connect over plain HTTP on this machine. The proxy forwards their requests over TLS, including their
//! credentials.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// Time in which the start of a truncated answer is sent, before its connection ends.
const UNTIL_CUT: Duration = Duration::from_millis(50);

/// Misbehaviour of the proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The answer is 429, in the form of an API server.
    Overloaded,
    /// The connection ends without an answer.
    Closed,
    /// The answer is this much later.
    Delayed(Duration),
    /// The body ends after this number of bytes, and the connection with it.
    Truncated(usize),
    /// The last byte of the body is another one.
    Changed,
}

/// A running proxy. It stops on drop.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    /// Fault of the requests whose paths contain a text.
    fault: Mutex<Option<(String, Fault)>>,
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

    /// Returns host and port of the proxy.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Misbehaves on the requests whose paths contain `part`, until [`Self::recover`].
    pub(crate) fn fail(&self, part: &str, fault: Fault) {
        self.shared.set_fault(Some((part.to_owned(), fault)));
    }

    /// Forwards every request.
    pub(crate) fn recover(&self) {
        self.shared.set_fault(None);
    }

    /// Returns the number of requests answered with 429 so far.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Closes every open connection, including watches.
    pub(crate) fn cut(&self) {
        *self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner) = JoinSet::new();
    }
}

impl Shared {
    fn set_fault(&self, fault: Option<(String, Fault)>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn fault_of(&self, path: &str) -> Option<Fault> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = fault.as_ref().filter(|(part, _)| path.contains(part.as_str()));
        of_path.map(|(_, fault)| *fault)
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
    let fault = shared.fault_of(request.uri().path());
    match fault {
        Some(Fault::Overloaded) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(refusal());
        }
        Some(Fault::Closed) => return Err(cut()),
        Some(Fault::Delayed(time)) => tokio::time::sleep(time).await,
        Some(Fault::Truncated(_) | Fault::Changed) | None => {}
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
    match fault {
        Some(Fault::Truncated(length)) => truncated(response, length).await,
        Some(Fault::Changed) => changed(response).await,
        _ => Ok(response.map(BodyExt::boxed_unsync)),
    }
}

/// Returns the error that ends a connection.
fn cut() -> kube::Error {
    kube::Error::Service("cut on purpose".into())
}

/// Ends the body of a response early. Its head announces the whole length.
async fn truncated(response: Response<Body>, length: usize) -> Result<Answer, kube::Error> {
    let (head, body) = response.into_parts();
    let all = body.collect().await?.to_bytes();
    let start = Frame::data(all.slice(..length.min(all.len())));
    let end = async {
        tokio::time::sleep(UNTIL_CUT).await;
        Err(cut())
    };
    let frames = stream::once(async { Ok(start) }).chain(stream::once(end));
    Ok(Response::from_parts(head, UnsyncBoxBody::new(StreamBody::new(frames))))
}

/// Changes the last byte of the body of a response.
async fn changed(response: Response<Body>) -> Result<Answer, kube::Error> {
    let (head, body) = response.into_parts();
    let mut all = body.collect().await?.to_bytes().to_vec();
    if let Some(last) = all.last_mut() {
        *last ^= 1;
    }
    let body = Full::from(all).map_err(|never| match never {}).boxed_unsync();
    Ok(Response::from_parts(head, body))
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
