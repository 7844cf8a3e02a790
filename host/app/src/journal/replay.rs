//! Decisions made again from what is recorded of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Answer, Asked, Difference, Seat, differences};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Build, EngineKind, Policy, PolicyId};
use bulkhead_journal::{Stored, StoredCase};
use bulkhead_plugin::Bounded;
use serde::Serialize;

/// Makes decisions again.
///
/// Policies that are compiled in are asked again if the program has the version that decided, and plugins if their very
/// code and configuration are among those that are given. All others answer as they are recorded.
pub struct Replayer {
    builtins: Vec<Arc<dyn Policy>>,
    plugins: Vec<Arc<dyn Policy>>,
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
    /// Policies that were asked again.
    pub asked: BTreeSet<PolicyId>,
    /// Policies whose recorded answers were used.
    pub recorded: BTreeSet<PolicyId>,
    /// Why plugins that answered then were not asked again, one sentence each.
    pub missing: BTreeSet<String>,
}

impl Default for Replayer {
    fn default() -> Self {
        let bounded = |policy| Arc::new(Bounded::new(policy)) as Arc<dyn Policy>;
        let builtins = bulkhead_plugins_builtin::all_with(Detail::default());
        Self { builtins: builtins.into_iter().map(bounded).collect(), plugins: Vec::new() }
    }
}

impl Replayer {
    /// One that believes the record about every policy, also about those that are compiled in.
    pub fn believing() -> Self {
        Self { builtins: Vec::new(), plugins: Vec::new() }
    }

    /// The same with plugins to ask again, where their digests are those of the record.
    #[must_use]
    pub fn with_plugins(self, plugins: Vec<Arc<dyn Policy>>) -> Self {
        Self { plugins, ..self }
    }

    /// The policy that is the very one that was asked.
    pub(super) fn same(&self, seat: &Seat) -> Option<Arc<dyn Policy>> {
        let is_it = |policy: &&Arc<dyn Policy>| *policy.id() == seat.policy && policy.build() == seat.build.as_ref();
        let known = if seat.policy.engine == EngineKind::Builtin { &self.builtins } else { &self.plugins };
        known.iter().find(is_it).map(Arc::clone)
    }

    /// The same for a seat of a decision. What did not answer then may have been out of its time or in quarantine, so
    /// that the record is the only one to know what was made of it. A plugin may read values that are redacted.
    fn asked_again(&self, kept: &StoredCase, seat: &Seat) -> Option<Arc<dyn Policy>> {
        let case = &kept.case;
        let loaded = seat.policy.engine != EngineKind::Builtin;
        let position = case.policies.iter().position(|other| std::ptr::eq(other, seat));
        let failed = |asked: &Asked| Some(asked.seat) == position && matches!(asked.answer, Answer::Fault { .. });
        let unknown = kept.redacted > 0 || case.calls.iter().any(failed);
        if loaded && unknown { None } else { self.same(seat) }
    }

    /// Why a plugin that answered then is not here; none if it is, and for what is compiled in.
    fn why_missing(&self, seat: &Seat) -> Option<String> {
        let Build { code, .. } = seat.build.as_ref().filter(|_| seat.policy.engine != EngineKind::Builtin)?;
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        let (policy, recorded) = (&seat.policy, short(code));
        let namesake = self.plugins.iter().find(|plugin| plugin.id().name == policy.name);
        let Some(here) = namesake.and_then(|plugin| plugin.build()) else {
            return Some(format!(
                "{policy} (code {recorded}…) is not here any more, so its answers are those of the record"
            ));
        };
        let (what, now, then) = if here.code == *code {
            (
                "configured otherwise",
                short(&here.config),
                seat.build.as_ref().map(|build| short(&build.config)).unwrap_or_default(),
            )
        } else {
            ("here with other code", short(&here.code), recorded)
        };
        Some(format!("{policy} is {what} ({now}…, and {then}… in the record), so its answers are those of the record"))
    }

    /// Makes one decision again.
    pub fn replay(&self, id: u64, kept: &StoredCase) -> Replay {
        let case = &kept.case;
        let mut again = case.decide(&case.policies(|seat| self.asked_again(kept, seat)));
        redact(&mut again);
        // An older program may have redacted less.
        let mut recorded_plan = case.plan.clone();
        redact(&mut recorded_plan);
        let is_asked = |seat: &&Seat| self.asked_again(kept, seat).is_some();
        let (asked, recorded): (Vec<_>, Vec<_>) = case.policies.iter().partition(is_asked);
        let ids = |seats: Vec<&Seat>| seats.into_iter().map(|seat| seat.policy.clone()).collect();
        Replay {
            id,
            differences: differences(&recorded_plan, &again),
            asked: ids(asked),
            recorded: ids(recorded),
            redacted: kept.redacted,
        }
    }

    /// Makes every decision again. Records of one decision count once.
    pub fn replay_all(&self, records: &[Stored]) -> Summary {
        let mut replays = Replays::new(self);
        for stored in records {
            replays.add(stored);
        }
        replays.finish()
    }
}

/// Decisions that are made again one after the other, in order of id.
pub struct Replays<'a> {
    replayer: &'a Replayer,
    summary: Summary,
    last: Option<Arc<StoredCase>>,
}

impl<'a> Replays<'a> {
    /// Starts with no decisions.
    pub fn new(replayer: &'a Replayer) -> Self {
        Self { replayer, summary: Summary::default(), last: None }
    }

    /// Makes the decision of a record again, unless the record before was of the same one.
    pub fn add(&mut self, stored: &Stored) {
        let (replayer, summary) = (self.replayer, &mut self.summary);
        let Some(kept) = &stored.case else {
            summary.without_case += 1;
            return;
        };
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, kept)) {
            return;
        }
        self.last = Some(Arc::clone(kept));
        let replay = replayer.replay(stored.record.id, kept);
        summary.asked.extend(replay.asked.iter().cloned());
        summary.recorded.extend(replay.recorded.iter().cloned());
        let unasked = kept.case.policies.iter().filter(|seat| replayer.same(seat).is_none());
        summary.missing.extend(unasked.filter_map(|seat| replayer.why_missing(seat)));
        let is_here = |policy: &&PolicyId| replayer.plugins.iter().any(|plugin| plugin.id() == *policy);
        let blind = replay.recorded.iter().filter(|policy| kept.redacted > 0 && is_here(policy));
        summary.missing.extend(blind.map(|policy| {
            format!("{policy} was asked about values that are redacted, so its answers there are those of the record")
        }));
        if replay.differences.is_empty() {
            summary.exact += 1;
        } else {
            summary.different.push(replay);
        }
    }

    /// Summary of all decisions so far.
    pub fn finish(self) -> Summary {
        self.summary
    }
}
