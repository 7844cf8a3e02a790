//! Actual state of the member clusters, independent of reports: links, health endpoints, pods.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_apiserver::json::array;
use bulkhead_apiserver::{LinkState, Object, ObjectKey, Subscription};
use bulkhead_core::model::{Binding, ObjectReference};
use bulkhead_emulator::{MemberCluster, pods_in};
use tokio::time::Instant;

use crate::simulation::federation::Federation;
use crate::simulation::member::{WORKLOAD_KINDS, ready_replicas_of, workload_key};

/// Maximum age of a change in a member cluster that a decision may not reflect yet. A watch delivers the change at
/// once; the loss of a copy is reported after up to one second, and is written twice on its way to the binding.
const UNKNOWN_MAX: Duration = Duration::from_secs(5);

/// Time after a disturbance until watches, which reconnect after a backoff of up to 30 seconds, have caught up.
const CATCH_UP_MAX: Duration = Duration::from_secs(30);

/// Retention of observations.
const HISTORY_MAX: Duration = Duration::from_mins(5);

/// Longest time that a member cluster can be healthy between two failures without a probe: probes run every ten
/// seconds, and take up to five.
const UNSEEN_MAX: Duration = Duration::from_secs(16);

/// Allowed shortfall of a failure below its threshold: a probe that starts before the end of a failure counts.
const PROBE_SLACK: Duration = Duration::from_secs(3);

/// Time between the stamp of a task and its first sight: a decision may wait for writes that fail.
const STAMP_SLACK: Duration = Duration::from_secs(3);

/// The same if plugins are slow. A call keeps the whole simulation waiting, and one decision makes several.
const STAMP_SLACK_SLOW: Duration = Duration::from_secs(30);

/// Actual state of all member clusters.
#[derive(Default)]
pub(super) struct Truth {
    members: BTreeMap<String, Member>,
    /// Periods in which controllers cannot observe the member clusters, oldest first.
    hidden_periods: Vec<(Instant, Instant)>,
    /// Time of the first observation of each task, by binding and cluster, in monotonic time.
    tasks: BTreeMap<(String, String), Instant>,
    /// True if plugins are slow at some time.
    has_slow_plugins: bool,
}

struct Member {
    cluster: MemberCluster,
    changes: Subscription,
    /// Last time at which the cluster was reachable.
    reachable: Instant,
    /// Last time at which the cluster was not reachable.
    lost: Option<Instant>,
    /// Longest silence of the cluster that cannot be detected.
    silence_max: Duration,
    /// Ready replicas of workloads over time, by `Kind namespace/name`.
    ready: BTreeMap<String, Vec<(Instant, i64)>>,
    /// Periods of failed health, by link or endpoint; the last one may be open.
    failures: Vec<(Instant, Option<Instant>)>,
}

/// Target cluster that lacks ready replicas.
pub(super) struct Shortfall {
    pub(super) cluster: String,
    pub(super) ready: i64,
    pub(super) wanted: i64,
    pub(super) reachable: bool,
}

impl std::fmt::Display for Shortfall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            cluster,
            ready,
            wanted,
            reachable,
        } = self;
        match (*reachable, *ready) {
            (false, _) => write!(f, "{cluster} cannot be reached"),
            (true, ..0) => write!(f, "{cluster} has no copy"),
            (true, _) => write!(f, "{cluster} has {ready} of {wanted} ready replicas"),
        }
    }
}

impl Truth {
    /// Subscribes to the member clusters of a federation.
    pub(super) fn follow(&mut self, federation: &Federation, has_slow_plugins: bool) {
        self.has_slow_plugins = has_slow_plugins;
        for (name, cluster) in federation.member_clusters() {
            let kinds: Vec<_> = WORKLOAD_KINDS
                .iter()
                .filter_map(|(api_version, kind)| cluster.server().kind_id(api_version, kind))
                .collect();
            let changes = cluster.server().store().subscribe(&kinds);
            let (reachable, lost, ready, failures) = (Instant::now(), None, BTreeMap::new(), Vec::new());
            let silence_max = federation.silence_max(name);
            let member = Member {
                cluster: cluster.clone(),
                changes,
                reachable,
                lost,
                silence_max,
                ready,
                failures,
            };
            self.members.insert(name.to_owned(), member);
        }
    }

    /// Records the state of every member cluster.
    pub(super) fn sample(&mut self, federation: &Federation) {
        let now = Instant::now();
        for (name, member) in &mut self.members {
            member.sample(federation.is_well(name), now);
        }
        self.hidden_periods
            .retain(|(_, until)| now.duration_since(*until) < HISTORY_MAX);
    }

    /// Records a period in which controllers cannot observe the member clusters.
    pub(super) fn record_hidden_members(&mut self, lasts: Duration) {
        let now = Instant::now();
        self.hidden_periods.push((now, now + lasts + CATCH_UP_MAX));
    }

    /// Returns true if a cluster was reachable without interruption for this time, so that its reports are current.
    pub(super) fn is_reachable_for(&self, cluster: &str, time: Duration) -> bool {
        self.members
            .get(cluster)
            .is_some_and(|member| member.lost.is_none_or(|lost| lost.elapsed() > time))
    }

    /// Records the start of an eviction task.
    pub(super) fn task_begins(&mut self, binding: &str, cluster: &str) {
        self.tasks
            .insert((binding.to_owned(), cluster.to_owned()), Instant::now());
    }

    /// Returns the age of a task in monotonic time, if its grace period cannot be over yet.
    pub(super) fn too_young(&self, binding: &str, cluster: &str, grace: Duration) -> Option<Duration> {
        let age = self.tasks.get(&(binding.to_owned(), cluster.to_owned()))?.elapsed();
        let slack = if self.has_slow_plugins {
            STAMP_SLACK_SLOW
        } else {
            STAMP_SLACK
        };
        (age + slack < grace).then_some(age)
    }

    /// Returns the earliest time whose state a decision may still be based on.
    fn known_since(&self, now: Instant) -> Instant {
        let before = |moment: Instant| moment.checked_sub(UNKNOWN_MAX).unwrap_or(moment);
        let mut since = before(now);
        for (from, until) in self.hidden_periods.iter().rev() {
            if *until >= since {
                since = since.min(before(*from));
            }
        }
        since
    }

    /// Returns the first target of a binding that never had all of its replicas ready and reachable within the
    /// period that a decision may be based on.
    pub(super) fn shortfall(&self, binding: &Binding) -> Option<Shortfall> {
        let now = Instant::now();
        let (since, resource) = (self.known_since(now), &binding.spec.resource);
        binding.spec.clusters.iter().find_map(|target| {
            let wanted = i64::from(target.replicas);
            let member = self.members.get(&target.name)?;
            let since = since.checked_sub(member.silence_max).unwrap_or(since);
            let reachable = member.is_reachable() || member.reachable >= since;
            let ready = member.most_ready(resource, since).unwrap_or(wanted);
            let cluster = target.name.clone();
            (!reachable || ready < wanted).then_some(Shortfall {
                cluster,
                ready,
                wanted,
                reachable,
            })
        })
    }

    /// Returns true if a cluster recently failed for at least the threshold.
    pub(super) fn failed_for(&self, cluster: &str, threshold: Duration, lately: Duration) -> bool {
        let Some(member) = self.members.get(cluster) else {
            return true;
        };
        let (now, mut longest, mut open) = (Instant::now(), Duration::ZERO, None::<(Instant, Instant)>);
        for (from, until) in &member.failures {
            let until = until.unwrap_or(now);
            let since = match open {
                Some((since, last)) if from.duration_since(last) <= UNSEEN_MAX => since,
                _ => *from,
            };
            open = Some((since, until));
            if now.duration_since(until) <= lately {
                longest = longest.max(until.duration_since(since));
            }
        }
        longest + PROBE_SLACK >= threshold
    }
}

impl Member {
    fn is_reachable(&self) -> bool {
        self.cluster.link().state() != LinkState::Down
    }

    fn sample(&mut self, is_well: bool, now: Instant) {
        if self.is_reachable() {
            self.reachable = now;
        } else {
            self.lost = Some(now);
        }
        match (self.failures.last_mut(), is_well) {
            (Some((_, until @ None)), true) => *until = Some(now),
            (Some((_, None)), false) | (None | Some(_), true) => {}
            (_, false) => self.failures.push((now, None)),
        }
        for change in self.changes.drain().unwrap_or_default() {
            let object = change.object.content();
            let is_gone = change.change_type() == bulkhead_apiserver::ChangeType::Deleted;
            let ready = if is_gone { 0 } else { ready_replicas_of(object) };
            let history = self.ready.entry(workload_key(object)).or_default();
            history.push((now, ready));
            let old = history
                .iter()
                .take_while(|(at, _)| now.duration_since(*at) > HISTORY_MAX)
                .count();
            drop(history.drain(..old.saturating_sub(1)));
        }
    }

    /// Returns the maximum number of simultaneously ready replicas of a workload since that time. For an object
    /// without replicas, returns `None` if it exists and -1 if it does not.
    fn most_ready(&self, resource: &ObjectReference, since: Instant) -> Option<i64> {
        let store = self.cluster.server().store();
        let kind = self.cluster.server().kind_id(&resource.api_version, &resource.kind)?;
        let object = store.get(&ObjectKey::new(kind, &resource.namespace, &resource.name));
        if !WORKLOAD_KINDS.iter().any(|(_, known)| *known == resource.kind) {
            return if object.is_some() { None } else { Some(-1) };
        }
        let uid = object.as_ref().map(|object| object.uid());
        let pods = self.cluster.server().kind_id("v1", "Pod").zip(uid);
        let pods = pods.map(|(pod, uid)| store.dependents(uid, pod)).unwrap_or_default();
        let ready_now = pods.iter().filter(|pod| is_ready(pod));
        let ready_now = ready_now.map(|pod| pods_in(pod.content())).fold(0, u64::saturating_add);
        let key = format!("{} {}/{}", resource.kind, resource.namespace, resource.name);
        let history = self.ready.get(&key).map_or(&[][..], Vec::as_slice);
        let first = history
            .iter()
            .take_while(|(at, _)| *at <= since)
            .count()
            .saturating_sub(1);
        let before = history[first.min(history.len())..]
            .iter()
            .map(|(_, ready)| *ready)
            .max();
        Some(before.unwrap_or(0).max(i64::try_from(ready_now).unwrap_or(i64::MAX)))
    }
}

fn is_ready(pod: &Object) -> bool {
    let mut conditions = array(pod.content(), "/status/conditions").iter();
    !pod.is_terminating() && conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
