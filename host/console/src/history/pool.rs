//! Values that many rows have in common, each kept once.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Shared values of one type.
pub(super) struct Pool<T: ?Sized>(HashSet<Arc<T>>);

impl<T: ?Sized + Eq + Hash> Pool<T> {
    /// Returns the kept value that equals `value`. Keeps `value` if there is none.
    pub(super) fn share<V>(&mut self, value: &V) -> Arc<T>
    where
        V: ?Sized + Eq + Hash + ToOwned,
        V::Owned: Into<Arc<T>>,
        Arc<T>: Borrow<V>,
    {
        if let Some(known) = self.0.get(value) {
            return Arc::clone(known);
        }
        let shared: Arc<T> = value.to_owned().into();
        self.0.insert(Arc::clone(&shared));
        shared
    }

    /// Drops the values that no row has any more.
    pub(super) fn retain_used(&mut self) {
        self.0.retain(|value| Arc::strong_count(value) > 1);
    }
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}
