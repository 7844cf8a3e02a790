//! Lists of callbacks.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Callbacks, each of which is called until its owner drops it.
pub struct Handlers<F: ?Sized>(Mutex<Vec<Weak<F>>>);

impl<F: ?Sized> Default for Handlers<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<F: ?Sized> Handlers<F> {
    /// Adds a callback. It is called until the caller drops it.
    pub fn add(&self, handler: &Arc<F>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(handler));
    }

    /// Calls each live callback, in the order of their addition. A callback may add others.
    pub fn call(&self, call: impl Fn(&F)) {
        let live: Vec<_> = {
            let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            handlers.retain(|handler| handler.strong_count() > 0);
            handlers.iter().filter_map(Weak::upgrade).collect()
        };
        for handler in live {
            call(&handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_handlers_are_not_called() {
        let (handlers, calls) = (
            Handlers::<dyn Fn(u32)>::default(),
            Arc::<Mutex<Vec<(char, u32)>>>::default(),
        );
        let handler = |name| {
            let calls = Arc::clone(&calls);
            let handler: Arc<dyn Fn(u32)> = Arc::new(move |number| calls.lock().unwrap().push((name, number)));
            handlers.add(&handler);
            handler
        };
        let (first, second) = (handler('a'), handler('b'));
        handlers.call(|handler| handler(1));
        drop(first);
        handlers.call(|handler| handler(2));
        drop(second);
        handlers.call(|handler| handler(3));
        assert_eq!(*calls.lock().unwrap(), [('a', 1), ('b', 1), ('b', 2)]);
    }
}
