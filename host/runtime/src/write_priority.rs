//! Priorities of writes.
//!
//! More concurrent requests do not make an overloaded API server faster. So a client bounds its writes in flight, and
//! the waiting write with the highest priority goes next, events last. A client pauses when the API server asks for it.

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
const IN_FLIGHT_MAX: usize = 16;
/// Longest pause that an API server gets.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// True if requests of a method change nothing.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Priority of a write, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Writes that others wait for.
    High,
    /// Everything else.
    Normal,
    /// Writes that no one waits for. Events always have this priority.
    Low,
}

/// Object that a write creates, changes or deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTarget<'a> {
    /// Plural of its kind, in lower case.
    pub resource: &'a str,
    /// True if the write changes the status subresource.
    pub is_status: bool,
    /// True if the write creates the object.
    pub is_new: bool,
}

/// Function that returns the priority of a write.
pub type PriorityOf = fn(WriteTarget<'_>) -> Priority;

impl Priority {
    /// Returns the priority of a request. Reads have none and do not need a permit.
    fn of(method: &Method, path: &str, priority_of: PriorityOf) -> Option<Self> {
        if is_read(method) {
            return None;
        }
        let segments: Vec<_> = path.split('/').collect();
        let is_new = method == Method::POST;
        let (resource, is_status) = match segments.as_slice() {
            [.., "events"] | [.., "events", _] => return Some(Self::Low),
            // A POST on the collection creates an object.
            [.., resource] if is_new => (*resource, false),
            [.., resource, _, "status"] => (*resource, true),
            [.., resource, _] => (*resource, false),
            _ => return Some(Self::Normal),
        };
        Some(priority_of(WriteTarget {
            resource,
            is_status,
            is_new,
        }))
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
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Permit>>,
    arrivals: u64,
}

/// Permit for one write in flight. When it is dropped, the next waiting write gets it.
#[derive(Debug)]
struct Permit(Option<Arc<Gate>>);

impl Gate {
    fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            free,
            opens: None,
            waiting: BTreeMap::new(),
            arrivals: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts no request during a pause of at most [`PAUSE_MAX`]. Requests in flight are not affected.
    fn close_for(&self, pause: Duration) {
        let mut state = self.state();
        state.opens = state.opens.max(Some(Instant::now() + pause.min(PAUSE_MAX)));
    }

    async fn enter(self: Arc<Self>, priority: Priority) -> Permit {
        let granted = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                None
            } else {
                let (sender, granted) = oneshot::channel();
                state.arrivals += 1;
                let rank = (priority, state.arrivals);
                state.waiting.insert(rank, sender);
                Some(granted)
            }
        };
        let permit = match granted {
            None => Permit(Some(Arc::clone(&self))),
            // While the gate exists, no sender is dropped without an answer, and `self` keeps the gate.
            Some(granted) => granted.await.unwrap_or(Permit(None)),
        };
        self.opened().await;
        permit
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

impl Permit {
    /// Returns the gate without releasing the permit.
    fn into_gate(mut self) -> Option<Arc<Gate>> {
        self.0.take()
    }
}

impl Drop for Permit {
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
            let Err(refused) = waiting.send(Self(Some(gate))) else {
                return;
            };
            let Some(back) = refused.into_gate() else { return };
            gate = back;
        }
    }
}

/// Layer that lets the writes with the highest priority go first. The inner service must do nothing before its future
/// is polled.
pub(crate) struct WritePriority {
    gate: Arc<Gate>,
    priority_of: PriorityOf,
}

impl WritePriority {
    /// Creates the layer for one client.
    pub(crate) fn new(priority_of: PriorityOf) -> Self {
        Self {
            gate: Gate::new(IN_FLIGHT_MAX),
            priority_of,
        }
    }
}

/// Service whose writes wait for a permit.
pub(crate) struct WritePriorityService<S> {
    inner: S,
    gate: Arc<Gate>,
    priority_of: PriorityOf,
}

impl<S> Layer<S> for WritePriority {
    type Service = WritePriorityService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WritePriorityService {
            inner,
            gate: Arc::clone(&self.gate),
            priority_of: self.priority_of,
        }
    }
}

/// True if a request may be delayed. Leases and probes must not: they show that a process is alive, and are useless
/// late.
fn waits(path: &str) -> bool {
    path.starts_with("/api") && !path.starts_with("/apis/coordination.k8s.io/")
}

/// Returns the pause that an overloaded API server asks for.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    if !matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl<S, B> Service<Request<Body>> for WritePriorityService<S>
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
        let path = request.uri().path();
        let (priority, waits) = (Priority::of(request.method(), path, self.priority_of), waits(path));
        let (answer, gate) = (self.inner.call(request), Arc::clone(&self.gate));
        Box::pin(async move {
            let _permit = match priority {
                Some(priority) if waits => Some(Arc::clone(&gate).enter(priority).await),
                None if waits => {
                    gate.opened().await;
                    None
                }
                _ => None,
            };
            let answer = answer.await;
            if let Some(pause) = answer.as_ref().ok().and_then(retry_after) {
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
    fn the_path_gives_the_priority() {
        let of_nodes = |target: WriteTarget<'_>| match target {
            WriteTarget {
                resource: "nodes",
                is_status: false,
                is_new: false,
            } => Priority::High,
            WriteTarget {
                resource: "nodes",
                is_new: true,
                ..
            } => Priority::Low,
            _ => Priority::Normal,
        };
        let check = |method: Method, path: &str, expected: Option<Priority>| {
            assert_eq!(Priority::of(&method, path, of_nodes), expected, "{method} {path}");
        };
        check(Method::PATCH, "/api/v1/nodes/a", Some(Priority::High));
        check(Method::PUT, "/api/v1/nodes/a/status", Some(Priority::Normal));
        check(Method::POST, "/api/v1/nodes", Some(Priority::Low));
        check(
            Method::POST,
            "/apis/apps/v1/namespaces/default/deployments",
            Some(Priority::Normal),
        );
        check(Method::GET, "/api/v1/nodes/a", None);
        check(
            Method::DELETE,
            "/apis/apps/v1/namespaces/default/deployments/a",
            Some(Priority::Normal),
        );
        check(Method::POST, "/api/v1/namespaces/default/events", Some(Priority::Low));
        check(
            Method::PATCH,
            "/api/v1/namespaces/default/events/a.1",
            Some(Priority::Low),
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_asks_for_a_pause_gets_it() {
        let answer = |code: u16, after: &str| {
            retry_after(
                &Response::builder()
                    .status(code)
                    .header(RETRY_AFTER, after)
                    .body(())
                    .unwrap(),
            )
        };
        assert_eq!(answer(429, "3"), Some(Duration::from_secs(3)));
        assert_eq!((answer(200, "3"), answer(429, "soon")), (None, None));
        let (gate, start) = (Gate::new(2), Instant::now());
        gate.close_for(Duration::from_secs(3));
        gate.close_for(Duration::from_secs(1));
        drop(Arc::clone(&gate).enter(Priority::High).await);
        assert_eq!(start.elapsed().as_secs(), 3);
        gate.close_for(Duration::from_hours(1));
        gate.opened().await;
        assert_eq!(start.elapsed().as_secs(), 33);
        assert!(waits("/api/v1/nodes") && waits("/apis/apps/v1/deployments"));
        assert!(!waits("/readyz") && !waits("/apis/coordination.k8s.io/v1/namespaces/a/leases/b"));
    }

    #[tokio::test]
    async fn the_highest_priority_goes_next_and_a_waiter_that_gave_up_blocks_none() {
        let gate = Gate::new(1);
        let first = Arc::clone(&gate).enter(Priority::Low).await;
        let wait = |priority| {
            let mut waiting = Box::pin(Arc::clone(&gate).enter(priority));
            assert!(waiting.as_mut().now_or_never().is_none());
            waiting
        };
        let (mut event, mut work) = (wait(Priority::Low), wait(Priority::Normal));
        let (gave_up, mut placement) = (wait(Priority::High), wait(Priority::High));
        drop(gave_up);
        drop(first);
        assert!(event.as_mut().now_or_never().is_none());
        assert!(work.as_mut().now_or_never().is_none());
        drop(placement.as_mut().now_or_never().unwrap());
        drop(work.as_mut().now_or_never().unwrap());
        drop(event);
        let state = gate.state();
        assert_eq!((state.free, state.waiting.len()), (1, 0));
    }
}
