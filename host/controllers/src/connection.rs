//! Connections to real API servers: limits on how long one may keep us waiting, the permit that writes need, and a
//! count of the answers.

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bulkhead_core::mutation::{self, Mutation};
use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tower::timeout::error::Elapsed;
use tower::util::MapResultLayer;
use tower::{BoxError, Layer, Service};
use tower_http::timeout::TimeoutBody;

use crate::backlog::Backlog;
use crate::boot_clock::BootClock;
use crate::precedence::{Precedence, is_read};
use crate::under_way::UnderWay;

/// How long an API server may take to accept a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it may take to begin its answer, and how long that may pause once it began.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// The same for a watch, whose answer is what happens: watchers begin anew sooner than that.
const WATCH_PAUSE_MAX: Duration = Duration::from_mins(10);

/// Until when this process may write. Every client made with [`connect`] looks at it before each write, so that a
/// process that was paused, or that lost its lease, changes nothing.
#[derive(Clone, Debug)]
pub struct WritePermit {
    until: Arc<Mutex<Until>>,
    clock: BootClock,
    /// What was decided is recorded before it is written.
    backlog: Backlog,
    under_way: UnderWay,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Never,
    Watching,
    /// Until then, by the clock of the permit.
    For(Duration),
    Ever,
    /// Not any more, whatever happens: the process ends.
    Stopped,
    /// Not any more, whatever happens: there is no journal.
    Ended,
}

/// A write that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// Another process works.
    #[error("this process may not write: it was not elected")]
    NotElected,
    /// It was elected, and could not renew.
    #[error("this process may not write: its lease ran out")]
    LeaseRanOut,
    /// Decisions that cannot be recorded are not carried out.
    #[error("this process may not write: its journal cannot be written")]
    NoJournal,
    /// It ends.
    #[error("this process may not write: it is stopping")]
    Stopping,
    /// It is to decide and to report, and nothing more.
    #[error("this process only reports what it would write")]
    OnlyReports,
}

impl WritePermit {
    /// For a process that is alone.
    pub fn unlimited() -> Self {
        Self::new(Until::Ever)
    }

    /// For a process that has not been elected yet.
    pub fn none() -> Self {
        Self::new(Until::Never)
    }

    /// For a process that decides and reports, and never writes.
    pub fn report_only() -> Self {
        Self::new(Until::Watching)
    }

    fn is_unlimited(&self) -> bool {
        matches!(*self.until.lock().unwrap_or_else(PoisonError::into_inner), Until::Ever)
    }

    fn new(until: Until) -> Self {
        let until = Arc::new(Mutex::new(until));
        Self { until, clock: BootClock::system(), backlog: Backlog::default(), under_way: UnderWay::default() }
    }

    /// The same permit by another clock.
    #[must_use]
    pub fn with_clock(self, clock: BootClock) -> Self {
        Self { clock, ..self }
    }

    /// The clock that the permit ends by.
    pub fn clock(&self) -> &BootClock {
        &self.clock
    }

    /// Records that writes wait for.
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Writes are allowed until then by the clock of the permit, and no longer unless the permit is extended.
    pub fn extend(&self, until: Duration) {
        self.set(Until::For(until));
    }

    /// Writes are not allowed any more.
    pub fn revoke(&self) {
        self.set(Until::Never);
    }

    /// Writes are not allowed any more, and nothing changes that: what was decided cannot be recorded.
    pub fn end(&self) {
        self.set(Until::Ended);
    }

    /// Writes are not allowed any more, and nothing changes that. Returns when none is under way.
    pub async fn stop(&self) {
        self.set(Until::Stopped);
        self.under_way.none().await;
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
            Until::Watching if mutation::on(Mutation::ReportWrites) => Ok(()),
            Until::Watching => Err(WriteRefused::OnlyReports),
            Until::Stopped => Err(WriteRefused::Stopping),
            Until::Ended => Err(WriteRefused::NoJournal),
            Until::For(until) if self.clock.now() < until => Ok(()),
            Until::For(_) => Err(WriteRefused::LeaseRanOut),
        }
    }
}

/// Who keeps the records that writes with a permit wait for. If it goes away nothing can be recorded any more, and the permit ends.
#[derive(Debug)]
pub struct Keeper(WritePermit);

impl Keeper {
    /// The keeper of the backlog of this permit.
    pub fn of(permit: &WritePermit) -> Self {
        Self(permit.clone())
    }

    /// Notes that one more record is kept.
    pub fn kept(&self) {
        self.0.backlog.done();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.end();
        // Whoever waits is refused now.
        self.0.backlog.close();
    }
}

/// What API servers call this program: it is the manager of the fields that it writes, and the agent in audit logs.
pub const FIELD_MANAGER: &str = "bulkhead";

/// How often API servers answered with which HTTP status; 0 is for requests that nothing answered.
#[derive(Debug, Default)]
pub struct Answers(Mutex<BTreeMap<u16, u64>>);

impl Answers {
    fn count(&self, code: u16) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// Every status so far, with how often it came.
    pub fn counts(&self) -> Vec<(u16, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(code, count)| (*code, *count)).collect()
    }
}

/// A client whose requests are bounded in time, whose writes need the permit, and whose answers are counted. Of many
/// writes the weightiest go first, and an API server that asks for a pause gets it. Nothing is sent twice where a permit
/// can end: whoever decided on it has to look again. What a person asked for is sent again when an API server says so.
///
/// # Errors
///
/// When the configuration cannot be used, for example because of a certificate that does not parse.
pub fn connect(mut config: Config, permit: &WritePermit, answers: &Arc<Answers>) -> kube::Result<Client> {
    config.connect_timeout = Some(CONNECT_TIME_MAX);
    // It would send writes again that were decided long before, without a look at the permit.
    config.default_retry = permit.is_unlimited();
    let agent = HeaderValue::from_static(concat!("bulkhead/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    let stack = ClientBuilder::try_from(config)?;
    let answers = Arc::clone(answers);
    Ok(stack
        .with_layer(&Bounded)
        .with_layer(&MapResultLayer::new(move |answer| counted(&answers, answer)))
        .with_layer(&Permitted(permit.clone()))
        // Outside, so that the permit is looked at when a write goes and not when it begins to wait.
        .with_layer(&Precedence::new())
        .build())
}

/// Bounds the time until an answer begins, and its pauses. It counts from when the answer is waited for: `tower`'s own
/// limit counts from the call, and so for writes that wait for their turn.
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

fn counted<B>(answers: &Answers, answer: Result<Response<B>, BoxError>) -> Result<Response<B>, BoxError> {
    answers.count(answer.as_ref().map_or(0, |response| response.status().as_u16()));
    answer
}

/// A service whose writes need the permit, for a client of an API server in this process.
pub fn permitted<S>(
    service: S,
    permit: &WritePermit,
) -> impl Service<Request<Body>, Response = S::Response, Error = BoxError, Future: Send> + Clone + Send + 'static
where
    S: Service<Request<Body>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    S::Response: Send,
{
    Permitted(permit.clone()).layer(tower::util::MapErr::new(service, Into::into as fn(S::Error) -> BoxError))
}

/// Puts [`PermittedService`] around a service.
struct Permitted(WritePermit);

#[derive(Clone)]
struct PermittedService<S> {
    inner: S,
    permit: WritePermit,
}

impl<S> Layer<S> for Permitted {
    type Service = PermittedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PermittedService { inner, permit: self.0.clone() }
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
        // It may have to wait for its turn and for the journal, and the permit may end meanwhile.
        let (answer, permit) = (self.inner.call(request), self.permit.clone());
        Box::pin(async move {
            permit.backlog.passed().await;
            // Counted before the permit is looked at: whoever stops writes sees it, or it sees that they are stopped.
            let _sent = permit.under_way.add();
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
        // `Instant` does not move.
        *suspended.lock().unwrap() = Duration::from_mins(1);
        assert!(!answered(&permit, Method::PATCH).await);
        assert!(answered(&permit, Method::GET).await);
    }

    #[test]
    fn answers_are_counted_by_status_and_so_is_silence() {
        let answers = Answers::default();
        let answer = |code: u16| Ok(Response::builder().status(code).body(()).unwrap());
        for answer in [answer(200), answer(429), answer(200), Err(BoxError::from("nobody"))] {
            let _ = counted(&answers, answer);
        }
        assert_eq!(answers.counts(), [(0, 1), (200, 2), (429, 1)]);
    }

    /// Answers with the head at once and with a first frame, or not at all, and with nothing after that.
    async fn answer_of(query: &'static str, begins: bool) -> Result<Response<impl hyper::body::Body>, BoxError> {
        let server = service_fn(move |_: Request<Body>| async move {
            if !begins {
                std::future::pending::<()>().await;
            }
            let frames = futures::stream::iter([Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"{")))]);
            Ok::<_, BoxError>(Response::new(StreamBody::new(frames.chain(futures::stream::pending()))))
        });
        let request = Request::get(format!("/api/v1/nodes?limit=500{query}")).body(Body::empty()).unwrap();
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
        let keeper = Keeper::of(&permit);
        permit.backlog().add();
        assert!(answered(&permit, Method::PATCH).now_or_never().is_none());
        assert!(answered(&permit, Method::GET).await);
        keeper.kept();
        assert!(answered(&permit, Method::PATCH).await);
        permit.backlog().add();
        drop(keeper);
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
