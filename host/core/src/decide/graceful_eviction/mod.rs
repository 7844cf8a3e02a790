//! Completion of graceful eviction tasks: the old copy is deleted, or the eviction is canceled.
//!
//! Each task has one of three results: it is held, released (the old copy is deleted), or called off (the cluster is
//! a target again, and no copy is deleted). An old copy without a replacement stays unless the options, an operator
//! or an eviction check release it; the reason of the decision names the source.
//!
//! Karmada: `pkg/controllers/gracefuleviction/evictiontask.go`, with the health rule behind the plugin port. Start
//! with [`decide`]. The scheduling state is in [`result`], the coverage of healthy reports in [`coverage`], reports
//! that do not count in [`confirm`], canceled evictions in [`restore`], and changes of a template during an eviction in
//! [`failed_templates`].

pub mod confirm;
pub mod coverage;
pub mod failed_templates;
pub mod restore;
pub mod result;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::confirm::{CONFIRMED, Unconfirmed, UnconfirmedTargets};
pub use self::coverage::ReplacementHealth;
pub use self::failed_templates::{FAILED_TEMPLATES, FailedTemplates};
pub use self::restore::RestoreSource;
pub use self::result::ScheduleResult;
use crate::call::EvictionCheckCall;
use crate::combine::{self, Attribution, Diagnostics};
use crate::decide::reasons::{REASON_FAILBACK, REASON_RESCHEDULED};
use crate::model::{Binding, Cluster, GracefulEvictionTask, Health, TargetCluster};
use crate::policy::PolicySet;
use crate::time::Time;

/// Maximum accepted clock skew of the creator of a task, in seconds. A timestamp further in the future is invalid.
const CLOCK_SKEW_S: i64 = 60;

/// Delay in milliseconds before eviction checks are repeated if one of them returned a fault.
const FAULT_RECHECK_MS: i64 = 10_000;

/// Delay in milliseconds before eviction checks are repeated if they hold without a delay of their own. The cause of
/// a hold may end without a change of the binding.
const HELD_RECHECK_MS: i64 = 60_000;

/// Rule for a task whose grace period has ended without a healthy replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PurgeWithoutReplacement {
    /// Delete the old copy if the workload is placed elsewhere and every live target has reported its new copy,
    /// healthy or not; keep it otherwise.
    #[default]
    IfPlaced,
    /// Delete the old copy (Karmada).
    AfterGracePeriod,
    /// Like `if-placed`, but only if the task has its own grace period, which comes from a policy.
    OnlyByPolicy,
}

/// Options set by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GracefulEvictionOptions {
    /// Grace period of tasks without one of their own, in seconds; 0 ends immediately.
    pub timeout_s: i64,
    /// Rule for the end of a grace period without a healthy replacement.
    pub purge_without_replacement: PurgeWithoutReplacement,
    /// Rule for canceling an eviction when its cluster recovers.
    pub restore_source: RestoreSource,
    /// Rule for accepting a healthy report as one of a replacement.
    pub replacement_health: ReplacementHealth,
    /// True if a failed application that no other cluster takes becomes a target again when its template changes or its
    /// grace period is over; false in journals of versions without this rule.
    #[serde(default)]
    pub keeps_last_place: bool,
}

impl Default for GracefulEvictionOptions {
    fn default() -> Self {
        Self {
            timeout_s: 600,
            purge_without_replacement: PurgeWithoutReplacement::default(),
            restore_source: RestoreSource::default(),
            replacement_health: ReplacementHealth::default(),
            keeps_last_place: true,
        }
    }
}

impl GracefulEvictionOptions {
    /// Returns true if a failed application that no other cluster takes may become a target again.
    fn restores_failed_places(self) -> bool {
        self.keeps_last_place && self.restore_source != RestoreSource::Never
    }
}

/// Inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct GracefulEvictionSnapshot<'a> {
    /// Binding with the tasks.
    pub binding: &'a Binding,
    /// Known clusters among those that the tasks name. A missing cluster counts as unusable.
    pub sources: &'a [Cluster],
    /// Target clusters whose reports do not count.
    pub unconfirmed: &'a UnconfirmedTargets,
    /// Options set by the operator.
    pub options: GracefulEvictionOptions,
    /// Evaluation time.
    pub now: Time,
}

/// Planned changes to the tasks of one binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GracefulEvictionPlan {
    /// Complete new task list; absent if it is unchanged.
    pub tasks: Option<Vec<GracefulEvictionTask>>,
    /// Complete new scheduling result, to be written together with the tasks; absent if it is unchanged.
    pub clusters: Option<Vec<TargetCluster>>,
    /// Complete new versions of failed templates, to be written together with the tasks; absent if they are unchanged.
    pub failed_templates: Option<FailedTemplates>,
    /// Tasks that end with the deletion of the old copy, each with its reason.
    pub released: Vec<(GracefulEvictionTask, Attribution)>,
    /// Canceled tasks, whose cluster is a target again, each with its reason.
    pub called_off: Vec<(GracefulEvictionTask, Attribution)>,
    /// Tasks that remain, each with its reason.
    pub held: Vec<(GracefulEvictionTask, Attribution)>,
    /// Delay until the next decision if nothing changes, in milliseconds.
    pub again_after_ms: Option<i64>,
    /// Diagnostics of the eviction checks; each fault counts as a hold.
    pub diagnostics: Diagnostics,
    /// True if a release depends on live target clusters. Such a plan takes effect only after they are confirmed.
    pub rests_on_targets: bool,
}

/// Decides on the tasks of one binding.
pub fn decide(snapshot: GracefulEvictionSnapshot<'_>, policies: &PolicySet) -> GracefulEvictionPlan {
    let spec = &snapshot.binding.spec;
    let reported = confirm::masked(snapshot.binding, snapshot.unconfirmed);
    let (clusters, plan) = (Cow::Borrowed(spec.clusters.as_slice()), GracefulEvictionPlan::default());
    let mut round = Round {
        snapshot,
        reported: &reported,
        policies,
        clusters,
        plan,
    };
    let mut kept = Vec::with_capacity(spec.graceful_eviction_tasks.len());
    for task in &spec.graceful_eviction_tasks {
        match round.assess(task) {
            End::Stamped(stamped) => kept.push(*stamped),
            End::Held(attribution) => {
                round.plan.held.push((task.clone(), attribution));
                kept.push(task.clone());
            }
            End::Released(attribution) => round.plan.released.push((task.clone(), attribution)),
            End::CalledOff(attribution) => round.plan.called_off.push((task.clone(), attribution)),
        }
    }
    let Round { clusters, mut plan, .. } = round;
    plan.tasks = (kept != spec.graceful_eviction_tasks).then_some(kept);
    if snapshot.options.restores_failed_places() {
        let changed = plan.tasks.as_deref();
        plan.failed_templates = changed.and_then(|tasks| failed_templates::of_tasks(snapshot.binding, tasks));
    }
    plan.clusters = match clusters {
        Cow::Owned(clusters) => Some(clusters),
        Cow::Borrowed(_) => None,
    };
    plan
}

/// Result for one task.
enum End {
    Stamped(Box<GracefulEvictionTask>),
    Held(Attribution),
    Released(Attribution),
    CalledOff(Attribution),
}

/// Assessment of the tasks of a binding, in order: a cluster restored by one task is a target for the next.
struct Round<'a> {
    snapshot: GracefulEvictionSnapshot<'a>,
    /// Binding with unconfirmed reports masked.
    reported: &'a Binding,
    policies: &'a PolicySet,
    /// Current scheduling result; owned once a cluster was added.
    clusters: Cow<'a, [TargetCluster]>,
    plan: GracefulEvictionPlan,
}

impl Round<'_> {
    fn assess(&mut self, task: &GracefulEvictionTask) -> End {
        let GracefulEvictionSnapshot { now, options, .. } = self.snapshot;
        // A cluster that is a target again keeps its copy.
        if self.clusters.iter().any(|target| target.name == task.from_cluster) {
            return End::CalledOff(Attribution::rule(
                "TargetAgain",
                "the cluster is in the scheduling result again",
            ));
        }
        let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0);
        let timeout_s = own_s.map_or(options.timeout_s, i64::from);
        let created = task
            .creation_timestamp
            .filter(|created| *created <= now.plus_seconds(CLOCK_SKEW_S));
        let Some(created) = created else {
            self.again(timeout_s.saturating_mul(1000));
            let creation_timestamp = Some(now.truncated());
            return End::Stamped(Box::new(GracefulEvictionTask {
                creation_timestamp,
                ..task.clone()
            }));
        };
        if let Some(end) = manual_override(task) {
            return end;
        }
        if let Some((target, attribution)) = restore::target(&self.snapshot, &self.clusters, task) {
            self.clusters.to_mut().push(target);
            return End::CalledOff(attribution);
        }
        if let Some((target, attribution)) = restore::changed_template(&self.snapshot, &self.clusters, task) {
            self.clusters.to_mut().push(target);
            return End::CalledOff(attribution);
        }
        if is_kept_without_end(&self.snapshot, task) {
            return self.ask(task, i64::MAX);
        }
        let left_ms = created.plus_seconds(timeout_s).millis_since(now);
        if left_ms >= 0 {
            return self.ask(task, left_ms);
        }
        let end = self.assess_overdue(task, own_s, timeout_s);
        if matches!(end, End::Held(_))
            && let Some((target, attribution)) = restore::last_place(&self.snapshot, &self.clusters, task)
        {
            self.clusters.to_mut().push(target);
            return End::CalledOff(attribution);
        }
        end
    }

    /// Assesses a task whose grace period is over: `own_s` is the one of the task, `timeout_s` the one that counts.
    fn assess_overdue(&mut self, task: &GracefulEvictionTask, own_s: Option<i32>, timeout_s: i64) -> End {
        let GracefulEvictionSnapshot { binding, options, .. } = self.snapshot;
        let placed = result::schedule_result(binding) == ScheduleResult::Present;
        // A grace period of a policy permits the deletion by name; the flag alone does not replace an observation.
        let needs_report = placed && own_s.is_none();
        let doubt = if needs_report {
            confirm::doubt(binding, self.snapshot.unconfirmed)
        } else {
            None
        };
        let who = if own_s.is_some() {
            "gracePeriodSeconds of the task"
        } else {
            "graceful-eviction-timeout"
        };
        let over = format!("the grace period of {timeout_s} s ({who}) is over");
        match (options.purge_without_replacement, doubt) {
            (PurgeWithoutReplacement::AfterGracePeriod, _) => {
                let message = format!("{over}; the old copy is removed with or without a healthy replacement");
                End::Released(Attribution::rule("GracePeriodExceeded", message))
            }
            (PurgeWithoutReplacement::OnlyByPolicy, _) if own_s.is_none() => self.ask(task, i64::MAX),
            (_, Some(doubt)) => match self.ask(task, i64::MAX) {
                End::Held(_) => End::Held(Attribution::rule(
                    "ReplacementUnconfirmed",
                    format!("{over}, but {doubt}"),
                )),
                end => end,
            },
            _ if placed => {
                self.plan.rests_on_targets |= own_s.is_none();
                let message = format!("{over}; the old copy is removed although its replacement is not healthy");
                End::Released(Attribution::rule("GracePeriodExceeded", message))
            }
            _ => match self.ask(task, i64::MAX) {
                // An eviction check may release the copy; otherwise the reason is the missing replacement.
                End::Held(_) => End::Held(Attribution::rule(
                    "NoReplacement",
                    format!("{over}, but there is no replacement"),
                )),
                end => end,
            },
        }
    }

    fn ask(&mut self, task: &GracefulEvictionTask, left_ms: i64) -> End {
        let GracefulEvictionSnapshot {
            now,
            options,
            unconfirmed,
            ..
        } = self.snapshot;
        let binding = self.reported;
        let observed = &binding.status.aggregated_status;
        let call = |observed| EvictionCheckCall {
            binding,
            task,
            observed,
            now,
        };
        let mut outcome = combine::eviction_check(self.policies, call(observed));
        // Only a release can rest on an outdated report, so only a release requires a second check. A replacement that
        // waits for the end of the task would never pass it.
        let short = if outcome.released && !coverage::waits_for_end(self.snapshot.sources, task) {
            coverage::shortfalls(binding, options.replacement_health)
        } else {
            Vec::new()
        };
        if !short.is_empty() {
            outcome = combine::eviction_check(self.policies, call(&coverage::masked(observed, &short)));
            if !outcome.released {
                let short: Vec<_> = short.iter().map(ToString::to_string).collect();
                let message = &mut outcome.attribution.reason.message;
                *message = format!("{message} ({})", short.join(", "));
            }
        }
        let failed = !outcome.diagnostics.faults.is_empty();
        self.plan.diagnostics.extend(outcome.diagnostics);
        if outcome.released {
            self.plan.rests_on_targets = true;
            return End::Released(outcome.attribution);
        }
        let doubts = confirm::describe(binding, unconfirmed);
        if !doubts.is_empty() {
            let message = &mut outcome.attribution.reason.message;
            *message = format!("{message} ({doubts})");
            let targets = binding
                .spec
                .clusters
                .iter()
                .filter_map(|target| unconfirmed.get(&target.name));
            targets
                .filter_map(|reason| reason.recheck_ms())
                .for_each(|after_ms| self.again(after_ms));
        }
        // The recovery of a plugin triggers no event.
        if failed {
            self.again(FAULT_RECHECK_MS);
        }
        if left_ms < i64::MAX {
            self.again(left_ms);
        }
        self.again(
            outcome
                .recheck_after_s
                .map_or(HELD_RECHECK_MS, |after_s| i64::from(after_s) * 1000),
        );
        End::Held(outcome.attribution)
    }

    /// Schedules the next decision. Adds one millisecond, because the grace period ends strictly after its last
    /// moment.
    fn again(&mut self, after_ms: i64) {
        let after_ms = after_ms.max(0).saturating_add(1);
        let again = &mut self.plan.again_after_ms;
        *again = Some(again.map_or(after_ms, |earlier| earlier.min(after_ms)));
    }
}

/// Returns true if no grace period ends the task, because the old copy runs and its cluster is not the cause of the
/// eviction: a stand-in of failback, or a healthy copy that a new scheduling result gives up although it may stay. An
/// unhealthy copy must not replace it.
fn is_kept_without_end(snapshot: &GracefulEvictionSnapshot<'_>, task: &GracefulEvictionTask) -> bool {
    let GracefulEvictionSnapshot {
        binding, sources, now, ..
    } = *snapshot;
    let may_stay = || {
        let source = sources.iter().find(|cluster| cluster.name == task.from_cluster);
        let placement = binding.spec.placement.as_ref();
        source
            .zip(placement)
            .is_some_and(|(source, placement)| restore::may_keep(placement, source, now))
    };
    let is_healthy = || {
        let reports = &binding.status.aggregated_status;
        let report = reports.iter().find(|report| report.cluster_name == task.from_cluster);
        report.is_some_and(|report| report.health == Some(Health::Healthy))
    };
    match task.reason.as_str() {
        REASON_FAILBACK => true,
        REASON_RESCHEDULED => is_healthy() && may_stay(),
        _ => false,
    }
}

/// Returns the result that an operator set or has to set.
fn manual_override(task: &GracefulEvictionTask) -> Option<End> {
    match task.suppress_deletion {
        Some(true) => {
            let message = "suppressDeletion is true: kept until a person confirms";
            Some(End::Held(Attribution::rule("DeletionSuppressed", message)))
        }
        Some(false) => {
            let message = "suppressDeletion is false: a person confirmed the removal of the old copy";
            Some(End::Released(Attribution::rule("DeletionConfirmed", message)))
        }
        None => task.foreign_purge_mode().map(|mode| {
            let message = format!("purge mode {mode} is not supported: kept until suppressDeletion is set to false");
            End::Held(Attribution::rule("UnknownPurgeMode", message))
        }),
    }
}

#[cfg(test)]
mod tests;
