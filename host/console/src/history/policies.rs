//! Policies with the answers that decisions recorded.

use std::collections::BTreeMap;

use bulkhead_core::call::{CallKind, EvictionVerdict};
use bulkhead_core::journal::{Decision, RecordedReply};
use bulkhead_core::policy::{Build, FaultKind, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_journal::{DecisionOutline, Stored};

/// Policies, by identity.
#[derive(Default)]
pub struct Policies {
    rows: BTreeMap<PolicyId, PolicyRow>,
    /// Time and digest of the last decision, whose records share it.
    last: Option<(Time, String)>,
}

/// Answers of one policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyRow {
    /// Digests of code and configuration; absent for a compiled-in policy.
    pub build: Option<Build>,
    /// Participation in the last decision: `enforce` or `shadow`.
    pub mode: &'static str,
    /// Number of recorded calls of each kind.
    pub calls: BTreeMap<CallKind, u64>,
    /// Calls without an answer. Abstentions are not counted.
    pub faults: u64,
    /// Eviction checks that were answered with a hold.
    pub holds: u64,
    /// Eviction checks that were answered with a release.
    pub releases: u64,
    /// Decisions that the policy would have made differently, in shadow mode.
    pub divergences: u64,
    /// Time of the last call.
    pub last: Option<Time>,
}

impl PolicyRow {
    /// Returns the number of all recorded calls.
    pub fn calls(&self) -> u64 {
        self.calls.values().sum()
    }

    fn count(&mut self, kind: CallKind, reply: &RecordedReply, at: Time) {
        *self.calls.entry(kind).or_default() += 1;
        self.last = Some(at);
        match reply {
            RecordedReply::Fault { kind, .. } if *kind != FaultKind::Unsupported => self.faults += 1,
            RecordedReply::EvictionCheck(EvictionVerdict::Hold { .. }) => self.holds += 1,
            RecordedReply::EvictionCheck(EvictionVerdict::Release(_)) => self.releases += 1,
            _ => {}
        }
    }
}

impl Policies {
    /// Counts the calls of a record. Records that share a decision count once.
    pub(super) fn count(&mut self, stored: &Stored<DecisionOutline>) {
        let entry = &stored.record.entry;
        if let (Decision::ShadowDiverged, Some(policy)) = (entry.decision, &entry.attribution.policy) {
            self.rows.entry(policy.clone()).or_default().divergences += 1;
        }
        let Some(decision) = &stored.decision else { return };
        let key = (decision.now, decision.snapshot.clone());
        if self.last.as_ref() != Some(&key) {
            self.last = Some(key);
            self.count_calls(decision);
        }
    }

    fn count_calls(&mut self, decision: &DecisionOutline) {
        for slot in &decision.policies {
            let row = self.rows.entry(slot.policy.clone()).or_default();
            row.build.clone_from(&slot.build);
            row.mode = slot.mode.as_str();
        }
        for call in &decision.calls {
            if let Some(slot) = decision.policies.get(call.slot)
                && let Some(row) = self.rows.get_mut(&slot.policy)
            {
                row.count(call.kind, &call.reply, decision.now);
            }
        }
    }

    /// Returns the policies, in order of name.
    pub fn rows(&self) -> impl Iterator<Item = (&PolicyId, &PolicyRow)> {
        self.rows.iter()
    }
}
