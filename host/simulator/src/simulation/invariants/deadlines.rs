//! Invariants with a deadline, checked while the controllers are undisturbed: workloads that have to leave a cluster
//! leave as fast as the rates allow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_core::decide::application_failover::{self, FailoverOptions};
use bulkhead_core::decide::eviction::taint_based::{Due, EvictOptions, Evictable, applied_placement, due};
use bulkhead_core::decide::eviction::{Brake, BrakeSettings, BrakeState, PreCheck, has_target, would_return};
use bulkhead_core::decide::graceful_eviction::PurgeWithoutReplacement;
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask, Health, PurgeMode, TargetCluster};
use bulkhead_core::time::Time;

use super::hub::{Hub, work_name};
use crate::simulation::federation::Federation;

/// Tolerated delay: clusters are scanned for taints every ten seconds.
const SLACK: Duration = Duration::from_secs(25);
/// Tolerated delay of application failover, which has its own timers.
const APPLICATION_SLACK: Duration = Duration::from_secs(12);
/// Interval at which application failover looks for another cluster, with tolerance.
const PLACE_RECHECK: Duration = Duration::from_secs(45);
/// Tolerated delay of a replacement after the end of the wait for a purge, in milliseconds.
const PURGE_SLACK_MS: i64 = 30_000;
/// Default toleration of an unhealthy application, in seconds.
const TOLERATION_S: i32 = 300;

/// Tracker of pending evictions and their deadlines.
pub(super) struct EvictionDeadlines {
    options: EvictOptions,
    pre_check: PreCheck,
    failover: FailoverOptions,
    brake: BrakeSettings,
    /// Grace period of a task that has none of its own, in milliseconds.
    grace_period_ms: i64,
    purge_without_replacement: PurgeWithoutReplacement,
    /// Lowest configured rate, in evictions per second.
    rate: f64,
    disturbed_until: GoDuration,
    /// Time since which a binding has to leave a cluster.
    due: BTreeMap<(String, String), GoDuration>,
    /// Applications that are known to be unhealthy on a cluster.
    unhealthy: BTreeMap<(String, String), Unhealthy>,
    last_look: GoDuration,
    /// Maximum number of simultaneously pending evictions since the last time there were none.
    crowd: usize,
}

/// Application that is unhealthy on a cluster.
#[derive(Clone, Copy)]
struct Unhealthy {
    /// Time for which it has been known to be unhealthy.
    lasts: Duration,
    /// Time for which it could have left; the maximum if it could leave from the start.
    may_leave: Duration,
}

impl EvictionDeadlines {
    pub(super) fn new(flags: &Flags) -> Self {
        let rate = flags
            .resource_eviction_rate_per_cluster
            .unwrap_or(f64::MAX)
            .min(flags.resource_eviction_rate);
        Self {
            options: flags.evict_options(),
            pre_check: flags.eviction_pre_check,
            failover: flags.failover_options(),
            brake: flags.brake(),
            grace_period_ms: i64::try_from(flags.graceful_eviction_timeout.0.as_millis()).unwrap_or(i64::MAX),
            purge_without_replacement: flags.purge_without_replacement,
            rate,
            disturbed_until: GoDuration::default(),
            due: BTreeMap::new(),
            unhealthy: BTreeMap::new(),
            last_look: GoDuration::default(),
            crowd: 0,
        }
    }

    /// Suspends the checks until the given time and restarts all deadlines.
    pub(super) fn disturbed(&mut self, until: GoDuration) {
        self.disturbed_until = self.disturbed_until.max(until);
        self.due.clear();
    }

    /// Returns true while the checks are suspended.
    pub(super) fn is_disturbed(&self, at: GoDuration) -> bool {
        at < self.disturbed_until
    }

    /// Records that a binding left a cluster, which restarts its tracking there.
    pub(super) fn evicted(&mut self, binding: &str, cluster: &str) {
        self.unhealthy.remove(&(binding.to_owned(), cluster.to_owned()));
    }

    /// Returns violations for overdue evictions.
    pub(super) fn look(&mut self, hub: &Hub, federation: &Federation, at: GoDuration) -> Vec<(&'static str, String)> {
        // Controllers that are stopped or refused do not know of a failure, so its time does not count.
        let passed = if self.is_disturbed(at) {
            Duration::ZERO
        } else {
            at.0.saturating_sub(self.last_look.0)
        };
        self.last_look = at;
        let applications = self.applications(hub, federation, passed);
        let clusters = self.clusters(hub, federation, at);
        let paused = !federation.context().stores.eviction_pauses.list().is_empty();
        if self.is_disturbed(at) || paused {
            self.due.clear();
            return Vec::new();
        }
        applications
            .into_iter()
            .chain(clusters)
            .chain(self.purges(hub, federation.now()))
            .collect()
    }

    /// L1: workloads that have to leave a cluster, and have another placement, leave as fast as the rates allow. They may
    /// stay on a cluster that answers probes and is not ready yet.
    fn clusters(&mut self, hub: &Hub, federation: &Federation, at: GoDuration) -> Option<(&'static str, String)> {
        let now = federation.now();
        let clusters: Vec<_> = hub.clusters.values().cloned().collect();
        let brake = Brake::assess(clusters.iter().map(AsRef::as_ref), self.brake);
        let tainted = |cluster: &Cluster| cluster.spec.taints.iter().any(|taint| self.options.evicts(taint));
        let mut due_now = BTreeMap::new();
        let recovers = |cluster: &Cluster| !cluster.is_ready() && federation.is_well(&cluster.name);
        for cluster in clusters.iter().filter(|cluster| tainted(cluster) && !recovers(cluster)) {
            if self.rate <= 0.0 || brake.state(&brake.group_of(cluster)) != BrakeState::Open {
                continue;
            }
            for binding in hub
                .bindings
                .values()
                .filter(|binding| binding.spec.targets(&cluster.name))
            {
                if self.has_to_leave(binding, cluster, &clusters, now) {
                    let key = (binding.key(), cluster.name.clone());
                    let since = self.due.get(&key).copied().unwrap_or(at);
                    due_now.insert(key, since);
                }
            }
        }
        self.due = due_now;
        self.crowd = if self.due.is_empty() {
            0
        } else {
            self.crowd.max(self.due.len())
        };
        let longest = SLACK + Duration::from_secs_f64((self.crowd as f64 + 1.0) / self.rate.max(0.001));
        let late = self
            .due
            .iter()
            .find(|(_, since)| at.0.saturating_sub(since.0) > longest);
        late.map(|((binding, cluster), _)| {
            let crowd = self.crowd;
            (
                "L1",
                format!("{binding} has had to leave {cluster} for {longest:?}, and at most {crowd} had to at a time"),
            )
        })
    }

    fn has_to_leave(&self, binding: &Binding, cluster: &Cluster, clusters: &[Arc<Cluster>], now: Time) -> bool {
        let leaves = matches!(
            due(Evictable::from(binding), cluster, self.options, now),
            Ok(Due::Now(_))
        );
        let placement = applied_placement(binding).filter(|_| leaves);
        placement.is_some_and(|placement| {
            has_target(self.pre_check, &binding.spec, &placement, &cluster.name, clusters, now)
                && !would_return(&binding.spec, &placement, &cluster.name, clusters, now)
        })
    }

    /// Returns the milliseconds until the grace period of a task is over, negative after it; `None` for a task without a
    /// creation time.
    pub(super) fn grace_left_ms(&self, task: &GracefulEvictionTask, now: Time) -> Option<i64> {
        let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0).map(i64::from);
        let limit_ms = own_s.map_or(self.grace_period_ms, |seconds| seconds * 1000);
        Some(limit_ms - now.millis_since(task.creation_timestamp?))
    }

    /// Returns true if the old copy of a task stays until its replacement is healthy, with or without a grace period.
    pub(super) fn keeps_unreplaced(&self, task: &GracefulEvictionTask) -> bool {
        let has_own_grace = task.grace_period_seconds.is_some_and(|seconds| seconds > 0);
        self.purge_without_replacement == PurgeWithoutReplacement::OnlyByPolicy && !has_own_grace
    }

    /// L1: a replacement does not wait for the purge of a lost cluster for longer than the task's grace period.
    fn purges(&self, hub: &Hub, now: Time) -> Option<(&'static str, String)> {
        hub.bindings
            .values()
            .filter(|binding| binding.deletion_timestamp.is_none())
            .find_map(|binding| {
                let works = hub.works.get(&work_name(binding));
                let missing = |target: &&TargetCluster| works.is_none_or(|works| !works.contains_key(&target.name));
                let target = binding.spec.clusters.iter().find(missing)?;
                // Each task may hold the replacement back for its own grace period, so that the last one to end counts.
                let is_direct = |task: &GracefulEvictionTask| task.purge_mode == Some(PurgeMode::Directly);
                let direct = |task| self.grace_left_ms(task, now).filter(|_| is_direct(task));
                let tasks = binding.spec.graceful_eviction_tasks.iter();
                let (left_ms, task) = tasks
                    .filter_map(|task| Some((direct(task)?, task)))
                    .max_by_key(|(left_ms, _)| *left_ms)?;
                if left_ms + PURGE_SLACK_MS >= 0 {
                    return None;
                }
                let (key, from) = (binding.key(), &task.from_cluster);
                Some((
                    "L1",
                    format!("the copy of {key} on {} waits for the purge of {from}", target.name),
                ))
            })
    }

    /// Returns true if application failover may evict the workload from the cluster: another cluster could run it.
    fn may_leave(&self, binding: &Binding, cluster: &str, hub: &Hub, now: Time) -> bool {
        let application = binding
            .spec
            .failover
            .as_ref()
            .and_then(|failover| failover.application.as_ref());
        let clusters: Vec<_> = hub.clusters.values().cloned().collect();
        let clusters = application_failover::usable_clusters(binding, &clusters, now);
        let (spec, reports) = (&binding.spec, &binding.status.aggregated_status);
        application.is_some_and(|application| {
            application_failover::stays(spec, reports, application, self.failover, cluster, &clusters, now).is_none()
        })
    }

    /// L1: an application that is known to be unhealthy for longer than its policy tolerates leaves the cluster.
    /// Only a healthy report resets the timer.
    fn applications(&mut self, hub: &Hub, federation: &Federation, passed: Duration) -> Option<(&'static str, String)> {
        let now = federation.now();
        let mut unhealthy = BTreeMap::new();
        let mut late = None;
        for binding in hub
            .bindings
            .values()
            .filter(|binding| binding.deletion_timestamp.is_none())
        {
            let failover = binding.spec.failover.as_ref().filter(|_| binding.spec.propagate_deps);
            let Some(application) = failover.and_then(|failover| failover.application.as_ref()) else {
                continue;
            };
            let tolerated_s = application
                .decision_conditions
                .toleration_seconds
                .unwrap_or(TOLERATION_S);
            let tolerated = Duration::from_secs(u64::try_from(tolerated_s).unwrap_or(0)) + APPLICATION_SLACK;
            for item in &binding.status.aggregated_status {
                let cluster = &item.cluster_name;
                let counts = binding.spec.targets(cluster) && !binding.spec.is_evicting(cluster);
                if !counts || application.pre_conditions.is_some() {
                    continue;
                }
                let key = (binding.key(), cluster.clone());
                let before = self.unhealthy.get(&key).copied();
                let is_ill = match item.health {
                    Some(Health::Healthy) => continue,
                    // A recovery that no report has yet keeps the application, but does not end the failure.
                    Some(Health::Unhealthy) => !is_ready_in(federation, binding, cluster),
                    Some(Health::Unknown) | None => false,
                };
                let of_illness = if is_ill { passed } else { Duration::ZERO };
                let lasts = before.map_or(Duration::ZERO, |before| before.lasts + of_illness);
                let may_leave = if self.may_leave(binding, cluster, hub, now) {
                    before.map_or(Duration::MAX, |before| before.may_leave.saturating_add(passed))
                } else {
                    Duration::ZERO
                };
                if is_ill && lasts > tolerated && may_leave > PLACE_RECHECK {
                    late = Some((
                        "L1",
                        format!("{} is unhealthy on {cluster} for {lasts:?} and stays", key.0),
                    ));
                }
                unhealthy.insert(key, Unhealthy { lasts, may_leave });
            }
        }
        self.unhealthy = unhealthy;
        late
    }
}

/// Returns true if all replicas of a workload that a binding places on a cluster are ready there.
fn is_ready_in(federation: &Federation, binding: &Binding, cluster: &str) -> bool {
    let resource = &binding.spec.resource;
    let ready = federation.ready_replicas(&resource.kind, &resource.namespace, &resource.name, false);
    let target = binding.spec.clusters.iter().find(|target| target.name == cluster);
    target.is_some_and(|target| {
        target.replicas > 0 && ready.get(cluster).copied().unwrap_or(0) >= i64::from(target.replicas)
    })
}
