//! Cache of what the sums need of one kind of a member cluster.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bulkhead_runtime::excerpt::{Excerpt, FromFields};
use bulkhead_runtime::informer::Receiver;
use kube::api::ApiResource;
use kube::runtime::watcher::Event;
use tokio::sync::watch;

/// Parts of the objects of one kind that are kept.
pub(super) trait Contents: Default + Send + 'static {
    /// Value that is made of an object.
    type Value: FromFields + Clone + Debug + Send + Sync + 'static;

    /// Returns the kind.
    fn resource() -> ApiResource;

    /// Adds an object, or replaces its previous version.
    fn insert(&mut self, object: Excerpt<Self::Value>);

    /// Removes an object.
    fn remove(&mut self, object: &Excerpt<Self::Value>);
}

/// Contents that an informer keeps current.
pub(super) struct Cache<C> {
    contents: Mutex<Versions<C>>,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct Versions<C> {
    current: C,
    /// List in progress, which replaces the current contents once it is complete.
    listing: Option<C>,
}

/// State of the informer since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// True if the contents are those of a complete list.
    is_listed: bool,
    /// True if a list or watch has failed, and nothing has been received since.
    has_failed: bool,
}

impl<C: Default> Default for Cache<C> {
    fn default() -> Self {
        Self {
            contents: Mutex::default(),
            state: watch::Sender::new(State::default()),
        }
    }
}

impl<C> Cache<C> {
    fn versions(&self) -> MutexGuard<'_, Versions<C>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an informer starts.
    pub(super) fn expect_list(&self) {
        self.state.send_replace(State::default());
    }

    /// Notes that a list or a watch failed.
    pub(super) fn fail(&self) {
        self.state.send_modify(|state| state.has_failed = true);
    }

    /// True if the last list or watch failed.
    pub(super) fn has_failed(&self) -> bool {
        self.state.borrow().has_failed
    }

    /// Waits until a list in progress is complete. Returns false if it fails.
    pub(super) async fn is_listed(&self) -> bool {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| state.is_listed || state.has_failed).await;
        settled.is_ok_and(|state| state.is_listed)
    }

    /// Reads the contents of the last complete list with the changes since.
    pub(super) fn read<T>(&self, read: impl FnOnce(&C) -> T) -> T {
        read(&self.versions().current)
    }
}

impl<C: Contents> Receiver<Excerpt<C::Value>> for Cache<C> {
    fn receive(&self, event: Event<Excerpt<C::Value>>) -> Result<(), String> {
        let is_listed = !matches!(event, Event::Init | Event::InitApply(_));
        let mut versions = self.versions();
        match event {
            Event::Init => versions.listing = Some(C::default()),
            Event::InitApply(object) => versions.listing.get_or_insert_default().insert(object),
            Event::InitDone => versions.current = versions.listing.take().unwrap_or_default(),
            Event::Apply(object) => versions.current.insert(object),
            Event::Delete(object) => versions.current.remove(&object),
        }
        drop(versions);
        let state = State {
            is_listed,
            has_failed: false,
        };
        self.state
            .send_if_modified(|known| std::mem::replace(known, state) != state);
        Ok(())
    }

    fn failed(&self, _: String) {
        self.fail();
    }
}
