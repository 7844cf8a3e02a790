//! Kubernetes' time and the core's.

use bulkhead_core::time::Time;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;

/// The core's form of a `metav1.Time`.
pub fn from_meta(time: &MetaTime) -> Time {
    Time::new(time.0)
}

/// The `metav1.Time` of an instant, cut to whole seconds as the wire is.
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
