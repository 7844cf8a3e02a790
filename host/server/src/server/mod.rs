//! HTTP/1.1 server of every endpoint of the process, with a single accept loop and shared limits.
//!
//! A client cannot hold a connection by waiting: each step that depends on it has a deadline. When the endpoint is
//! full, the connection that has waited longest for its client is closed in favour of the new one. Connections with
//! a request in progress are kept.
//!
//! Start reading at [`serve`]; [`connections`] enforces the limits.

mod connections;
mod gate;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use self::connections::{ConnectionSlot, Connections};
pub(super) use self::gate::{Gate, Overloaded};

/// Deadline of each step of a client: the TLS handshake, the head of its first request, the body of a request.
const STEP: Duration = Duration::from_secs(10);
/// Idle time of a connection between two requests. Longer than the intervals of probes and scrapes, and as long as
/// that of a Kubernetes API server.
const IDLE: Duration = Duration::from_secs(90);
/// Maximum size of a request head, and size of a connection's buffer, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// First pause after an error of the listener; doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause after an error of the listener.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Limits of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of open connections.
    pub(super) connections: usize,
    /// Maximum size of one request body, in bytes.
    pub(super) body_bytes: usize,
    /// Maximum total size of all buffered request bodies, in bytes.
    pub(super) buffered_bytes: usize,
}

/// Reason for rejecting a request before it reaches the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The body cannot be read.
    Unreadable(String),
}

impl Refusal {
    /// Returns the HTTP status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(f, "cannot read the request: its body is larger than {limit} bytes"),
            Self::Unreadable(cause) => write!(f, "cannot read the request: {cause}"),
        }
    }
}

/// Builds a plain-text response.
pub(super) fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Source of connections.
pub(super) trait Listener: Send + 'static {
    /// Type of a connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn next(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Watch events are small and must not be delayed by Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Transport of an endpoint.
pub(super) enum Transport {
    /// Plain HTTP.
    Plain,
    /// TLS with the acceptor that is current when a connection starts.
    Tls(Box<dyn Fn() -> TlsAcceptor + Send + Sync>),
}

/// Handler of an endpoint's requests.
pub(super) trait Application: Send + Sync + 'static {
    /// Type of a response body.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static;
    /// Error that closes the connection without a response.
    type Error: Into<BoxError>;

    /// Answers a request by its head alone, before its body is read. `None` to read the body.
    fn answer_head(&self, head: &Parts) -> Option<Response<Self::Body>>;

    /// Returns the time after which a response of unknown size ends. `None` if it may last. The connection of a client
    /// that does not read until then is closed.
    fn lifetime(&self, _head: &Parts) -> Option<Duration> {
        None
    }

    /// Answers a complete request.
    fn answer(&self, request: Request<Bytes>)
    -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send;

    /// Returns the response to a rejected request.
    fn refuse(&self, refusal: &Refusal) -> Response<Self::Body>;
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Serves an endpoint until the future is dropped, which closes its connections. `name` identifies it in the log.
pub(super) async fn serve(
    listener: impl Listener,
    transport: Transport,
    application: impl Application,
    limits: Limits,
    name: &str,
) {
    accept(listener, transport, application, Connections::new(limits), name).await;
}

async fn accept<L: Listener, A: Application>(
    mut listener: L,
    transport: Transport,
    application: A,
    connections: Connections,
    name: &str,
) {
    let (transport, application) = (Arc::new(transport), Arc::new(application));
    let (mut tasks, mut pause) = (JoinSet::new(), PAUSE);
    loop {
        while tasks.try_join_next().is_some() {}
        let stream = match listener.next().await {
            Ok(stream) => stream,
            Err(error) if is_of_connection(&error) => continue,
            Err(error) => {
                // For example, the process is out of file descriptors. Closing an idle connection frees one.
                warn!("cannot accept a connection of {name}: {error}; trying again");
                connections.close_longest_waiting();
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        };
        pause = PAUSE;
        let slot = connections.slot(STEP).await;
        let served = connection(
            stream,
            Arc::clone(&transport),
            Arc::clone(&application),
            Arc::clone(&slot),
        );
        tasks.spawn(async move { slot.within_deadlines(served).await });
    }
}

/// Returns true for errors of one connection that ended before it was accepted.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Serves one connection until its client closes it.
async fn connection<A: Application>(
    stream: impl Stream + 'static,
    transport: Arc<Transport>,
    application: Arc<A>,
    slot: Arc<ConnectionSlot>,
) {
    let stream: Box<dyn Stream> = match &*transport {
        Transport::Plain => Box::new(stream),
        Transport::Tls(acceptor) => match acceptor().accept(stream).await {
            Ok(stream) => Box::new(stream),
            Err(_) => return,
        },
    };
    slot.wait(STEP);
    let answer = service_fn(|request| answer(request, &*application, &slot));
    // The slot enforces deadlines, because it distinguishes idle connections from slow ones; hyper does not.
    let mut server = http1::Builder::new();
    server.max_buf_size(HEAD_BYTES_MAX);
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer<A: Application>(
    request: Request<Incoming>,
    application: &A,
    slot: &Arc<ConnectionSlot>,
) -> Result<Response<Sent<A::Body>>, A::Error> {
    let (head, body) = request.into_parts();
    let lifetime = application.lifetime(&head);
    let response = if let Some(response) = application.answer_head(&head) {
        response
    } else {
        slot.wait(STEP);
        match read(body, slot).await {
            Ok(body) => {
                slot.work();
                application.answer(Request::from_parts(head, body)).await?
            }
            Err(refusal) => application.refuse(&refusal),
        }
    };
    slot.release();
    // A response of known size waits for its client only; an event stream waits for events.
    if response.body().size_hint().exact().is_some() {
        slot.wait(IDLE);
    } else {
        slot.stream(lifetime.and_then(|lifetime| lifetime.checked_add(STEP)));
    }
    Ok(response.map(|body| Sent {
        body,
        slot: Arc::clone(slot),
    }))
}

/// Reads a whole body, within the limits of the endpoint.
async fn read(mut body: Incoming, slot: &ConnectionSlot) -> Result<Bytes, Refusal> {
    let limit = slot.limits().body_bytes;
    if body.size_hint().lower() > limit as u64 {
        return Err(Refusal::TooLarge(limit));
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(Refusal::TooLarge(limit));
        }
        slot.buffer(data.len()).await;
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Response body. Dropping it marks its connection as idle.
struct Sent<B> {
    body: B,
    slot: Arc<ConnectionSlot>,
}

impl<B> Drop for Sent<B> {
    fn drop(&mut self) {
        self.slot.wait(IDLE);
    }
}

impl<B: Body + Unpin> Body for Sent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
