//! When a graceful eviction task may end: the old copy goes, or the eviction is called off.
//!
//! Each task comes to one of three ends, and never to two of them: it is held, it is released (the old copy goes),
//! or it is called off (the cluster is a target, and nothing goes). An old copy that nothing replaces stays unless
//! the options, a person or an eviction check say otherwise, and the reason of the decision names who did.
//!
//! Karmada: `pkg/controllers/gracefuleviction/evictiontask.go`, with the health rule behind the plugin port.
//! Start reading at [`decide`]; what the scheduler has made of the binding is in [`result`], whether a healthy report
//! covers it in [`coverage`], reports that do not count in [`confirm`], the way back in [`restore`].

pub mod confirm;
pub mod coverage;
pub mod restore;
pub mod result;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::confirm::{CONFIRMED, Unconfirmed, UnconfirmedTargets};
pub use self::coverage::ReplacementHealth;
pub use self::restore::RestoreSource;
pub use self::result::ScheduleResult;
use crate::call::EvictionCheckCall;
use crate::combine::{self, Because, Remarks};
use crate::decide::failback::REASON_FAILBACK;
use crate::model::{Binding, Cluster, GracefulEvictionTask, TargetCluster};
use crate::mutation::{self, Mutation};
use crate::policy::PolicySet;
use crate::time::Time;

/// How far ahead of us the clock of whoever stamped a task may be, in seconds. A stamp beyond that says nothing.
const CLOCK_SKEW_S: i64 = 60;

/// After how long eviction checks are asked again of which one did not answer, in milliseconds.
const FAULT_RECHECK_MS: i64 = 10_000;

/// After how long eviction checks are asked again that hold and do not say when to ask, in milliseconds: what they hold
/// for may end without a change of the binding.
const HELD_RECHECK_MS: i64 = 60_000;

/// What ends a task whose grace period is over although no healthy copy replaces the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PurgeWithoutReplacement {
    /// The old copy goes if the workload is placed elsewhere, healthy or not; it stays if it is placed nowhere.
    #[default]
    IfPlaced,
    /// The old copy goes (Karmada).
    AfterGracePeriod,
    /// As [`Self::IfPlaced`], and only if the task has a grace period of its own, which a policy gave it.
    OnlyByPolicy,
}

/// Choices of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishOptions {
    /// Grace period of tasks that have none of their own, in seconds; 0 is over at once.
    pub timeout_s: i64,
    /// What the end of a grace period means.
    pub purge_without_replacement: PurgeWithoutReplacement,
    /// Whether an eviction is called off when its cluster is well again first.
    pub restore_source: RestoreSource,
    /// When a healthy report counts as one of a replacement.
    pub replacement_health: ReplacementHealth,
}

impl Default for FinishOptions {
    fn default() -> Self {
        Self {
            timeout_s: 600,
            purge_without_replacement: PurgeWithoutReplacement::default(),
            restore_source: RestoreSource::default(),
            replacement_health: ReplacementHealth::default(),
        }
    }
}

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct FinishSnapshot<'a> {
    /// The binding with its tasks.
    pub binding: &'a Binding,
    /// The clusters that tasks name, as far as they are known. One that is missing counts as not usable.
    pub sources: &'a [Cluster],
    /// Target clusters whose reports do not count.
    pub unconfirmed: &'a UnconfirmedTargets,
    /// Choices of the operator.
    pub options: FinishOptions,
    /// The time to reason with.
    pub now: Time,
}

/// What to do about the tasks of one binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishPlan {
    /// The complete new list; absent when nothing changes.
    pub tasks: Option<Vec<GracefulEvictionTask>>,
    /// The complete new scheduling result, to be written together with the tasks; absent when nothing changes.
    pub clusters: Option<Vec<TargetCluster>>,
    /// Tasks that end with the old copy, each with who allowed it.
    pub released: Vec<(GracefulEvictionTask, Because)>,
    /// Tasks that end with their cluster as a target, each with why.
    pub called_off: Vec<(GracefulEvictionTask, Because)>,
    /// Tasks that stay, each with who holds it.
    pub held: Vec<(GracefulEvictionTask, Because)>,
    /// When to decide again if nothing changes before, in milliseconds.
    pub again_after_ms: Option<i64>,
    /// Eviction checks that did not answer; each of them holds.
    pub remarks: Remarks,
    /// True if a release rests on targets being alive. Such a plan takes effect only once they are confirmed to be.
    pub rests_on_targets: bool,
}

/// Decides about the tasks of one binding.
pub fn decide(snapshot: FinishSnapshot<'_>, policies: &PolicySet) -> FinishPlan {
    let spec = &snapshot.binding.spec;
    if mutation::on(Mutation::Karmada4951) && snapshot.binding.namespace.is_none() {
        return FinishPlan::default();
    }
    let reported = confirm::masked(snapshot.binding, snapshot.unconfirmed);
    let (clusters, plan) = (Cow::Borrowed(spec.clusters.as_slice()), FinishPlan::default());
    let mut round = Round { snapshot, reported: &reported, policies, clusters, plan };
    let mut kept = Vec::with_capacity(spec.graceful_eviction_tasks.len());
    for task in &spec.graceful_eviction_tasks {
        match round.assess(task) {
            End::Stamped(stamped) => kept.push(*stamped),
            End::Held(because) => {
                round.plan.held.push((task.clone(), because));
                kept.push(task.clone());
            }
            End::Released(because) => round.plan.released.push((task.clone(), because)),
            End::CalledOff(because) => round.plan.called_off.push((task.clone(), because)),
        }
    }
    let Round { clusters, mut plan, .. } = round;
    plan.tasks = (kept != spec.graceful_eviction_tasks).then_some(kept);
    plan.clusters = match clusters {
        Cow::Owned(clusters) => Some(clusters),
        Cow::Borrowed(_) => None,
    };
    plan
}

/// What becomes of one task in one round.
enum End {
    Stamped(Box<GracefulEvictionTask>),
    Held(Because),
    Released(Because),
    CalledOff(Because),
}

/// The tasks of a binding are assessed one after the other: a cluster that comes back is a target for the next.
struct Round<'a> {
    snapshot: FinishSnapshot<'a>,
    /// The binding with the reports that count.
    reported: &'a Binding,
    policies: &'a PolicySet,
    /// The scheduling result as it is by now; ours once something was added to it.
    clusters: Cow<'a, [TargetCluster]>,
    plan: FinishPlan,
}

impl Round<'_> {
    fn assess(&mut self, task: &GracefulEvictionTask) -> End {
        let FinishSnapshot { binding, now, options, .. } = self.snapshot;
        // Whoever made the cluster a target again wants the copy there.
        if self.clusters.iter().any(|target| target.name == task.from_cluster) {
            return End::CalledOff(Because::rule("TargetAgain", "the cluster is in the scheduling result again"));
        }
        let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0);
        let leaked_s = || binding.spec.graceful_eviction_tasks.iter().find_map(|task| task.grace_period_seconds);
        let own_s = if mutation::on(Mutation::Karmada7201) { own_s.or_else(leaked_s) } else { own_s };
        let timeout_s = own_s.map_or(options.timeout_s, i64::from);
        let created = task.creation_timestamp.filter(|created| *created <= now.plus_seconds(CLOCK_SKEW_S));
        let Some(created) = created else {
            self.again(timeout_s.saturating_mul(1000));
            let creation_timestamp = Some(now.truncated());
            return End::Stamped(Box::new(GracefulEvictionTask { creation_timestamp, ..task.clone() }));
        };
        if let Some(end) = by_hand(task) {
            return end;
        }
        if mutation::on(Mutation::HeldForEver) {
            return End::Held(Because::rule("NoReplacement", "for ever"));
        }
        if let Some((target, because)) = restore::target(&self.snapshot, &self.clusters, task) {
            self.clusters.to_mut().push(target);
            return End::CalledOff(because);
        }
        // The copy that stands in is well, and time alone is no reason to give it up for one that is not.
        if task.reason == REASON_FAILBACK {
            return self.ask(task, i64::MAX);
        }
        let left_ms = created.plus_seconds(timeout_s).millis_since(now);
        if left_ms >= 0 {
            return self.ask(task, left_ms);
        }
        let placed = result::schedule_result(binding) == ScheduleResult::Present;
        let who = if own_s.is_some() { "gracePeriodSeconds of the task" } else { "graceful-eviction-timeout" };
        let over = format!("the grace period of {timeout_s} s ({who}) is over");
        match options.purge_without_replacement {
            _ if mutation::on(Mutation::Karmada7455) => End::Released(Because::rule("GracePeriodExceeded", over)),
            PurgeWithoutReplacement::AfterGracePeriod => {
                let message = format!("{over}; the old copy goes with or without a healthy replacement");
                End::Released(Because::rule("GracePeriodExceeded", message))
            }
            PurgeWithoutReplacement::OnlyByPolicy if own_s.is_none() => self.ask(task, i64::MAX),
            _ if placed && own_s.is_none() && confirm::all_dead(binding, self.snapshot.unconfirmed) => {
                let targets = confirm::describe(binding, self.snapshot.unconfirmed);
                match self.ask(task, i64::MAX) {
                    End::Held(_) => {
                        let message = format!("{over}, but no target may run the workload: {targets}");
                        End::Held(Because::rule("ReplacementUnconfirmed", message))
                    }
                    end => end,
                }
            }
            _ if placed => {
                self.plan.rests_on_targets |= own_s.is_none();
                let message = format!("{over}; the old copy goes although its replacement is not healthy");
                End::Released(Because::rule("GracePeriodExceeded", message))
            }
            _ => match self.ask(task, i64::MAX) {
                // An eviction check may know better; what holds it is that there is no replacement.
                End::Held(_) => End::Held(Because::rule("NoReplacement", format!("{over}, but nothing replaces it"))),
                end => end,
            },
        }
    }

    fn ask(&mut self, task: &GracefulEvictionTask, left_ms: i64) -> End {
        let FinishSnapshot { now, options, unconfirmed, .. } = self.snapshot;
        if mutation::on(Mutation::Karmada3736) {
            return End::Released(Because::rule("ReplacementHealthy", "nobody looked"));
        }
        let binding = self.reported;
        let observed = &binding.status.aggregated_status;
        let call = |observed| EvictionCheckCall { binding, task, observed, now };
        let mut outcome = combine::eviction_check(self.policies, call(observed));
        outcome.released &= !mutation::on(Mutation::Karmada2769);
        // Only a release can rest on a report that is too old, so only a release is worth a second question.
        let short =
            if outcome.released { coverage::shortfalls(binding, options.replacement_health) } else { Vec::new() };
        if !short.is_empty() {
            outcome = combine::eviction_check(self.policies, call(&coverage::masked(observed, &short)));
            if !outcome.released {
                let short: Vec<_> = short.iter().map(ToString::to_string).collect();
                let message = &mut outcome.because.reason.message;
                *message = format!("{message} ({})", short.join(", "));
            }
        }
        let failed = !outcome.remarks.faults.is_empty();
        self.plan.remarks.extend(outcome.remarks);
        if outcome.released {
            self.plan.rests_on_targets = true;
            return End::Released(outcome.because);
        }
        let doubts = confirm::describe(binding, unconfirmed);
        if !doubts.is_empty() {
            let message = &mut outcome.because.reason.message;
            *message = format!("{message} ({doubts})");
            let targets = binding.spec.clusters.iter().filter_map(|target| unconfirmed.get(&target.name));
            targets.filter_map(|reason| reason.recheck_ms()).for_each(|after_ms| self.again(after_ms));
        }
        // Nothing tells when a plugin is well again.
        if failed {
            self.again(FAULT_RECHECK_MS);
        }
        if left_ms < i64::MAX {
            self.again(left_ms);
        }
        self.again(outcome.recheck_after_s.map_or(HELD_RECHECK_MS, |after_s| i64::from(after_s) * 1000));
        End::Held(outcome.because)
    }

    /// The grace period is over only strictly after its last moment, so look one millisecond later.
    fn again(&mut self, after_ms: i64) {
        let mut after_ms = after_ms.max(0).saturating_add(1);
        if mutation::on(Mutation::LeftToChance) {
            after_ms += mutation::chance(4_000);
        }
        let again = &mut self.plan.again_after_ms;
        *again = Some(again.map_or(after_ms, |earlier| earlier.min(after_ms)));
    }
}

/// What a person said, or has to say.
fn by_hand(task: &GracefulEvictionTask) -> Option<End> {
    match task.suppress_deletion {
        Some(true) => {
            let message = "suppressDeletion is true: kept until a person confirms";
            Some(End::Held(Because::rule("DeletionSuppressed", message)))
        }
        Some(false) => {
            let message = "suppressDeletion is false: a person confirmed that the old copy may go";
            Some(End::Released(Because::rule("DeletionConfirmed", message)))
        }
        None => task.foreign_purge_mode().map(|mode| {
            let message = format!("purge mode {mode} means nothing here: kept until suppressDeletion is set to false");
            End::Held(Because::rule("UnknownPurgeMode", message))
        }),
    }
}

#[cfg(test)]
mod tests;
