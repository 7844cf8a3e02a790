//! Connections to API servers: timeouts, the permit that writes need, and counts of the responses.

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tower::timeout::error::Elapsed;
use tower::util::MapResultLayer;
use tower::{BoxError, Layer, Service};
use tower_http::timeout::TimeoutBody;

use crate::boot_clock::BootClock;
use crate::in_flight::InFlight;
use crate::journal_barrier::JournalBarrier;
use crate::write_priority::{PriorityOf, WritePriority, is_read};

/// Timeout for establishing a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Timeout for the start of a response, and for each pause within it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Timeout for pauses of a watch, which is silent between events. Watchers start anew sooner than that.
const WATCH_PAUSE_MAX: Duration = Duration::from_mins(10);

/// Permission of this process to write. Every client made with [`connect`] checks it before each write, so that a
/// process that was paused, or that lost its lease, changes nothing.
#[derive(Clone, Debug)]
pub struct WritePermit {
    until: Arc<Mutex<Until>>,
    clock: BootClock,
    /// Decision records that must be stored before a write is sent.
    journal_barrier: JournalBarrier,
    in_flight: InFlight,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Never,
    Watching,
    /// Until this time, by the clock of the permit.
    For(Duration),
    Ever,
    /// Revoked permanently: the process is stopping.
    Stopped,
    /// Revoked permanently: there is no journal.
    Ended,
}

/// Reason why a write was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// Another process is the leader.
    #[error("this process may not write: it is not the leader")]
    NotElected,
    /// The process was elected but could not renew its lease.
    #[error("this process may not write: its lease expired")]
    LeaseRanOut,
    /// Decisions that cannot be recorded are not carried out.
    #[error("this process may not write: its journal cannot be written")]
    NoJournal,
    /// The process is stopping.
    #[error("this process may not write: it is stopping")]
    Stopping,
    /// The process decides and reports only.
    #[error("this process only reports and sends no writes")]
    OnlyReports,
}

impl WritePermit {
    /// Creates a permit without a limit, for a process that runs alone.
    pub fn unlimited() -> Self {
        Self::new(Until::Ever)
    }

    /// Creates a permit that allows no write yet, for a process that is not elected yet.
    pub fn none() -> Self {
        Self::new(Until::Never)
    }

    /// Creates the permit of a process that decides and reports, and never writes.
    pub fn report_only() -> Self {
        Self::new(Until::Watching)
    }

    fn is_unlimited(&self) -> bool {
        matches!(*self.until.lock().unwrap_or_else(PoisonError::into_inner), Until::Ever)
    }

    fn new(until: Until) -> Self {
        let until = Arc::new(Mutex::new(until));
        Self {
            until,
            clock: BootClock::system(),
            journal_barrier: JournalBarrier::default(),
            in_flight: InFlight::default(),
        }
    }

    /// Returns the same permit with another clock.
    #[must_use]
    pub fn with_clock(self, clock: BootClock) -> Self {
        Self { clock, ..self }
    }

    /// Returns the clock by which the permit expires.
    pub fn clock(&self) -> &BootClock {
        &self.clock
    }

    /// Returns the barrier of records that writes wait for.
    pub fn journal_barrier(&self) -> &JournalBarrier {
        &self.journal_barrier
    }

    /// Allows writes until a time of the permit's clock.
    pub fn extend(&self, until: Duration) {
        self.set(Until::For(until));
    }

    /// Forbids writes until the permit is extended.
    pub fn revoke(&self) {
        self.set(Until::Never);
    }

    /// Forbids writes permanently, because decisions cannot be recorded.
    pub fn end(&self) {
        self.set(Until::Ended);
    }

    /// Forbids writes permanently. Returns when no write is in flight.
    pub async fn stop(&self) {
        self.set(Until::Stopped);
        self.in_flight.none().await;
    }

    fn set(&self, until: Until) {
        let mut state = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, Until::Stopped | Until::Ended) {
            *state = until;
        }
    }

    fn check(&self) -> Result<(), WriteRefused> {
        match *self.until.lock().unwrap_or_else(PoisonError::into_inner) {
            Until::Ever => Ok(()),
            Until::Never => Err(WriteRefused::NotElected),
            Until::Watching => Err(WriteRefused::OnlyReports),
            Until::Stopped => Err(WriteRefused::Stopping),
            Until::Ended => Err(WriteRefused::NoJournal),
            Until::For(until) if self.clock.now() < until => Ok(()),
            Until::For(_) => Err(WriteRefused::LeaseRanOut),
        }
    }
}

/// Guard of the journal that writes with a permit wait for. When it is dropped, nothing can be recorded any more, and
/// the permit ends.
#[derive(Debug)]
pub struct JournalGuard(WritePermit);

impl JournalGuard {
    /// Creates the guard of the barrier of a permit.
    pub fn of(permit: &WritePermit) -> Self {
        Self(permit.clone())
    }

    /// Counts one more stored record.
    pub fn stored(&self) {
        self.0.journal_barrier.done();
    }
}

impl Drop for JournalGuard {
    fn drop(&mut self) {
        self.0.end();
        // Waiting writes are refused now.
        self.0.journal_barrier.close();
    }
}

/// Counts of responses by HTTP status; 0 stands for requests without a response.
#[derive(Debug, Default)]
pub struct ResponseCounts(Mutex<BTreeMap<u16, u64>>);

impl ResponseCounts {
    fn count(&self, code: u16) {
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(code)
            .or_default() += 1;
    }

    /// Returns every status so far with its count.
    pub fn counts(&self) -> Vec<(u16, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(code, count)| (*code, *count)).collect()
    }
}

/// Properties of a program that its clients share.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// User agent in the audit logs of API servers: name and version, in visible ASCII characters.
    pub user_agent: &'static str,
    /// Priorities of its writes.
    pub priority_of: PriorityOf,
}

/// Creates a client with timeouts whose writes need the permit and whose responses are counted. Writes with the
/// highest priority go first, and the client pauses when an API server asks for it. If the permit can end, no request
/// is repeated: the caller has to decide again. With an unlimited permit, requests are repeated when an API server
/// says so.
///
/// # Errors
///
/// If the configuration cannot be used, for example because a certificate does not parse.
pub fn connect(
    program: &Program,
    mut config: Config,
    permit: &WritePermit,
    responses: &Arc<ResponseCounts>,
) -> kube::Result<Client> {
    config.connect_timeout = Some(CONNECT_TIME_MAX);
    // Retries would repeat writes that were decided long before, without a check of the permit.
    config.default_retry = permit.is_unlimited();
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(program.user_agent)));
    let stack = ClientBuilder::try_from(config)?;
    let responses = Arc::clone(responses);
    Ok(stack
        .with_layer(&Bounded)
        .with_layer(&MapResultLayer::new(move |answer| counted(&responses, answer)))
        .with_layer(&Permitted(permit.clone()))
        // Outside of the permit's layer, so that the permit is checked when a write is sent and not when it starts to
        // wait.
        .with_layer(&WritePriority::new(program.priority_of))
        .build())
}

/// Bounds the time until a response begins, and its pauses. The time starts with the first poll: `tower`'s own
/// timeout starts with the call, also for writes that wait for their turn.
struct Bounded;

#[derive(Clone)]
struct BoundedService<S>(S);

impl<S> Layer<S> for Bounded {
    type Service = BoundedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        BoundedService(inner)
    }
}

impl<S, B> Service<Request<Body>> for BoundedService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<TimeoutBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.split('&').any(|argument| argument == "watch=true");
        let pause_max = if is_watch { WATCH_PAUSE_MAX } else { ANSWER_TIME_MAX };
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = tokio::time::timeout(ANSWER_TIME_MAX, answer).await;
            let answer = answer.unwrap_or_else(|_| Err(Elapsed::new().into()))?;
            Ok(answer.map(|body| TimeoutBody::new(pause_max, body)))
        })
    }
}

fn counted<B>(responses: &ResponseCounts, answer: Result<Response<B>, BoxError>) -> Result<Response<B>, BoxError> {
    responses.count(answer.as_ref().map_or(0, |response| response.status().as_u16()));
    answer
}

/// Wraps a service whose writes need the permit, for a client of an API server in this process.
pub fn permitted<S>(
    service: S,
    permit: &WritePermit,
) -> impl Service<Request<Body>, Response = S::Response, Error = BoxError, Future: Send> + Clone + Send + 'static
where
    S: Service<Request<Body>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    S::Response: Send,
{
    Permitted(permit.clone()).layer(tower::util::MapErr::new(
        service,
        Into::into as fn(S::Error) -> BoxError,
    ))
}

/// Layer of [`PermittedService`].
struct Permitted(WritePermit);

#[derive(Clone)]
struct PermittedService<S> {
    inner: S,
    permit: WritePermit,
}

impl<S> Layer<S> for Permitted {
    type Service = PermittedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PermittedService {
            inner,
            permit: self.0.clone(),
        }
    }
}

impl<S> Service<Request<Body>> for PermittedService<S>
where
    S: Service<Request<Body>, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_read(request.method()) {
            return Box::pin(self.inner.call(request));
        }
        if let Err(refused) = self.permit.check() {
            return Box::pin(ready(Err(refused.into())));
        }
        // The write may have to wait for its turn and for the journal, and the permit may end meanwhile.
        let (answer, permit) = (self.inner.call(request), self.permit.clone());
        Box::pin(async move {
            permit.journal_barrier.wait().await;
            // Counted before the check: either `stop` sees this write, or the check sees the stop.
            let _in_flight = permit.in_flight.add();
            permit.check()?;
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use http::Method;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Bytes, Frame};
    use tokio::time::Instant;
    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn answered(permit: &WritePermit, method: Method) -> bool {
        let server = service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(())) });
        let request = Request::builder().method(method).body(Body::empty()).unwrap();
        Permitted(permit.clone()).layer(server).oneshot(request).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn writes_end_with_the_permit_and_reads_do_not() {
        let start = Instant::now();
        let permit = WritePermit::none().with_clock(BootClock::new(move || start.elapsed()));
        assert!(!answered(&permit, Method::PATCH).await);
        assert!(answered(&permit, Method::GET).await);
        permit.extend(permit.clock().now() + Duration::from_secs(10));
        assert!(answered(&permit, Method::PATCH).await);
        tokio::time::advance(Duration::from_secs(10)).await;
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!answered(&permit, method).await);
        }
        assert!(answered(&permit, Method::GET).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_ends_while_the_machine_is_suspended() {
        let suspended = Arc::new(Mutex::new(Duration::ZERO));
        let (counted, start) = (Arc::clone(&suspended), Instant::now());
        let clock = BootClock::new(move || start.elapsed() + *counted.lock().unwrap());
        let permit = WritePermit::none().with_clock(clock);
        permit.extend(permit.clock().now() + Duration::from_secs(10));
        assert!(answered(&permit, Method::PATCH).await);
        // `Instant` does not advance.
        *suspended.lock().unwrap() = Duration::from_mins(1);
        assert!(!answered(&permit, Method::PATCH).await);
        assert!(answered(&permit, Method::GET).await);
    }

    #[test]
    fn answers_are_counted_by_status_and_so_is_silence() {
        let responses = ResponseCounts::default();
        let answer = |code: u16| Ok(Response::builder().status(code).body(()).unwrap());
        for answer in [answer(200), answer(429), answer(200), Err(BoxError::from("nobody"))] {
            let _ = counted(&responses, answer);
        }
        assert_eq!(responses.counts(), [(0, 1), (200, 2), (429, 1)]);
    }

    /// Returns a response that begins at once with its head and a first frame, or never. Nothing follows the first
    /// frame.
    async fn answer_of(query: &'static str, begins: bool) -> Result<Response<impl hyper::body::Body>, BoxError> {
        let server = service_fn(move |_: Request<Body>| async move {
            if !begins {
                std::future::pending::<()>().await;
            }
            let frames = futures::stream::iter([Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"{")))]);
            Ok::<_, BoxError>(Response::new(StreamBody::new(frames.chain(futures::stream::pending()))))
        });
        let request = Request::get(format!("/api/v1/nodes?limit=500{query}"))
            .body(Body::empty())
            .unwrap();
        Bounded.layer(server).oneshot(request).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_or_does_not_end_is_not_waited_for() {
        assert!(answer_of("", false).await.err().unwrap().is::<Elapsed>());
        for (query, seconds) in [("", 30), ("&watch=true", 600)] {
            let (answer, start) = (answer_of(query, true).await.unwrap(), Instant::now());
            assert!(answer.into_body().collect().await.is_err());
            assert_eq!(start.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test]
    async fn writes_wait_for_the_journal_and_end_with_it() {
        let permit = WritePermit::unlimited();
        let guard = JournalGuard::of(&permit);
        permit.journal_barrier().add();
        assert!(answered(&permit, Method::PATCH).now_or_never().is_none());
        assert!(answered(&permit, Method::GET).await);
        guard.stored();
        assert!(answered(&permit, Method::PATCH).await);
        permit.journal_barrier().add();
        drop(guard);
        assert!(!answered(&permit, Method::PATCH).await);
    }

    #[tokio::test]
    async fn a_stop_waits_for_what_was_sent_and_lets_nothing_follow() {
        let permit = WritePermit::unlimited();
        permit.stop().now_or_never().unwrap();
        let permit = WritePermit::unlimited();
        let (answer, answered_by) = tokio::sync::oneshot::channel::<()>();
        let answered_by = Arc::new(Mutex::new(Some(answered_by)));
        let server = service_fn(move |_: Request<Body>| {
            let answer = answered_by.lock().unwrap().take();
            async move {
                answer.ok_or("a second write was sent")?.await?;
                Ok::<_, BoxError>(Response::new(()))
            }
        });
        let write = || Request::builder().method(Method::PATCH).body(Body::empty()).unwrap();
        let service = Permitted(permit.clone()).layer(server);
        let mut sent = Box::pin(service.clone().oneshot(write()));
        assert!(sent.as_mut().now_or_never().is_none());
        let mut stopped = Box::pin(permit.stop());
        assert!(stopped.as_mut().now_or_never().is_none());
        permit.extend(permit.clock().now() + Duration::from_secs(10));
        let refused = service.oneshot(write()).await.unwrap_err();
        assert_eq!(refused.downcast_ref(), Some(&WriteRefused::Stopping));
        assert!(stopped.as_mut().now_or_never().is_none());
        answer.send(()).unwrap();
        sent.await.unwrap();
        stopped.await;
    }

    #[tokio::test]
    async fn a_revoked_permit_is_worth_nothing() {
        let permit = WritePermit::unlimited();
        assert!(answered(&permit, Method::DELETE).await);
        permit.revoke();
        assert!(!answered(&permit, Method::DELETE).await);
    }
}
