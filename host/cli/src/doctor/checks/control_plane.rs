//! Check of the control plane: reachability and clock.

use crate::doctor::facts::{Facts, Server};
use crate::doctor::finding::Section;

/// Clock difference that is a warning, in milliseconds; `Date` headers have whole seconds.
const SKEW_WARNING_MS: i64 = 5_000;
/// Clock difference that is an error, in milliseconds: tolerations and grace periods end at the wrong time.
const SKEW_ERROR_MS: i64 = 60_000;

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let server = &facts.control_plane;
    match &server.error {
        Some(error) => {
            section.summary = format!("{} cannot be used", server.address);
            section.error(&server.address, &error.what, &error.remedy);
        }
        None => section.summary = format!("{} is {}", server.address, server.version),
    }
    clock(server, &server.address, section);
}

/// Compares the clock of a server with the local clock.
pub(super) fn clock(server: &Server, place: &str, section: &mut Section) {
    let Some(ahead_ms) = server.clock_ahead_ms.filter(|ahead| ahead.abs() >= SKEW_WARNING_MS) else {
        return;
    };
    let direction = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let what = format!("its clock is {} s {direction} ours", ahead_ms.abs() / 1000);
    if ahead_ms.abs() >= SKEW_ERROR_MS {
        let effect = format!("{what}: tolerations and grace periods would end at the wrong time");
        section.error(place, effect, "synchronise both machines by NTP");
    } else {
        section.warning(place, what, "synchronise both machines by NTP");
    }
}
