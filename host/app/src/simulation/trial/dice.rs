//! Numbers that depend on a seed and nothing else.

use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_controlplane::SplitMix64;

/// Numbers of one seed.
pub(super) struct Dice(SplitMix64);

impl Dice {
    /// The numbers of a seed for one purpose: other purposes draw others.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        Self(SplitMix64::new(seed ^ purpose))
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// One of several; none if there are none.
    pub(super) fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(items.len()).ok()?.checked_sub(1)?;
        items.get(usize::try_from(self.between(0, last)).unwrap_or(0))
    }

    /// At least `least` of several, in their order.
    pub(super) fn some_of<T: Clone>(&mut self, items: &[T], least: usize) -> Vec<T> {
        let mut left = items.to_vec();
        let keep = self.between(least.min(items.len()) as u64, items.len() as u64);
        while left.len() as u64 > keep {
            let out = usize::try_from(self.between(0, left.len() as u64 - 1)).unwrap_or(0);
            left.remove(out);
        }
        left
    }

    /// A moment or a length, to the tenth of a second.
    pub(super) fn seconds(&mut self, low_s: u64, high_s: u64) -> GoDuration {
        GoDuration(Duration::from_millis(self.between(low_s * 10, high_s * 10) * 100))
    }
}
