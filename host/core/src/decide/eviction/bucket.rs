//! Rate limit that holds in any time window.

use std::time::Duration;

/// Maximum interval between two slots at a non-zero rate.
const INTERVAL_MAX: Duration = Duration::from_hours(100 * 365 * 24);
/// Time whose slots may be in flight together. Their evictions may take effect at one moment.
const IN_FLIGHT: Duration = Duration::from_millis(200);

/// Evictions per second; 0 stops evictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// Rate that allows no evictions.
    pub const STOP: Self = Self(0.0);

    /// Creates a rate. Anything but a positive number becomes [`Rate::STOP`], so a configuration error fails closed.
    pub fn per_second(rate: f64) -> Self {
        if rate.is_nan() || rate <= 0.0 {
            Self::STOP
        } else {
            Self(rate)
        }
    }

    /// Returns the number of evictions per second.
    pub fn as_f64(self) -> f64 {
        self.0
    }

    /// Returns the minimum interval between two slots, rounded up to whole nanoseconds; `None` at a rate of 0.
    pub fn interval(self) -> Option<Duration> {
        if self == Self::STOP {
            return None;
        }
        let nanos = (1e9 / self.0).ceil();
        Some(if nanos < INTERVAL_MAX.as_nanos() as f64 {
            Duration::from_nanos(nanos as u64)
        } else {
            INTERVAL_MAX
        })
    }

    /// Returns the maximum number of slots in flight: at least one, and those of 200 ms.
    fn in_flight_max(self) -> u32 {
        ((self.0 * IN_FLIGHT.as_secs_f64()).ceil() as u32).max(1)
    }
}

/// Token bucket with a capacity of one. Two slots are at least `1 / rate` apart, so any window of `w` seconds has at
/// most `ceil(w * rate)` slots.
///
/// A larger bucket would allow a burst after every quiet period, which is exactly when a failure storm begins.
///
/// A slot is in flight from its charge until its eviction has taken effect, which may be seconds later. Up to five
/// slots per second, one is in flight at a time, and the interval to the next one begins when it has taken effect: the
/// rate holds for the effects in any window too. Above that, those of 200 ms may come in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    last: Option<Duration>,
    before_last: Option<Duration>,
    in_flight: u32,
}

impl Bucket {
    /// Returns the time at which the next slot opens; `None` at a rate of 0, and while as many slots are in flight as
    /// the rate permits.
    pub fn opens_at(&self, rate: Rate) -> Option<Duration> {
        let interval = rate.interval().filter(|_| self.in_flight < rate.in_flight_max())?;
        Some(self.last.map_or(Duration::ZERO, |last| last.saturating_add(interval)))
    }

    /// Consumes a slot now, which is in flight until it is settled or released.
    pub fn charge(&mut self, now: Duration) {
        self.record(now);
        self.in_flight = self.in_flight.saturating_add(1);
    }

    /// Consumes a slot whose eviction took effect at `now`.
    pub fn record(&mut self, now: Duration) {
        self.before_last = self.last;
        self.last = self.last.max(Some(now));
    }

    /// Ends the flight of a slot: its eviction took effect at `now` at the latest.
    pub fn settle(&mut self, rate: Rate, now: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if rate.in_flight_max() == 1 {
            self.last = self.last.max(Some(now));
        }
    }

    /// Releases the slot that was consumed at `at` without an eviction, unless a later one was consumed since. Losing a
    /// slot is preferable to two slots too close together.
    pub fn release(&mut self, at: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.last == Some(at) {
            self.last = self.before_last;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rate_that_is_no_positive_number_stops() {
        let check = |rate: f64, interval_ms: Option<u64>| {
            assert_eq!(
                Rate::per_second(rate).interval(),
                interval_ms.map(Duration::from_millis),
                "{rate}"
            );
        };
        check(0.5, Some(2_000));
        check(0.1, Some(10_000));
        check(50.0, Some(20));
        check(0.0, None);
        check(-1.0, None);
        check(f64::NAN, None);
        assert_eq!(Rate::per_second(f64::MIN_POSITIVE).interval(), Some(INTERVAL_MAX));
        assert_eq!(Rate::per_second(f64::INFINITY).interval(), Some(Duration::ZERO));
    }

    #[test]
    fn the_longest_interval_is_a_century() {
        assert_eq!(INTERVAL_MAX.as_secs(), 3_153_600_000);
    }

    #[test]
    fn the_slots_of_200_ms_may_be_in_flight_together() {
        for (rate, expected) in [(0.1, 1), (5.0, 1), (5.1, 2), (50.0, 10)] {
            assert_eq!(Rate::per_second(rate).in_flight_max(), expected, "{rate}");
        }
    }

    #[test]
    fn a_slot_that_was_given_back_is_used_again_and_a_later_one_is_not_moved() {
        let (mut bucket, rate) = (Bucket::default(), Rate::per_second(1.0));
        let at = Duration::from_secs;
        bucket.record(at(1));
        bucket.charge(at(5));
        bucket.release(at(5));
        assert_eq!(bucket.opens_at(rate), Some(at(2)));
        bucket.charge(at(6));
        bucket.release(at(1));
        assert_eq!(bucket.opens_at(rate), Some(at(7)));
    }

    #[test]
    fn the_next_slot_waits_until_the_last_one_has_taken_effect() {
        let (mut bucket, rate) = (Bucket::default(), Rate::per_second(0.5));
        let at = Duration::from_secs;
        bucket.charge(at(1));
        assert_eq!(bucket.opens_at(rate), None);
        bucket.settle(rate, at(8));
        assert_eq!(bucket.opens_at(rate), Some(at(10)));
    }

    proptest! {
        /// No window has more slots than the rate allows, regardless of the times of the requests and of released
        /// slots.
        #[test]
        fn the_rate_holds_in_any_window(
            rate in 0.05_f64..200.0,
            steps in prop::collection::vec((0_u64..3_000, prop::bool::weighted(0.2)), 1..200),
        ) {
            let (mut bucket, rate) = (Bucket::default(), Rate::per_second(rate));
            let (mut now, mut used) = (Duration::ZERO, Vec::new());
            for (pause_ms, unused) in steps {
                now += Duration::from_millis(pause_ms);
                if bucket.opens_at(rate).is_some_and(|opens| opens <= now) {
                    bucket.charge(now);
                    if unused {
                        bucket.release(now);
                    } else {
                        used.push(now);
                        bucket.settle(rate, now);
                    }
                }
            }
            for (first, start) in used.iter().enumerate() {
                for (last, end) in used.iter().enumerate().skip(first) {
                    // The window is half-open: it starts at one slot and ends just before the next possible one.
                    let allowed = ((*end).checked_sub(*start).unwrap().as_secs_f64() * rate.as_f64() + 1e-6).floor() as usize + 1;
                    prop_assert!(last - first < allowed, "{} slots in {:?}", last - first + 1, (*end).checked_sub(*start).unwrap());
                }
            }
        }

        /// No window has more effects than the rate allows, however late each of them is. Above five per second, a
        /// window may have those of 200 ms more.
        #[test]
        fn the_rate_holds_for_late_effects(
            rate in 0.05_f64..50.0,
            steps in prop::collection::vec((0_u64..3_000, 0_u64..5_000), 1..200),
        ) {
            let (mut bucket, rate) = (Bucket::default(), Rate::per_second(rate));
            let (mut now, mut flying, mut effects) = (Duration::ZERO, Vec::<Duration>::new(), Vec::new());
            for (pause_ms, late_ms) in steps {
                now += Duration::from_millis(pause_ms);
                flying.sort();
                while let Some(effect) = flying.first().copied().filter(|effect| *effect <= now) {
                    flying.remove(0);
                    bucket.settle(rate, effect);
                    effects.push(effect);
                }
                if bucket.opens_at(rate).is_some_and(|opens| opens <= now) {
                    bucket.charge(now);
                    flying.push(now + Duration::from_millis(late_ms));
                }
            }
            let together = if rate.as_f64() <= 5.0 { 0 } else { rate.in_flight_max() as usize };
            for (first, start) in effects.iter().enumerate() {
                for (last, end) in effects.iter().enumerate().skip(first) {
                    let window = end.checked_sub(*start).unwrap();
                    let allowed = (window.as_secs_f64() * rate.as_f64() + 1e-6).floor() as usize + 1 + together;
                    prop_assert!(last - first < allowed, "{} effects in {window:?}", last - first + 1);
                }
            }
        }
    }
}
