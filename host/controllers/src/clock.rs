//! Time for decisions and for the timestamps that they write.
//!
//! Deadlines (grace periods, tolerations) compare a stored timestamp with the current time. A step of the wall clock
//! would end all of them at once, or freeze them. [`Clock::now`] therefore starts at the wall time and advances with
//! the monotonic clock. It corrects differences between both at the rate of [`SLEW_DIVISOR`], so that a deadline is
//! never off by more than a thousandth of its length. Timestamps of the same process stay comparable across any step.
//!
//! A new process starts at its own wall time and trusts stored timestamps as far as that: it cannot know how much
//! time passed while no process ran. The decisions that read a timestamp handle one in the future.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::mutation::{self, Mutation};
use bulkhead_core::time::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Divisor of the elapsed time by which the clock follows the wall clock: one part in a thousand.
const SLEW_DIVISOR: i32 = 1_000;
/// Interval between two comparisons with the wall clock.
const SAMPLE: Duration = Duration::from_secs(1);
/// Smallest change of the difference between both clocks that counts as a step.
const STEP_MIN: SignedDuration = SignedDuration::from_secs(2);

/// A source of wall time that can be stepped independently of tokio's clock.
///
/// Clones share the same offset. Production never calls [`WallClock::step`]; simulations do.
#[derive(Clone)]
pub struct WallClock {
    read: Arc<dyn Fn() -> Time + Send + Sync>,
    stepped_ms: Arc<AtomicI64>,
}

impl WallClock {
    /// Creates a wall clock that reads `read`.
    pub fn new(read: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), stepped_ms: Arc::default() }
    }

    /// Steps the clock by a number of milliseconds, back if negative. Steps add up.
    pub fn step(&self, millis: i64) {
        self.stepped_ms.fetch_add(millis, Ordering::Relaxed);
    }

    /// Returns the wall time.
    pub fn now(&self) -> Time {
        let stepped = SignedDuration::from_millis(self.stepped_ms.load(Ordering::Relaxed));
        let read = (self.read)();
        read.timestamp().checked_add(stepped).map_or(read, Time::new)
    }
}

/// Clock for decisions. Only the shell reads it; decisions get the time as data. Clones share one state.
#[derive(Clone)]
pub struct Clock {
    wall: WallClock,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The time at `at`.
    time: Timestamp,
    at: Instant,
    /// Difference between the wall clock and this one at the last comparison.
    offset: SignedDuration,
    steps: u64,
}

/// Difference between the wall clock and the confirmed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Milliseconds by which the wall clock is ahead; negative if it is behind.
    pub offset_ms: i64,
    /// Number of steps of the wall clock since the start of the process.
    pub steps: u64,
}

impl Clock {
    /// Creates a clock that starts at the time that `wall` reads now.
    pub fn new(wall: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self::following(WallClock::new(wall))
    }

    /// Creates a clock that starts at the current time of a wall clock that may be stepped.
    pub fn following(wall: WallClock) -> Self {
        let time = wall.now().timestamp();
        let state = State { time, at: Instant::now(), offset: SignedDuration::ZERO, steps: 0 };
        Self { wall, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the time, confirmed by the monotonic clock.
    pub fn now(&self) -> Time {
        if mutation::on(Mutation::WallClockTrusted) {
            return self.wall.now();
        }
        let mut state = self.state();
        if state.at.elapsed() >= SAMPLE {
            state.sample(self.wall.now().timestamp());
        }
        Time::new(add(state.time, state.at.elapsed()))
    }

    /// Compares with the wall clock and returns the difference.
    pub fn compare(&self) -> ClockState {
        let mut state = self.state();
        state.sample(self.wall.now().timestamp());
        let offset_ms = i64::try_from(state.offset.as_millis()).unwrap_or(i64::MAX);
        ClockState { offset_ms, steps: state.steps }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Advances to the present and follows the wall clock by at most its share of the elapsed time.
    fn sample(&mut self, wall: Timestamp) {
        let now = Instant::now();
        let elapsed = now.duration_since(self.at);
        let expected = add(self.time, elapsed);
        let offset = wall.duration_since(expected);
        if (offset - self.offset).abs() >= STEP_MIN {
            self.steps += 1;
        }
        let share = SignedDuration::try_from(elapsed).unwrap_or_default() / SLEW_DIVISOR;
        let followed = offset.clamp(-share, share);
        self.time = expected.checked_add(followed).unwrap_or(expected);
        (self.at, self.offset) = (now, offset - followed);
    }
}

fn add(time: Timestamp, elapsed: Duration) -> Timestamp {
    time.checked_add(elapsed).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a wall clock that advances with tokio's paused clock, and a clock that follows it.
    fn clocks() -> (WallClock, Clock) {
        let start = Instant::now();
        let read = move || Time::from_millis(i64::try_from(start.elapsed().as_millis()).unwrap());
        let wall = WallClock::new(read);
        (wall.clone(), Clock::following(wall))
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_of_the_wall_clock_neither_ends_nor_freezes_a_deadline() {
        for by_ms in [3_600_000, -3_600_000] {
            let (wall, clock) = clocks();
            tokio::time::advance(Duration::from_mins(1)).await;
            assert_eq!((clock.now().as_millis(), clock.compare()), (60_000, ClockState { offset_ms: 0, steps: 0 }));
            wall.step(by_ms);
            assert_eq!(clock.now().as_millis(), 60_000);
            for minute in 2..=11 {
                tokio::time::advance(Duration::from_mins(1)).await;
                let off = clock.now().as_millis() - minute * 60_000;
                assert!(
                    off.abs() <= (minute - 1) * 60 && off.signum() == by_ms.signum(),
                    "{off} ms after {minute} min"
                );
            }
            assert_eq!(clock.compare().steps, 1);
            wall.step(-by_ms);
            tokio::time::advance(Duration::from_mins(20)).await;
            assert_eq!((clock.now().as_millis(), clock.compare().steps), (31 * 60_000, 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn small_differences_are_followed_and_are_no_steps() {
        let (wall, clock) = clocks();
        for _ in 0..10 {
            wall.step(900);
            tokio::time::advance(Duration::from_hours(1)).await;
            clock.now();
        }
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(clock.now(), wall.now());
        assert_eq!(clock.compare(), ClockState { offset_ms: 0, steps: 0 });
    }
}
