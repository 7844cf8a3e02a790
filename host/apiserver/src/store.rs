//! Access to a server's objects without HTTP, for emulators and tests.

use std::pin::pin;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::delete::{DeleteOptions, Deletion};
use crate::kind::KindId;
use crate::object::{Change, Object, ObjectKey};
use crate::shape::Part;
use crate::shared::Shared;
use crate::status_error::StatusError;
use crate::write::{Fidelity, Terms, Writer};

/// Handle to the objects of one server; its writes follow the same rules as requests.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns an object, if it exists.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.shared.lock_state().get_key(key).cloned()
    }

    /// Returns the objects of a kind in one namespace or in all, ordered by namespace and name.
    pub fn list(&self, kind: KindId, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let state = self.shared.lock_state();
        state.table(kind).scan(namespace, None).cloned().collect()
    }

    /// Returns the objects of a kind that name `uid` as an owner, ordered by namespace and name.
    pub fn dependents(&self, uid: &str, kind: KindId) -> Vec<Arc<Object>> {
        let state = self.shared.lock_state();
        state
            .dependents(uid)
            .iter()
            .filter(|key| key.kind == kind)
            .filter_map(|key| state.get_key(key).cloned())
            .collect()
    }

    /// Stores a new object; `namespace` is empty for cluster-scoped kinds.
    ///
    /// # Errors
    ///
    /// As for a POST request: 400, 403, 404 for the namespace, 409, 422.
    pub fn create(&self, kind: KindId, namespace: &str, object: Value) -> Result<Arc<Object>, StatusError> {
        self.write(|writer| writer.create(kind, namespace, object))
    }

    /// Replaces an object except its status.
    ///
    /// # Errors
    ///
    /// As for a PUT request: 400, 403, 404, 409, 422.
    pub fn update(&self, key: &ObjectKey, object: Value) -> Result<Arc<Object>, StatusError> {
        self.write(|writer| writer.update(key, Part::Main, object))
    }

    /// Replaces only the status of an object.
    ///
    /// # Errors
    ///
    /// 404 if the object does not exist.
    pub fn set_status(&self, key: &ObjectKey, status: Value) -> Result<Arc<Object>, StatusError> {
        self.write(|writer| {
            let existing = writer.existing(key)?;
            let mut object = match writer.rules.fidelity {
                // No rule reads anything else.
                Fidelity::Controllers => json!({"metadata": {"name": key.name}}),
                Fidelity::People => existing.content().to_value(),
            };
            object["status"] = status;
            writer.update(key, Part::Status, object)
        })
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// As for a DELETE request: 404, 409 if a precondition does not hold.
    pub fn delete(&self, key: &ObjectKey, options: &DeleteOptions) -> Result<Deletion, StatusError> {
        self.write(|writer| writer.delete(key, options))
    }

    /// Subscribes to the changes of some kinds from now on.
    pub fn subscribe(&self, kinds: &[KindId]) -> Subscription {
        Subscription {
            shared: Arc::clone(&self.shared),
            kinds: kinds.to_vec(),
            cursor: self.resource_version(),
        }
    }

    /// Returns the retained changes of a kind, oldest first.
    pub fn history(&self, kind: KindId) -> Vec<Arc<Change>> {
        let state = self.shared.lock_state();
        state.table(kind).history.after(0).collect()
    }

    /// Returns the version of the whole state, which increases by one with each change.
    pub fn resource_version(&self) -> u64 {
        self.shared.lock_state().version
    }

    fn write<T>(&self, act: impl FnOnce(&mut Writer<'_>) -> T) -> T {
        let mut state = self.shared.lock_state();
        act(&mut Writer::new(&mut state, &self.shared.rules, Terms::default()))
    }
}

/// Error of a subscriber that fell behind the bounded history. Some changes are lost, so it has to list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes were lost because the follower fell behind the history")]
pub struct Lagged;

/// Cursor into the changes of some kinds.
pub struct Subscription {
    shared: Arc<Shared>,
    kinds: Vec<KindId>,
    cursor: u64,
}

impl Subscription {
    /// Returns the changes since the last call, in order.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if some changes are no longer retained; the next call continues from now.
    pub fn drain(&mut self) -> Result<Vec<Arc<Change>>, Lagged> {
        let state = self.shared.lock_state();
        let cursor = std::mem::replace(&mut self.cursor, state.version);
        let mut changes = Vec::new();
        for &kind in &self.kinds {
            let table = state.table(kind);
            if cursor < table.history.dropped() {
                return Err(Lagged);
            }
            changes.extend(table.history.after(cursor));
        }
        changes.sort_by_key(|change| change.resource_version());
        Ok(changes)
    }

    /// Waits until the state has changed since the last call of [`Subscription::drain`], in any kind.
    pub async fn changed(&self) {
        let changed = Arc::clone(&self.shared.lock_state().changed);
        loop {
            let mut notified = pin!(changed.notified());
            notified.as_mut().enable();
            if self.shared.lock_state().version > self.cursor {
                return;
            }
            notified.await;
        }
    }
}
