//! Clock of write permits. A lease expires by the clocks of other processes while this machine is suspended, so the
//! clock must include suspended time. On Linux `std::time::Instant` does not.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time since the machine booted, or since another fixed moment, including suspended time.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl BootClock {
    /// Returns the clock of the machine.
    pub fn system() -> Self {
        Self::new(since_boot())
    }

    /// Creates a clock that reads `now`, which must be monotonic.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time of this clock.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BootClock").field(&self.now()).finish()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since_boot() -> impl Fn() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    || {
        let since = clock_gettime(ClockId::Boottime);
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        Duration::from_secs(part(since.tv_sec)) + Duration::from_nanos(part(since.tv_nsec))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since_boot() -> impl Fn() -> Duration {
    let start = std::time::Instant::now();
    move || start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_machine_goes_on() {
        let clock = BootClock::system();
        let before = clock.now();
        assert!(before > Duration::ZERO && clock.now() >= before);
    }
}
