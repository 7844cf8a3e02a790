//! Invariants that must hold under every fault.
//!
//! | | invariant | checked on |
//! | --- | --- | --- |
//! | S1 | a copy is removed only when a healthy one replaces it, or a policy or a person requires it; a target is left only by an eviction, and only if another placement exists; no application leaves a cluster twice without leaving it | records, bindings, Works, pods of the members |
//! | S2 | evictions stay within the configured rate in every window | tasks of the bindings |
//! | S3 | nothing is evicted while every cluster appears dead | records |
//! | S4 | a failing plugin causes no action; a healthy application is not evicted as failed | records, members |
//! | S5 | a report-only process writes nothing | its requests |
//! | S6 | a taint that was not added by these controllers stays | clusters |
//! | S7 | every eviction has a record from before its write, and the record replays | records, tasks |
//! | S10 | a plugin is asked about workloads and clusters of its scope only | calls that arrive at its code, records |
//! | S11 | the plugin of a tenant releases nothing that would be held without it, and makes nothing healthy | records |
//! | L1 | workloads that have to leave a cluster leave as fast as the rates allow, every eviction task ends, and a changed template reaches a member cluster | bindings, members |
//! | L2 | a recovered cluster is usable | clusters, at the end |
//! | L3 | after a restart timers continue and work resumes: no workload is lost or left incomplete, or waits for room in one cluster while another one has it | bindings, members, at the end |
//!
//! S8 is checked by running a seed twice. The checks do not rely on the decision code: S1 reads the recorded binding
//! and the running pods, reachable or not; S2 and S6 read the objects, S4 and L3 the member clusters, S10 the calls.
//! S9 is a promise of the engines.

mod churn;
mod deadlines;
mod end;
mod hub;
mod objects;
mod records;
mod room;
mod scopes;
mod templates;
mod truth;

use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::affinity;
use bulkhead_core::journal::{DecisionRecord, Record, Sink};
use bulkhead_core::model::{Cluster, Placement};

pub(super) use objects::Observed;
use records::Recorded;
use scopes::Scopes;
use truth::Truth;

use crate::report::Violation;

/// Maximum number of violations kept; the first ones identify the problem.
const VIOLATIONS_MAX: usize = 20;

/// Violations found so far, and the state they were derived from.
#[derive(Default)]
pub(super) struct Ledger {
    violations: Vec<Violation>,
    recorded: Recorded,
    scopes: Scopes,
    truth: Truth,
}

impl Ledger {
    fn found(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }
}

/// Inspector of records and state. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Inspector {
    ledger: Arc<Mutex<Ledger>>,
}

impl Inspector {
    /// Returns a sink that inspects every record and forwards it.
    pub(super) fn sink(&self, next: Option<Box<dyn Sink>>) -> Box<dyn Sink> {
        Box::new(Inspecting {
            inspector: self.clone(),
            next,
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Ledger) -> T) -> T {
        look(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a violation.
    fn found(&self, invariant: &'static str, at: GoDuration, seen: String) {
        let at_ms = i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX);
        self.with(|ledger| ledger.found(Violation { invariant, at_ms, seen }));
    }

    /// Returns all violations, by time. `start_ms` is the start of the scenario since the Unix epoch.
    pub(super) fn violations(&self, start_ms: i64) -> Vec<Violation> {
        let mut violations = self.with(|ledger| ledger.violations.clone());
        // Violations in records carry absolute times, the others times since the start.
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
    fn keep(&self, record: &Record, decision: Option<&Arc<DecisionRecord>>) {
        if let Some(next) = &self.next {
            next.keep(record, decision);
        }
        self.inspector.with(|ledger| {
            let mut broken = ledger.recorded.look(record, decision, &ledger.truth);
            broken.extend(ledger.scopes.look(record, decision));
            for (invariant, seen) in broken {
                ledger.found(Violation {
                    invariant,
                    at_ms: record.entry.at.as_millis(),
                    seen,
                });
            }
        });
    }

    fn abandon(&self, id: u64) {
        if let Some(next) = &self.next {
            next.abandon(id);
        }
    }
}

/// True if a term of the placement selects the cluster.
fn selects(placement: &Placement, cluster: &Cluster) -> bool {
    let selects = |affinity| affinity::matches(affinity, cluster);
    match &placement.cluster_affinities {
        Some(terms) => terms.iter().any(|term| selects(&term.affinity)),
        None => placement.cluster_affinity.as_ref().is_none_or(selects),
    }
}
