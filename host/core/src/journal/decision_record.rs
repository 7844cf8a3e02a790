//! Decision records: decisions with all inputs, for replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::plan;
use super::recorder::{CallRecorder, PolicySlot, RecordedCall, ReplayingPolicy};
use crate::call::{CallKind, Peer};
use crate::composition::Composition;
use crate::decide::application_failover::{self, FailoverOptions, FailoverSnapshot};
use crate::decide::eviction::taint_based::{EvictOptions, Evictable};
use crate::decide::eviction::{self, EvictionPause, JudgeSnapshot, PreCheck, Priority};
use crate::decide::failback::{self, FailbackSnapshot, Stability};
use crate::decide::graceful_eviction::{self, GracefulEvictionOptions, GracefulEvictionSnapshot, UnconfirmedTargets};
use crate::decide::health::{self, HealthSnapshot, Uncovered};
use crate::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload};
use crate::decide::schedule::{self, SchedulePlan, SchedulerOptions, SchedulingSnapshot};
use crate::decide::taint::{self, TaintOptions};
use crate::model::{Binding, Cluster};
use crate::policy::{Policy, PolicyEntry, PolicySet};
use crate::snapshot::ClusterSnapshot;
use crate::time::Time;

/// Replayable record of a decision: the snapshot, the policies with their replies, and the plan.
///
/// The clusters are stored separately because many decisions share them; a store keeps each version once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// Trigger of the decision, as a sentence.
    pub trigger: String,
    /// Evaluation time.
    #[serde(with = "millis")]
    pub now: Time,
    /// Kind of decision and its inputs.
    #[serde(rename = "question")]
    pub input: DecisionInput,
    /// Rules that combine several replies into one.
    pub composition: Composition,
    /// Policies that could be called, in order.
    pub policies: Vec<PolicySlot>,
    /// Recorded calls, in order.
    pub calls: Vec<RecordedCall>,
    /// Plan, in canonical form.
    pub plan: Value,
    /// Clusters that the decision read, sorted by name.
    #[serde(skip)]
    pub clusters: Arc<[Arc<Cluster>]>,
}

/// Kind of a decision in the journal, with its inputs other than clusters and policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DecisionInput {
    /// Taints of a cluster, which is the only one in the record.
    Taint {
        /// Options for taint management.
        options: TaintOptions,
    },
    /// Eviction of a binding from a cluster.
    Evict {
        /// Binding to evict.
        binding: Arc<Binding>,
        /// Cluster to evict from; it may no longer exist.
        cluster: String,
        /// Options that select the taints that evict.
        options: EvictOptions,
        /// Condition to verify before the eviction.
        pre_check: PreCheck,
        /// Eviction pauses.
        pauses: Vec<EvictionPause>,
        /// Rate limits under which the eviction got its slot.
        limits: Limits,
        /// Priority in the queue of evictions; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<Priority>,
    },
    /// Placement of a binding.
    Schedule {
        /// Binding to place.
        binding: Arc<Binding>,
        /// Other bindings in the same workload affinity groups.
        peers: Vec<Peer>,
        /// Results of accurate estimators; absent if there are none.
        accurate: Option<AccurateEstimates>,
        /// Workloads recently placed on each cluster and not yet visible in its status.
        assumed: BTreeMap<String, Vec<AssumedWorkload>>,
        /// Scheduler options.
        options: SchedulerOptions,
    },
    /// Completion of graceful eviction tasks. The clusters are those that the tasks name.
    #[serde(rename = "finish")]
    GracefulEviction {
        /// Binding with the tasks.
        binding: Arc<Binding>,
        /// Options set by the operator.
        options: GracefulEvictionOptions,
        /// Target clusters whose reports did not count.
        #[serde(default, skip_serializing_if = "UnconfirmedTargets::is_empty")]
        unconfirmed: UnconfirmedTargets,
    },
    /// Application failover of a binding. The clusters are all members if a target has failed, else none.
    Failover {
        /// Binding of the application.
        binding: Arc<Binding>,
        /// Producer name of its tasks.
        producer: String,
        /// Feature gates.
        options: FailoverOptions,
        /// Eviction pauses.
        pauses: Vec<EvictionPause>,
    },
    /// Return of a workload to its home clusters. The clusters are the existing ones among them.
    Failback {
        /// Binding of the workload.
        binding: Arc<Binding>,
        /// Stability of each cluster.
        stable: BTreeMap<String, Stability>,
        /// Eviction pauses.
        pauses: Vec<EvictionPause>,
        /// Seconds for which a home cluster must have been stable.
        window_s: i64,
    },
    /// Health of an object in a member cluster.
    Health {
        /// Object as the member cluster reported it.
        object: Arc<Value>,
        /// Health of an object without an interpreter.
        uncovered: Uncovered,
    },
}

/// Rate limits that applied to an eviction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Total evictions per second.
    pub per_second: f64,
    /// Evictions per second of the cluster group that the brake slows down; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_per_second: Option<f64>,
    /// Evictions per second of the cluster; absent without a separate rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_per_second: Option<f64>,
    /// Human-readable state of the brake.
    pub brake: String,
}

/// Decision as the controller made it; converts to a [`DecisionRecord`].
pub struct Decided<'a> {
    /// Trigger of the decision, as a sentence.
    pub trigger: &'a str,
    /// Evaluation time.
    pub now: Time,
    /// Kind of decision and its inputs.
    pub input: DecisionInput,
    /// Clusters that the decision read, sorted by name.
    pub clusters: Arc<[Arc<Cluster>]>,
    /// Recorder of the policy calls.
    pub recorder: CallRecorder,
    /// Plan, in canonical form.
    pub plan: Value,
}

impl From<Decided<'_>> for DecisionRecord {
    fn from(decided: Decided<'_>) -> Self {
        let Decided {
            trigger,
            now,
            input,
            clusters,
            recorder,
            plan,
        } = decided;
        let (policies, composition, calls) = recorder.finish();
        Self {
            trigger: trigger.to_owned(),
            now,
            input,
            composition,
            policies,
            calls,
            plan,
            clusters,
        }
    }
}

impl DecisionRecord {
    /// Returns the kinds of calls that the decision can make.
    pub fn kinds(&self) -> &'static [CallKind] {
        match self.input {
            DecisionInput::Taint { .. } => &[CallKind::ClusterTaint],
            DecisionInput::Schedule { .. } => &[CallKind::Filter, CallKind::Score],
            DecisionInput::GracefulEviction { .. } => &[CallKind::EvictionCheck],
            DecisionInput::Health { .. } => &[CallKind::Health],
            DecisionInput::Evict { .. } | DecisionInput::Failover { .. } | DecisionInput::Failback { .. } => &[],
        }
    }

    /// Returns the policies for a replay. Each returns its recorded replies unless `substitute` returns a
    /// replacement.
    pub fn policies(&self, substitute: impl Fn(&PolicySlot) -> Option<Arc<dyn Policy>>) -> PolicySet {
        let entry = |(position, slot): (usize, &PolicySlot)| {
            let recorded = || Arc::new(ReplayingPolicy::new(position, slot, &self.calls)) as Arc<dyn Policy>;
            PolicyEntry {
                policy: substitute(slot).unwrap_or_else(recorded),
                mode: slot.mode,
                weight: slot.weight,
            }
        };
        PolicySet::composed(self.policies.iter().enumerate().map(entry).collect(), self.composition)
    }

    /// Makes the decision again with these policies and returns the plan in canonical form.
    pub fn decide(&self, policies: &PolicySet) -> Value {
        let now = self.now;
        match &self.input {
            DecisionInput::Taint { options } => match self.clusters.first() {
                Some(cluster) => plan::taint(&taint::decide(cluster, policies, *options, now)),
                None => Value::Null,
            },
            DecisionInput::Evict {
                binding,
                cluster,
                options,
                pre_check,
                pauses,
                ..
            } => plan::evict(&eviction::judge(JudgeSnapshot {
                binding: Evictable::from(&**binding),
                cluster: self.cluster(cluster),
                clusters: &self.clusters,
                options: *options,
                pre_check: *pre_check,
                pauses,
                now,
            })),
            DecisionInput::Schedule { .. } => self
                .reschedule(policies, false)
                .as_ref()
                .map_or(Value::Null, plan::schedule),
            DecisionInput::GracefulEviction {
                binding,
                options,
                unconfirmed,
            } => {
                let sources: Vec<_> = self.clusters.iter().map(|cluster| Cluster::clone(cluster)).collect();
                let snapshot = GracefulEvictionSnapshot {
                    binding,
                    sources: &sources,
                    unconfirmed,
                    options: *options,
                    now,
                };
                plan::graceful_eviction(&graceful_eviction::decide(snapshot, policies))
            }
            DecisionInput::Failover {
                binding,
                producer,
                options,
                pauses,
            } => {
                let clusters = &self.clusters;
                let snapshot = FailoverSnapshot {
                    binding,
                    producer,
                    options: *options,
                    pauses,
                    clusters,
                    now,
                };
                plan::failover(&application_failover::decide(snapshot))
            }
            DecisionInput::Failback {
                binding,
                stable,
                pauses,
                window_s,
            } => {
                let clusters = self
                    .clusters
                    .iter()
                    .map(|cluster| (cluster.name.clone(), Arc::clone(cluster)));
                let (clusters, window_s) = (&clusters.collect(), *window_s);
                plan::failback(&failback::decide(FailbackSnapshot {
                    binding,
                    clusters,
                    stable,
                    pauses,
                    window_s,
                    now,
                }))
            }
            DecisionInput::Health { object, uncovered } => plan::health(&health::decide(
                HealthSnapshot {
                    object,
                    uncovered: *uncovered,
                    now,
                },
                policies,
            )),
        }
    }

    /// Repeats a scheduling decision, with an explanation if `explained`; `None` for any other decision.
    pub fn reschedule(&self, policies: &PolicySet, explained: bool) -> Option<SchedulePlan> {
        let DecisionInput::Schedule {
            binding,
            peers,
            accurate,
            assumed,
            options,
        } = &self.input
        else {
            return None;
        };
        let clusters = Arc::new(ClusterSnapshot::new(self.clusters.iter().cloned()));
        let (accurate, now) = (accurate.as_ref(), self.now);
        let snapshot = SchedulingSnapshot {
            binding,
            clusters: &clusters,
            peers,
            accurate,
            assumed,
            options,
            now,
        };
        let decide = if explained {
            schedule::decide_explained
        } else {
            schedule::decide
        };
        Some(decide(snapshot, policies))
    }

    /// Returns a cluster of the record.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters
            .iter()
            .find(|cluster| cluster.name == name)
            .map(|cluster| &**cluster)
    }

    /// Returns the binding of the decision; `None` for decisions on clusters and objects.
    pub fn binding(&self) -> Option<&Binding> {
        match &self.input {
            DecisionInput::Evict { binding, .. }
            | DecisionInput::Schedule { binding, .. }
            | DecisionInput::GracefulEviction { binding, .. }
            | DecisionInput::Failover { binding, .. }
            | DecisionInput::Failback { binding, .. } => Some(binding),
            DecisionInput::Taint { .. } | DecisionInput::Health { .. } => None,
        }
    }
}

/// Milliseconds since the Unix epoch. The API's format has whole seconds only and would not replay exactly.
mod millis {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Time};

    pub(super) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        time.as_millis().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        i64::deserialize(deserializer).map(Time::from_millis)
    }
}
