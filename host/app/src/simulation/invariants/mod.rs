//! What must hold whatever goes wrong.
//!
//! | | what | looked at |
//! | --- | --- | --- |
//! | S1 | a copy goes only when a healthy one replaces it, or a policy or a person said so; a target is left by an eviction, and only if there is somewhere to go | records, bindings, Works, pods of the members |
//! | S2 | evictions keep the configured rate in every window | tasks of the bindings |
//! | S3 | nothing is evicted while every cluster looks dead | records |
//! | S4 | a plugin that fails causes nothing; an application that is well is not evicted as failed | records, members |
//! | S5 | a process that only reports writes nothing | its requests |
//! | S6 | a taint that nobody here added stays | clusters |
//! | S7 | every eviction has a record that was made before, and it replays | records, tasks |
//! | L1 | what has to leave leaves as fast as the rates allow, and every eviction task ends | bindings |
//! | L2 | a cluster that is back is usable | clusters, at the end |
//! | L3 | the work goes on where it was: nothing is lost and nothing is left half done | bindings, members, at the end |
//!
//! S8 is checked by running a seed twice. The checks do not rely on statements of the decision code: S1 looks at the
//! recorded binding and at the pods that run, reachable or not; S2 and S6 look at the objects, S4 and L3 into the member
//! clusters.

mod end;
mod hub;
mod objects;
mod pace;
mod records;
mod truth;

use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::journal::{Case, Record, Sink};

pub(super) use objects::Observed;
use records::Recorded;
use truth::Truth;

use crate::report::Violation;

/// Most violations that are kept: the first ones say what is wrong.
const VIOLATIONS_MAX: usize = 20;

/// What was found so far, and what is known of the records.
#[derive(Default)]
pub(super) struct Ledger {
    violations: Vec<Violation>,
    recorded: Recorded,
    truth: Truth,
}

impl Ledger {
    fn found(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }
}

/// Looks at records as they are made. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Inspector {
    ledger: Arc<Mutex<Ledger>>,
}

impl Inspector {
    /// A sink that looks at every record and passes it on.
    pub(super) fn sink(&self, next: Option<Box<dyn Sink>>) -> Box<dyn Sink> {
        Box::new(Inspecting { inspector: self.clone(), next })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Ledger) -> T) -> T {
        look(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a promise is broken.
    fn found(&self, invariant: &'static str, at: GoDuration, seen: String) {
        let at_ms = i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX);
        self.with(|ledger| ledger.found(Violation { invariant, at_ms, seen }));
    }

    /// Everything that was found, by time. `start_ms` is when the scenario starts, since the Unix epoch.
    pub(super) fn violations(&self, start_ms: i64) -> Vec<Violation> {
        let mut violations = self.with(|ledger| ledger.violations.clone());
        // Records have the time of the clock.
        for violation in violations.iter_mut().filter(|violation| violation.at_ms >= start_ms) {
            violation.at_ms -= start_ms;
        }
        violations.sort_by_key(|violation| violation.at_ms);
        violations
    }
}

struct Inspecting {
    inspector: Inspector,
    next: Option<Box<dyn Sink>>,
}

impl Sink for Inspecting {
    fn keep(&self, record: &Record, case: Option<&Arc<Case>>) {
        if let Some(next) = &self.next {
            next.keep(record, case);
        }
        self.inspector.with(|ledger| {
            for (invariant, seen) in ledger.recorded.look(record, case, &ledger.truth) {
                ledger.found(Violation { invariant, at_ms: record.entry.at.as_millis(), seen });
            }
        });
    }

    fn abandon(&self, id: u64) {
        if let Some(next) = &self.next {
            next.abandon(id);
        }
    }
}
