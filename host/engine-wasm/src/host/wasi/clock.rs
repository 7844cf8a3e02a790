//! Clocks that stand still, and waits that end immediately.

use wasmtime::Result;
use wasmtime::component::{ComponentType, Lift, Linker, Lower, Resource, ResourceType};

use super::interface;
use crate::host::Host;

/// Event to wait for. All events are ready, so there is only one.
pub(super) enum Pollable {}

/// A point in time since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// Display of a time zone.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
struct TimezoneDisplay {
    #[component(name = "utc-offset")]
    utc_offset: i32,
    name: String,
    #[component(name = "in-daylight-saving-time")]
    in_daylight_saving_time: bool,
}

/// Nominal resolution of the clocks: times of calls are in milliseconds.
const RESOLUTION: Datetime = Datetime {
    seconds: 0,
    nanoseconds: 1_000_000,
};

impl Datetime {
    /// Converts the time of a call; times before 1970, which WASI does not have, become 0.
    fn of(now_ms: i64) -> Self {
        let now_ms = u64::try_from(now_ms).unwrap_or(0);
        Self {
            seconds: now_ms / 1000,
            nanoseconds: (now_ms % 1000) as u32 * 1_000_000,
        }
    }

    fn nanoseconds(self) -> u64 {
        self.seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(self.nanoseconds))
    }
}

/// Returns an event that is ready.
pub(super) fn ready(host: &mut Host) -> Resource<Pollable> {
    host.note_handle();
    Resource::new_own(0)
}

/// Adds `poll`, `monotonic-clock`, `wall-clock` and `timezone`.
pub(super) fn add(linker: &mut Linker<Host>) -> Result<()> {
    let mut poll = interface(linker, "io/poll")?;
    poll.resource("pollable", ResourceType::host::<Pollable>(), |_, _| Ok(()))?;
    poll.func_wrap("[method]pollable.ready", |_, (_,): (Resource<Pollable>,)| Ok((true,)))?;
    poll.func_wrap("[method]pollable.block", |_, (_,): (Resource<Pollable>,)| Ok(()))?;
    poll.func_wrap("poll", |mut call, (all,): (Vec<Resource<Pollable>>,)| {
        call.data_mut().charge(all.len().saturating_mul(size_of::<u32>()))?;
        let ready: Vec<u32> = (0..).zip(all).map(|(index, _)| index).collect();
        Ok((ready,))
    })?;

    let mut monotonic = interface(linker, "clocks/monotonic-clock")?;
    monotonic.func_wrap("now", |call, (): ()| {
        Ok((Datetime::of(call.data().about.now_ms).nanoseconds(),))
    })?;
    monotonic.func_wrap("resolution", |_, (): ()| Ok((RESOLUTION.nanoseconds(),)))?;
    for name in ["subscribe-instant", "subscribe-duration"] {
        monotonic.func_wrap(name, |mut call, (_,): (u64,)| Ok((ready(call.data_mut()),)))?;
    }

    let mut wall = interface(linker, "clocks/wall-clock")?;
    wall.func_wrap("now", |mut call, (): ()| {
        Ok((Datetime::of(call.data_mut().of_call().now_ms),))
    })?;
    wall.func_wrap("resolution", |_, (): ()| Ok((RESOLUTION,)))?;

    let mut timezone = interface(linker, "clocks/timezone")?;
    timezone.func_wrap("display", |_, (_,): (Datetime,)| {
        Ok((TimezoneDisplay {
            utc_offset: 0,
            name: "UTC".to_owned(),
            in_daylight_saving_time: false,
        },))
    })?;
    timezone.func_wrap("utc-offset", |_, (_,): (Datetime,)| Ok((0_i32,)))
}

#[cfg(test)]
mod tests {
    use super::Datetime;

    #[test]
    fn times_are_split_into_seconds_and_the_rest() {
        let check = |now_ms, seconds, nanoseconds| {
            assert_eq!(Datetime::of(now_ms), Datetime { seconds, nanoseconds }, "{now_ms}");
        };
        check(0, 0, 0);
        check(1_500, 1, 500_000_000);
        check(-1, 0, 0);
        check(i64::MAX, 9_223_372_036_854_775, 807_000_000);
        assert_eq!(Datetime::of(1_500).nanoseconds(), 1_500_000_000);
        assert_eq!(Datetime::of(i64::MAX).nanoseconds(), u64::MAX);
    }
}
