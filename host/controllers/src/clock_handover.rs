//! Continuation of the decision clock from one leader to the next.
//!
//! Timestamps in objects come from the decision clock of the leader that wrote them. After a step of the wall clock,
//! that clock differs from the wall clock until [`Clock`](bulkhead_runtime::clock::Clock) has followed it, which takes a thousand times the
//! length of the step. A successor that started at its own wall time would see these timestamps as older than they
//! are, and end every deadline at once. Each renewal of the Lease therefore records the difference, and a successor
//! starts its clock from it.
//!
//! A step after the last renewal is known only to processes that ran before it.

use std::time::Duration;

use bulkhead_runtime::clock::ClockReading;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Annotation of the Lease: decision time of its holder minus its wall time, in milliseconds.
pub const CLOCK_OFFSET: &str = "bulkhead.dev/decision-clock-offset-ms";

/// Maximum difference between the clock of a successor and its own clock before the election.
const ADJUSTMENT_MAX: SignedDuration = SignedDuration::from_hours(24);

/// A candidate's knowledge of the last renewal of a Lease.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRenewal {
    /// Time since the candidate first read the renewal.
    pub seen_for: Duration,
    /// Maximum time between the renewal and that read: the time since the read before. `None` if there was none, so
    /// that the renewal may be from long before the start of the process.
    pub unseen_max: Option<Duration>,
}

/// Writes the renew time of a Lease, and the offset of the decision clock from it.
pub fn stamp(lease: &mut Lease, holder: ClockReading) {
    let offset = holder.time.duration_since(holder.wall);
    // Rounded down, so that a successor never starts ahead of this time.
    let offset_ms = offset.as_nanos().div_euclid(1_000_000);
    lease.spec.get_or_insert_default().renew_time = Some(MicroTime(holder.wall));
    lease
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(CLOCK_OFFSET.to_owned(), offset_ms.to_string());
}

/// Returns the decision time at which a successor continues, at the moment of its own reading. Returns `None` if the
/// Lease has no offset; the successor then keeps its own clock.
///
/// # Errors
///
/// The annotation is malformed, or the Lease has no renew time.
pub fn start(lease: &Lease, renewal: ObservedRenewal, own: ClockReading) -> Result<Option<Timestamp>, String> {
    let annotation = lease
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(CLOCK_OFFSET));
    let Some(text) = annotation else { return Ok(None) };
    let malformed = || format!("the annotation {CLOCK_OFFSET} of the lease is no number of milliseconds: {text:?}");
    let offset = SignedDuration::from_millis(text.parse().map_err(|_| malformed())?);
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.ok_or_else(|| "the lease has no renew time".to_owned())?.0;
    let time = renewed.checked_add(offset).map_err(|_| malformed())?;
    Ok(Some(continued(time, offset, renewal, own)))
}

/// Returns the time at which a successor continues the clock that read `time` at the last renewal.
///
/// `time` plus the time since the renewal was read is a lower bound of the previous leader's clock. It depends on no
/// other clock, so it holds in both directions of a step. The upper bound is
/// - for an observed renewal, the lower bound plus the time in which the renewal was unseen;
/// - for any other renewal, the wall time, less the part by which the previous leader was behind it. Time without a
///   process counts then. If the previous leader was ahead, its offset does not count, because the wall clock of
///   another machine may never have stepped.
///
/// The successor's own clock holds between these bounds.
fn continued(time: Timestamp, offset: SignedDuration, renewal: ObservedRenewal, own: ClockReading) -> Timestamp {
    let (own, wall) = (own.time, own.wall);
    let earliest = later(
        time,
        SignedDuration::try_from(renewal.seen_for).unwrap_or(SignedDuration::MAX),
    );
    let start = match renewal.unseen_max {
        Some(unseen)
            if own
                > later(
                    earliest,
                    SignedDuration::try_from(unseen).unwrap_or(SignedDuration::MAX),
                ) =>
        {
            // A wall clock stepped, and this process may have started after that.
            earliest
        }
        Some(_) => own.max(earliest),
        None => own.min(later(wall, offset.min(SignedDuration::ZERO))).max(earliest),
    };
    start.clamp(later(own, -ADJUSTMENT_MAX), later(own, ADJUSTMENT_MAX))
}

/// Adds a duration, and saturates.
fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(if by.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR_S: i64 = 3600;
    const DAY_S: i64 = 24 * HOUR_S;

    fn second(unix_s: i64) -> Timestamp {
        Timestamp::from_second(unix_s).unwrap()
    }

    fn reading(time_s: i64, wall_s: i64) -> ClockReading {
        ClockReading {
            time: second(time_s),
            wall: second(wall_s),
        }
    }

    /// Checks the start of a successor in seconds. `predecessor` and `own` are decision time and wall time.
    fn check(
        case: &str,
        predecessor: (i64, i64),
        (seen_s, unseen_s): (u64, Option<u64>),
        own: (i64, i64),
        start_s: i64,
    ) {
        let mut lease = Lease::default();
        stamp(&mut lease, reading(predecessor.0, predecessor.1));
        let renewal = ObservedRenewal {
            seen_for: Duration::from_secs(seen_s),
            unseen_max: unseen_s.map(Duration::from_secs),
        };
        let start = start(&lease, renewal, reading(own.0, own.1)).unwrap().unwrap();
        assert_eq!(start, second(start_s), "{case}");
    }

    #[test]
    fn a_successor_is_never_ahead_of_the_previous_leader() {
        // The time by all right clocks.
        let now = 10 * DAY_S;
        let (ahead, back, before) = (now + HOUR_S, now - HOUR_S, now - 15);
        let standby = (15, Some(2));
        check("no step", (before, before), standby, (now, now), now);
        check(
            "no step, and the read was late",
            (before - 1, before - 1),
            standby,
            (now, now),
            now,
        );
        check("ahead on both", (before, before + HOUR_S), standby, (now, ahead), now);
        check(
            "ahead on both, before this process started",
            (before, before + HOUR_S),
            standby,
            (ahead, ahead),
            now,
        );
        check(
            "ahead on the leader's machine",
            (before, before + HOUR_S),
            standby,
            (now, now),
            now,
        );
        check(
            "ahead on this machine, in standby",
            (before, before),
            standby,
            (now, ahead),
            now,
        );
        check(
            "this machine's clock was never right",
            (before, before),
            standby,
            (ahead, ahead),
            now,
        );
        check("back on both", (before, before - HOUR_S), standby, (back, back), now);
        check(
            "back on the leader's machine",
            (before, before - HOUR_S),
            standby,
            (now, now),
            now,
        );
    }

    #[test]
    fn the_time_without_a_process_counts_if_the_wall_clock_can_measure_it() {
        let now = 10 * DAY_S;
        let (before, restarted) = (now - HOUR_S, (15, None));
        check("no step", (before, before), restarted, (now, now), now);
        check(
            "a step ahead by ten minutes",
            (before, before + 600),
            restarted,
            (now + 600, now + 600),
            now,
        );
        check(
            "a step back by ten minutes",
            (before, before - 600),
            restarted,
            (now - 600, now - 600),
            now - 600,
        );
        check(
            "a step back by two hours",
            (before, before - 7200),
            restarted,
            (now - 7200, now - 7200),
            before + 15,
        );
        check(
            "only the other machine was back",
            (before, before - 600),
            restarted,
            (now, now),
            now,
        );
        check(
            "only the other machine was ahead",
            (before, before + 600),
            restarted,
            (now, now),
            now - 600,
        );
    }

    #[test]
    fn a_successor_moves_its_clock_by_a_day_at_most() {
        let now = 10 * DAY_S;
        check(
            "far ahead",
            (now, now + 9 * DAY_S),
            (0, None),
            (now + 9 * DAY_S, now + 9 * DAY_S),
            now + 8 * DAY_S,
        );
        check(
            "far back",
            (now, now - 9 * DAY_S),
            (0, Some(2)),
            (now - 9 * DAY_S, now - 9 * DAY_S),
            now - 8 * DAY_S,
        );
    }

    #[test]
    fn an_offset_is_written_in_milliseconds_and_a_malformed_one_is_reported() {
        let renewal = ObservedRenewal {
            seen_for: Duration::ZERO,
            unseen_max: None,
        };
        let check = |annotations: serde_json::Value, renew_time: Option<&str>, expected: Result<Option<i64>, &str>| {
            let lease = json!({"metadata": {"annotations": annotations}, "spec": {"renewTime": renew_time}});
            let start = start(&serde_json::from_value(lease).unwrap(), renewal, reading(100, 100));
            let start = start.map(|start| start.map(Timestamp::as_millisecond));
            assert_eq!(start, expected.map_err(str::to_owned), "{annotations}");
        };
        let renewed = Some("1970-01-01T00:01:40.000000Z");
        check(json!({}), renewed, Ok(None));
        check(json!({CLOCK_OFFSET: "-2500"}), renewed, Ok(Some(97_500)));
        let malformed =
            |text| format!("the annotation {CLOCK_OFFSET} of the lease is no number of milliseconds: {text}");
        check(json!({CLOCK_OFFSET: "soon"}), renewed, Err(&malformed("\"soon\"")));
        check(json!({CLOCK_OFFSET: ""}), renewed, Err(&malformed("\"\"")));
        let endless = i64::MAX.to_string();
        check(
            json!({CLOCK_OFFSET: endless}),
            renewed,
            Err(&malformed(&format!("{endless:?}"))),
        );
        check(json!({CLOCK_OFFSET: "-2500"}), None, Err("the lease has no renew time"));
        let mut lease = Lease::default();
        let micros = Timestamp::from_microsecond(99_999_900).unwrap();
        stamp(
            &mut lease,
            ClockReading {
                time: micros,
                ..reading(0, 100)
            },
        );
        assert_eq!(lease.metadata.annotations.unwrap()[CLOCK_OFFSET], "-1");
    }
}
