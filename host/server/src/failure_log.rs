//! Log of informer problems: each when it begins, changes and ends. A lasting problem makes the process unready.
//!
//! Failed reconciles are logged as they happen (`host/runtime/src/failures.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_controllers::{Components, Scope};
use bulkhead_runtime::clock::ClockState;
use bulkhead_runtime::store::InformerState;
use tokio::time::Instant;
use tracing::{info, warn};

use super::endpoint::State;

/// Target of the log lines of informers.
const TARGET: &str = "bulkhead::informer";
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Duration after which an informer problem makes the process unready.
const UNREADY_AFTER: Duration = Duration::from_secs(30);
/// Time span of failing attempts that excludes a restart of the API server. A recovered watch may be silent for a
/// minute, so the problem ends only with the next event.
const RESTART_MAX: Duration = Duration::from_secs(15);

/// Logs problems, and records lasting ones in the state. Never returns.
pub(super) async fn run(context: Components, state: State) {
    let (mut informers, mut steps) = (Informers::default(), 0);
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let now = Instant::now();
        for change in informers.changes(context.stores.informers(&context.scope), now) {
            match change {
                Change::Failed(line) => warn!(target: TARGET, "{line}"),
                Change::Resolved(line) => info!(target: TARGET, "{line}"),
            }
        }
        let clock = context.clock.compare();
        context.metrics.clock(clock);
        if let Some(line) = stepped(&mut steps, clock) {
            warn!("{line}");
        }
        let mut lacking = informers.lasting(now);
        if let Some(absent) = without_cluster(&context) {
            warn!("{absent}");
            lacking.push(absent);
        }
        state.update(|status| status.lacking = lacking);
    }
}

/// Returns a line for a step of the wall clock that has not been logged.
fn stepped(logged: &mut u64, clock: ClockState) -> Option<String> {
    if clock.steps == std::mem::replace(logged, clock.steps) {
        return None;
    }
    let (offset_s, side) = (
        clock.offset_ms.unsigned_abs() / 1000,
        if clock.offset_ms < 0 { "behind" } else { "ahead of" },
    );
    Some(format!(
        "the wall clock stepped and is {offset_s} s {side} the time that decisions use; grace periods and tolerations count \
         the time that the monotonic clock measures"
    ))
}

/// Returns a line for an agent without a Cluster object.
fn without_cluster(context: &Components) -> Option<String> {
    let Scope::Agent(name) = &context.scope else {
        return None;
    };
    let absent = context.stores.clusters.has_synced() && context.stores.cluster(name).is_none();
    absent.then(|| format!("there is no Cluster {name} on the control plane; `bulkhead join --pull` creates it"))
}

/// Change of the problem of an informer, with its line.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Failed(String),
    Resolved(String),
}

/// Informers with a current problem, by name.
#[derive(Default)]
struct Informers(BTreeMap<String, InformerFailure>);

struct InformerFailure {
    text: String,
    errors: u64,
    since: Instant,
    last: Instant,
    synced: bool,
}

impl Informers {
    /// Returns new, changed and resolved problems.
    fn changes(&mut self, seen: Vec<(String, InformerState)>, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        for (
            name,
            InformerState {
                synced,
                failure,
                errors,
            },
        ) in seen
        {
            let Some(text) = failure else {
                if self.0.remove(&name).is_some() {
                    changes.push(Change::Resolved(format!("{name} are watched again")));
                }
                continue;
            };
            let known = self.0.get(&name);
            if known.is_none_or(|known| known.text != text) {
                changes.push(Change::Failed(format!("{name} {text}")));
            }
            let last = known
                .filter(|known| known.errors == errors)
                .map_or(now, |known| known.last);
            let since = known.map_or(now, |known| known.since);
            self.0.insert(
                name,
                InformerFailure {
                    text,
                    errors,
                    since,
                    last,
                    synced,
                },
            );
        }
        changes
    }

    /// Returns the problems of synced informers that have received nothing for a long time.
    fn lasting(&self, now: Instant) -> Vec<String> {
        let lasts = |failure: &InformerFailure| {
            failure.synced && now - failure.since >= UNREADY_AFTER && failure.last - failure.since >= RESTART_MAX
        };
        let describe = |(name, failure): (&String, &InformerFailure)| {
            format!("{name} {}, for {} s", failure.text, (now - failure.since).as_secs())
        };
        self.0
            .iter()
            .filter(|(_, failure)| lasts(failure))
            .map(describe)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn works(synced: bool, failure: Option<&str>, errors: u64) -> Vec<(String, InformerState)> {
        vec![(
            "works".to_owned(),
            InformerState {
                synced,
                failure: failure.map(str::to_owned),
                errors,
            },
        )]
    }

    #[test]
    fn each_step_of_the_wall_clock_is_logged_once() {
        let mut logged = 0;
        let mut line = |offset_ms, steps| stepped(&mut logged, ClockState { offset_ms, steps });
        assert_eq!(line(700, 0), None);
        assert!(line(-3_600_000, 1).is_some_and(|line| line.contains("is 3600 s behind the time")));
        assert_eq!(line(-3_599_000, 1), None);
        assert!(line(0, 2).is_some_and(|line| line.contains("is 0 s ahead of the time")));
    }

    #[test]
    fn a_failure_is_logged_when_it_begins_changes_and_ends() {
        let (mut informers, start) = (Informers::default(), Instant::now());
        let mut check = |failure: Option<&str>, expected: Option<Change>| {
            let changes = informers.changes(works(false, failure, 1), start);
            assert_eq!(changes, Vec::from_iter(expected), "{failure:?}");
        };
        let failed = |line: &str| Some(Change::Failed(line.to_owned()));
        check(None, None);
        check(Some("cannot be listed: no"), failed("works cannot be listed: no"));
        check(Some("cannot be listed: no"), None);
        check(Some("the watch was cut"), failed("works the watch was cut"));
        check(None, Some(Change::Resolved("works are watched again".to_owned())));
        check(None, None);
    }

    #[test]
    fn a_lasting_failure_makes_the_process_unready_and_a_restart_does_not() {
        let (mut informers, start) = (Informers::default(), Instant::now());
        let mut check = |after_s: u64, failure: Option<&str>, errors: u64, expected: &[&str]| {
            let now = start + seconds(after_s);
            informers.changes(works(true, failure, errors), now);
            assert_eq!(informers.lasting(now), expected, "after {after_s} s");
        };
        // The API server was restarted, and there have been no events since.
        check(0, Some("the watch was cut"), 1, &[]);
        check(6, Some("the watch was cut"), 4, &[]);
        check(60, Some("the watch was cut"), 4, &[]);
        check(80, None, 4, &[]);
        // The API server is gone.
        check(100, Some("the watch was cut"), 5, &[]);
        check(125, Some("cannot be watched: refused"), 9, &[]);
        check(
            131,
            Some("cannot be watched: refused"),
            9,
            &["works cannot be watched: refused, for 31 s"],
        );
        check(140, None, 9, &[]);
    }
}
