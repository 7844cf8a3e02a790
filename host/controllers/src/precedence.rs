//! Which of many writes goes first.
//!
//! An API server in a storm answers as fast as it can, and no faster for being asked by everybody at once. So a client has
//! a bounded number of writes under way, and of those that wait the weightiest goes next: where something runs before
//! what became of it, and events last. An API server that asks for a pause gets it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::{Layer, Service};

/// Writes that one client has under way.
const UNDER_WAY_MAX: usize = 16;
/// The longest pause that an API server gets.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Whether requests of a method change nothing.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// What a write is about, the weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Bindings and clusters: evictions, placements, releases, taints, readiness.
    Place,
    /// Works, health, everything else.
    Follows,
    /// Events.
    Remark,
}

impl Weight {
    /// The weight of a request; reads have none, and never wait.
    fn of(method: &Method, path: &str) -> Option<Self> {
        if is_read(method) {
            return None;
        }
        let segments: Vec<_> = path.split('/').collect();
        let (about, is_status) = match segments.as_slice() {
            // A new object: POST on the collection.
            [.., "events"] | [.., "events", _] => return Some(Self::Remark),
            [.., resource, _, "status"] => (*resource, true),
            [.., resource, _] => (*resource, false),
            _ => return Some(Self::Follows),
        };
        Some(match about {
            "clusters" => Self::Place,
            "resourcebindings" | "clusterresourcebindings" if !is_status => Self::Place,
            _ => Self::Follows,
        })
    }
}

/// Writes under way and those that wait.
#[derive(Debug)]
struct Gate(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// When the API server wants to be asked again.
    opens: Option<Instant>,
    waiting: BTreeMap<(Weight, u64), oneshot::Sender<Pass>>,
    arrivals: u64,
}

/// One write under way. Whoever waits gets it next when it is dropped.
#[derive(Debug)]
struct Pass(Option<Arc<Gate>>);

impl Gate {
    fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { free, opens: None, waiting: BTreeMap::new(), arrivals: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody in for so long. Whoever is in is not held up.
    fn close_for(&self, pause: Duration) {
        let mut state = self.state();
        state.opens = state.opens.max(Some(Instant::now() + pause.min(PAUSE_MAX)));
    }

    async fn enter(self: Arc<Self>, weight: Weight) -> Pass {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                None
            } else {
                let (sender, turn) = oneshot::channel();
                state.arrivals += 1;
                let rank = (weight, state.arrivals);
                state.waiting.insert(rank, sender);
                Some(turn)
            }
        };
        let pass = match turn {
            None => Pass(Some(Arc::clone(&self))),
            // Nobody drops a sender without an answer while the gate stands, and this holds the gate.
            Some(turn) => turn.await.unwrap_or(Pass(None)),
        };
        self.opened().await;
        pass
    }

    /// Waits until the API server wants to be asked again.
    async fn opened(&self) {
        loop {
            let opens = self.state().opens.filter(|opens| *opens > Instant::now());
            let Some(opens) = opens else { return };
            tokio::time::sleep_until(opens).await;
        }
    }
}

impl Pass {
    /// The gate, which is not told that the write ended.
    fn into_gate(mut self) -> Option<Arc<Gate>> {
        self.0.take()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let Some(mut gate) = self.0.take() else { return };
        loop {
            let next = {
                let mut state = gate.state();
                let next = state.waiting.pop_first();
                state.free += usize::from(next.is_none());
                next
            };
            let Some((_, waiting)) = next else { return };
            // Whoever does not wait any more gives it back, and the next one gets it.
            let Err(refused) = waiting.send(Self(Some(gate))) else { return };
            let Some(back) = refused.into_gate() else { return };
            gate = back;
        }
    }
}

/// Lets the weightiest writes of a client go first. What is inside must do nothing before its future is polled.
pub(crate) struct Precedence(Arc<Gate>);

impl Precedence {
    /// For one client.
    pub(crate) fn new() -> Self {
        Self(Gate::new(UNDER_WAY_MAX))
    }
}

/// A service whose writes wait for their turn.
pub(crate) struct PrecedenceService<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> Layer<S> for Precedence {
    type Service = PrecedenceService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PrecedenceService { inner, gate: Arc::clone(&self.0) }
    }
}

/// Whether a request may be kept waiting. Leases and probes tell who is alive, and are worth nothing late.
fn waits(path: &str) -> bool {
    path.starts_with("/api") && !path.starts_with("/apis/coordination.k8s.io/")
}

/// How long an API server that has too much to do wants to be left alone.
fn told_to_pause<B>(answer: &Response<B>) -> Option<Duration> {
    if !matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl<S, B> Service<Request<Body>> for PrecedenceService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (weight, waits) = (Weight::of(request.method(), request.uri().path()), waits(request.uri().path()));
        let (answer, gate) = (self.inner.call(request), Arc::clone(&self.gate));
        Box::pin(async move {
            let _pass = match weight {
                Some(weight) if waits => Some(Arc::clone(&gate).enter(weight).await),
                None if waits => {
                    gate.opened().await;
                    None
                }
                _ => None,
            };
            let answer = answer.await;
            if let Some(pause) = answer.as_ref().ok().and_then(told_to_pause) {
                gate.close_for(pause);
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_weight_is_in_the_path() {
        let check = |method: Method, path: &str, expected: Option<Weight>| {
            assert_eq!(Weight::of(&method, path), expected, "{method} {path}");
        };
        let bindings = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";
        check(Method::PATCH, &format!("{bindings}/a"), Some(Weight::Place));
        check(Method::PUT, &format!("{bindings}/a/status"), Some(Weight::Follows));
        check(Method::POST, bindings, Some(Weight::Follows));
        check(Method::GET, &format!("{bindings}/a"), None);
        check(Method::PATCH, "/apis/work.karmada.io/v1alpha2/clusterresourcebindings/a", Some(Weight::Place));
        check(Method::PUT, "/apis/cluster.karmada.io/v1alpha1/clusters/m1/status", Some(Weight::Place));
        check(Method::POST, "/api/v1/namespaces/default/events", Some(Weight::Remark));
        check(Method::PATCH, "/api/v1/namespaces/default/events/a.1", Some(Weight::Remark));
        check(Method::DELETE, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/a", Some(Weight::Follows));
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_asks_for_a_pause_gets_it() {
        let answer = |code: u16, after: &str| {
            told_to_pause(&Response::builder().status(code).header(RETRY_AFTER, after).body(()).unwrap())
        };
        assert_eq!(answer(429, "3"), Some(Duration::from_secs(3)));
        assert_eq!((answer(200, "3"), answer(429, "soon")), (None, None));
        let (gate, start) = (Gate::new(2), Instant::now());
        gate.close_for(Duration::from_secs(3));
        gate.close_for(Duration::from_secs(1));
        drop(Arc::clone(&gate).enter(Weight::Place).await);
        assert_eq!(start.elapsed().as_secs(), 3);
        gate.close_for(Duration::from_hours(1));
        gate.opened().await;
        assert_eq!(start.elapsed().as_secs(), 33);
        assert!(waits("/api/v1/nodes") && waits("/apis/apps/v1/deployments"));
        assert!(!waits("/readyz") && !waits("/apis/coordination.k8s.io/v1/namespaces/a/leases/b"));
    }

    #[tokio::test]
    async fn the_weightiest_goes_next_and_who_gave_up_keeps_nobody_waiting() {
        let gate = Gate::new(1);
        let first = Arc::clone(&gate).enter(Weight::Remark).await;
        let wait = |weight| {
            let mut waiting = Box::pin(Arc::clone(&gate).enter(weight));
            assert!(waiting.as_mut().now_or_never().is_none());
            waiting
        };
        let (mut remark, mut follows) = (wait(Weight::Remark), wait(Weight::Follows));
        let (gave_up, mut place) = (wait(Weight::Place), wait(Weight::Place));
        drop(gave_up);
        drop(first);
        assert!(remark.as_mut().now_or_never().is_none());
        assert!(follows.as_mut().now_or_never().is_none());
        drop(place.as_mut().now_or_never().unwrap());
        drop(follows.as_mut().now_or_never().unwrap());
        drop(remark);
        let state = gate.state();
        assert_eq!((state.free, state.waiting.len()), (1, 0));
    }
}
