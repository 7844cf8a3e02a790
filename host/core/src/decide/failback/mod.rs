//! Failback: return of a workload to the clusters that cluster failover evicted it from.
//!
//! Karmada has no equivalent: a user requests a rescheduling (`WorkloadRebalancer`), which removes running copies
//! immediately. Here, failback is a regular eviction from the stand-in cluster. The copy there stays until the home
//! copy is healthy, without a time limit. A workload returns only after its home was ready with unchanged taints for
//! a whole window. The window doubles with each attempt.
//!
//! A return covers one whole stand-in cluster at a time; anything else stays. The API has no way to shrink a copy
//! only after another one is healthy.
//!
//! Start with [`decide`]. The former clusters of a workload are in [`home`], the timer is in [`stability()`].

pub mod home;
pub mod stability;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::home::{HOME, Home};
pub use self::stability::{STABLE, Stability, stability};
use super::eviction::taint_based::graceful_evict;
use super::eviction::{EvictionPause, PauseScope, paused};
use super::graceful_eviction::restore::{is_selected, may_host};
use super::graceful_eviction::{ScheduleResult, result};
use super::reasons::{PRODUCER_TAINT_MANAGER, REASON_FAILBACK};
use crate::affinity;
use crate::combine::Attribution;
use crate::model::{
    Binding, BindingSpec, Cluster, GracefulEvictionTask, Placement, PurgeMode, ReplicaSchedulingType, TargetCluster,
};
use crate::time::Time;

/// Maximum number of times that the window doubles.
const DOUBLINGS_MAX: u32 = 8;

/// Inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct FailbackSnapshot<'a> {
    /// Binding with its annotations.
    pub binding: &'a Binding,
    /// Existing clusters of its home.
    pub clusters: &'a BTreeMap<String, Arc<Cluster>>,
    /// Stability of these clusters; a cluster without an entry is not ready.
    pub stable: &'a BTreeMap<String, Stability>,
    /// Eviction pauses.
    pub pauses: &'a [EvictionPause],
    /// Seconds for which a home cluster must have been stable.
    pub window_s: i64,
    /// Evaluation time.
    pub now: Time,
}

/// Planned action for one binding.
#[derive(Clone, Debug, PartialEq)]
pub enum FailbackPlan {
    /// No home is recorded.
    Rest,
    /// The home record is obsolete and can be removed, because a return is impossible or unnecessary.
    Forget(Attribution),
    /// The workload cannot return now.
    Wait {
        /// Reason for waiting.
        attribution: Attribution,
        /// Milliseconds until the result can change without an event; `None` if only an event can change it.
        left_ms: Option<i64>,
    },
    /// The workload returns from one stand-in cluster.
    Return(Box<Return>),
}

/// Return of a workload to its home.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Complete new spec.
    pub spec: BindingSpec,
    /// New task, which preserves the stand-in copy.
    pub task: GracefulEvictionTask,
    /// New home record.
    pub home: Home,
    /// Reason for the return.
    pub attribution: Attribution,
}

/// Decides on failback for one binding.
pub fn decide(snapshot: FailbackSnapshot<'_>) -> FailbackPlan {
    let FailbackSnapshot { binding, now, .. } = snapshot;
    let Some(home) = Home::read(&binding.annotations).filter(|_| binding.deletion_timestamp.is_none()) else {
        return FailbackPlan::Rest;
    };
    if let Some(attribution) = is_obsolete(&snapshot, &home) {
        return FailbackPlan::Forget(attribution);
    }
    if let Some((code, message)) = obstacle(binding) {
        return FailbackPlan::Wait {
            attribution: Attribution::rule(code, message),
            left_ms: None,
        };
    }
    let Some(stand_in) = binding
        .spec
        .clusters
        .iter()
        .find(|target| !home.clusters.contains_key(&target.name))
    else {
        let message = "the evicted replicas went to clusters that already ran the workload";
        return FailbackPlan::Forget(Attribution::rule("NoStandIn", message));
    };
    let shares = match shares(&snapshot, &home, stand_in) {
        Ok(shares) => shares,
        Err(plan) => return *plan,
    };
    let restarts = match restarts(binding, snapshot.clusters, &shares) {
        Ok(restarts) => restarts,
        Err(attribution) => {
            return FailbackPlan::Wait {
                attribution,
                left_ms: None,
            };
        }
    };
    let scope = |cluster| PauseScope {
        cluster,
        workload: &binding.spec.resource,
    };
    let mut places = shares
        .iter()
        .map(|share| share.name.as_str())
        .chain([stand_in.name.as_str()]);
    if let Some(paused) = places.find_map(|cluster| paused(snapshot.pauses, scope(cluster), now)) {
        let left_ms = paused.until.map(|until| until.millis_since(now).max(0));
        return FailbackPlan::Wait {
            attribution: paused.attribution(),
            left_ms,
        };
    }
    FailbackPlan::Return(Box::new(set_out(&snapshot, home, &stand_in.name, &shares, restarts)))
}

/// Returns the reason why a return is permanently impossible or unnecessary.
fn is_obsolete(snapshot: &FailbackSnapshot<'_>, home: &Home) -> Option<Attribution> {
    let FailbackSnapshot { binding, clusters, .. } = *snapshot;
    let spec = &binding.spec;
    let at_home = home.clusters.keys().all(|name| spec.targets(name));
    let away = spec
        .clusters
        .iter()
        .any(|target| !home.clusters.contains_key(&target.name));
    if at_home && !away && spec.graceful_eviction_tasks.is_empty() {
        return Some(Attribution::rule(
            "Returned",
            "the workload is back in its home clusters",
        ));
    }
    if spec.reschedule_triggered_at.is_some_and(|at| at > home.touched_at()) {
        return Some(Attribution::rule(
            "Rescheduled",
            "a rescheduling was requested in the meantime",
        ));
    }
    let placement = spec.placement.as_ref()?;
    let lacks = |name: &&String| {
        clusters
            .get(*name)
            .is_none_or(|cluster| !is_selected(placement, cluster))
    };
    let lost = home.clusters.keys().filter(|name| !spec.targets(name)).find(lacks)?;
    Some(Attribution::rule(
        "NoHome",
        format!("{lost} does not exist, or the placement no longer selects it"),
    ))
}

/// Returns code and message of a process that must finish first.
fn obstacle(binding: &Binding) -> Option<(&'static str, &'static str)> {
    if binding.spec.scheduling_suspended() {
        return Some(("SchedulingSuspended", "scheduling is suspended"));
    }
    if !binding.spec.graceful_eviction_tasks.is_empty() {
        return Some(("MoveUnderWay", "the eviction of an old copy is still in progress"));
    }
    let present = result::schedule_result(binding) == ScheduleResult::Present;
    (!present).then_some(("SchedulePending", "the scheduler has not placed all replicas"))
}

/// Returns the targets at home that replace the stand-in: the replicas that each home cluster lacks.
fn shares(
    snapshot: &FailbackSnapshot<'_>,
    home: &Home,
    stand_in: &TargetCluster,
) -> Result<Vec<TargetCluster>, Box<FailbackPlan>> {
    let FailbackSnapshot { binding, .. } = *snapshot;
    let spec = &binding.spec;
    let divided = spec.is_workload()
        && spec.placement.as_ref().map(Placement::replica_scheduling_type) == Some(ReplicaSchedulingType::Divided);
    let placed = |name: &str| {
        spec.clusters
            .iter()
            .find(|target| target.name == name)
            .map(|target| target.replicas)
    };
    let lacks = |(name, replicas): (&String, &i32)| match placed(name) {
        None => Some((name.clone(), *replicas)),
        // A complete copy has the replicas of the template, which may have fewer by now.
        Some(existing) => (divided && existing < *replicas).then(|| (name.clone(), replicas - existing)),
    };
    let (mut ready, mut waits) = (Vec::new(), Vec::new());
    for (name, replicas) in home.clusters.iter().filter_map(lacks) {
        match wait_for(snapshot, home, &name) {
            None => ready.push((name, replicas)),
            Some(wait) => waits.push(wait),
        }
    }
    let room = ready.iter().map(|(_, replicas)| i64::from(*replicas)).sum::<i64>();
    let enough = if divided {
        room >= i64::from(stand_in.replicas)
    } else {
        !ready.is_empty()
    };
    if !enough && let Some(wait) = waits.into_iter().next() {
        return Err(Box::new(wait));
    }
    let Some((first, _)) = ready.first().cloned() else {
        let attribution = Attribution::rule("NoStandIn", "every home cluster has its replicas again");
        return Err(Box::new(FailbackPlan::Forget(attribution)));
    };
    if !divided {
        return Ok(vec![TargetCluster {
            name: first,
            ..stand_in.clone()
        }]);
    }
    let mut remaining = stand_in.replicas;
    let mut shares: Vec<_> = ready
        .into_iter()
        .map(|(name, replicas)| {
            let share = replicas.clamp(0, remaining);
            remaining -= share;
            TargetCluster::new(name, share)
        })
        .collect();
    // The workload was scaled up since it left.
    if let Some(share) = shares.first_mut() {
        share.replicas += remaining;
    }
    shares.retain(|share| share.replicas > 0);
    Ok(shares)
}

/// Returns the reason why the workload cannot return to a home cluster yet.
fn wait_for(snapshot: &FailbackSnapshot<'_>, home: &Home, name: &str) -> Option<FailbackPlan> {
    let FailbackSnapshot {
        binding,
        clusters,
        stable,
        window_s,
        now,
        ..
    } = *snapshot;
    let well = clusters.get(name).filter(|cluster| may_host(binding, cluster, now));
    let Some(stable) = stable.get(name).filter(|_| well.is_some()) else {
        let attribution = Attribution::rule("HomeNotWell", format!("{name} is not ready or cannot run the workload"));
        return Some(FailbackPlan::Wait {
            attribution,
            left_ms: None,
        });
    };
    let window_s = window_s.max(0).saturating_mul(1 << home.tries.min(DOUBLINGS_MAX));
    let since = stable.since.max(home.touched_at());
    // The window ends strictly after its last moment.
    let left_ms = since.plus_seconds(window_s).millis_since(now).saturating_add(1);
    (left_ms > 0).then(|| {
        let message = format!("{name} must stay ready for {window_s} s first");
        FailbackPlan::Wait {
            attribution: Attribution::rule("Stabilizing", message),
            left_ms: Some(left_ms),
        }
    })
}

/// Returns true if the scheduler must restart with its first affinity group, because the current group does not
/// select the home. A restart places all replicas again, so it is allowed only if there is a single target cluster.
fn restarts(
    binding: &Binding,
    clusters: &BTreeMap<String, Arc<Cluster>>,
    shares: &[TargetCluster],
) -> Result<bool, Attribution> {
    let Some(groups) = binding
        .spec
        .placement
        .as_ref()
        .and_then(|placement| placement.cluster_affinities.as_deref())
    else {
        return Ok(false);
    };
    let observed = &binding.status.scheduler_observed_affinity_name;
    let group = groups.iter().find(|group| group.affinity_name == *observed);
    let selects = |share: &TargetCluster| {
        clusters
            .get(&share.name)
            .zip(group)
            .is_some_and(|(home, group)| affinity::matches(&group.affinity, home))
    };
    if shares.iter().all(selects) {
        return Ok(false);
    }
    if binding.spec.clusters.len() == 1 {
        return Ok(true);
    }
    let message = "the home is in another affinity group, and there are several stand-ins; a manual rescheduling moves \
                   all replicas back";
    Err(Attribution::rule("SeveralStandIns", message))
}

fn set_out(
    snapshot: &FailbackSnapshot<'_>,
    home: Home,
    stand_in: &str,
    shares: &[TargetCluster],
    restarts: bool,
) -> Return {
    let FailbackSnapshot { binding, now, .. } = *snapshot;
    let mut spec = binding.spec.clone();
    let task = GracefulEvictionTask {
        // No other mode is used: the stand-in copy is healthy and is deleted only after the home copy is healthy.
        purge_mode: Some(PurgeMode::Gracefully),
        reason: REASON_FAILBACK.to_owned(),
        producer: PRODUCER_TAINT_MANAGER.to_owned(),
        creation_timestamp: Some(now.truncated()),
        ..GracefulEvictionTask::default()
    };
    let task = graceful_evict(&mut spec, stand_in, task);
    for share in shares {
        match spec.clusters.iter_mut().find(|target| target.name == share.name) {
            Some(target) => target.replicas += share.replicas,
            None => spec.clusters.push(share.clone()),
        }
    }
    if restarts {
        spec.reschedule_triggered_at = Some(now.truncated());
    }
    let names: Vec<_> = shares.iter().map(|share| share.name.as_str()).collect();
    let message = format!(
        "{} has been ready for long enough, and {stand_in} is only a stand-in",
        names.join(", ")
    );
    let home = Home {
        tries: home.tries.saturating_add(1),
        tried_at: Some(now.truncated()),
        ..home
    };
    Return {
        spec,
        task,
        home,
        attribution: Attribution::rule(REASON_FAILBACK, message),
    }
}

#[cfg(test)]
mod tests;
