//! Plugins through a registry of the project distribution, with tools of other projects: `cargo xtask full registry`.
//!
//! The registry has TLS by a private authority, and requires a password. [`place`] starts it and runs the tools. The
//! other modules have the scenarios: [`round_trips`] and [`signatures`] need the registry alone, [`in_force`] and
//! [`refusals`] also control planes.

mod in_force;
mod place;
mod plugin;
mod refusals;
mod round_trips;
mod signatures;

use std::future::ready;

use crate::scenarios::Scenario;
use crate::tools::Tools;

/// Returns the scenarios that these tools can run.
pub(crate) fn all(tools: &Tools) -> Vec<(&'static str, Scenario)> {
    let mut all: Vec<(&'static str, Scenario)> = vec![
        ("oras pulls what is pushed, and pushes what is pulled", |site| {
            Box::pin(ready(round_trips::oras(site)))
        }),
        ("a component of 35 MB is downloaded once", |site| {
            Box::pin(ready(round_trips::large(site)))
        }),
        ("cosign verifies signatures of bulkhead", |site| {
            Box::pin(ready(signatures::verified_by_cosign(site)))
        }),
        ("bulkhead verifies signatures of cosign", |site| {
            Box::pin(ready(signatures::made_by_cosign(site)))
        }),
        ("an image in force survives its registry", |site| {
            Box::pin(in_force::survives(site))
        }),
        ("each refusal has its name, and the version before answers", |site| {
            Box::pin(refusals::named(site))
        }),
    ];
    if tools.wkg.is_some() {
        all.push(("wkg pulls what is pushed, and pushes what is pulled", |site| {
            Box::pin(ready(round_trips::wkg(site)))
        }));
    }
    all
}
