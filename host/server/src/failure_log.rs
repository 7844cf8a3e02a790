//! Log of controller and informer problems: each when it begins, when it ends and periodically in between. A lasting
//! problem makes the process unready.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bulkhead_controllers::{Components, Scope};
use bulkhead_runtime::clock::ClockState;
use bulkhead_runtime::controller::ErrorClass;
use bulkhead_runtime::failures::Failure;
use bulkhead_runtime::store::InformerState;
use tokio::time::Instant;

use super::endpoint::State;
use super::{LogOnChange, say};

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of lines about failed reconciles per poll. Further ones are counted, and are in the metrics.
const LINES_MAX: usize = 20;
/// Interval at which a continuing failure is logged again.
const REPEAT_INTERVAL: Duration = Duration::from_mins(10);
/// Time for which a failed precondition is not logged.
const PRECONDITION_GRACE: Duration = Duration::from_secs(10);
/// Duration after which an informer problem makes the process unready.
const UNREADY_AFTER: Duration = Duration::from_secs(30);
/// Time span of failing attempts that excludes a restart of the API server. A recovered watch may be silent for a
/// minute, so the problem ends only with the next event.
const RESTART_MAX: Duration = Duration::from_secs(15);

/// Logs problems, and records lasting ones in the state. Never returns.
pub(super) async fn run(context: Components, state: State) {
    let (mut informers, mut failures, mut agent) = (Informers::default(), Failures::default(), LogOnChange::default());
    let mut steps = 0;
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let now = Instant::now();
        for line in informers.new_lines(context.stores.informers(&context.scope), now) {
            say(&line);
        }
        for line in failures.new_lines(context.failures.counts(), now) {
            say(&line);
        }
        let clock = context.clock.compare();
        context.metrics.clock(clock);
        if let Some(line) = stepped(&mut steps, clock) {
            say(&line);
        }
        let mut lacking = informers.lasting(now);
        match without_cluster(&context) {
            Some(absent) => {
                agent.say(absent.clone());
                lacking.push(absent);
            }
            None => agent.resolved(),
        }
        state.update(|status| status.lacking = lacking);
    }
}

/// Returns a line for a step of the wall clock that has not been logged.
fn stepped(logged: &mut u64, clock: ClockState) -> Option<String> {
    if clock.steps == std::mem::replace(logged, clock.steps) {
        return None;
    }
    let (offset_s, side) =
        (clock.offset_ms.unsigned_abs() / 1000, if clock.offset_ms < 0 { "behind" } else { "ahead of" });
    Some(format!(
        "the wall clock stepped and is {offset_s} s {side} the time that decisions use; grace periods and tolerations count \
         the time that the monotonic clock measures"
    ))
}

/// Returns a line for an agent without a Cluster object.
fn without_cluster(context: &Components) -> Option<String> {
    let Scope::Agent(name) = &context.scope else { return None };
    let absent = context.stores.clusters.has_synced() && context.stores.cluster(name).is_none();
    absent.then(|| format!("there is no Cluster {name} on the control plane; `bulkhead join --pull` creates it"))
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
    /// Returns lines about new, changed and resolved problems.
    fn new_lines(&mut self, seen: Vec<(String, InformerState)>, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, InformerState { synced, failure, errors }) in seen {
            let Some(text) = failure else {
                if self.0.remove(&name).is_some() {
                    lines.push(format!("{name} are watched again"));
                }
                continue;
            };
            let known = self.0.get(&name);
            if known.is_none_or(|known| known.text != text) {
                lines.push(format!("{name} {text}"));
            }
            let last = known.filter(|known| known.errors == errors).map_or(now, |known| known.last);
            let since = known.map_or(now, |known| known.since);
            self.0.insert(name, InformerFailure { text, errors, since, last, synced });
        }
        lines
    }

    /// Returns the problems of synced informers that have received nothing for a long time.
    fn lasting(&self, now: Instant) -> Vec<String> {
        let lasts = |failure: &InformerFailure| {
            failure.synced && now - failure.since >= UNREADY_AFTER && failure.last - failure.since >= RESTART_MAX
        };
        let describe = |(name, failure): (&String, &InformerFailure)| {
            format!("{name} {}, for {} s", failure.text, (now - failure.since).as_secs())
        };
        self.0.iter().filter(|(_, failure)| lasts(failure)).map(describe).collect()
    }
}

/// Failing reconciles, by controller and text.
#[derive(Default)]
struct Failures(BTreeMap<(String, String), LogEntry>);

struct LogEntry {
    /// Total count at the time of the last line.
    count: u64,
    at: Instant,
    /// True if a line was logged. A failed precondition is usually resolved without one.
    said: bool,
}

impl Failures {
    /// Returns lines about new and continuing failures.
    fn new_lines(&mut self, seen: Vec<Failure>, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        let mut forgotten: BTreeSet<_> = self.0.keys().cloned().collect();
        for Failure { controller, text, class, count } in seen {
            let key = (controller, text);
            forgotten.remove(&key);
            let (controller, text) = (&key.0, &key.1);
            let (said, times) = match self.0.get_mut(&key) {
                None => (class != ErrorClass::NotYet, None),
                Some(entry) if count == entry.count => continue,
                Some(LogEntry { said: true, at, .. }) if now - *at < REPEAT_INTERVAL => continue,
                Some(LogEntry { said: true, count: before, .. }) => (true, Some(count.saturating_sub(*before))),
                Some(entry) if now - entry.at < PRECONDITION_GRACE => {
                    entry.count = count;
                    continue;
                }
                Some(_) => (true, None),
            };
            match times {
                Some(times) => lines.push(format!(
                    "{controller}: {text} ({times} times since the message {} minutes ago)",
                    self.0.get(&key).map_or(0, |entry| (now - entry.at).as_secs() / 60)
                )),
                None if said => lines.push(format!("{controller}: {text}")),
                None => {}
            }
            self.0.insert(key, LogEntry { count, at: now, said });
        }
        for key in forgotten {
            self.0.remove(&key);
        }
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("{more} more failures with other messages"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn works(synced: bool, failure: Option<&str>, errors: u64) -> Vec<(String, InformerState)> {
        vec![("works".to_owned(), InformerState { synced, failure: failure.map(str::to_owned), errors })]
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
        let mut check = |failure: Option<&str>, expected: &[&str]| {
            assert_eq!(informers.new_lines(works(false, failure, 1), start), expected, "{failure:?}");
        };
        check(None, &[]);
        check(Some("cannot be listed: no"), &["works cannot be listed: no"]);
        check(Some("cannot be listed: no"), &[]);
        check(Some("the watch was cut"), &["works the watch was cut"]);
        check(None, &["works are watched again"]);
        check(None, &[]);
    }

    #[test]
    fn a_lasting_failure_makes_the_process_unready_and_a_restart_does_not() {
        let (mut informers, start) = (Informers::default(), Instant::now());
        let mut check = |after_s: u64, failure: Option<&str>, errors: u64, expected: &[&str]| {
            let now = start + seconds(after_s);
            informers.new_lines(works(true, failure, errors), now);
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
        check(131, Some("cannot be watched: refused"), 9, &["works cannot be watched: refused, for 31 s"]);
        check(140, None, 9, &[]);
    }

    fn failure(class: ErrorClass, text: &str, count: u64) -> Vec<Failure> {
        vec![Failure { controller: "scheduler".to_owned(), text: text.to_owned(), class, count }]
    }

    #[test]
    fn a_continuing_failure_is_logged_again_with_its_count() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let mut check = |after_s: u64, count: u64, expected: &[&str]| {
            let seen = failure(ErrorClass::Forbidden, "no", count);
            assert_eq!(failures.new_lines(seen, start + seconds(after_s)), expected, "after {after_s} s");
        };
        check(0, 1, &["scheduler: no"]);
        check(1, 7, &[]);
        check(599, 90, &[]);
        check(600, 91, &["scheduler: no (90 times since the message 10 minutes ago)"]);
        check(1300, 91, &[]);
        check(1500, 92, &["scheduler: no (1 times since the message 15 minutes ago)"]);
    }

    #[test]
    fn a_failed_precondition_is_logged_only_if_it_lasts() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let mut check = |after_s: u64, count: u64, expected: &[&str]| {
            let seen = failure(ErrorClass::NotYet, "Cluster m9 has no finalizer yet", count);
            assert_eq!(failures.new_lines(seen, start + seconds(after_s)), expected, "after {after_s} s");
        };
        check(0, 1, &[]);
        check(1, 4, &[]);
        check(60, 4, &[]);
        check(61, 5, &["scheduler: Cluster m9 has no finalizer yet"]);
        check(62, 6, &[]);
    }

    #[test]
    fn a_storm_of_failures_does_not_flood_the_log() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let storm = |count: usize| -> Vec<Failure> {
            (0..count).flat_map(|number| failure(ErrorClass::Invalid, &format!("{number:03}"), 1)).collect()
        };
        assert_eq!(failures.new_lines(storm(2), now), ["scheduler: 000", "scheduler: 001"]);
        assert_eq!(failures.new_lines(storm(2), now).len(), 0);
        let flood = failures.new_lines(storm(100), now);
        assert!(
            flood.len() == LINES_MAX + 1 && flood[LINES_MAX] == "78 more failures with other messages",
            "{flood:?}"
        );
        assert!(
            failures.new_lines(Vec::new(), now).is_empty() && failures.0.is_empty(),
            "what is forgotten is forgotten"
        );
    }
}
