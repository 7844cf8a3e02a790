//! Priorities of writes.
//!
//! More concurrent requests do not make an overloaded API server faster. So a client bounds its writes in flight, and
//! the waiting write with the highest priority goes next: placements first, then their results, events last. A client
//! pauses when the API server asks for it.

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

/// Maximum number of writes in flight per client.
const UNDER_WAY_MAX: usize = 16;
/// Longest pause that an API server gets.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// True if requests of a method change nothing.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Priority of a write, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Bindings and clusters: evictions, placements, releases, taints, readiness.
    Place,
    /// Works, health and everything else.
    Follows,
    /// Events.
    Remark,
}

impl Weight {
    /// Returns the priority of a request. Reads have none and do not need a permit.
    fn of(method: &Method, path: &str) -> Option<Self> {
        if is_read(method) {
            return None;
        }
        let segments: Vec<_> = path.split('/').collect();
        let (about, is_status) = match segments.as_slice() {
            // A POST on the collection creates an object.
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

/// Writes in flight and waiting writes.
#[derive(Debug)]
struct Gate(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// End of the pause that the API server asked for.
    opens: Option<Instant>,
    waiting: BTreeMap<(Weight, u64), oneshot::Sender<Pass>>,
    arrivals: u64,
}

/// Permit for one write in flight. When it is dropped, the next waiting write gets it.
#[derive(Debug)]
struct Pass(Option<Arc<Gate>>);

impl Gate {
    fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { free, opens: None, waiting: BTreeMap::new(), arrivals: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts no request during a pause of at most [`PAUSE_MAX`]. Requests in flight are not affected.
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
            // While the gate exists, no sender is dropped without an answer, and `self` keeps the gate.
            Some(turn) => turn.await.unwrap_or(Pass(None)),
        };
        self.opened().await;
        pass
    }

    /// Waits for the end of the pause that the API server asked for.
    async fn opened(&self) {
        loop {
            let opens = self.state().opens.filter(|opens| *opens > Instant::now());
            let Some(opens) = opens else { return };
            tokio::time::sleep_until(opens).await;
        }
    }
}

impl Pass {
    /// Returns the gate without releasing the permit.
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
            // A waiter that has given up returns the permit, and the next one gets it.
            let Err(refused) = waiting.send(Self(Some(gate))) else { return };
            let Some(back) = refused.into_gate() else { return };
            gate = back;
        }
    }
}

/// Layer that lets the writes with the highest priority go first. The inner service must do nothing before its future
/// is polled.
pub(crate) struct Precedence(Arc<Gate>);

impl Precedence {
    /// Creates the layer for one client.
    pub(crate) fn new() -> Self {
        Self(Gate::new(UNDER_WAY_MAX))
    }
}

/// Service whose writes wait for a permit.
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

/// True if a request may be delayed. Leases and probes must not: they show that a process is alive, and are useless
/// late.
fn waits(path: &str) -> bool {
    path.starts_with("/api") && !path.starts_with("/apis/coordination.k8s.io/")
}

/// Returns the pause that an overloaded API server asks for.
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
