//! A decision with everything that it was made from, so that it can be made again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::plan;
use super::tape::{Asked, Replayed, Seat, Tape};
use crate::call::{CallKind, Peer};
use crate::composition::Composition;
use crate::decide::evict::{EvictOptions, Evictable};
use crate::decide::eviction::{self, EvictionPause, JudgeSnapshot, PreCheck};
use crate::decide::failback::{self, FailbackSnapshot, Stability};
use crate::decide::failover::{self, FailoverOptions, FailoverSnapshot};
use crate::decide::finish::{self, FinishOptions, FinishSnapshot, UnconfirmedTargets};
use crate::decide::health::{self, HealthSnapshot, Uncovered};
use crate::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload};
use crate::decide::schedule::{self, SchedulePlan, SchedulerOptions, SchedulingSnapshot};
use crate::decide::taint::{self, TaintOptions};
use crate::model::{Binding, Cluster};
use crate::policy::{Member, Policy, PolicySet};
use crate::snapshot::ClusterSnapshot;
use crate::time::Time;

/// A decision with what it was made from: the snapshot, who was asked and what they answered, and the plan.
///
/// The clusters are beside the rest, because many decisions share them: a store keeps each version once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Why it was decided at that moment, as a sentence.
    pub trigger: String,
    /// The time that it was reasoned with.
    #[serde(with = "millis")]
    pub now: Time,
    /// What was decided, and from what.
    pub question: Question,
    /// The rules by which answers became one.
    pub composition: Composition,
    /// Who could be asked, in order.
    pub policies: Vec<Seat>,
    /// Who was asked what, in order.
    pub calls: Vec<Asked>,
    /// The plan, in canonical form.
    pub plan: Value,
    /// The clusters that it looked at, in order of name.
    #[serde(skip)]
    pub clusters: Arc<[Arc<Cluster>]>,
}

/// A decision of the journal, with what it is made from besides clusters and policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// Which taints a cluster carries. It is the only one of the clusters.
    Taint {
        /// How taints are looked after.
        options: TaintOptions,
    },
    /// Whether a binding leaves a cluster.
    Evict {
        /// The binding.
        binding: Arc<Binding>,
        /// The cluster; it may be gone.
        cluster: String,
        /// Which taints evict.
        options: EvictOptions,
        /// What must be true before.
        pre_check: PreCheck,
        /// Pauses of evictions.
        pauses: Vec<EvictionPause>,
        /// The rates that its slot was opened by.
        limits: Limits,
    },
    /// Where a binding runs.
    Schedule {
        /// The binding.
        binding: Arc<Binding>,
        /// Other bindings of the same groups of workload affinity.
        peers: Vec<Peer>,
        /// What accurate estimators answered; absent when there are none.
        accurate: Option<AccurateEstimates>,
        /// What was placed on each cluster a moment before.
        assumed: BTreeMap<String, Vec<AssumedWorkload>>,
        /// Settings.
        options: SchedulerOptions,
    },
    /// When eviction tasks end. The clusters are those that the tasks name.
    Finish {
        /// The binding.
        binding: Arc<Binding>,
        /// Choices of the operator.
        options: FinishOptions,
        /// Target clusters whose reports did not count.
        #[serde(default, skip_serializing_if = "UnconfirmedTargets::is_empty")]
        unconfirmed: UnconfirmedTargets,
    },
    /// Whether an application has failed where it runs.
    Failover {
        /// The binding.
        binding: Arc<Binding>,
        /// The name that its tasks carry.
        producer: String,
        /// Gates.
        options: FailoverOptions,
        /// Pauses of evictions.
        pauses: Vec<EvictionPause>,
    },
    /// Whether a workload goes back home. The clusters are those of its home, as far as there are any.
    Failback {
        /// The binding.
        binding: Arc<Binding>,
        /// Since when clusters are as they are.
        stable: BTreeMap<String, Stability>,
        /// Pauses of evictions.
        pauses: Vec<EvictionPause>,
        /// For how long, in seconds, a home must have been stable.
        window_s: i64,
    },
    /// How an object in a member cluster is.
    Health {
        /// The object as the member cluster reported it.
        object: Arc<Value>,
        /// What counts when nobody interprets it.
        uncovered: Uncovered,
    },
}

/// The rates that an eviction had to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Evictions per second, all together.
    pub per_second: f64,
    /// Evictions per second of the group of clusters that is braked; absent when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_per_second: Option<f64>,
    /// Evictions per second of the cluster; absent when it has no rate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_per_second: Option<f64>,
    /// What the brake says, for people.
    pub brake: String,
}

/// A case as a controller has it when it has decided.
pub struct Decided<'a> {
    /// Why it was decided at that moment.
    pub trigger: &'a str,
    /// The time that it was reasoned with.
    pub now: Time,
    /// What was decided, and from what.
    pub question: Question,
    /// The clusters that it looked at, in order of name.
    pub clusters: Arc<[Arc<Cluster>]>,
    /// What the policies were asked.
    pub tape: Tape,
    /// The plan, in canonical form.
    pub plan: Value,
}

impl From<Decided<'_>> for Case {
    fn from(decided: Decided<'_>) -> Self {
        let Decided { trigger, now, question, clusters, tape, plan } = decided;
        let (policies, composition, calls) = tape.finish();
        Self { trigger: trigger.to_owned(), now, question, composition, policies, calls, plan, clusters }
    }
}

impl Case {
    /// The kinds of call that a decision may make.
    pub fn kinds(&self) -> &'static [CallKind] {
        match self.question {
            Question::Taint { .. } => &[CallKind::ClusterTaint],
            Question::Schedule { .. } => &[CallKind::Filter, CallKind::Score],
            Question::Finish { .. } => &[CallKind::EvictionCheck],
            Question::Health { .. } => &[CallKind::Health],
            Question::Evict { .. } | Question::Failover { .. } | Question::Failback { .. } => &[],
        }
    }

    /// The policies again. Each answers as it is recorded, unless `substitute` has another one for its seat.
    pub fn policies(&self, substitute: impl Fn(&Seat) -> Option<Arc<dyn Policy>>) -> PolicySet {
        let member = |(position, seat): (usize, &Seat)| {
            let recorded = || Arc::new(Replayed::new(position, seat, &self.calls)) as Arc<dyn Policy>;
            Member { policy: substitute(seat).unwrap_or_else(recorded), mode: seat.mode, weight: seat.weight }
        };
        PolicySet::composed(self.policies.iter().enumerate().map(member).collect(), self.composition)
    }

    /// Decides again, with these policies, and gives the plan in canonical form.
    pub fn decide(&self, policies: &PolicySet) -> Value {
        let now = self.now;
        match &self.question {
            Question::Taint { options } => match self.clusters.first() {
                Some(cluster) => plan::taint(&taint::decide(cluster, policies, *options, now)),
                None => Value::Null,
            },
            Question::Evict { binding, cluster, options, pre_check, pauses, .. } => {
                plan::evict(&eviction::judge(JudgeSnapshot {
                    binding: Evictable::from(&**binding),
                    cluster: self.cluster(cluster),
                    clusters: &self.clusters,
                    options: *options,
                    pre_check: *pre_check,
                    pauses,
                    now,
                }))
            }
            Question::Schedule { .. } => self.reschedule(policies, false).as_ref().map_or(Value::Null, plan::schedule),
            Question::Finish { binding, options, unconfirmed } => {
                let sources: Vec<_> = self.clusters.iter().map(|cluster| Cluster::clone(cluster)).collect();
                let snapshot = FinishSnapshot { binding, sources: &sources, unconfirmed, options: *options, now };
                plan::finish(&finish::decide(snapshot, policies))
            }
            Question::Failover { binding, producer, options, pauses } => {
                let snapshot = FailoverSnapshot { binding, producer, options: *options, pauses, now };
                plan::failover(&failover::decide(snapshot))
            }
            Question::Failback { binding, stable, pauses, window_s } => {
                let clusters = self.clusters.iter().map(|cluster| (cluster.name.clone(), Arc::clone(cluster)));
                let (clusters, window_s) = (&clusters.collect(), *window_s);
                plan::failback(&failback::decide(FailbackSnapshot { binding, clusters, stable, pauses, window_s, now }))
            }
            Question::Health { object, uncovered } => {
                plan::health(&health::decide(HealthSnapshot { object, uncovered: *uncovered, now }, policies))
            }
        }
    }

    /// A scheduling decision again, with how it came about if `explained`; none for another decision.
    pub fn reschedule(&self, policies: &PolicySet, explained: bool) -> Option<SchedulePlan> {
        let Question::Schedule { binding, peers, accurate, assumed, options } = &self.question else { return None };
        let clusters = Arc::new(ClusterSnapshot::new(self.clusters.iter().cloned()));
        let (accurate, now) = (accurate.as_ref(), self.now);
        let snapshot = SchedulingSnapshot { binding, clusters: &clusters, peers, accurate, assumed, options, now };
        let decide = if explained { schedule::decide_explained } else { schedule::decide };
        Some(decide(snapshot, policies))
    }

    /// A cluster that it looked at.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name).map(|cluster| &**cluster)
    }

    /// The binding that it is about; absent for decisions about clusters and objects.
    pub fn binding(&self) -> Option<&Binding> {
        match &self.question {
            Question::Evict { binding, .. }
            | Question::Schedule { binding, .. }
            | Question::Finish { binding, .. }
            | Question::Failover { binding, .. }
            | Question::Failback { binding, .. } => Some(binding),
            Question::Taint { .. } | Question::Health { .. } => None,
        }
    }
}

/// Milliseconds since the Unix epoch: whole seconds, as the API writes them, would not replay exactly.
mod millis {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Time};

    pub(super) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        time.as_millis().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        i64::deserialize(deserializer).map(Time::from_millis)
    }
}
