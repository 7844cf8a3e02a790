//! Taint-based eviction: the decision that a binding must leave a tainted cluster, and the edit that evicts it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::combine::Attribution;
use crate::decide::preserve::{self, PreserveError};
use crate::decide::reasons::{PRODUCER_TAINT_MANAGER, REASON_DRAINED, REASON_TAINT_UNTOLERATED};
use crate::model::{
    AggregatedStatusItem, Binding, BindingSpec, Cluster, GracefulEvictionTask, List, Placement, PurgeMode, Taint,
    TaintEffect, Toleration,
};
use crate::names::keys;
use crate::time::Time;

/// Toleration of the `NoExecute` taints of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// The cluster has no `NoExecute` taint.
    Untainted,
    /// All taints are tolerated without a limit.
    Forever,
    /// All taints are tolerated for a limited time; 0 if it has expired.
    For {
        /// Remaining time in milliseconds.
        remaining_ms: i64,
    },
    /// This taint is not tolerated.
    Not(Taint),
}

/// Evaluates tolerations as Karmada does (`pkg/util/helper/taint.go`). For each taint, the *first* matching
/// toleration is used. The result is the earliest expiry over all pairs of a used toleration and a taint that it
/// matches. A taint without `timeAdded` never causes an expiry.
///
/// Negative seconds count as expired, as in Kubernetes; an unknown operator never matches.
pub fn tolerance(taints: &[Taint], tolerations: &[Toleration], now: Time) -> Tolerance {
    let taints: Vec<_> = taints
        .iter()
        .filter(|taint| taint.effect == TaintEffect::NoExecute)
        .collect();
    tolerance_of(&taints, &tolerations.iter().collect::<Vec<_>>(), now)
}

/// Returns true if a workload with these tolerations has to leave a cluster with these taints at once.
pub fn evicts_at_once(taints: &[Taint], tolerations: &[Toleration], now: Time) -> bool {
    // Most clusters have no such taint, and this is checked for every cluster.
    taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
        && matches!(
            tolerance(taints, tolerations, now),
            Tolerance::Not(_) | Tolerance::For { remaining_ms: ..=0 }
        )
}

fn tolerance_of(taints: &[&Taint], tolerations: &[&Toleration], now: Time) -> Tolerance {
    if taints.is_empty() {
        return Tolerance::Untainted;
    }
    let mut used = Vec::with_capacity(taints.len());
    for taint in taints {
        match tolerations.iter().find(|toleration| toleration.tolerates(taint)) {
            Some(toleration) => used.push(*toleration),
            None => return Tolerance::Not((*taint).clone()),
        }
    }
    let triggers = used.iter().flat_map(|toleration| {
        let seconds = toleration.toleration_seconds;
        taints
            .iter()
            .filter(|taint| toleration.tolerates(taint))
            .filter_map(move |taint| Some(taint.time_added?.plus_seconds(seconds?)))
    });
    triggers.min().map_or(Tolerance::Forever, |trigger| Tolerance::For {
        remaining_ms: trigger.millis_since(now).max(0),
    })
}

/// Options that select the taints that evict, and the defaults for evictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictOptions {
    /// True if `NoExecute` taints evict. The drain taint always does, because it is an explicit request of an
    /// operator.
    pub no_execute: bool,
    /// True if `PreferNoExecute` taints evict bindings whose policy has `failover.cluster`.
    pub prefer_no_execute: bool,
    /// Purge mode of old copies if the policy has none.
    pub default_purge_mode: PurgeMode,
    /// Gate `StatefulFailoverInjection`: labels are carried over according to `failover.cluster.statePreservation`.
    pub preserve_state: bool,
}

/// Default toleration of `PreferNoExecute` taints in seconds, as in the proposal.
const PREFERRED_TOLERATION_S: i32 = 300;

impl EvictOptions {
    /// Returns true if the taint can evict workloads.
    pub fn evicts(self, taint: &Taint) -> bool {
        match &taint.effect {
            TaintEffect::NoExecute => self.no_execute || taint.key == keys::DRAIN_TAINT,
            TaintEffect::PreferNoExecute => self.prefer_no_execute,
            TaintEffect::NoSchedule | TaintEffect::PreferNoSchedule | TaintEffect::Other(_) => false,
        }
    }
}

/// Properties of a binding that eviction decisions read.
#[derive(Clone, Copy, Debug)]
pub struct Evictable<'a> {
    /// Spec of the binding.
    pub spec: &'a BindingSpec,
    /// Annotations, including the applied placement.
    pub annotations: &'a BTreeMap<String, String>,
    /// Status reported by the member clusters.
    pub observed: &'a [AggregatedStatusItem],
    /// True if the binding is being deleted.
    pub is_terminating: bool,
}

impl<'a> From<&'a Binding> for Evictable<'a> {
    fn from(binding: &'a Binding) -> Self {
        let Binding {
            spec,
            annotations,
            deletion_timestamp,
            status,
            ..
        } = binding;
        Self {
            spec,
            annotations,
            observed: &status.aggregated_status,
            is_terminating: deletion_timestamp.is_some(),
        }
    }
}

/// Due time of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// No eviction, unless something changes.
    Never,
    /// Eviction after this delay, which is greater than 0.
    In {
        /// Remaining time in milliseconds.
        remaining_ms: i64,
    },
    /// Eviction now.
    Now(Attribution),
}

impl Due {
    /// Returns the more urgent of two due times.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now(attribution), _) | (_, Self::Now(attribution)) => Self::Now(attribution),
            (Self::Never, due) | (due, Self::Never) => due,
            (Self::In { remaining_ms }, Self::In { remaining_ms: other }) => Self::In {
                remaining_ms: remaining_ms.min(other),
            },
        }
    }
}

/// Returns the time at which a binding must leave a tainted cluster (Karmada:
/// `taint_manager.go:needEvictionWithCurrentTime`). Uses the tolerations that the scheduler last applied, not those
/// of the live placement.
///
/// `PreferNoExecute` depends on `failover.cluster` instead of tolerations. Without `timeAdded`, its age is unknown
/// and it evicts nothing. A drain is tolerated only by its explicit key: a toleration for all taints is not meant for
/// drains.
pub fn due(
    binding: Evictable<'_>,
    cluster: &Cluster,
    options: EvictOptions,
    now: Time,
) -> Result<Due, NoAppliedPlacement> {
    if binding.is_terminating || !binding.spec.targets(&cluster.name) {
        return Ok(Due::Never);
    }
    let (mut drains, mut hard) = (Vec::new(), Vec::new());
    for taint in &cluster.spec.taints {
        if taint.effect == TaintEffect::NoExecute && options.evicts(taint) {
            if taint.key == keys::DRAIN_TAINT {
                drains.push(taint);
            } else {
                hard.push(taint);
            }
        }
    }
    let preferred = if options.prefer_no_execute {
        due_by_preference(binding.spec, cluster, now)
    } else {
        Due::Never
    };
    if drains.is_empty() && hard.is_empty() {
        return Ok(preferred);
    }
    let tolerations = applied_tolerations(binding)?;
    let all: Vec<_> = tolerations.iter().collect();
    let by_taint = due_by(tolerance_of(&hard, &all, now), &hard, REASON_TAINT_UNTOLERATED);
    Ok(due_by(tolerance_of(&drains, &all, now), &drains, REASON_DRAINED)
        .or(by_taint)
        .or(preferred))
}

/// Returns the reason for which a binding stays on a tainted cluster without end: a toleration without a limit, a policy
/// without `failover.cluster`, or a switch that is off. `None` if no taint concerns the binding, or if time alone leads
/// to its eviction.
pub fn stays(binding: Evictable<'_>, cluster: &Cluster, options: EvictOptions, now: Time) -> Option<Attribution> {
    let is_due = || !matches!(due(binding, cluster, options, now), Ok(Due::Never));
    if binding.is_terminating || !binding.spec.targets(&cluster.name) || is_due() {
        return None;
    }
    let taints = || cluster.spec.taints.iter();
    if let Some(taint) = taints().find(|taint| taint.effect == TaintEffect::NoExecute && options.evicts(taint)) {
        let message = format!("the taint {taint} is tolerated without a time limit");
        return Some(Attribution::rule("ToleratedWithoutEnd", message));
    }
    let preferred = taints().find(|taint| taint.effect == TaintEffect::PreferNoExecute);
    let asks = binding
        .spec
        .failover
        .as_ref()
        .is_some_and(|failover| failover.cluster.is_some());
    if let Some(taint) = preferred.filter(|_| options.prefer_no_execute && !asks) {
        let message = format!("the taint {taint} evicts only workloads whose policy has failover.cluster");
        return Some(Attribution::rule("NoClusterFailover", message));
    }
    let hard = taints().find(|taint| taint.effect == TaintEffect::NoExecute);
    let (taint, switches) = match (hard, preferred.filter(|_| !options.prefer_no_execute)) {
        (Some(taint), _) => (
            taint,
            "the feature gate Failover, enable-taint-manager and enable-no-execute-taint-eviction",
        ),
        (None, Some(taint)) => (
            taint,
            "the feature gates Failover and PreferNoExecute, and enable-taint-manager",
        ),
        (None, None) => return None,
    };
    Some(Attribution::rule(
        "EvictionOff",
        format!("the taint {taint} evicts only with {switches}"),
    ))
}

fn due_by(tolerance: Tolerance, taints: &[&Taint], reason: &str) -> Due {
    match tolerance {
        Tolerance::Untainted | Tolerance::Forever => Due::Never,
        Tolerance::For { remaining_ms } if remaining_ms > 0 => Due::In { remaining_ms },
        Tolerance::For { .. } => {
            let names: Vec<_> = taints.iter().map(ToString::to_string).collect();
            let message = format!("the toleration of {} has expired", names.join(" or "));
            Due::Now(Attribution::rule(reason, message))
        }
        Tolerance::Not(taint) => Due::Now(Attribution::rule(reason, format!("the taint {taint} is not tolerated"))),
    }
}

fn due_by_preference(spec: &BindingSpec, cluster: &Cluster, now: Time) -> Due {
    let Some(failover) = spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref()) else {
        return Due::Never;
    };
    let tolerated_s = i64::from(failover.toleration_seconds.unwrap_or(PREFERRED_TOLERATION_S));
    let preferred = cluster
        .spec
        .taints
        .iter()
        .filter(|taint| taint.effect == TaintEffect::PreferNoExecute);
    let first = preferred
        .filter_map(|taint| Some((taint.time_added?.plus_seconds(tolerated_s), taint)))
        .min_by_key(|(at, _)| *at);
    match first {
        None => Due::Never,
        Some((at, _)) if at > now => Due::In {
            remaining_ms: at.millis_since(now),
        },
        Some((_, taint)) => {
            let message = format!("the taint {taint} outlasted the toleration of {tolerated_s} s in failover.cluster");
            Due::Now(Attribution::rule(REASON_TAINT_UNTOLERATED, message))
        }
    }
}

/// Planned action for one binding on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictPlan {
    /// No action, unless something changes.
    Keep,
    /// No action yet; the decision is repeated after this delay.
    KeepFor {
        /// Remaining toleration in milliseconds.
        remaining_ms: i64,
    },
    /// Replace the spec of the binding.
    Evict {
        /// Complete new spec.
        spec: Box<BindingSpec>,
        /// New task.
        task: Box<GracefulEvictionTask>,
        /// Reason for the eviction.
        attribution: Attribution,
    },
}

/// Error for an unreadable placement annotation, without which the tolerations of the binding are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "binding of {resource}: annotation {} is missing or not a placement",
    keys::APPLIED_PLACEMENT
)]
pub struct NoAppliedPlacement {
    /// Resource template of the binding.
    pub resource: String,
}

/// Reason why no decision is possible. The binding stays on its clusters, and the decision is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvictError {
    /// The tolerations are unknown.
    #[error(transparent)]
    NoAppliedPlacement(#[from] NoAppliedPlacement),
    /// The binding must be evicted, but the labels for the new copy could not be computed.
    #[error("cannot evict the binding of {resource} from {cluster}")]
    Preserve {
        /// Resource template of the binding.
        resource: String,
        /// Cluster that the binding should leave.
        cluster: String,
        /// Error of the state preservation.
        source: Box<PreserveError>,
    },
}

/// Returns the placement of the last scheduling.
pub fn applied_placement(binding: &Binding) -> Option<Placement> {
    placement_in(&binding.annotations)
}

/// Returns the placement of the last scheduling from the annotations of a binding.
pub fn placement_in(annotations: &BTreeMap<String, String>) -> Option<Placement> {
    Placement::from_json(annotations.get(keys::APPLIED_PLACEMENT)?).ok()
}

/// Returns only the tolerations of the applied placement. Parsing the rest would dominate the cost of the decision.
fn applied_tolerations(binding: Evictable<'_>) -> Result<List<Toleration>, NoAppliedPlacement> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tolerations {
        #[serde(default)]
        cluster_tolerations: List<Toleration>,
    }
    let resource = || NoAppliedPlacement {
        resource: binding.spec.resource.to_string(),
    };
    let text = binding.annotations.get(keys::APPLIED_PLACEMENT).ok_or_else(resource)?;
    // Null values require the slower parser with Go's semantics.
    match serde_json::from_str::<Tolerations>(text) {
        Ok(read) => Ok(read.cluster_tolerations),
        Err(_) => Placement::from_json(text)
            .map(|placement| placement.cluster_tolerations)
            .map_err(|_| resource()),
    }
}

/// Decides on the eviction of one binding from one cluster (Karmada: `taint_manager.go:syncBindingEviction`).
/// `cluster` is absent if it no longer exists.
pub fn decide(
    binding: Evictable<'_>,
    cluster: Option<&Cluster>,
    options: EvictOptions,
    now: Time,
) -> Result<EvictPlan, EvictError> {
    let Some(cluster) = cluster else {
        return Ok(EvictPlan::Keep);
    };
    let attribution = match due(binding, cluster, options, now)? {
        Due::Never => return Ok(EvictPlan::Keep),
        Due::In { remaining_ms } => return Ok(EvictPlan::KeepFor { remaining_ms }),
        Due::Now(attribution) => attribution,
    };
    let state = preserved_state(binding, &cluster.name, options).map_err(|source| EvictError::Preserve {
        resource: binding.spec.resource.to_string(),
        cluster: cluster.name.clone(),
        source: Box::new(source),
    })?;
    let mut spec = binding.spec.clone();
    let task = GracefulEvictionTask {
        // Karmada sets this only for application failover. Without it, a copy that already ran elsewhere would get
        // the labels too.
        clusters_before_failover: if state.is_empty() { Vec::new() } else { names(&spec) },
        preserved_label_state: state,
        ..new_task(binding.spec, &attribution, options, now)
    };
    let task = graceful_evict(&mut spec, &cluster.name, task);
    Ok(EvictPlan::Evict {
        spec: Box::new(spec),
        task: Box::new(task),
        attribution,
    })
}

fn names(spec: &BindingSpec) -> Vec<String> {
    spec.clusters.iter().map(|target| target.name.clone()).collect()
}

/// Returns the labels for the new copy (Karmada: `taint_manager.go:extractStateForEviction`).
fn preserved_state(
    binding: Evictable<'_>,
    cluster: &str,
    options: EvictOptions,
) -> Result<BTreeMap<String, String>, PreserveError> {
    let failover = binding
        .spec
        .failover
        .as_ref()
        .and_then(|failover| failover.cluster.as_ref());
    let rules = failover
        .and_then(|failover| failover.state_preservation.as_ref())
        .map(|state| state.rules.as_slice());
    match rules.filter(|rules| options.preserve_state && !rules.is_empty()) {
        Some(rules) => preserve::labels(binding.observed, cluster, rules),
        None => Ok(BTreeMap::new()),
    }
}

fn new_task(spec: &BindingSpec, attribution: &Attribution, options: EvictOptions, now: Time) -> GracefulEvictionTask {
    let failover = spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
    let purge_mode = failover.map_or(options.default_purge_mode, |failover| failover.purge_mode);
    let grace_period_seconds = failover.and_then(|failover| failover.grace_period_seconds);
    GracefulEvictionTask {
        purge_mode: Some(purge_mode),
        reason: attribution.reason.code.clone(),
        producer: PRODUCER_TAINT_MANAGER.to_owned(),
        grace_period_seconds: grace_period_seconds.filter(|_| purge_mode == PurgeMode::Gracefully),
        suppress_deletion: (purge_mode == PurgeMode::Never).then_some(true),
        creation_timestamp: Some(now.truncated()),
        ..GracefulEvictionTask::default()
    }
}

/// Moves a cluster from the scheduling result to the eviction tasks, the single edit of every failover (Karmada:
/// `binding_types_helper.go:GracefulEvictCluster`). If the cluster already has a task, only the target is removed.
/// Returns the task in force.
pub fn graceful_evict(spec: &mut BindingSpec, cluster: &str, mut task: GracefulEvictionTask) -> GracefulEvictionTask {
    let position = spec.clusters.iter().position(|target| target.name == cluster);
    let evicted = position.map(|position| spec.clusters.remove(position));
    if let Some(existing) = spec
        .graceful_eviction_tasks
        .iter()
        .find(|task| task.from_cluster == cluster)
    {
        return existing.clone();
    }
    cluster.clone_into(&mut task.from_cluster);
    let Some(evicted) = evicted else { return task };
    task.replicas = (evicted.replicas > 0).then_some(evicted.replicas);
    spec.graceful_eviction_tasks.push(task.clone());
    task
}

#[cfg(test)]
mod tests;
