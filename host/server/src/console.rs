//! Endpoint of the web console: pages and the stream that reports new decisions, read-only.
//!
//! The program makes the pages ([`Pages`]), because the server knows no simulations and explains nothing. On this
//! machine the console has no authentication: [`serve_local`] binds to loopback addresses and answers requests to
//! these only, so that no page of another site reads it through a name that it controls. For others, `bulkhead run`
//! serves it over TLS (`run`), and the API server reviews the token of each request, as for queries.

mod run;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(super) use self::run::{ConsoleArguments, Hosting, start};
pub use self::run::{MakePages, Sources};
use super::queries::access::Access;
use super::server::{self, Application, Gate, Limits, Refusal, Transport, plain};

/// Path of the stream of events.
const LIVE: &str = "/live";
/// Time between two events of the stream.
const TICK: Duration = Duration::from_secs(2);
/// Number of events after which the stream ends. A browser opens it again.
const TICKS_MAX: u32 = 150;
/// Limits for a few people with several open pages each. Requests have no body.
const LIMITS: Limits = Limits {
    connections: 128,
    body_bytes: 4 << 10,
    buffered_bytes: 256 << 10,
};
/// Maximum number of pages that are made at the same time. A page may take a processor for a second.
const PAGES_MAX: usize = 2;

/// Pages of the console.
pub trait Pages: Send + Sync + 'static {
    /// Answers a request, which has no body that matters. May block for seconds.
    fn answer(&self, head: &Parts) -> Response<Bytes>;

    /// Returns a number that changes with the content of the pages. May block for seconds.
    fn version(&self) -> u64;
}

/// Running console. Dropping it stops it.
pub struct Running {
    /// Address that it is served at.
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

/// Serves pages at a loopback address, over HTTP and without authentication. Port 0 selects a free port.
///
/// # Errors
///
/// The address is not a loopback address, or is in use.
pub async fn serve_local(address: SocketAddr, pages: Arc<dyn Pages>) -> anyhow::Result<Running> {
    if !address.ip().is_loopback() {
        bail!(
            "{address} is not a loopback address, and the console has no authentication; name one such as 127.0.0.1:0"
        );
    }
    serve(address, Transport::Plain, Guard::Loopback, pages).await
}

/// Protection of the console.
enum Guard {
    /// Only this machine reaches it.
    Loopback,
    /// The API server reviews the token of each request.
    Reviews(Box<Access>),
}

async fn serve(
    address: SocketAddr,
    transport: Transport,
    guard: Guard,
    pages: Arc<dyn Pages>,
) -> anyhow::Result<Running> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))?;
    let address = listener.local_addr()?;
    let application = Console {
        guard,
        pages,
        turns: Gate::new(PAGES_MAX, 0),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(server::serve(listener, transport, application, LIMITS, "the console"));
    Ok(Running { address, _tasks: tasks })
}

/// Application of the console.
struct Console {
    guard: Guard,
    pages: Arc<dyn Pages>,
    turns: Gate,
}

type AnyBody = UnsyncBoxBody<Bytes, Infallible>;

impl Console {
    /// Returns the stream of the versions of the pages.
    fn live(&self) -> Response<AnyBody> {
        let (pages, turns) = (Arc::clone(&self.pages), self.turns.clone());
        let events = stream::unfold(0, move |tick| {
            let (pages, turns) = (Arc::clone(&pages), turns.clone());
            async move {
                if tick == TICKS_MAX {
                    return None;
                }
                if tick > 0 {
                    tokio::time::sleep(TICK).await;
                }
                let event = match turns.run(0, move || pages.version()).await {
                    Ok(version) => format!("event: version\ndata: {version}\n\n"),
                    Err(overloaded) => format!(": {overloaded}\n\n"),
                };
                Some((Ok(Frame::data(Bytes::from(event))), tick + 1))
            }
        });
        let mut response = Response::new(StreamBody::new(events).boxed_unsync());
        for (name, value) in [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn is_live(head: &Parts) -> bool {
    head.uri.path() == LIVE && head.method == Method::GET
}

/// Returns true if the request is addressed to this machine by an address or by the name `localhost`.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

impl Application for Console {
    type Body = AnyBody;
    type Error = Infallible;

    fn answer_head(&self, head: &Parts) -> Option<Response<AnyBody>> {
        let why = "the console of this machine is at localhost and at its loopback addresses only\n";
        let refused = || plain(StatusCode::MISDIRECTED_REQUEST, why.to_owned());
        let is_foreign = matches!(self.guard, Guard::Loopback) && !is_local(&head.headers);
        is_foreign.then(|| refused().map(Full::boxed_unsync))
    }

    fn lifetime(&self, head: &Parts) -> Option<Duration> {
        is_live(head).then(|| TICK * TICKS_MAX)
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<AnyBody>, Infallible> {
        let (head, _) = request.into_parts();
        if let Guard::Reviews(access) = &self.guard
            && let Err(denied) = run::review(access, &head.headers).await
        {
            return Ok(run::refused(&denied).map(Full::boxed_unsync));
        }
        if is_live(&head) {
            return Ok(self.live());
        }
        let pages = Arc::clone(&self.pages);
        let page = self.turns.run(0, move || pages.answer(&head)).await;
        let page = page.map(|page| page.map(Full::new));
        let page = page.unwrap_or_else(|overloaded| plain(StatusCode::SERVICE_UNAVAILABLE, format!("{overloaded}\n")));
        Ok(page.map(Full::boxed_unsync))
    }

    fn refuse(&self, refusal: &Refusal) -> Response<AnyBody> {
        plain(refusal.status(), format!("{refusal}\n")).map(Full::boxed_unsync)
    }
}

#[cfg(test)]
mod tests;
