//! Event-driven simulation of a failover.

mod leave;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bulkhead_api::time::from_meta;
use bulkhead_controllers::flags::FeatureGate;
use bulkhead_core::call::CallKind;
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::cluster_ready::Probe;
use bulkhead_core::decide::eviction::taint_based::{self, Due, Evictable, due};
use bulkhead_core::decide::eviction::{
    Brake, BrakeState, EvictionQueue, Finished, JudgeSnapshot, Judgement, Limit, Next, Rate, Waiting, judge,
};
use bulkhead_core::decide::schedule::capacity::AssumedWorkload;
use bulkhead_core::decide::schedule::{IN_TREE_WORKLOAD_AFFINITY, enabled_plugins};
use bulkhead_core::decide::taint::{self, TaintOptions};
use bulkhead_core::model::{Binding, Cluster, set_condition};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Layer, Registry};
use bulkhead_plugins_builtin::{ClusterTaintPolicyRule, TaintPolicyOptions};
use kube::ResourceExt;

use super::{Answer, Export, Load, Question, Stay, TaintChange};

/// Interval of the scans of tainted clusters, as in the taint manager.
const RESCAN: Duration = Duration::from_secs(10);

/// Time without a change after which the simulation ends: longer than the windows of taint policies.
const SETTLED: Duration = Duration::from_mins(30);

/// Queued eviction: index of the binding, and cluster.
type Eviction = (usize, String);

struct Play<'a> {
    question: &'a Question,
    policies: PolicySet,
    scheduling: PolicySet,
    start: Time,
    clusters: BTreeMap<String, Arc<Cluster>>,
    snapshot: Arc<ClusterSnapshot>,
    bindings: Vec<Binding>,
    pauses: Vec<bulkhead_core::decide::eviction::EvictionPause>,
    brake: Brake,
    queue: EvictionQueue<Eviction>,
    /// Workloads moved so far by cluster; those with equal requirements are merged.
    assumed: BTreeMap<String, Vec<AssumedWorkload>>,
    stays: BTreeMap<Eviction, Stay>,
    /// Workloads that stay although nothing is queued for them.
    unqueued: BTreeMap<Eviction, Stay>,
    /// Time of the last change.
    changed: Duration,
    answer: Answer,
}

/// Simulates a failover.
///
/// # Errors
///
/// A cluster in `down` is not in the export.
pub fn play(export: Export, registry: &Registry, question: &Question) -> anyhow::Result<Answer> {
    let names: BTreeSet<_> = export.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    for name in &question.down {
        if !names.contains(name.as_str()) {
            let known: Vec<_> = names.iter().take(10).copied().collect();
            bail!(
                "--down {name}: there is no such cluster in the export; there are {}",
                known.join(", ")
            );
        }
    }
    let flags = &question.flags;
    let created = |policy: &bulkhead_api::ClusterTaintPolicy| {
        policy
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(Time::from_millis(0), from_meta)
    };
    let rules: Vec<_> = export
        .taint_policies
        .iter()
        .map(|policy| (policy.name_any(), created(policy), policy.spec.clone()))
        .collect();
    let options = TaintPolicyOptions {
        cleans_up: flags.cluster_taint_policy_clean_up,
        damping_window_s: flags.cluster_taint_policy_damping_window.as_secs(),
    };
    if flags.gate(FeatureGate::Failover) {
        let rules = ClusterTaintPolicyRule::all(rules, options);
        let rules = rules
            .into_iter()
            .map(|rule| Arc::new(rule) as Arc<dyn Policy>)
            .collect();
        registry.replace(Layer::TaintPolicies, rules);
    }
    let start = Time::from_millis(export.newest_ms()).plus_seconds(1);
    let policies = PolicySet::clone(&registry.policies());
    let before = replicas(&export.bindings);
    let aging = (!flags.eviction_aging.0.is_zero()).then_some(flags.eviction_aging.0);
    let mut play = Play {
        question,
        scheduling: scheduling(&policies, question),
        policies,
        start,
        clusters: export
            .clusters
            .into_iter()
            .map(|cluster| (cluster.name.clone(), Arc::new(cluster)))
            .collect(),
        snapshot: Arc::default(),
        bindings: export.bindings,
        pauses: export.pauses,
        brake: Brake::assess([], flags.brake()),
        queue: EvictionQueue::new(aging),
        assumed: BTreeMap::new(),
        stays: BTreeMap::new(),
        unqueued: BTreeMap::new(),
        changed: Duration::ZERO,
        answer: Answer::default(),
    };
    play.run();
    Ok(play.end(&before))
}

/// Returns the policies that the scheduler calls, without those that flags disable.
fn scheduling(policies: &PolicySet, question: &Question) -> PolicySet {
    let schedules = |policy: &dyn Policy| {
        policy
            .capabilities()
            .iter()
            .any(|capability| matches!(capability.kind, CallKind::Filter | CallKind::Score))
    };
    let affinity = question.flags.gate(FeatureGate::WorkloadAffinity);
    let names = policies
        .iter()
        .filter(|policy| schedules(*policy))
        .map(|policy| policy.id().name.as_str());
    let known: Vec<_> = names
        .filter(|name| affinity || !IN_TREE_WORKLOAD_AFFINITY.contains(name))
        .collect();
    let enabled = enabled_plugins(&question.flags.plugins, &known);
    policies.filtered(|policy| !schedules(policy) || enabled.contains(&policy.id().name))
}

fn replicas(bindings: &[Binding]) -> BTreeMap<String, i64> {
    let mut replicas = BTreeMap::new();
    for target in bindings.iter().flat_map(|binding| &binding.spec.clusters) {
        *replicas.entry(target.name.clone()).or_default() += i64::from(target.replicas);
    }
    replicas
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Play<'_> {
    fn at(&self, now: Duration) -> Time {
        Time::from_millis(
            self.start
                .as_millis()
                .saturating_add(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    fn run(&mut self) {
        let flags = &self.question.flags;
        let lost = flags.cluster_failure_threshold.0;
        let back = self
            .question
            .lasts
            .map(|lasts| lasts.0 + flags.cluster_success_threshold.0);
        let (mut now, mut scan) = (lost, lost);
        self.set_ready(false, now);
        let mut is_back = false;
        while now <= self.question.horizon.0 {
            if !is_back && back.is_some_and(|back| now >= back) {
                is_back = true;
                self.set_ready(true, now);
                scan = now;
            }
            if now >= scan {
                self.scan(now);
                scan = now + RESCAN;
            }
            let wake = self.pump(now);
            let moments = [Some(scan), wake, back.filter(|_| !is_back)];
            let next = moments.into_iter().flatten().filter(|moment| *moment > now).min();
            // If every queued eviction is blocked by a gate, the passage of time alone changes nothing.
            let only_stays = self.queue.len() <= self.stays.len();
            let settled = only_stays && is_back == back.is_some() && now > self.changed + SETTLED;
            match next {
                Some(next) if !settled => now = next,
                _ => break,
            }
        }
    }

    fn set_ready(&mut self, ready: bool, now: Duration) {
        let at = self.at(now);
        for name in self.question.down.clone() {
            let probe = if ready { Probe::Ready } else { Probe::Unreachable };
            if let Some(cluster) = self.clusters.get_mut(&name) {
                set_condition(&mut Arc::make_mut(cluster).status.conditions, probe.condition(at));
            }
        }
        self.assess();
    }

    fn assess(&mut self) {
        self.brake = Brake::assess(self.clusters.values().map(AsRef::as_ref), self.question.flags.brake());
        self.snapshot = Arc::new(self.snapshot.update(self.clusters.values().cloned()));
    }

    /// Updates the taints of lost clusters, then queues the evictions that they cause.
    fn scan(&mut self, now: Duration) {
        let (at, flags) = (self.at(now), &self.question.flags);
        let options = TaintOptions {
            cleans_up: flags.cluster_taint_policy_clean_up,
            policies_are_complete: true,
        };
        let mut changed = false;
        for name in &self.question.down {
            let Some(cluster) = self.clusters.get(name) else {
                continue;
            };
            let plan = taint::decide(cluster, &self.policies, options, at);
            for (sign, list) in [("-", &plan.removed), ("+", &plan.added)] {
                for (taint, _) in list {
                    let change = format!("{sign}{}:{}", taint.key, taint.effect.as_str());
                    self.answer.taints.push(TaintChange {
                        at_ms: millis(now),
                        cluster: name.clone(),
                        change,
                    });
                }
            }
            if let Some(cluster) = self.clusters.get_mut(name).map(Arc::make_mut) {
                changed |= !plan.is_empty();
                cluster.spec.taints = plan.taints.unwrap_or_else(|| std::mem::take(&mut cluster.spec.taints));
                cluster.taint_owners = plan.owners.unwrap_or_else(|| std::mem::take(&mut cluster.taint_owners));
                cluster.condition_history = plan.history.unwrap_or_else(|| cluster.condition_history.clone());
            }
        }
        if changed {
            self.changed = now;
            self.assess();
        }
        for name in self.question.down.clone() {
            self.enqueue(&name, now);
        }
    }

    fn enqueue(&mut self, name: &str, now: Duration) {
        let (Some(cluster), options, at) = (
            self.clusters.get(name).cloned(),
            self.question.flags.evict_options(),
            self.at(now),
        ) else {
            return;
        };
        self.note_unqueued(&cluster, at);
        if !cluster.spec.taints.iter().any(|taint| options.evicts(taint)) {
            for dropped in self.queue.drop_cluster(name) {
                self.stays.remove(&dropped);
            }
            return;
        }
        for (index, binding) in self
            .bindings
            .iter()
            .enumerate()
            .filter(|(_, binding)| binding.spec.targets(name))
        {
            let delay = match due(Evictable::from(binding), &cluster, options, at) {
                Ok(Due::Never) => continue,
                Ok(Due::In { remaining_ms }) => Duration::from_millis(u64::try_from(remaining_ms).unwrap_or(0)),
                Ok(Due::Now(_)) | Err(_) => Duration::ZERO,
            };
            let priority = binding.spec.schedule_priority().into();
            let waiting = Waiting {
                cluster: name.to_owned(),
                priority,
                not_before: now + delay,
            };
            self.queue.put((index, name.to_owned()), waiting, now);
        }
    }

    /// Notes the workloads that stay on a cluster without end, and forgets those that do not.
    fn note_unqueued(&mut self, cluster: &Cluster, at: Time) {
        let flags = &self.question.flags;
        let (options, is_off) = (
            flags.evict_options(),
            !flags.gate(FeatureGate::Failover) && !cluster.is_ready(),
        );
        self.unqueued.retain(|(_, name), _| *name != cluster.name);
        for (index, binding) in self.bindings.iter().enumerate() {
            let off = || {
                let message = "no rule taints a lost cluster while the feature gate Failover is off";
                (is_off && binding.spec.targets(&cluster.name)).then(|| Attribution::rule("EvictionOff", message))
            };
            let reason = taint_based::stays(Evictable::from(binding), cluster, options, at).or_else(off);
            if let Some(Attribution { reason, .. }) = reason {
                let (binding, cluster) = (binding.key(), cluster.name.clone());
                let stay = Stay {
                    binding,
                    cluster: cluster.clone(),
                    gate: reason.code,
                    why: reason.message,
                };
                self.unqueued.insert((index, cluster), stay);
            }
        }
    }

    fn limit(&self, name: &str) -> Limit {
        let group = self
            .clusters
            .get(name)
            .map(|cluster| self.brake.group_of(cluster))
            .unwrap_or_default();
        let braked = self.brake.state(&group) != BrakeState::Open;
        let rate = self.brake.rate(&group);
        let flags = &self.question.flags;
        Limit {
            global: flags.brake().rate,
            group: braked.then_some((group, rate)),
            cluster: flags.resource_eviction_rate_per_cluster.map(Rate::per_second),
        }
    }

    /// Processes every eviction that the rates permit now. Returns the time of the next one.
    fn pump(&mut self, now: Duration) -> Option<Duration> {
        loop {
            let limits: BTreeMap<_, _> = self
                .question
                .down
                .iter()
                .map(|name| (name.clone(), self.limit(name)))
                .collect();
            let stopped = || Limit {
                global: Rate::STOP,
                group: None,
                cluster: None,
            };
            let limit = |name: &str| limits.get(name).cloned().unwrap_or_else(stopped);
            match self.queue.next(now, limit) {
                Next::Take(eviction) => self.take(eviction, now),
                Next::WaitUntil(at) => return Some(at),
                Next::Idle => return None,
            }
        }
    }

    fn take(&mut self, eviction: Eviction, now: Duration) {
        let (index, name) = eviction.clone();
        let clusters: Vec<_> = self.clusters.values().cloned().collect();
        let Some(binding) = self.bindings.get(index) else {
            return;
        };
        let judged = judge(JudgeSnapshot {
            binding: Evictable::from(binding),
            cluster: self.clusters.get(&name).map(AsRef::as_ref),
            clusters: &clusters,
            options: self.question.flags.evict_options(),
            pre_check: self.question.flags.eviction_pre_check,
            pauses: &self.pauses,
            now: self.at(now),
        });
        let key = binding.key();
        let stay = |gate: &str, why: String| Stay {
            binding: key.clone(),
            cluster: name.clone(),
            gate: gate.to_owned(),
            why,
        };
        let finished = match judged {
            Ok(Judgement::Unneeded) => Finished::Done,
            Ok(Judgement::Later { remaining_ms }) => {
                Finished::Later(Duration::from_millis(u64::try_from(remaining_ms).unwrap_or(0).max(1)))
            }
            Ok(Judgement::Wait { attribution, .. }) => {
                self.stays.insert(
                    eviction.clone(),
                    stay(&attribution.reason.code, attribution.reason.message),
                );
                Finished::Later(RESCAN)
            }
            Ok(Judgement::Evict { spec, attribution, .. }) => {
                self.stays.remove(&eviction);
                let limit = self.limit(&name);
                let slot = self.queue.charge(&name, &limit, now);
                self.queue.settle(&slot, &name, &limit, now);
                self.leave(index, &name, *spec, attribution.reason.to_string(), now);
                Finished::Done
            }
            Err(error) => {
                self.stays
                    .insert(eviction.clone(), stay("NoAppliedPlacement", error.to_string()));
                Finished::Later(RESCAN)
            }
        };
        self.queue.finish(&eviction, finished, now);
    }

    fn end(mut self, before: &BTreeMap<String, i64>) -> Answer {
        let after = replicas(&self.bindings);
        let load = |name: &String| Load {
            cluster: name.clone(),
            down: self.question.down.contains(name),
            before: before.get(name).copied().unwrap_or(0),
            after: after.get(name).copied().unwrap_or(0),
        };
        self.answer.load = self.clusters.keys().map(load).collect();
        self.answer.no_cluster_left = self
            .clusters
            .values()
            .all(|cluster| self.question.down.contains(&cluster.name) || !cluster.is_ready());
        self.answer.waiting = self.queue.len().saturating_sub(self.stays.len());
        let mut stays = std::mem::take(&mut self.stays);
        stays.append(&mut self.unqueued);
        self.answer.stays = stays.into_values().collect();
        self.answer.last_move_ms = self.answer.moves.last().map(|last| last.at_ms);
        self.answer
    }
}
