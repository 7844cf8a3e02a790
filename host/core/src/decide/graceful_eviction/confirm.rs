//! Target clusters whose reports do not count.
//!
//! A report outlives its cluster: the Works of a lost cluster are not updated, and their last health is often
//! `Healthy`. A report counts only if its cluster is ready and reachable, and if the object has not changed since.
//! Any other report is masked as `Unknown` for eviction checks, and its replicas do not count.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{AggregatedStatusItem, Binding, Condition, ConditionStatus, Health, Reports};

/// Maximum number of targets that a reason names; a workload may run on hundreds.
const NAMED_MAX: usize = 5;

/// Target clusters whose reports do not count, with the reason. All other reports count.
pub type UnconfirmedTargets = BTreeMap<String, Unconfirmed>;

/// Empty map: all targets are confirmed.
pub static CONFIRMED: UnconfirmedTargets = UnconfirmedTargets::new();

/// Reason why the report of a target cluster does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unconfirmed {
    /// The Cluster object does not exist.
    Missing,
    /// The Cluster object is being deleted.
    Terminating,
    /// The `Ready` condition is not True.
    NotReady,
    /// The last probe, request or heartbeat failed, or none succeeded yet.
    Unreachable,
    /// The cluster is reachable, but the object changed since the report.
    Outdated,
}

impl Unconfirmed {
    /// Returns the reason that follows from the Cluster object, if any.
    pub fn of_cluster(is_terminating: bool, conditions: &[Condition]) -> Option<Self> {
        let is_ready = Condition::find(conditions, "Ready").is_some_and(|ready| ready.status == ConditionStatus::True);
        match (is_terminating, is_ready) {
            (true, _) => Some(Self::Terminating),
            (false, false) => Some(Self::NotReady),
            (false, true) => None,
        }
    }

    /// Returns true if no workload is known to run on the cluster.
    pub fn is_dead(self) -> bool {
        self != Self::Outdated
    }

    /// Returns the delay until the next check, in milliseconds. `None` for changes of the Cluster object, which
    /// arrive as events.
    pub(super) fn recheck_ms(self) -> Option<i64> {
        match self {
            Self::Missing | Self::Terminating | Self::NotReady => None,
            Self::Unreachable => Some(10_000),
            Self::Outdated => Some(2_000),
        }
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "does not exist",
            Self::Terminating => "is being deleted",
            Self::NotReady => "is not ready",
            Self::Unreachable => "does not answer",
            Self::Outdated => "has changed since its last report",
        })
    }
}

/// Returns the binding with unknown health for unconfirmed targets.
pub(super) fn masked<'a>(binding: &'a Binding, unconfirmed: &UnconfirmedTargets) -> Cow<'a, Binding> {
    let is_affected = |name: &String| unconfirmed.contains_key(name);
    let mut items = binding.status.aggregated_status.iter();
    if unconfirmed.is_empty() || !items.any(|item| is_affected(&item.cluster_name)) {
        return Cow::Borrowed(binding);
    }
    let mut masked = binding.clone();
    for item in &mut masked.status.aggregated_status {
        if is_affected(&item.cluster_name) {
            item.health = Some(Health::Unknown);
        }
    }
    Cow::Owned(masked)
}

/// Describes the unconfirmed targets of a binding; empty if there are none.
pub(super) fn describe(binding: &Binding, unconfirmed: &UnconfirmedTargets) -> String {
    if unconfirmed.is_empty() {
        return String::new();
    }
    let of_target = |name| Some(format!("{name} {}", unconfirmed.get(name)?));
    listed(
        binding
            .spec
            .clusters
            .iter()
            .filter_map(|target| of_target(&target.name)),
    )
}

fn listed(mut targets: impl Iterator<Item = String>) -> String {
    let mut named: Vec<_> = targets.by_ref().take(NAMED_MAX).collect();
    match targets.count() {
        0 => {}
        others => named.push(format!("and {others} others")),
    }
    named.join(", ")
}

/// Returns the reason why the targets of a binding do not count as a replacement, healthy or not: all of them are
/// dead, or one that is alive has not reported its copy yet. `None` if they count.
pub(super) fn doubt(binding: &Binding, unconfirmed: &UnconfirmedTargets) -> Option<String> {
    let is_dead = |name: &String| unconfirmed.get(name).is_some_and(|reason| reason.is_dead());
    let mut alive = binding
        .spec
        .clusters
        .iter()
        .filter(|target| !is_dead(&target.name))
        .peekable();
    if alive.peek().is_none() {
        return Some(format!(
            "no target can run the workload: {}",
            describe(binding, unconfirmed)
        ));
    }
    let mut reports = Reports::new(&binding.status.aggregated_status);
    let is_workload = binding.spec.is_workload();
    let silent = alive.filter(|target| {
        !reports
            .of(&target.name)
            .is_some_and(|item| is_observed(item, is_workload))
    });
    let silent = listed(silent.map(|target| target.name.clone()));
    (!silent.is_empty()).then(|| format!("the new copy is not reported yet by {silent}"))
}

/// Returns true if a report was made from the object in the cluster. An object without replicas exists as soon as it
/// is applied, and may have neither status nor health.
fn is_observed(item: &AggregatedStatusItem, is_workload: bool) -> bool {
    let has_health = matches!(item.health, Some(Health::Healthy | Health::Unhealthy));
    has_health || item.status.is_some() || (item.applied && !is_workload)
}
