//! The loop that every controller runs in.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::connection::WriteRefused;
use crate::queue::WorkQueue;

/// What a reconcile asks for when nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for a change.
    Wait,
    /// Come back after that time even if nothing changes.
    After(Duration),
}

/// Why a reconcile did not get through. All of these are retried with back-off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API refused or did not answer.
    #[error("{operation}")]
    Api {
        /// What was attempted, with the object.
        operation: String,
        /// The answer.
        source: Box<kube::Error>,
    },
    /// Something has to happen first.
    #[error("{0}")]
    NotYet(String),
    /// The decision could not be made.
    #[error("{0}")]
    Undecided(String),
}

impl Error {
    /// Wraps an API error.
    pub fn api(operation: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Api { operation, source: Box::new(source) }
    }

    /// The error with what the API server said, in one line.
    pub fn describe(&self) -> String {
        match self {
            Self::Api { operation, source } => match &**source {
                kube::Error::Api(status) => format!("{operation}: {}", status.message),
                source => format!("{operation}: {source}"),
            },
            Self::NotYet(_) | Self::Undecided(_) => self.to_string(),
        }
    }

    /// Whether the write was decided and not sent, because this process only reports.
    pub fn is_withheld(&self) -> bool {
        let Self::Api { source, .. } = self else { return false };
        let kube::Error::Service(error) = &**source else { return false };
        error.downcast_ref() == Some(&WriteRefused::OnlyReports)
    }

    /// Whether another writer was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is_conflict(source))
    }
}

/// How long to wait after a conflict, so that the newer version has arrived.
pub(crate) const AFTER_CONFLICT: Duration = Duration::from_millis(20);

/// Whether an API error says that the object is not there.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether an API error says that the object exists already.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Takes keys from the queue and reconciles them, `workers` at a time, for ever. Dropping the future stops all.
pub(crate) async fn run<K, F, Fut>(
    queue: Arc<WorkQueue<K>>,
    workers: usize,
    reconcile: F,
    failed: impl Fn(&K, &Error) + Send + Sync + 'static,
) where
    K: Ord + Clone + Send + Sync + 'static,
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, Error>> + Send,
{
    let (reconcile, failed) = (Arc::new(reconcile), Arc::new(failed));
    let mut tasks = JoinSet::new();
    for _ in 0..workers.max(1) {
        let (queue, reconcile, failed) = (Arc::clone(&queue), Arc::clone(&reconcile), Arc::clone(&failed));
        tasks.spawn(async move {
            loop {
                let key = queue.next().await;
                let outcome = reconcile(key.clone()).await;
                if let Err(error) = &outcome {
                    failed(&key, error);
                }
                // Whoever lost a race has only to look again; that is no failure to back off from.
                let lost_race = outcome.as_ref().is_err_and(Error::is_conflict);
                let withheld = outcome.as_ref().is_err_and(Error::is_withheld);
                queue.done(&key, outcome.is_err() && !lost_race && !withheld);
                match outcome {
                    Ok(Action::After(delay)) => queue.add_after(key, delay),
                    Err(_) if lost_race => queue.add_after(key, AFTER_CONFLICT),
                    Ok(Action::Wait) | Err(_) => {}
                }
            }
        });
    }
    // A worker ends only by panicking: a bug that must not go unnoticed.
    while let Some(ended) = tasks.join_next().await {
        let Err(error) = ended;
        if error.is_panic() {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
