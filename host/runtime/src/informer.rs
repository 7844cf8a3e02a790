//! Informer: lists and watches a kind, and hands each event to a receiver. Failures are retried.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::causes::causes;

/// First pause after a failed list or watch; doubles from there.
const RETRY_BASE: Duration = Duration::from_millis(800);
/// Longest pause between attempts to list or watch.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Describes a failed list or watch. Returns `None` for the expected case of a watch that is too old and starts
/// again.
fn failure_text(error: &watcher::Error) -> Option<String> {
    let of = |error: &kube::Error| match error {
        kube::Error::Api(status) if status.code == 404 => {
            format!(
                "it is not served in the API version of this program ({})",
                status.message.trim()
            )
        }
        kube::Error::Api(status) => status.message.clone(),
        other => causes(other),
    };
    match error {
        watcher::Error::InitialListFailed(error) => Some(format!("cannot be listed: {}", of(error))),
        watcher::Error::WatchStartFailed(error) => Some(format!("cannot be watched: {}", of(error))),
        watcher::Error::WatchError(status) if status.code == 410 => None,
        watcher::Error::WatchError(status) => Some(format!("the watch failed: {}", status.message)),
        watcher::Error::WatchFailed(error) => Some(format!("the watch was cut: {}", of(error))),
        watcher::Error::NoResourceVersion => Some("cannot be watched: the list has no resourceVersion".to_owned()),
    }
}

/// True if a watch cannot resume because its version has expired. The watcher lists again only if it learns this in
/// the middle of a watch. At the start of a watch it would retry the same version forever.
fn is_outdated(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// True if the error is not a response of the API server.
fn is_silence(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !matches!(error, kube::Error::Api(_)),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Receiver of the objects that an informer lists and watches.
pub trait Receiver<K> {
    /// Handles an event. A list begins with `Init` and is complete with `InitDone`; objects that it does not have were
    /// deleted.
    ///
    /// # Errors
    ///
    /// The reason why the object cannot be read. It counts as a failed list, and all objects are listed again.
    fn receive(&self, event: watcher::Event<K>) -> Result<(), String>;

    /// Called if a list or a watch failed, with the reason. It is retried.
    fn failed(&self, reason: String);

    /// Called if a list or a watch gets no response, or a watch is cut: the API server may be down.
    fn silent(&self) {}
}

/// Lists and watches a kind until the future is dropped. After a failure it waits for 0.8 to 30 s, longer from one to the
/// next until a list is complete or a watch delivers something.
pub async fn run<K>(receiver: &(impl Receiver<K> + Sync), api: Api<K>, config: watcher::Config)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut pause = RETRY_BASE;
    loop {
        let mut events = std::pin::pin!(watcher(api.clone(), config.clone()));
        while let Some(event) = events.next().await {
            let starts_again = match event {
                Ok(event) => {
                    let is_progress = !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_));
                    let Err(reason) = receiver.receive(event) else {
                        if is_progress {
                            pause = RETRY_BASE;
                        }
                        continue;
                    };
                    receiver.failed(format!("cannot be read: {reason}"));
                    true
                }
                Err(error) => {
                    if let Some(failure) = failure_text(&error) {
                        receiver.failed(failure);
                    }
                    if is_silence(&error) {
                        receiver.silent();
                    }
                    is_outdated(&error)
                }
            };
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
            if starts_again {
                break;
            }
        }
    }
}
