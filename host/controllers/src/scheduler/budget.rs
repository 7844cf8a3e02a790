//! Rate limit of the scheduler's writes (Karmada: `--kube-api-qps`, `--kube-api-burst`).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Token bucket, first come, first served.
#[derive(Debug)]
pub struct WriteBudget {
    per_second: f64,
    burst: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Writes that may be made at once; negative when some wait for their turn.
    tokens: f64,
    refilled: Option<Instant>,
    usage: BudgetUsage,
}

/// Usage of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUsage {
    /// Number of writes so far.
    pub writes: u64,
    /// Number of writes that had to wait.
    pub delayed: u64,
    /// Longest wait of a write.
    pub longest_wait: Duration,
}

impl WriteBudget {
    /// Creates a budget of at most `burst` writes at once and `per_second` in the long run. Both must be greater than
    /// zero.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        let state = State {
            tokens: burst,
            refilled: None,
            usage: BudgetUsage::default(),
        };
        Self {
            per_second: per_second.max(f64::MIN_POSITIVE),
            burst,
            state: Mutex::new(state),
        }
    }

    /// Waits until a write may be made.
    pub(super) async fn take(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn reserve(&self, now: Instant) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = state
            .refilled
            .map_or(Duration::ZERO, |refilled| now.saturating_duration_since(refilled));
        state.refilled = Some(now);
        state.tokens = (state.tokens + passed.as_secs_f64() * self.per_second).min(self.burst) - 1.0;
        state.usage.writes += 1;
        if state.tokens >= 0.0 {
            return Duration::ZERO;
        }
        // A rate close to zero must not overflow the duration.
        let wait = Duration::from_secs_f64((-state.tokens / self.per_second).min(86_400.0 * 365.0));
        state.usage.delayed += 1;
        state.usage.longest_wait = state.usage.longest_wait.max(wait);
        wait
    }

    /// Returns the usage so far.
    pub fn usage(&self) -> BudgetUsage {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_through_and_the_rest_at_the_rate_in_order() {
        let budget = WriteBudget::new(10.0, 3);
        let start = Instant::now();
        let mut at = Vec::new();
        for _ in 0..6 {
            budget.take().await;
            at.push(start.elapsed().as_millis());
        }
        assert_eq!(at, [0, 0, 0, 100, 200, 300]);
        assert_eq!(budget.usage().writes, 6);
        assert_eq!(budget.usage().delayed, 3);
        // Unused tokens are kept, up to the burst.
        tokio::time::sleep(Duration::from_mins(1)).await;
        let later = Instant::now();
        for _ in 0..3 {
            budget.take().await;
        }
        assert_eq!(later.elapsed(), Duration::ZERO);
        budget.take().await;
        assert_eq!(later.elapsed(), Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn in_no_window_are_there_more_than_the_burst_and_the_rate_allow() {
        let budget = WriteBudget::new(40.0, 60);
        let start = Instant::now();
        let mut at = Vec::new();
        for _ in 0..400 {
            budget.take().await;
            at.push(start.elapsed());
        }
        for (index, from) in at.iter().enumerate() {
            let within = at[index..]
                .iter()
                .filter(|time| time.saturating_sub(*from) < Duration::from_secs(1))
                .count();
            assert!(within <= 60 + 40, "{within} writes within a second from {from:?}");
        }
        assert!(
            at.last().is_some_and(|last| *last >= Duration::from_millis(8_500)),
            "{:?}",
            at.last()
        );
    }
}
