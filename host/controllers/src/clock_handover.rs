//! Continuation of the decision clock from one leader to the next.
//!
//! Timestamps in objects come from the decision clock of the leader that wrote them. After a step of the wall clock,
//! that clock differs from the wall clock until [`Clock`](bulkhead_runtime::clock::Clock) has followed it, which takes a thousand times the
//! length of the step. A successor that started at its own wall time would see these timestamps as older than they
//! are, and end every deadline at once. Each renewal of the Lease therefore records the difference, and a successor
//! starts its clock from it.
//!
//! A step after the last renewal is known only to processes that ran before it.
//!
//! A program of an earlier version renews the Lease, keeps the annotation as it is, and writes timestamps of the wall
//! clock. A record of an earlier renewal therefore does not count.

use std::time::Duration;

use bulkhead_runtime::clock::ClockReading;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Annotation of the Lease: the [`RecordedClock`] of its holder, in JSON.
pub const DECISION_CLOCK: &str = "bulkhead.dev/decision-clock";

/// Decision clock of the holder of a Lease, as a renewal records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedClock {
    /// Renew time of the Lease that the record belongs to.
    pub at: MicroTime,
    /// Decision time of the holder minus its wall time, in milliseconds.
    pub offset_ms: i64,
}

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
    let recorded = RecordedClock {
        at: MicroTime(holder.wall),
        // Rounded down, so that a successor never starts ahead of this time.
        offset_ms: i64::try_from(offset.as_nanos().div_euclid(1_000_000)).unwrap_or(i64::MIN),
    };
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(DECISION_CLOCK.to_owned(), json!(recorded).to_string());
    lease.spec.get_or_insert_default().renew_time = Some(recorded.at);
}

/// Returns the decision time at which a successor continues, at the moment of its own reading. Returns `None` if the
/// last renewal of the Lease recorded no clock; the successor then keeps its own.
///
/// # Errors
///
/// The annotation is malformed, or the Lease has no renew time.
pub fn start(lease: &Lease, renewal: ObservedRenewal, own: ClockReading) -> Result<Option<Timestamp>, String> {
    let annotation = lease
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(DECISION_CLOCK));
    let Some(text) = annotation else { return Ok(None) };
    let malformed = || format!("the annotation {DECISION_CLOCK} of the lease is no time and offset: {text:?}");
    let recorded: RecordedClock = serde_json::from_str(text).map_err(|_| malformed())?;
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.ok_or_else(|| "the lease has no renew time".to_owned())?;
    if recorded.at != *renewed {
        return Ok(None);
    }
    let offset = SignedDuration::from_millis(recorded.offset_ms);
    let time = renewed.0.checked_add(offset).map_err(|_| malformed())?;
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

    fn recorded(at: &str, offset_ms: i64) -> serde_json::Value {
        let text = json!({"at": at, "offsetMs": offset_ms}).to_string();
        json!({ DECISION_CLOCK: text })
    }

    /// Start of a successor in milliseconds, whose own clock and wall clock read 100 s.
    fn start_ms(annotations: &serde_json::Value, renew_time: Option<&str>) -> Result<Option<i64>, String> {
        let renewal = ObservedRenewal {
            seen_for: Duration::ZERO,
            unseen_max: None,
        };
        let lease = json!({"metadata": {"annotations": annotations}, "spec": {"renewTime": renew_time}});
        let start = start(&serde_json::from_value(lease).unwrap(), renewal, reading(100, 100));
        start.map(|start| start.map(Timestamp::as_millisecond))
    }

    #[test]
    fn an_offset_is_recorded_in_milliseconds_and_a_malformed_one_is_reported() {
        let renewed = "1970-01-01T00:01:40.000000Z";
        assert_eq!(start_ms(&json!({}), Some(renewed)), Ok(None));
        assert_eq!(start_ms(&recorded(renewed, -2500), Some(renewed)), Ok(Some(97_500)));
        let without = start_ms(&recorded(renewed, -2500), None);
        assert_eq!(without, Err("the lease has no renew time".to_owned()));
        let endless = recorded(renewed, i64::MAX)[DECISION_CLOCK].clone();
        for text in [json!("soon"), json!(""), json!("-2500"), json!("{}"), endless] {
            let expected = format!("the annotation {DECISION_CLOCK} of the lease is no time and offset: {text}");
            assert_eq!(start_ms(&json!({DECISION_CLOCK: text}), Some(renewed)), Err(expected));
        }
        let mut lease = Lease::default();
        let micros = Timestamp::from_microsecond(99_999_900).unwrap();
        let holder = ClockReading {
            time: micros,
            ..reading(0, 100)
        };
        stamp(&mut lease, holder);
        let text = &lease.metadata.annotations.unwrap()[DECISION_CLOCK];
        let recorded: RecordedClock = serde_json::from_str(text).unwrap();
        assert_eq!((recorded.at.0, recorded.offset_ms), (second(100), -1));
    }

    #[test]
    fn an_offset_that_a_renewal_of_an_earlier_version_left_behind_does_not_count() {
        // The wall clock stepped back by an hour under a leader of this version, and a rollback followed. Its leader
        // renews the Lease and writes the times of the wall clock. An hour more would end every deadline at once.
        let left_behind = recorded("1970-01-01T00:00:40.000000Z", 3_600_000);
        assert_eq!(start_ms(&left_behind, Some("1970-01-01T00:01:38.000000Z")), Ok(None));
    }

    #[test]
    fn a_record_with_fields_of_a_later_version_is_read() {
        let renewed = "1970-01-01T00:01:40.000000Z";
        let text = json!({"at": renewed, "offsetMs": -2500, "source": "ntp"}).to_string();
        assert_eq!(
            start_ms(&json!({DECISION_CLOCK: text}), Some(renewed)),
            Ok(Some(97_500))
        );
    }
}
