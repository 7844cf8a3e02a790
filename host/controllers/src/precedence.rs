//! Which of many writes goes first.
//!
//! An API server in a storm answers as fast as it can, and no faster for being asked by everybody at once. So a client has
//! a bounded number of writes under way, and of those that wait the weightiest goes next: where something runs before
//! what became of it, and events last.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Method, Request};
use kube::client::Body;
use tokio::sync::oneshot;
use tower::{Layer, Service};

/// Writes that one client has under way.
const UNDER_WAY_MAX: usize = 16;

/// Whether requests of a method change nothing.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// What a write is about, the weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Bindings, clusters and leases: evictions, placements, releases, taints, readiness, heartbeats.
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
            "clusters" | "leases" => Self::Place,
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
    waiting: BTreeMap<(Weight, u64), oneshot::Sender<Pass>>,
    arrivals: u64,
}

/// One write under way. Whoever waits gets it next when it is dropped.
#[derive(Debug)]
struct Pass(Option<Arc<Gate>>);

impl Gate {
    fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { free, waiting: BTreeMap::new(), arrivals: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        match turn {
            None => Pass(Some(self)),
            // Nobody drops a sender without an answer while the gate stands, and this holds the gate.
            Some(turn) => turn.await.unwrap_or(Pass(None)),
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

impl<S> Service<Request<Body>> for PrecedenceService<S>
where
    S: Service<Request<Body>>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let weight = Weight::of(request.method(), request.uri().path());
        let answer = self.inner.call(request);
        let Some(weight) = weight else { return Box::pin(answer) };
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            let _pass = gate.enter(weight).await;
            answer.await
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
        check(Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/m1", Some(Weight::Place));
        check(Method::POST, "/api/v1/namespaces/default/events", Some(Weight::Remark));
        check(Method::PATCH, "/api/v1/namespaces/default/events/a.1", Some(Weight::Remark));
        check(Method::DELETE, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/a", Some(Weight::Follows));
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
