//! Conversions between Kubernetes' time and the core's.

use bulkhead_core::time::Time;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;

/// Converts a `metav1.Time` to the core's form.
pub fn from_meta(time: &MetaTime) -> Time {
    Time::new(time.0)
}

/// Converts an instant to a `metav1.Time`, truncated to whole seconds as on the wire.
pub fn to_meta(time: Time) -> MetaTime {
    MetaTime(time.truncated().timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_keeps_whole_seconds() {
        let check = |millis, expected| assert_eq!(from_meta(&to_meta(Time::from_millis(millis))).as_millis(), expected);
        check(0, 0);
        check(1_700_000_000_999, 1_700_000_000_000);
        check(-1, -1_000);
    }
}
