//! Random numbers that depend on a seed only.

use std::time::Duration;

use bulkhead_apiserver::SplitMix64;
use bulkhead_controllers::flags::GoDuration;

/// Random number generator of one seed.
pub(super) struct SeededRng(SplitMix64);

impl SeededRng {
    /// Creates the generator of a seed for one purpose; each purpose has its own sequence.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        Self(SplitMix64::new(seed ^ purpose))
    }

    /// Returns a number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// Returns true with the given probability in percent.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// Returns a random item; `None` if there are none.
    pub(super) fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(items.len()).ok()?.checked_sub(1)?;
        items.get(usize::try_from(self.between(0, last)).unwrap_or(0))
    }

    /// Returns a random selection of at least `least` items, in their order.
    pub(super) fn some_of<T: Clone>(&mut self, items: &[T], least: usize) -> Vec<T> {
        let mut remaining = items.to_vec();
        let keep = self.between(least.min(items.len()) as u64, items.len() as u64);
        while remaining.len() as u64 > keep {
            let out = usize::try_from(self.between(0, remaining.len() as u64 - 1)).unwrap_or(0);
            remaining.remove(out);
        }
        remaining
    }

    /// Returns a random time or duration between the bounds, with a resolution of 0.1 s.
    pub(super) fn seconds(&mut self, low_s: u64, high_s: u64) -> GoDuration {
        GoDuration(Duration::from_millis(self.between(low_s * 10, high_s * 10) * 100))
    }
}
