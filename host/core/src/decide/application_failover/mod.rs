//! Application failover: detection of failed applications on a cluster, and the edit that evicts them.
//!
//! Karmada: `pkg/controllers/applicationfailover`, with two additions from its proposal that are not in any release:
//! preconditions, and a period during which the workload is not scheduled to the cluster that it left. Three
//! differences are intentional. The health history is stored on the binding, so it survives a restart. `Unknown`
//! pauses the timer instead of resetting it. A binding without a toleration tolerates 300 s instead of causing a
//! crash.
//!
//! Start with [`decide`]; the timer is in [`health_history`], and labels that carry over state are in
//! [`preserve`].

pub mod health_history;

use std::borrow::Borrow;

use serde_json::{Value, json};

pub use self::health_history::{HEALTH_HISTORY, HealthHistories, HealthHistory};
use super::eviction::taint_based::graceful_evict;
use super::eviction::{self, EvictionPause, PauseScope, PreCheck, has_target, would_return};
use super::preserve::{self, PreserveError};
use super::reasons::REASON_APPLICATION_FAILURE;
use super::schedule::{EVICTION_HISTORY, blocked_until};
use crate::combine::Attribution;
use crate::model::{
    AggregatedStatusItem, ApplicationFailover, Binding, BindingSpec, Cluster, GracefulEvictionTask, Health, Placement,
    PreConditions, PurgeMode, Reports,
};
use crate::time::Time;

/// Default for how long an application may be unhealthy, in seconds. Same as in Karmada's CRD.
const TOLERATION_S: i64 = 300;

/// Milliseconds until clusters are looked at again for a workload that has nowhere to go.
const NO_TARGET_RECHECK_MS: i64 = 30_000;

/// Settings of application failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailoverOptions {
    /// Gate `GracefulEviction`: if off, applications with purge mode `Gracefully` are not evicted.
    pub graceful_eviction: bool,
    /// Gate `StatefulFailoverInjection`: labels are carried over according to `statePreservation`.
    pub preserve_state: bool,
    /// Condition on the other clusters, see [`pre_check`]. Absent in journals of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_check: Option<PreCheck>,
}

/// Reason why a failed application cannot be evicted. The binding stays unchanged, and the eviction is retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// The feature gate is off.
    #[error("purge mode Gracefully needs the feature gate GracefulEviction")]
    GateOff,
    /// The labels for the new copy could not be computed.
    #[error(transparent)]
    Preserve(#[from] PreserveError),
}

/// Inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct FailoverSnapshot<'a, C> {
    /// Binding with the reported status of its application.
    pub binding: &'a Binding,
    /// Producer name of its tasks.
    pub producer: &'a str,
    /// Settings.
    pub options: FailoverOptions,
    /// Eviction pauses.
    pub pauses: &'a [EvictionPause],
    /// All member clusters.
    pub clusters: &'a [C],
    /// Evaluation time.
    pub now: Time,
}

/// Planned changes to one binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailoverPlan {
    /// Complete new health history; absent if it is unchanged.
    pub health_histories: Option<HealthHistories>,
    /// Complete new spec, to be written together with the history; absent if no cluster is evicted.
    pub spec: Option<Box<BindingSpec>>,
    /// New tasks, each with its reason.
    pub evicted: Vec<(GracefulEvictionTask, Attribution)>,
    /// Clusters whose timer starts with this decision, each with its reason.
    pub counting: Vec<(String, Attribution)>,
    /// Clusters that should be evicted but are subject to an eviction pause, each with its reason.
    pub paused: Vec<(String, Attribution)>,
    /// Clusters on which the application stays unhealthy because no other cluster could run it.
    pub without_target: Vec<(String, Attribution)>,
    /// Reason why no cluster is evicted although at least one has failed.
    pub blocked: Option<Blocked>,
    /// Delay until the next decision if nothing changes, in milliseconds.
    pub again_after_ms: Option<i64>,
}

/// Decides on application failover for one binding.
pub fn decide<C: Borrow<Cluster>>(snapshot: FailoverSnapshot<'_, C>) -> FailoverPlan {
    let FailoverSnapshot {
        binding,
        producer,
        options,
        pauses,
        clusters,
        now,
    } = snapshot;
    let previous = health_history::read(binding);
    let Some(application) = in_force(binding) else {
        let health_histories = binding
            .annotations
            .contains_key(HEALTH_HISTORY)
            .then(HealthHistories::new);
        return FailoverPlan {
            health_histories,
            ..FailoverPlan::default()
        };
    };
    let mut plan = FailoverPlan::default();
    let mut health_histories = HealthHistories::new();
    let mut failed = Vec::new();
    let mut reports = Reports::new(&binding.status.aggregated_status);
    for target in &binding.spec.clusters {
        let cluster = &target.name;
        let reported = reports.of(cluster);
        let before = previous.get(cluster);
        let Some(item) = reported else {
            // A temporarily missing report has no meaning, and a report that never arrived starts no timer.
            health_histories.extend(before.map(|before| (cluster.clone(), before.paused(now))));
            continue;
        };
        let seen = before.cloned().unwrap_or_else(|| HealthHistory::first(now));
        let leaving = binding.spec.is_evicting(cluster);
        let (seen, step) = match item.health {
            Some(Health::Healthy) => (seen.healthy(), Step::Rest),
            Some(Health::Unhealthy) if !leaving => unhealthy(application, seen, now),
            Some(Health::Unhealthy | Health::Unknown) | None => (seen.paused(now), Step::Rest),
        };
        match step {
            Step::Rest => {}
            Step::Wait { left_ms, attribution } => {
                plan.again_after_ms = plan.again_after_ms.into_iter().chain([left_ms]).min();
                if before.is_none_or(|before| before.unhealthy_since.is_none()) {
                    plan.counting
                        .extend(attribution.map(|attribution| (cluster.clone(), attribution)));
                }
            }
            Step::Leave(attribution) => {
                match eviction::paused(
                    pauses,
                    PauseScope {
                        cluster,
                        workload: &binding.spec.resource,
                    },
                    now,
                ) {
                    None => failed.push((cluster.clone(), attribution)),
                    Some(paused) => {
                        let left_ms = paused.until.map(|until| until.millis_since(now).max(0) + 1);
                        plan.again_after_ms = plan.again_after_ms.into_iter().chain(left_ms).min();
                        plan.paused.push((cluster.clone(), paused.attribution()));
                    }
                }
            }
        }
        health_histories.insert(cluster.clone(), seen);
    }
    match leave(
        binding,
        application,
        failed,
        producer,
        options,
        &usable_clusters(binding, clusters, now),
        now,
    ) {
        Ok(FailedTargets {
            spec,
            evicted,
            without_target,
        }) => {
            // A later placement on the same cluster starts with a new history.
            for (task, _) in &evicted {
                health_histories.remove(&task.from_cluster);
            }
            if !without_target.is_empty() {
                plan.again_after_ms = plan.again_after_ms.into_iter().chain([NO_TARGET_RECHECK_MS]).min();
            }
            plan.spec = (!evicted.is_empty()).then(|| Box::new(spec));
            plan.evicted = evicted;
            plan.without_target = without_target;
        }
        Err(blocked) => plan.blocked = Some(blocked),
    }
    plan.health_histories = (health_histories != previous).then_some(health_histories);
    plan
}

/// Returns the application failover policy, if active. Karmada requires `propagateDeps` for namespaced bindings only.
fn in_force(binding: &Binding) -> Option<&ApplicationFailover> {
    let spec = &binding.spec;
    let application = spec
        .failover
        .as_ref()
        .and_then(|failover| failover.application.as_ref());
    application.filter(|_| spec.propagate_deps && binding.deletion_timestamp.is_none())
}

/// Consequence of an unhealthy report for one cluster.
enum Step {
    Rest,
    Wait {
        left_ms: i64,
        attribution: Option<Attribution>,
    },
    Leave(Attribution),
}

fn unhealthy(application: &ApplicationFailover, seen: HealthHistory, now: Time) -> (HealthHistory, Step) {
    let PreConditions {
        delay_seconds,
        healthy_state,
    } = application.pre_conditions.clone().unwrap_or_default();
    if healthy_state == Some(Health::Healthy) && !seen.settled {
        return (seen.paused(now), Step::Rest);
    }
    let delay_s = i64::from(delay_seconds.unwrap_or(0).max(0));
    let delay_ms = seen
        .first_seen
        .plus_seconds(delay_s)
        .millis_since(now)
        .min(delay_s * 1000);
    if delay_ms > 0 {
        return (
            seen.paused(now),
            Step::Wait {
                left_ms: delay_ms,
                attribution: None,
            },
        );
    }
    let toleration_s = application
        .decision_conditions
        .toleration_seconds
        .filter(|seconds| *seconds >= 0);
    let toleration_s = toleration_s.map_or(TOLERATION_S, i64::from);
    let seen = seen.unhealthy(now);
    let unhealthy_ms = seen.unhealthy_ms(now);
    let left_ms = toleration_s * 1000 - unhealthy_ms;
    if left_ms >= 0 {
        let message = format!("unhealthy; the eviction follows after {toleration_s} s");
        let attribution = Some(Attribution::rule("ApplicationUnhealthy", message));
        // The toleration expires strictly after its last moment.
        return (
            seen,
            Step::Wait {
                left_ms: left_ms + 1,
                attribution,
            },
        );
    }
    let message = format!(
        "unhealthy for {} s, {toleration_s} s are tolerated",
        unhealthy_ms / 1000
    );
    (
        seen,
        Step::Leave(Attribution::rule(REASON_APPLICATION_FAILURE, message)),
    )
}

/// Result of moving the failed clusters of a binding.
#[derive(Default)]
struct FailedTargets {
    spec: BindingSpec,
    evicted: Vec<(GracefulEvictionTask, Attribution)>,
    without_target: Vec<(String, Attribution)>,
}

/// Returns the clusters that may take a failed application: all targets, and the other clusters that the policy does not
/// block after an eviction and that report no unhealthy copy. Such a copy is one that has not left yet; two clusters
/// would take the application from each other.
pub fn usable_clusters<'a, C: Borrow<Cluster>>(binding: &Binding, clusters: &'a [C], now: Time) -> Vec<&'a Cluster> {
    let (blocked, reports) = (blocked_until(binding, now), &binding.status.aggregated_status);
    let is_barred = |name: &str| blocked.iter().any(|(blocked, _)| blocked == name) || is_ill(reports, name);
    let is_usable = |cluster: &&Cluster| binding.spec.targets(&cluster.name) || !is_barred(&cluster.name);
    clusters.iter().map(Borrow::borrow).filter(is_usable).collect()
}

/// Returns true if the last report of a cluster is unhealthy.
fn is_ill(reports: &[AggregatedStatusItem], cluster: &str) -> bool {
    reports
        .iter()
        .any(|item| item.cluster_name == cluster && item.health == Some(Health::Unhealthy))
}

/// Returns the check that an eviction has to pass. Without a check, mode `Directly` would delete the only copy again and
/// again, so that mode is always checked.
pub fn pre_check(options: FailoverOptions, purge_mode: PurgeMode) -> PreCheck {
    let is_off = match options.pre_check {
        None => true,
        Some(PreCheck::None) => purge_mode != PurgeMode::Directly,
        // The proposal is about lost clusters.
        Some(PreCheck::Feasible | PreCheck::Proposal) => false,
    };
    if is_off { PreCheck::None } else { PreCheck::Feasible }
}

/// Returns the reason to keep a failed application on a cluster; `None` if it may leave. `spec` has the tasks of the
/// clusters that it leaves at the same time, `clusters` are the usable ones (see [`usable_clusters`]).
pub fn stays(
    spec: &BindingSpec,
    reports: &[AggregatedStatusItem],
    application: &ApplicationFailover,
    options: FailoverOptions,
    cluster: &str,
    clusters: &[&Cluster],
    now: Time,
) -> Option<Attribution> {
    let anywhere = Placement::default();
    let placement = spec.placement.as_ref().unwrap_or(&anywhere);
    let no_target = || {
        let message = "no other cluster can run the workload, so an eviction would only remove it";
        Attribution::rule("NoTargetCluster", message)
    };
    let check = pre_check(options, application.purge_mode);
    if !has_target(check, spec, placement, cluster, clusters, now) {
        return Some(no_target());
    }
    // Without a pre-check in the options, the clusters are not known.
    options.pre_check?;
    if !would_return(spec, placement, cluster, clusters, now) {
        return None;
    }
    if application.block_predecessor_seconds.is_none() {
        return Some(eviction::judge::returns());
    }
    // The block keeps it away, so the copies on the other targets have to do.
    let mut others = spec.clusters.iter().filter(|target| target.name != cluster);
    (check != PreCheck::None && others.all(|target| is_ill(reports, &target.name))).then(no_target)
}

/// Moves the failed clusters in one edit, or none of them if one cannot be moved. A cluster stays a target if no other
/// one could run the workload: the copies of a workload that is unhealthy in every cluster (a bad image) are never all
/// taken away, so that a corrected template reaches a member.
fn leave(
    binding: &Binding,
    application: &ApplicationFailover,
    failed: Vec<(String, Attribution)>,
    producer: &str,
    options: FailoverOptions,
    clusters: &[&Cluster],
    now: Time,
) -> Result<FailedTargets, Blocked> {
    if failed.is_empty() {
        return Ok(FailedTargets::default());
    }
    let mut targets = FailedTargets {
        spec: binding.spec.clone(),
        ..FailedTargets::default()
    };
    let before: Vec<_> = targets.spec.clusters.iter().map(|target| target.name.clone()).collect();
    let graceful = application.purge_mode == PurgeMode::Gracefully;
    if graceful && !options.graceful_eviction {
        return Err(Blocked::GateOff);
    }
    let (pre_check, reports) = (
        pre_check(options, application.purge_mode),
        &binding.status.aggregated_status,
    );
    for (cluster, attribution) in failed {
        // The spec has the tasks of the clusters before it, which bar those as targets.
        if let Some(reason) = stays(&targets.spec, reports, application, options, &cluster, clusters, now) {
            targets.without_target.push((cluster, reason));
            continue;
        }
        // The scheduler may know a reason against the other clusters, so one of several targets stays until it has placed
        // the rest.
        if pre_check != PreCheck::None && before.len() > 1 && targets.spec.clusters.len() == 1 {
            let message = "it is the last target, and is left once the workload is placed elsewhere";
            targets
                .without_target
                .push((cluster, Attribution::rule("LastTarget", message)));
            continue;
        }
        let rules = application
            .state_preservation
            .as_ref()
            .filter(|_| options.preserve_state);
        let preserved_label_state = match rules.map(|state| state.rules.as_slice()) {
            None | Some([]) => std::collections::BTreeMap::new(),
            Some(rules) => preserve::labels(&binding.status.aggregated_status, &cluster, rules)?,
        };
        let kept = !preserved_label_state.is_empty();
        let task = GracefulEvictionTask {
            purge_mode: Some(application.purge_mode),
            reason: REASON_APPLICATION_FAILURE.to_owned(),
            producer: producer.to_owned(),
            grace_period_seconds: application.grace_period_seconds.filter(|_| graceful),
            suppress_deletion: (application.purge_mode == PurgeMode::Never).then_some(true),
            clusters_before_failover: if kept { before.clone() } else { Vec::new() },
            preserved_label_state,
            ..GracefulEvictionTask::default()
        };
        targets
            .evicted
            .push((graceful_evict(&mut targets.spec, &cluster, task), attribution));
    }
    if application.block_predecessor_seconds.is_some() && !targets.evicted.is_empty() {
        let sources = targets.evicted.iter().map(|(task, _)| task.from_cluster.as_str());
        let history = history(binding, sources, now);
        targets.spec.rest.insert(EVICTION_HISTORY.to_owned(), history);
    }
    Ok(targets)
}

/// Returns the eviction history with these clusters added. Expired entries are removed.
fn history<'a>(binding: &Binding, failed: impl Iterator<Item = &'a str> + Clone, now: Time) -> Value {
    let blocked = blocked_until(binding, now);
    let still_blocks = |entry: &&Value| {
        let cluster = entry.get("clusterName").and_then(Value::as_str).unwrap_or_default();
        blocked.iter().any(|(name, _)| name == cluster) && !failed.clone().any(|name| name == cluster)
    };
    let known = binding.spec.rest.get(EVICTION_HISTORY).and_then(Value::as_array);
    let mut entries: Vec<_> = known.into_iter().flatten().filter(still_blocks).cloned().collect();
    entries.extend(
        failed
            .clone()
            .map(|cluster| json!({"clusterName": cluster, "creationTimestamp": now})),
    );
    Value::Array(entries)
}

#[cfg(test)]
mod tests;
