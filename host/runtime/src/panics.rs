//! Detection of panics in background tasks.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;

/// First panic among the watched tasks.
#[derive(Clone, Debug)]
pub struct Panics(Arc<watch::Sender<Option<String>>>);

impl Default for Panics {
    /// Starts without a panic.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Panics {
    /// Wraps a task under a name. A panic of the task is recorded and does not propagate.
    pub fn watch<T>(&self, name: String, task: T) -> impl Future<Output = ()> + use<T>
    where
        T: Future<Output = ()>,
    {
        let sender = Arc::clone(&self.0);
        async move {
            // Shared state is behind locks, and is not used for long after a panic.
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                let why = format!("{name} panicked: {}", text(&*panic));
                sender.send_if_modified(|first| first.is_none() && first.replace(why).is_none());
            }
        }
    }

    /// Waits until a task panics, and returns its name with the reason.
    pub async fn first(&self) -> String {
        let mut receiver = self.0.subscribe();
        let Ok(first) = receiver.wait_for(Option::is_some).await else {
            return std::future::pending().await;
        };
        first.clone().unwrap_or_default()
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_panic_is_reported_to_every_caller_and_an_end_is_no_panic() {
        let panics = Panics::default();
        panics.watch("controller calm".to_owned(), async {}).await;
        assert!(panics.first().now_or_never().is_none());
        panics
            .watch("controller a".to_owned(), async { panic!("no {}", 1) })
            .await;
        panics.watch("controller b".to_owned(), async { panic!("later") }).await;
        assert_eq!(panics.first().await, "controller a panicked: no 1");
        assert_eq!(panics.first().await, "controller a panicked: no 1");
    }
}
