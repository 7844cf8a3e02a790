//! Invariants of journal records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::decide::eviction::PreCheck;
use bulkhead_core::decide::eviction::taint_based::applied_placement;
use bulkhead_core::decide::graceful_eviction::{GracefulEvictionOptions, ReplacementHealth};
use bulkhead_core::journal::{Decision, DecisionInput, DecisionRecord, Record, differences};
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask, Health, Placement, PurgeMode};

use super::selects;
use super::truth::Truth;
use crate::simulation::faulty_plugin::FAULTY_PLUGIN;

/// Facts from the records so far.
#[derive(Default)]
pub(super) struct Recorded {
    /// Recorded evictions, as binding and cluster.
    evicted: BTreeSet<(String, String)>,
    /// Tasks whose end was recorded, as binding and cluster.
    ended: BTreeSet<(String, String)>,
    last_decision: Option<Arc<DecisionRecord>>,
}

type Broken = (&'static str, String);

impl Recorded {
    /// Returns true if the eviction was recorded.
    pub(super) fn has_eviction(&self, binding: &str, cluster: &str) -> bool {
        self.evicted.contains(&(binding.to_owned(), cluster.to_owned()))
    }

    /// Returns true if the end of the task was recorded.
    pub(super) fn has_end(&self, binding: &str, cluster: &str) -> bool {
        self.ended.contains(&(binding.to_owned(), cluster.to_owned()))
    }

    /// Checks a record. Returns the violations.
    pub(super) fn look(
        &mut self,
        record: &Record,
        decision: Option<&Arc<DecisionRecord>>,
        truth: &Truth,
    ) -> Vec<Broken> {
        let entry = &record.entry;
        let key = || (entry.subject.key(), entry.cluster.clone().unwrap_or_default());
        let mut broken = Vec::new();
        match entry.decision {
            Decision::Evicted => {
                self.evicted.insert(key());
            }
            Decision::Released | Decision::CalledOff => {
                self.ended.insert(key());
            }
            _ => {}
        }
        broken.extend(trusted_faulty_plugin(record));
        let Some(decision) = decision else {
            let needs = matches!(
                entry.decision,
                Decision::Evicted | Decision::Released | Decision::Scheduled
            );
            broken.extend(needs.then(|| ("S7", format!("record {} has nothing to replay it from", record.id))));
            return broken;
        };
        if !self
            .last_decision
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, decision))
        {
            self.last_decision = Some(Arc::clone(decision));
            broken.extend(replay(record, decision));
        }
        match (&decision.input, entry.decision) {
            (DecisionInput::GracefulEviction { binding, options, .. }, Decision::Released) => {
                broken.extend(released(record, decision, binding, *options, truth));
            }
            (
                DecisionInput::Evict {
                    binding,
                    cluster,
                    pre_check: PreCheck::Feasible,
                    ..
                },
                Decision::Evicted,
            ) => {
                broken.extend(all_dead(record, decision));
                broken.extend(nowhere(record, decision, binding, cluster));
            }
            (DecisionInput::Evict { .. }, Decision::Evicted) => broken.extend(all_dead(record, decision)),
            (DecisionInput::Failover { binding, options, .. }, Decision::Evicted)
                if options.pre_check == Some(PreCheck::Feasible) =>
            {
                let from = record.entry.cluster.as_deref().unwrap_or_default();
                broken.extend(nowhere_for(record, decision, binding.spec.placement.as_ref(), from));
            }
            _ => {}
        }
        broken
    }
}

fn replay(record: &Record, decision: &DecisionRecord) -> Option<Broken> {
    let again = decision.decide(&decision.policies(|_| None));
    let difference = differences(&decision.plan, &again).into_iter().next()?;
    Some(("S7", format!("record {} does not replay: {difference:?}", record.id)))
}

/// Checks that a failing plugin is not the reason for an action. It may cause delays.
fn trusted_faulty_plugin(record: &Record) -> Option<Broken> {
    use Decision as D;
    let entry = &record.entry;
    let by_faulty_plugin = entry
        .attribution
        .policy
        .as_ref()
        .is_some_and(|policy| policy.name == FAULTY_PLUGIN);
    let acts = matches!(
        entry.decision,
        D::Evicted | D::Released | D::Tainted | D::Untainted | D::Scheduled | D::Removed
    );
    let says_sick = entry.decision == D::HealthChanged && entry.effect != Health::Unknown.as_str();
    (by_faulty_plugin && (acts || says_sick)).then(|| {
        (
            "S4",
            format!(
                "record {}: {:?} because of a plugin that fails",
                record.id, entry.decision
            ),
        )
    })
}

/// Checks a release against the recorded binding, independent of the decision, and against the running pods,
/// independent of the reported status.
fn released(
    record: &Record,
    decision: &DecisionRecord,
    binding: &Binding,
    options: GracefulEvictionOptions,
    truth: &Truth,
) -> Option<Broken> {
    let cluster = record.entry.cluster.as_deref().unwrap_or_default();
    let task = binding
        .spec
        .graceful_eviction_tasks
        .iter()
        .find(|task| task.from_cluster == cluster);
    let Some(task) = task else {
        return Some(("S1", format!("record {}: there is no task for {cluster}", record.id)));
    };
    if task.suppress_deletion == Some(false) {
        return None;
    }
    let is_healthy = |name: &str| {
        let reported = binding
            .status
            .aggregated_status
            .iter()
            .find(|item| item.cluster_name == name);
        reported.and_then(|item| item.health) == Some(Health::Healthy)
    };
    let targets = &binding.spec.clusters;
    let replaced = !targets.is_empty() && targets.iter().all(|target| is_healthy(&target.name));
    let waited = is_over(task, decision, options) && !targets.is_empty();
    let reason = &record.entry.attribution.reason;
    let grace = Duration::from_secs(u64::try_from(limit_s(task, options)).unwrap_or(0));
    if let Some(age) = truth
        .too_young(&binding.key(), cluster, grace)
        .filter(|_| waited && !replaced)
    {
        let seen = format!(
            "record {}: {cluster} is left after {age:?}, and its grace period is {grace:?}",
            record.id
        );
        return Some(("S1", seen));
    }
    let counts = options.replacement_health != ReplacementHealth::Reported && !waits_for_end(task, decision);
    if replaced && !waited && counts {
        let shortfall = truth.shortfall(binding)?;
        let seen = format!("record {}: {cluster} is left, and {shortfall} ({reason})", record.id);
        return Some(("S1", seen));
    }
    (!replaced && !waited).then(|| {
        let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
        (
            "S1",
            format!(
                "record {}: {} is left for [{}] which is not healthy ({reason})",
                record.id,
                cluster,
                names.join(", ")
            ),
        )
    })
}

/// Checks that some other cluster that the applied placement selects is ready.
fn nowhere(record: &Record, decision: &DecisionRecord, binding: &Binding, from: &str) -> Option<Broken> {
    nowhere_for(record, decision, applied_placement(binding).as_ref(), from)
}

/// Checks that some other cluster that a placement selects is ready.
fn nowhere_for(
    record: &Record,
    decision: &DecisionRecord,
    placement: Option<&Placement>,
    from: &str,
) -> Option<Broken> {
    let placement = placement?;
    let found = decision
        .clusters
        .iter()
        .any(|cluster| cluster.name != from && cluster.is_ready() && selects(placement, cluster));
    (!found).then(|| {
        (
            "S1",
            format!("record {}: evicted from {from} with nowhere to go", record.id),
        )
    })
}

/// Returns true if added replicas of the replacement wait for the end of the task: its cluster is purged directly, and is
/// not ready.
fn waits_for_end(task: &GracefulEvictionTask, decision: &DecisionRecord) -> bool {
    let is_ready = |cluster: &Arc<Cluster>| cluster.name == task.from_cluster && cluster.is_ready();
    task.purge_mode == Some(PurgeMode::Directly) && !decision.clusters.iter().any(is_ready)
}

fn is_over(task: &GracefulEvictionTask, decision: &DecisionRecord, options: GracefulEvictionOptions) -> bool {
    let limit_s = limit_s(task, options);
    task.creation_timestamp
        .is_some_and(|created| decision.now > created.plus_seconds(limit_s))
}

fn limit_s(task: &GracefulEvictionTask, options: GracefulEvictionOptions) -> i64 {
    let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0).map(i64::from);
    own_s.unwrap_or(options.timeout_s)
}

fn all_dead(record: &Record, decision: &DecisionRecord) -> Option<Broken> {
    let clusters = &decision.clusters;
    let dead = clusters.len() > 1 && clusters.iter().all(|cluster| !cluster.is_ready());
    let drained = record.entry.attribution.reason.code == bulkhead_core::decide::reasons::REASON_DRAINED;
    (dead && !drained).then(|| {
        (
            "S3",
            format!("record {}: evicted while every cluster looks dead", record.id),
        )
    })
}
