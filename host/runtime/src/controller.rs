//! Reconcile loop shared by all controllers.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{Instrument as _, Span, debug};

use crate::causes::causes;
use crate::connection::WriteRefused;
use crate::queue::{Observable, WorkQueue};

/// Target of the log lines and spans of reconciles.
pub const TARGET: &str = "bulkhead::reconcile";

/// Result of a successful reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for a change.
    Wait,
    /// Reconcile again after this time even if nothing changes.
    After(Duration),
}

/// Reason why a reconcile failed. Errors are retried with back-off, except for lasting ones, which wait for a change.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server rejected the request or did not answer.
    #[error("{operation}")]
    Api {
        /// Attempted operation, with the object.
        operation: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// A precondition is not met yet.
    #[error("{0}")]
    NotYet(String),
    /// The decision could not be made.
    #[error("{0}")]
    Undecided(String),
}

/// Error classes for metrics. There are few of them; the log has the full texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// Another writer was faster.
    Conflict,
    /// The account lacks a permission.
    Forbidden,
    /// The API server did not authenticate the account.
    Unauthorized,
    /// The object or its kind does not exist.
    NotFound,
    /// The API server rejected the object.
    Invalid,
    /// The object exceeds the size limit of the API server or of etcd.
    TooLarge,
    /// Too many requests.
    Throttled,
    /// The API server failed.
    ServerError,
    /// No response.
    NoAnswer,
    /// The process has no write permit at present.
    NotPermitted,
    /// A precondition is not met yet.
    NotYet,
    /// The decision could not be made.
    Undecided,
}

impl ErrorClass {
    /// Returns the class as the value of a label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not-found",
            Self::Invalid => "invalid",
            Self::TooLarge => "too-large",
            Self::Throttled => "throttled",
            Self::ServerError => "server-error",
            Self::NoAnswer => "no-answer",
            Self::NotPermitted => "not-permitted",
            Self::NotYet => "not-yet",
            Self::Undecided => "undecided",
        }
    }

    fn of_status(code: u16, message: &str) -> Self {
        // etcd's size limit is reported as a 500, that of the API server as a 413.
        if code == 413 || message.contains("request is too large") || message.contains("Request entity too large") {
            return Self::TooLarge;
        }
        match code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::Throttled,
            400..=499 => Self::Invalid,
            _ => Self::ServerError,
        }
    }
}

impl Error {
    /// Returns the error class.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotYet(_) => ErrorClass::NotYet,
            Self::Undecided(_) => ErrorClass::Undecided,
            Self::Api { source, .. } => match &**source {
                kube::Error::Api(status) => ErrorClass::of_status(status.code, &status.message),
                kube::Error::Service(error) if error.is::<WriteRefused>() => ErrorClass::NotPermitted,
                _ => ErrorClass::NoAnswer,
            },
        }
    }

    /// True if a retry would fail in the same way: an object that is too large stays so until it changes.
    pub fn is_lasting(&self) -> bool {
        self.class() == ErrorClass::TooLarge
    }

    /// Returns a function that wraps an API error.
    pub fn api(operation: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Api {
            operation,
            source: Box::new(source),
        }
    }

    /// Returns the error in one line, with the message of the API server or the reason why there is none.
    pub fn describe(&self) -> String {
        match self {
            Self::Api { operation, source } => match &**source {
                kube::Error::Api(status) => format!("{operation}: {}", status.message),
                source => format!("{operation}: {}", causes(source)),
            },
            Self::NotYet(_) | Self::Undecided(_) => self.to_string(),
        }
    }

    /// True if the write was decided but not sent because this process only reports.
    pub fn is_withheld(&self) -> bool {
        self.refused() == Some(WriteRefused::OnlyReports)
    }

    /// True if the write was not sent because this process is stopping.
    pub fn is_stop(&self) -> bool {
        self.refused() == Some(WriteRefused::Stopping)
    }

    fn refused(&self) -> Option<WriteRefused> {
        let Self::Api { source, .. } = self else { return None };
        let kube::Error::Service(error) = &**source else {
            return None;
        };
        error.downcast_ref().copied()
    }

    /// True if the server rejected the request (4xx). Any other failure is ambiguous.
    pub fn is_refusal(&self) -> bool {
        let Self::Api { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if (400..500).contains(&status.code))
    }

    /// True if the decision is certainly not in effect although it should be.
    pub fn is_undone(&self) -> bool {
        let is_not_sent = matches!(
            self.class(),
            ErrorClass::NotPermitted | ErrorClass::NotYet | ErrorClass::Undecided
        );
        !self.is_withheld() && (self.is_refusal() || is_not_sent)
    }

    /// True if the API server answered that it does not serve the kind.
    pub fn is_kind_unknown(&self) -> bool {
        let Self::Api { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Discovery(_)) || is_not_found(source)
    }

    /// True if another writer was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is_conflict(source))
    }
}

/// Delay of the first retry after a conflict: the watch may lag behind the write that won.
pub const AFTER_CONFLICT: Duration = Duration::from_millis(20);
/// Longest delay of a retry after a conflict. A change of the object triggers the retry earlier.
const AFTER_CONFLICT_MAX: Duration = Duration::from_secs(10);

/// Returns the delay of a retry after `conflicts` conflicts in a row, the latest included. It doubles from
/// [`AFTER_CONFLICT`] up to ten seconds.
pub fn after_conflict(conflicts: u32) -> Duration {
    let doubled = 1_u32.checked_shl(conflicts.saturating_sub(1)).unwrap_or(u32::MAX);
    AFTER_CONFLICT.saturating_mul(doubled).min(AFTER_CONFLICT_MAX)
}

/// True if an API error means that the object does not exist.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// True if an API error is a conflict (409): the object exists already, or its version is outdated.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Observer of the reconciles of a controller.
pub trait Observer<K>: Send + Sync + 'static {
    /// Returns the span of a reconcile. By default there is none.
    fn span(&self, _: &K) -> Span {
        Span::none()
    }

    /// Called in the span when a reconcile failed.
    fn failed(&self, key: &K, error: &Error);

    /// Called when the controller starts, with its queue. By default the queue is not observed.
    fn started(&self, _: Weak<dyn Observable>) {}
}

/// Observer of a controller whose failures are visible elsewhere, such as in a condition.
pub struct Unobserved;

impl<K> Observer<K> for Unobserved {
    fn failed(&self, _: &K, _: &Error) {}
}

/// Takes keys from the queue and reconciles up to `workers` of them at the same time. Dropping the future cancels
/// all.
pub async fn run<K, F, Fut>(queue: Arc<WorkQueue<K>>, workers: usize, reconcile: F, observer: impl Observer<K>)
where
    K: Ord + Clone + Send + Sync + 'static,
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, Error>> + Send,
{
    run_per_key(queue, workers, |_| (), reconcile, observer).await;
}

/// Runs like [`run`], with `workers` for each group of keys, so that a group that hangs delays no other.
pub async fn run_per_key<K, G, F, Fut>(
    queue: Arc<WorkQueue<K>>,
    workers: usize,
    group_of: impl Fn(&K) -> G,
    reconcile: F,
    observer: impl Observer<K>,
) where
    K: Ord + Clone + Send + Sync + 'static,
    G: Ord + Clone + Send + 'static,
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, Error>> + Send,
{
    let (reconcile, observer) = (Arc::new(reconcile), Arc::new(observer));
    let observed: Weak<WorkQueue<K>> = Arc::downgrade(&queue);
    observer.started(observed);
    let (mut keyed, mut tasks) = (KeyedWorkers::new(workers), JoinSet::new());
    loop {
        let start = tokio::select! {
            biased;
            Some(ended) = tasks.join_next() => match ended {
                Ok(group) => keyed.next(group),
                // A panic is a bug that must not go unnoticed.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            key = queue.next() => keyed.take(group_of(&key), key),
        };
        let Some((group, key)) = start else { continue };
        queue.begin(&key);
        let (queue, reconcile, observer) = (Arc::clone(&queue), Arc::clone(&reconcile), Arc::clone(&observer));
        let span = observer.span(&key);
        let reconciling = async move {
            let outcome = reconcile(key.clone()).await;
            match &outcome {
                Ok(action) => debug!(target: TARGET, ?action, "reconciled"),
                Err(error) => observer.failed(&key, error),
            }
            give_back(&queue, key, &outcome);
            group
        };
        tasks.spawn(reconciling.instrument(span));
    }
}

fn give_back<K: Ord + Clone>(queue: &WorkQueue<K>, key: K, outcome: &Result<Action, Error>) {
    match outcome {
        // A conflict is not a failure, but repeated ones must not keep an API server busy.
        Err(error) if error.is_conflict() => queue.lost_race(&key, after_conflict),
        Err(error) => queue.done(&key, !error.is_withheld() && !error.is_lasting()),
        Ok(action) => {
            queue.done(&key, false);
            if let Action::After(delay) = action {
                queue.add_after(key, *delay);
            }
        }
    }
}

/// Keys in progress, and keys that wait because their group has no free worker.
struct KeyedWorkers<G, K> {
    workers: usize,
    busy: BTreeMap<G, usize>,
    waiting: BTreeMap<G, VecDeque<K>>,
}

impl<G: Ord + Clone, K> KeyedWorkers<G, K> {
    /// Creates `workers` for each group, at least one.
    fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            busy: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Accepts a key from the queue. Returns it if a worker of its group is free.
    fn take(&mut self, group: G, key: K) -> Option<(G, K)> {
        let busy = self.busy.entry(group.clone()).or_default();
        if *busy >= self.workers {
            self.waiting.entry(group).or_default().push_back(key);
            return None;
        }
        *busy += 1;
        Some((group, key))
    }

    /// Frees a worker of a group. Returns the next waiting key of the group.
    fn next(&mut self, group: G) -> Option<(G, K)> {
        let waiting = self.waiting.get_mut(&group);
        if let Some(key) = waiting.and_then(VecDeque::pop_front) {
            return Some((group, key));
        }
        self.waiting.remove(&group);
        if let Some(busy) = self.busy.get_mut(&group) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&group);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::core::Status;
    use tokio::time::Instant;

    use super::*;

    fn refused(code: u16, message: &str) -> Error {
        let status = Status::failure(message, "").with_code(code);
        Error::api("writing Work a")(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn errors_are_sorted_into_few_classes() {
        let check =
            |code, message, expected: &str| assert_eq!(refused(code, message).class().name(), expected, "{code}");
        check(409, "somebody was faster", "conflict");
        check(403, "clusters is forbidden", "forbidden");
        check(413, "no", "too-large");
        check(500, "etcdserver: request is too large", "too-large");
        check(500, "boom", "server-error");
        check(503, "starting", "server-error");
        check(429, "slow down", "throttled");
        check(422, "spec.x: Invalid value", "invalid");
        let unanswered = Error::api("reading")(kube::Error::Service("connection refused".into()));
        assert_eq!(unanswered.class().name(), "no-answer");
        let withheld = Error::api("writing")(kube::Error::Service(Box::new(WriteRefused::LeaseRanOut)));
        assert_eq!(withheld.class().name(), "not-permitted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_hangs_delays_no_other_and_no_key_runs_twice_at_a_time() {
        let (queue, ended) = (Arc::<WorkQueue<(char, u8)>>::default(), Arc::<Mutex<Vec<_>>>::default());
        for number in 0..4 {
            queue.add(('a', number));
            queue.add(('b', number));
        }
        let (noted, start) = (Arc::clone(&ended), Instant::now());
        let reconcile = move |(group, number)| {
            let noted = Arc::clone(&noted);
            async move {
                if group == 'a' {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                noted.lock().unwrap().push((number, start.elapsed().as_secs()));
                Ok(Action::Wait)
            }
        };
        let running = run_per_key(queue, 2, |(group, _)| *group, reconcile, Unobserved);
        let _ = tokio::time::timeout(Duration::from_mins(1), running).await;
        assert_eq!(*ended.lock().unwrap(), [(0, 1), (1, 1), (2, 2), (3, 2)]);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a bug")]
    async fn a_panic_is_passed_on() {
        let queue = Arc::<WorkQueue<u8>>::default();
        queue.add(1);
        run(queue, 1, |_| async { panic!("a bug") }, Unobserved).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_large_waits_for_a_change_and_the_rest_is_tried_again() {
        let attempts = async |error: fn() -> Error| {
            let (queue, attempts) = (Arc::<WorkQueue<u8>>::default(), Arc::new(AtomicUsize::new(0)));
            queue.add(1);
            let counted = Arc::clone(&attempts);
            let reconcile = move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                async move { Err(error()) }
            };
            let _ = tokio::time::timeout(
                Duration::from_mins(1),
                run(Arc::clone(&queue), 1, reconcile, Unobserved),
            )
            .await;
            attempts.load(Ordering::Relaxed)
        };
        assert_eq!(attempts(|| refused(413, "too large")).await, 1);
        assert!(attempts(|| refused(503, "starting")).await > 5);
    }

    /// Runs attempts at a key for a minute. Each one conflicts, except for number `success`. Returns their count and
    /// times.
    async fn attempts_with_conflicts(success: Option<usize>) -> (usize, Vec<u128>) {
        let (queue, times) = (Arc::<WorkQueue<u8>>::default(), Arc::<Mutex<Vec<u128>>>::default());
        queue.add(1);
        let (noted, start, again) = (Arc::clone(&times), Instant::now(), Arc::clone(&queue));
        let reconcile = move |key| {
            let mut times = noted.lock().unwrap();
            times.push(start.elapsed().as_millis());
            let succeeds = Some(times.len()) == success;
            if succeeds {
                again.add_after(key, Duration::from_secs(1));
            }
            async move {
                if succeeds {
                    Ok(Action::Wait)
                } else {
                    Err(refused(409, "AlreadyExists"))
                }
            }
        };
        let running = run(queue, 1, reconcile, Unobserved);
        let _ = tokio::time::timeout(Duration::from_mins(1), running).await;
        let times = times.lock().unwrap().clone();
        (times.len(), times)
    }

    #[tokio::test(start_paused = true)]
    async fn conflicts_back_off_to_a_cap_and_a_success_resets_them() {
        let (count, times) = attempts_with_conflicts(None).await;
        assert_eq!(count, 14, "{times:?}");
        assert_eq!(times[..5], [0, 20, 60, 140, 300]);
        assert_eq!(times[count - 1] - times[count - 2], AFTER_CONFLICT_MAX.as_millis());
        let (_, times) = attempts_with_conflicts(Some(4)).await;
        assert_eq!(times[..7], [0, 20, 60, 140, 1_140, 1_160, 1_200]);
    }
}
