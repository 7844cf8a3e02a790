//! Replay of decisions from their records.

use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Answer, Asked, Difference, Seat, differences};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Build, EngineKind, Policy, PolicyId};
use bulkhead_journal::{Stored, StoredCase};
use bulkhead_plugin::Bounded;
use serde::Serialize;

/// Replays decisions.
///
/// Compiled-in policies are called again if the program has the version that decided. Plugins are called again if a
/// given plugin has the same code and configuration. All others reply as recorded.
pub struct Replayer {
    builtins: Vec<Arc<dyn Policy>>,
    plugins: Vec<Arc<dyn Policy>>,
}

/// Result of replaying one decision.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Id of the decision.
    pub id: u64,
    /// Differences from the recorded plan; empty if the plan is identical, byte for byte.
    pub differences: Vec<Difference>,
    /// Policies that were called again.
    pub asked: Vec<PolicyId>,
    /// Policies that replied as recorded.
    pub recorded: Vec<PolicyId>,
    /// Number of redacted values in the record. If it is not 0, redaction can be the cause of a difference.
    pub redacted: usize,
}

/// Summary of many replayed decisions.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Number of decisions replayed to an identical plan.
    pub exact: usize,
    /// Number of records without a case: consequences of a decision, such as dispatching, and remarks.
    pub without_case: usize,
    /// Decisions with a different plan.
    pub different: Vec<Replay>,
    /// Policies that were called again.
    pub asked: BTreeSet<PolicyId>,
    /// Policies whose recorded replies were used.
    pub recorded: BTreeSet<PolicyId>,
    /// Reasons for not calling recorded plugins again, one sentence each.
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
    /// Creates a replayer that uses the recorded replies of every policy, including compiled-in ones.
    pub fn believing() -> Self {
        Self { builtins: Vec::new(), plugins: Vec::new() }
    }

    /// Adds plugins to call again if their digests match the record.
    #[must_use]
    pub fn with_plugins(self, plugins: Vec<Arc<dyn Policy>>) -> Self {
        Self { plugins, ..self }
    }

    /// Returns the available policy with the id and build of the recorded one.
    pub(super) fn same(&self, seat: &Seat) -> Option<Arc<dyn Policy>> {
        let is_it = |policy: &&Arc<dyn Policy>| *policy.id() == seat.policy && policy.build() == seat.build.as_ref();
        let known = if seat.policy.engine == EngineKind::Builtin { &self.builtins } else { &self.plugins };
        known.iter().find(is_it).map(Arc::clone)
    }

    /// Returns the policy to call again for a seat. A plugin that faulted may have timed out or been quarantined, so
    /// only the record has its result. A plugin whose input contains redacted values is not called again either.
    fn asked_again(&self, kept: &StoredCase, seat: &Seat) -> Option<Arc<dyn Policy>> {
        let case = &kept.case;
        let loaded = seat.policy.engine != EngineKind::Builtin;
        let position = case.policies.iter().position(|other| std::ptr::eq(other, seat));
        let failed = |asked: &Asked| Some(asked.seat) == position && matches!(asked.answer, Answer::Fault { .. });
        let unknown = kept.redacted > 0 || case.calls.iter().any(failed);
        if loaded && unknown { None } else { self.same(seat) }
    }

    /// Explains the absence of a recorded plugin; `None` if it is available or compiled in.
    fn why_missing(&self, seat: &Seat) -> Option<String> {
        let Build { code, .. } = seat.build.as_ref().filter(|_| seat.policy.engine != EngineKind::Builtin)?;
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        let (policy, recorded) = (&seat.policy, short(code));
        let namesake = self.plugins.iter().find(|plugin| plugin.id().name == policy.name);
        let Some(here) = namesake.and_then(|plugin| plugin.build()) else {
            return Some(format!("{policy} (code {recorded}…) is not loaded, so its answers are those of the record"));
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

    /// Replays one decision.
    pub fn replay(&self, id: u64, kept: &StoredCase) -> Replay {
        let case = &kept.case;
        let mut again = case.decide(&case.policies(|seat| self.asked_again(kept, seat)));
        redact(&mut again);
        // An older version of the program may have redacted fewer values.
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

    /// Replays every decision. Consecutive records of the same decision count once.
    pub fn replay_all(&self, records: &[Stored]) -> Summary {
        let mut replays = Replays::new(self);
        for stored in records {
            replays.add(stored);
        }
        replays.finish()
    }
}

/// Incremental replay of decisions, in order of id.
pub struct Replays<'a> {
    replayer: &'a Replayer,
    summary: Summary,
    last: Option<Arc<StoredCase>>,
}

impl<'a> Replays<'a> {
    /// Creates an empty replay.
    pub fn new(replayer: &'a Replayer) -> Self {
        Self { replayer, summary: Summary::default(), last: None }
    }

    /// Replays the decision of a record, unless the previous record belongs to the same decision.
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

    /// Returns the summary of all decisions so far.
    pub fn finish(self) -> Summary {
        self.summary
    }
}
