use std::sync::Arc;

use bulkhead_core::time::Time;

/// Where `now` comes from: the system's clock in production, a virtual one in a simulation. Only the shell
/// reads it; decisions get the time as data.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    /// A clock that reads `now`.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> Time {
        (self.0)()
    }
}
