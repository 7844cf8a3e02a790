//! Prometheus metrics. Their names are Karmada's, or those of the proposal "Optimize Cluster Failover" if Karmada has
//! none.
//!
//! No decision depends on a metric. [`Metrics::register`] adds them to the registry of the process, which encodes them.

mod clusters;
mod scheduler;

use std::borrow::Borrow;
use std::fmt::{self, Write as _};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bulkhead_core::decide::eviction::BrakeState;
use bulkhead_core::model::NodeSummary;
use bulkhead_runtime::clock::ClockState;
use bulkhead_runtime::controller::Error;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) use self::clusters::ClusterMetrics;
pub(crate) use self::scheduler::{Incoming, PendingBindings, SchedulerMetrics};

/// Label of a queue: Karmada has one for each kind of binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct QueueLabels {
    pub(crate) name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResultLabels {
    pub(crate) name: &'static str,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabels {
    pub(crate) result: &'static str,
}

/// Karmada's labels for a cluster and a kind of binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MemberKindLabels {
    pub(crate) member_cluster: String,
    pub(crate) resource_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MemberLabels {
    member_cluster: String,
}

impl MemberLabels {
    /// Returns the labels of a cluster.
    pub(crate) fn of(cluster: &str) -> Self {
        Self {
            member_cluster: cluster.to_owned(),
        }
    }
}

/// The proposal's label for a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ClusterLabels {
    pub(crate) cluster_name: String,
}

/// The proposal's labels for a cluster and a kind of resource, which consists of API version and kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ClusterKindLabels {
    pub(crate) cluster_name: String,
    pub(crate) resource_kind: LabelValue,
}

/// Label value of any text, which is escaped. The encoder writes strings as they are, which is enough only for names
/// that an API server has checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelValue(pub String);

impl EncodeLabelValue for LabelValue {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => encoder.write_str(r"\\")?,
                '"' => encoder.write_str(r#"\""#)?,
                '\n' => encoder.write_str(r"\n")?,
                c => encoder.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Kinds of binding, as values of the label `resource_kind`.
pub(crate) const BINDING_KINDS: [&str; 2] = ["ResourceBinding", "ClusterResourceBinding"];

type Float = Gauge<f64, AtomicU64>;

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was written.
    Written,
    /// It was decided but not sent, because this process only reports.
    Withheld,
    /// It failed.
    Failed,
}

impl Ending {
    /// Returns the outcome of a write.
    pub(crate) fn of<T, E: Borrow<Error>>(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Written,
            Err(error) if error.borrow().is_withheld() => Self::Withheld,
            Err(_) => Self::Failed,
        }
    }
}

/// The metrics of one process.
pub struct Metrics {
    /// Karmada's metrics of the eviction queue.
    pub(crate) queue_depth: Family<QueueLabels, Gauge>,
    pub(crate) kind_total: Family<MemberKindLabels, Gauge>,
    pub(crate) processing_latency: Family<QueueLabels, Histogram>,
    pub(crate) processing: Family<ResultLabels, Counter>,
    /// The proposal's metrics of the eviction queue.
    pub(crate) evict_total: Family<ClusterLabels, Gauge>,
    pub(crate) evict_kind_total: Family<ClusterKindLabels, Gauge>,
    pub(crate) evict_rate: Family<ClusterLabels, Float>,
    pub(crate) evict_processing_latency: Family<ClusterLabels, Histogram>,
    pub(crate) evict_success_rate: Family<ClusterLabels, Float>,
    pub(crate) cluster_fault_num: Gauge,
    pub(crate) cluster_fault_rate: Float,
    /// Bulkhead's own metrics.
    pub(crate) brake: Family<MemberLabels, Gauge>,
    /// Difference between the wall clock and the time that decisions use.
    pub(crate) clock_offset: Float,
    pub(crate) clock_steps: Counter,
    pub(crate) plugin_decisions: Family<OutcomeLabels, Counter>,
    /// Karmada's metrics of clusters.
    pub(crate) cluster_ready: Family<MemberLabels, Gauge>,
    pub(crate) cluster_nodes: Family<MemberLabels, Gauge>,
    pub(crate) cluster_ready_nodes: Family<MemberLabels, Gauge>,
    /// Metrics of probes.
    pub(crate) clusters: ClusterMetrics,
    /// Karmada's metrics of the scheduler.
    pub(crate) scheduler: SchedulerMetrics,
}

/// Creates a histogram from a millisecond to 16 s, with Karmada's buckets.
pub(crate) fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// Creates a histogram from a second to nine hours, for the time that an eviction waits.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            queue_depth: Family::default(),
            kind_total: Family::default(),
            processing_latency: Family::new_with_constructor(short),
            processing: Family::default(),
            evict_total: Family::default(),
            evict_kind_total: Family::default(),
            evict_rate: Family::default(),
            evict_processing_latency: Family::new_with_constructor(long),
            evict_success_rate: Family::default(),
            cluster_fault_num: Gauge::default(),
            cluster_fault_rate: Float::default(),
            brake: Family::default(),
            clock_offset: Float::default(),
            clock_steps: Counter::default(),
            plugin_decisions: Family::default(),
            cluster_ready: Family::default(),
            cluster_nodes: Family::default(),
            cluster_ready_nodes: Family::default(),
            clusters: ClusterMetrics::default(),
            scheduler: SchedulerMetrics::default(),
        }
    }
}

impl Metrics {
    /// Adds all metrics to a registry. Help texts end without a full stop, because the registry adds one.
    pub fn register(&self, registry: &mut Registry) {
        let mut gauge =
            |name: &str, help: &str, family: Family<QueueLabels, Gauge>| registry.register(name, help, family);
        gauge(
            "eviction_queue_depth",
            "Evictions that are ready to be processed",
            self.queue_depth.clone(),
        );
        registry.register(
            "eviction_kind_total",
            "Bindings that wait to leave a cluster",
            self.kind_total.clone(),
        );
        registry.register(
            "eviction_processing_latency_seconds",
            "Duration of an eviction decision, including its write",
            self.processing_latency.clone(),
        );
        // The encoder adds `_total` to the name of a counter.
        registry.register(
            "eviction_processing",
            "Evictions that were processed, by result",
            self.processing.clone(),
        );
        registry.register(
            "evict_total",
            "Resources that wait to leave a cluster",
            self.evict_total.clone(),
        );
        registry.register(
            "evict_kind_total",
            "Resources that wait to leave a cluster, by kind",
            self.evict_kind_total.clone(),
        );
        registry.register(
            "evict_rate",
            "Evictions per second from a cluster, over a minute",
            self.evict_rate.clone(),
        );
        registry.register(
            "evict_processing_latency_seconds",
            "Time from the moment an eviction is due until it is written",
            self.evict_processing_latency.clone(),
        );
        let success = "Share of the eviction attempts on a cluster that succeeded";
        registry.register("evict_success_rate", success, self.evict_success_rate.clone());
        registry.register(
            "cluster_fault_num",
            "Clusters that are not ready or have an evicting taint",
            self.cluster_fault_num.clone(),
        );
        registry.register(
            "cluster_fault_rate",
            "Share of clusters that are not ready or have an evicting taint",
            self.cluster_fault_rate.clone(),
        );
        let brake = "State of the eviction brake of a cluster: 0 no effect, 1 slows evictions, 2 stops them";
        registry.register("bulkhead_eviction_brake", brake, self.brake.clone());
        let offset = "Seconds by which the wall clock is ahead of the time that decisions use";
        registry.register("bulkhead_wall_clock_offset_seconds", offset, self.clock_offset.clone());
        let steps = "Steps of the wall clock since the process started";
        registry.register("bulkhead_wall_clock_steps", steps, self.clock_steps.clone());
        let decisions = "Decisions that asked plugins, by result; without an answer in time a decision is fail-static";
        registry.register("bulkhead_plugin_decisions", decisions, self.plugin_decisions.clone());
        registry.register(
            "cluster_ready_state",
            "1 if the cluster is ready",
            self.cluster_ready.clone(),
        );
        registry.register(
            "cluster_node_number",
            "Nodes of the cluster",
            self.cluster_nodes.clone(),
        );
        let ready_nodes = "Nodes of the cluster that are ready";
        registry.register(
            "cluster_ready_node_number",
            ready_nodes,
            self.cluster_ready_nodes.clone(),
        );
        self.clusters.register(registry);
        self.scheduler.register(registry);
    }

    /// Returns all metrics as a scrape shows them.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.register(&mut registry);
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    /// Removes the metrics of a deleted cluster, so that its last values do not look current.
    pub(crate) fn forget_cluster(&self, name: &str) {
        let labels = MemberLabels::of(name);
        self.cluster_ready.remove(&labels);
        self.cluster_nodes.remove(&labels);
        self.cluster_ready_nodes.remove(&labels);
        self.brake.remove(&labels);
        self.clusters.forget(name);
        for resource_kind in BINDING_KINDS {
            self.kind_total.remove(&MemberKindLabels {
                member_cluster: name.to_owned(),
                resource_kind,
            });
        }
        let labels = ClusterLabels {
            cluster_name: name.to_owned(),
        };
        self.evict_total.remove(&labels);
        self.evict_rate.remove(&labels);
        self.evict_processing_latency.remove(&labels);
        self.evict_success_rate.remove(&labels);
    }

    /// Sets the numbers of nodes of a cluster, if they could be counted.
    pub(crate) fn nodes(&self, cluster: &str, nodes: Option<&NodeSummary>) {
        let labels = MemberLabels::of(cluster);
        if let Some(nodes) = nodes {
            self.cluster_nodes.get_or_create(&labels).set(nodes.total_num.into());
            self.cluster_ready_nodes
                .get_or_create(&labels)
                .set(nodes.ready_num.into());
        }
    }

    /// Sets the readiness of a cluster.
    pub(crate) fn ready(&self, cluster: &str, is_ready: bool) {
        let labels = MemberLabels::of(cluster);
        self.cluster_ready.get_or_create(&labels).set(is_ready.into());
    }

    /// Sets the state of the eviction brake of a cluster.
    pub(crate) fn brake(&self, cluster: &str, state: BrakeState) {
        let labels = MemberLabels::of(cluster);
        self.brake.get_or_create(&labels).set(match state {
            BrakeState::Open => 0,
            BrakeState::Slowed => 1,
            BrakeState::Stopped | BrakeState::Held => 2,
        });
    }

    /// Counts a decision that called plugins, by its result.
    pub(crate) fn evaluated(&self, result: &'static str) {
        self.plugin_decisions.get_or_create(&OutcomeLabels { result }).inc();
    }

    /// Sets the number of faulty clusters, which are not ready or have an evicting taint, and their share of all.
    pub(crate) fn faults(&self, faulty: usize, share: f64) {
        self.cluster_fault_num.set(i64::try_from(faulty).unwrap_or(i64::MAX));
        self.cluster_fault_rate.set(share);
    }

    /// Sets the offset of the wall clock from the time that decisions use, and the number of its steps.
    pub fn clock(&self, state: ClockState) {
        let offset_s = Duration::from_millis(state.offset_ms.unsigned_abs()).as_secs_f64();
        self.clock_offset
            .set(if state.offset_ms < 0 { -offset_s } else { offset_s });
        self.clock_steps
            .inc_by(state.steps.saturating_sub(self.clock_steps.get()));
    }

    /// Sets the number of evictions of a queue that are due.
    pub(crate) fn depth(&self, queue: &'static str, ready: i64) {
        self.queue_depth.get_or_create(&QueueLabels { name: queue }).set(ready);
    }

    /// Records an attempted eviction.
    pub(crate) fn processed(&self, queue: &'static str, took: Duration, ending: Ending) {
        let result = match ending {
            Ending::Written => "success",
            Ending::Withheld => "withheld",
            Ending::Failed => "error",
        };
        self.processing
            .get_or_create(&ResultLabels { name: queue, result })
            .inc();
        self.processing_latency
            .get_or_create(&QueueLabels { name: queue })
            .observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_of_karmada_and_of_the_proposal() {
        let metrics = Metrics::default();
        metrics
            .queue_depth
            .get_or_create(&QueueLabels {
                name: "binding-eviction",
            })
            .set(3);
        metrics.processed("binding-eviction", Duration::from_millis(2), Ending::Written);
        metrics.processed("binding-eviction", Duration::from_millis(2), Ending::Withheld);
        let cluster = || ClusterLabels {
            cluster_name: "member1".to_owned(),
        };
        metrics.evict_total.get_or_create(&cluster()).set(7);
        metrics.evict_success_rate.get_or_create(&cluster()).set(0.5);
        metrics.cluster_ready.get_or_create(&MemberLabels::of("member1")).set(1);
        metrics.cluster_fault_num.set(2);
        let text = metrics.text();
        for line in [
            r#"eviction_queue_depth{name="binding-eviction"} 3"#,
            r#"eviction_processing_total{name="binding-eviction",result="success"} 1"#,
            r#"eviction_processing_total{name="binding-eviction",result="withheld"} 1"#,
            r#"eviction_processing_latency_seconds_bucket{le="0.002",name="binding-eviction"} 2"#,
            r#"evict_total{cluster_name="member1"} 7"#,
            r#"evict_success_rate{cluster_name="member1"} 0.5"#,
            r#"cluster_ready_state{member_cluster="member1"} 1"#,
            "cluster_fault_num 2",
        ] {
            assert!(text.lines().any(|existing| existing == line), "no {line:?} in:\n{text}");
        }
        metrics.forget_cluster("member1");
        let text = metrics.text();
        assert!(
            !text
                .lines()
                .any(|line| !line.starts_with('#') && line.contains("member1")),
            "{text}"
        );
    }
}
