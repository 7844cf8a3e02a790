//! Replay of decisions from their records.

use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_core::journal::redact::redact;
use bulkhead_core::journal::{Difference, PolicySlot, RecordedCall, RecordedReply, differences};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Build, EngineKind, Policy, PolicyId};
use bulkhead_journal::{Stored, StoredDecision};
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
    /// Number of records without a decision record: consequences of a decision, such as dispatching, and diagnostics.
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
        Self {
            builtins: builtins.into_iter().map(bounded).collect(),
            plugins: Vec::new(),
        }
    }
}

impl Replayer {
    /// Creates a replayer that uses the recorded replies of every policy, including compiled-in ones.
    pub fn with_recorded_replies() -> Self {
        Self {
            builtins: Vec::new(),
            plugins: Vec::new(),
        }
    }

    /// Adds plugins to call again if their digests match the record.
    #[must_use]
    pub fn with_plugins(self, plugins: Vec<Arc<dyn Policy>>) -> Self {
        Self { plugins, ..self }
    }

    /// Returns the available policy with the id and build of the recorded one.
    pub(super) fn same(&self, slot: &PolicySlot) -> Option<Arc<dyn Policy>> {
        let is_it = |policy: &&Arc<dyn Policy>| {
            let is_same_code = match (policy.build(), &slot.build) {
                (Some(here), Some(recorded)) => here.is_same_code(recorded),
                (here, recorded) => here == recorded.as_ref(),
            };
            *policy.id() == slot.policy && is_same_code
        };
        let known = if slot.policy.engine == EngineKind::Builtin {
            &self.builtins
        } else {
            &self.plugins
        };
        known.iter().find(is_it).map(Arc::clone)
    }

    /// Returns the policy to call again for a slot. A plugin that faulted may have timed out or been quarantined, so
    /// only the record has its result. A plugin whose input contains redacted values is not called again either.
    fn asked_again(&self, kept: &StoredDecision, slot: &PolicySlot) -> Option<Arc<dyn Policy>> {
        let decision = &kept.decision;
        let loaded = slot.policy.engine != EngineKind::Builtin;
        let position = decision.policies.iter().position(|other| std::ptr::eq(other, slot));
        let failed =
            |asked: &RecordedCall| Some(asked.slot) == position && matches!(asked.reply, RecordedReply::Fault { .. });
        let unknown = kept.redacted > 0 || decision.calls.iter().any(failed);
        if loaded && unknown { None } else { self.same(slot) }
    }

    /// Explains the absence of a recorded plugin; `None` if it is available or compiled in.
    fn why_missing(&self, slot: &PolicySlot) -> Option<String> {
        let Build { code, .. } = slot
            .build
            .as_ref()
            .filter(|_| slot.policy.engine != EngineKind::Builtin)?;
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        let (policy, recorded) = (&slot.policy, short(code));
        let namesake = self.plugins.iter().find(|plugin| plugin.id().name == policy.name);
        let Some(here) = namesake.and_then(|plugin| plugin.build()) else {
            return Some(format!(
                "{policy} (code {recorded}…) is not loaded, so its answers are those of the record"
            ));
        };
        let (what, now, then) = if here.code == *code {
            (
                "configured otherwise",
                short(&here.config),
                slot.build
                    .as_ref()
                    .map(|build| short(&build.config))
                    .unwrap_or_default(),
            )
        } else {
            ("here with other code", short(&here.code), recorded)
        };
        Some(format!(
            "{policy} is {what} ({now}…, and {then}… in the record), so its answers are those of the record"
        ))
    }

    /// Replays one decision.
    pub fn replay(&self, id: u64, kept: &StoredDecision) -> Replay {
        let decision = &kept.decision;
        let mut again = decision.decide(&decision.policies(|slot| self.asked_again(kept, slot)));
        redact(&mut again);
        // An older version of the program may have redacted fewer values.
        let mut recorded_plan = decision.plan.clone();
        redact(&mut recorded_plan);
        let is_asked = |slot: &&PolicySlot| self.asked_again(kept, slot).is_some();
        let (asked, recorded): (Vec<_>, Vec<_>) = decision.policies.iter().partition(is_asked);
        let ids = |slots: Vec<&PolicySlot>| slots.into_iter().map(|slot| slot.policy.clone()).collect();
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
    last: Option<Arc<StoredDecision>>,
}

impl<'a> Replays<'a> {
    /// Creates an empty replay.
    pub fn new(replayer: &'a Replayer) -> Self {
        Self {
            replayer,
            summary: Summary::default(),
            last: None,
        }
    }

    /// Replays the decision of a record, unless the previous record belongs to the same decision.
    pub fn add(&mut self, stored: &Stored) {
        let (replayer, summary) = (self.replayer, &mut self.summary);
        let Some(kept) = &stored.decision else {
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
        let unasked = kept
            .decision
            .policies
            .iter()
            .filter(|slot| replayer.same(slot).is_none());
        summary
            .missing
            .extend(unasked.filter_map(|slot| replayer.why_missing(slot)));
        let is_here = |policy: &&PolicyId| replayer.plugins.iter().any(|plugin| plugin.id() == *policy);
        let redacted_plugins = replay
            .recorded
            .iter()
            .filter(|policy| kept.redacted > 0 && is_here(policy));
        summary.missing.extend(redacted_plugins.map(|policy| {
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
