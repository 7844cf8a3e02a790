//! Decisions made again from what is recorded of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Difference, Seat, differences};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{EngineKind, Policy, PolicyId};
use bulkhead_journal::{Stored, StoredCase};
use bulkhead_plugin::Bounded;
use serde::Serialize;

/// Makes decisions again.
///
/// Policies that are compiled in are asked again if the program has the version that decided; all others answer as
/// they are recorded, because neither their code nor what they were configured with need be here.
pub struct Replayer {
    builtins: Vec<Arc<dyn Policy>>,
}

/// What became of one decision.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Its id.
    pub id: u64,
    /// Where the plan is another one than the recorded; none if it is the same byte for byte.
    pub differences: Vec<Difference>,
    /// Policies that were asked again.
    pub asked: Vec<PolicyId>,
    /// Policies that answered as recorded.
    pub recorded: Vec<PolicyId>,
    /// How many values of the record were redacted. If there are any, that may be why it differs.
    pub redacted: usize,
}

/// What became of many decisions.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Decisions that were made again to the same plan.
    pub exact: usize,
    /// Records that have no case: what follows from a decision, such as dispatching, and remarks.
    pub without_case: usize,
    /// Decisions that came out differently.
    pub different: Vec<Replay>,
    /// Policies whose recorded answers were used.
    pub recorded: BTreeSet<PolicyId>,
}

impl Default for Replayer {
    fn default() -> Self {
        let bounded = |policy| Arc::new(Bounded::new(policy)) as Arc<dyn Policy>;
        let builtins = bulkhead_plugins_builtin::all_with(Detail::default());
        Self { builtins: builtins.into_iter().map(bounded).collect() }
    }
}

impl Replayer {
    /// One that believes the record about every policy, also about those that are compiled in.
    pub fn believing() -> Self {
        Self { builtins: Vec::new() }
    }

    /// The policy of this program that is the very one that was asked.
    pub(super) fn same(&self, seat: &Seat) -> Option<Arc<dyn Policy>> {
        let compiled_in = seat.policy.engine == EngineKind::Builtin;
        let found = self.builtins.iter().find(|policy| compiled_in && *policy.id() == seat.policy);
        found.map(Arc::clone)
    }

    /// Makes one decision again.
    pub fn replay(&self, id: u64, kept: &StoredCase) -> Replay {
        let case = &kept.case;
        let mut again = case.decide(&case.policies(|seat| self.same(seat)));
        redact(&mut again);
        let (asked, recorded): (Vec<_>, Vec<_>) = case.policies.iter().partition(|seat| self.same(seat).is_some());
        let ids = |seats: Vec<&Seat>| seats.into_iter().map(|seat| seat.policy.clone()).collect();
        Replay {
            id,
            differences: differences(&case.plan, &again),
            asked: ids(asked),
            recorded: ids(recorded),
            redacted: kept.redacted,
        }
    }

    /// Makes every decision again. Records of one decision count once.
    pub fn replay_all(&self, records: &[Stored]) -> Summary {
        let mut summary = Summary::default();
        let mut last: Option<&Arc<StoredCase>> = None;
        for stored in records {
            let Some(kept) = &stored.case else {
                summary.without_case += 1;
                continue;
            };
            if last.is_some_and(|last| Arc::ptr_eq(last, kept)) {
                continue;
            }
            last = Some(kept);
            let replay = self.replay(stored.record.id, kept);
            summary.recorded.extend(replay.recorded.iter().cloned());
            if replay.differences.is_empty() {
                summary.exact += 1;
            } else {
                summary.different.push(replay);
            }
        }
        summary
    }
}
