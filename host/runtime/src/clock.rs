//! Time for deadlines and for the timestamps that controllers write.
//!
//! Deadlines (grace periods, tolerations) compare a stored timestamp with the current time. A step of the wall clock
//! would end all of them at once, or freeze them. [`Clock::now`] therefore starts at the wall time and advances with
//! the monotonic clock. It corrects differences between both so slowly that a deadline is never off by more than a
//! thousandth of its length. Timestamps of the same process stay comparable across any step.
//!
//! A new process starts at its own wall time. A process that takes over the timestamps of another one can continue the
//! clock of that process with [`Clock::continue_from`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    read: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    stepped_ms: Arc<AtomicI64>,
}

impl WallClock {
    /// Creates a wall clock that reads `read`.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
            stepped_ms: Arc::default(),
        }
    }

    /// Steps the clock by a number of milliseconds, back if negative. Steps add up.
    pub fn step(&self, millis: i64) {
        self.stepped_ms.fetch_add(millis, Ordering::Relaxed);
    }

    /// Returns the wall time.
    pub fn now(&self) -> Timestamp {
        let stepped = SignedDuration::from_millis(self.stepped_ms.load(Ordering::Relaxed));
        let read = (self.read)();
        read.checked_add(stepped).unwrap_or(read)
    }
}

/// Clock that advances steadily. Clones share one state.
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

/// Readings of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of the clock.
    pub time: Timestamp,
    /// Wall time.
    pub wall: Timestamp,
}

impl Clock {
    /// Creates a clock that starts at the time that `wall` reads now.
    pub fn new(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::following(WallClock::new(wall))
    }

    /// Creates a clock that starts at the current time of a wall clock that may be stepped.
    pub fn following(wall: WallClock) -> Self {
        let time = wall.now();
        let state = State {
            time,
            at: Instant::now(),
            offset: SignedDuration::ZERO,
            steps: 0,
        };
        Self {
            wall,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the time, confirmed by the monotonic clock, in the type that the caller counts time with.
    pub fn now<T: From<Timestamp>>(&self) -> T {
        let mut state = self.state();
        if state.at.elapsed() >= SAMPLE {
            state.sample(self.wall.now());
        }
        add(state.time, state.at.elapsed()).into()
    }

    /// Reads both clocks.
    pub fn read(&self) -> ClockReading {
        let wall = self.wall.now();
        let mut state = self.state();
        state.sample(wall);
        ClockReading { time: state.time, wall }
    }

    /// Continues from `time` at the past moment `at`. The difference from the wall clock after that is no step.
    pub fn continue_from(&self, time: Timestamp, at: Instant) {
        let wall = self.wall.now();
        let mut state = self.state();
        let now = Instant::now();
        state.time = add(time, now.duration_since(at));
        (state.at, state.offset) = (now, wall.duration_since(state.time));
    }

    /// Compares with the wall clock and returns the difference.
    pub fn compare(&self) -> ClockState {
        let mut state = self.state();
        state.sample(self.wall.now());
        let offset_ms = i64::try_from(state.offset.as_millis()).unwrap_or(i64::MAX);
        ClockState {
            offset_ms,
            steps: state.steps,
        }
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
        let read = move || add(Timestamp::UNIX_EPOCH, start.elapsed());
        let wall = WallClock::new(read);
        (wall.clone(), Clock::following(wall))
    }

    fn millis(unix_ms: i64) -> Timestamp {
        Timestamp::from_millisecond(unix_ms).unwrap()
    }

    fn now(clock: &Clock) -> Timestamp {
        clock.now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_of_the_wall_clock_neither_ends_nor_freezes_a_deadline() {
        for by_ms in [3_600_000, -3_600_000] {
            let (wall, clock) = clocks();
            tokio::time::advance(Duration::from_mins(1)).await;
            assert_eq!(
                (now(&clock).as_millisecond(), clock.compare()),
                (60_000, ClockState { offset_ms: 0, steps: 0 })
            );
            wall.step(by_ms);
            assert_eq!(now(&clock).as_millisecond(), 60_000);
            for minute in 2..=11 {
                tokio::time::advance(Duration::from_mins(1)).await;
                let off = now(&clock).as_millisecond() - minute * 60_000;
                assert!(
                    off.abs() <= (minute - 1) * 60 && off.signum() == by_ms.signum(),
                    "{off} ms after {minute} min"
                );
            }
            assert_eq!(clock.compare().steps, 1);
            wall.step(-by_ms);
            tokio::time::advance(Duration::from_mins(20)).await;
            assert_eq!((now(&clock).as_millisecond(), clock.compare().steps), (31 * 60_000, 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_continues_another_one_follows_the_wall_clock_from_there() {
        let (wall, clock) = clocks();
        tokio::time::advance(Duration::from_hours(2)).await;
        let at = Instant::now();
        tokio::time::advance(Duration::from_secs(5)).await;
        clock.continue_from(millis(3_600_000), at);
        assert_eq!(
            clock.read(),
            ClockReading {
                time: millis(3_605_000),
                wall: wall.now()
            }
        );
        assert_eq!(
            clock.compare(),
            ClockState {
                offset_ms: 3_600_000,
                steps: 0
            }
        );
        tokio::time::advance(Duration::from_secs(1000)).await;
        assert_eq!((now(&clock), clock.compare().steps), (millis(4_606_000), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn small_differences_are_followed_and_are_no_steps() {
        let (wall, clock) = clocks();
        for _ in 0..10 {
            wall.step(900);
            tokio::time::advance(Duration::from_hours(1)).await;
            now(&clock);
        }
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(now(&clock), wall.now());
        assert_eq!(clock.compare(), ClockState { offset_ms: 0, steps: 0 });
    }
}
