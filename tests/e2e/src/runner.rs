//! Runs scenarios, several at the same time, and prints a line for each.
//!
//! A scenario waits most of its time, for leases and periods of grace: two at once use the cores of a small machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::ensure;
use tokio::runtime::Handle;

use crate::scenarios::Scenario;
use crate::site::Site;

/// Numbers of attempts without success.
#[derive(Debug, Default)]
struct Failures {
    /// Scenarios whose last attempt failed.
    failed: AtomicUsize,
    /// Attempts that another one followed.
    repeated: AtomicUsize,
}

/// Runs the scenarios whose names contain the filter. Returns true if all of them passed.
///
/// # Errors
///
/// No scenario has such a name.
pub(crate) fn run<N: AsRef<str> + Send>(
    site: &Site,
    scenarios: Vec<(N, Scenario)>,
    filter: &str,
    attempts: u32,
    jobs: usize,
) -> anyhow::Result<bool> {
    let chosen: Vec<_> = scenarios
        .into_iter()
        .filter(|(name, _)| name.as_ref().contains(filter))
        .collect();
    ensure!(!chosen.is_empty(), "no scenario is called like {filter:?}");
    let (count, failures, runtime) = (chosen.len(), Failures::default(), Handle::current());
    let waiting = Mutex::new(chosen.into_iter());
    let worker = || {
        while let Some((name, scenario)) = next(&waiting) {
            attempt(site, name.as_ref(), scenario, attempts, &runtime, &failures);
        }
    };
    tokio::task::block_in_place(|| {
        thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, count) {
                scope.spawn(worker);
            }
        });
    });
    let (failed, repeated) = (failures.failed.into_inner(), failures.repeated.into_inner());
    println!(
        "{} passed, {failed} failed, {repeated} attempts were repeated",
        count - failed
    );
    if failed > 0 {
        println!("logs in {}", site.logs().display());
    }
    Ok(failed == 0)
}

/// Takes the next element.
fn next<T>(waiting: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next()
}

/// Runs one scenario until it passes or its attempts are used up.
fn attempt(site: &Site, name: &str, scenario: Scenario, attempts: u32, runtime: &Handle, failures: &Failures) {
    for remaining in (0..attempts.max(1)).rev() {
        let started = Instant::now();
        let outcome = runtime.block_on(scenario(site));
        let seconds = started.elapsed().as_secs_f32();
        let Err(error) = outcome else {
            println!("ok    {name} ({seconds:.0} s)");
            return;
        };
        let (counter, fate) = if remaining > 0 {
            (&failures.repeated, "AGAIN")
        } else {
            (&failures.failed, "FAIL ")
        };
        counter.fetch_add(1, Ordering::Relaxed);
        println!("{fate} {name} ({seconds:.0} s)\n      {error:#}");
    }
}
