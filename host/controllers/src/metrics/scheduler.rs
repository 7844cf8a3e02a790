//! Karmada's metrics of the scheduler, as far as they apply here. A decision has no separate steps to time, and
//! plugin calls of all kinds share one metric (`bulkhead_plugin_calls_total`).

use std::time::Duration;

use bulkhead_core::decide::schedule::Trigger;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Ending, short};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    result: &'static str,
    schedule_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    event: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

/// Reason why a binding enters the queue, in Karmada's terms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Incoming {
    BindingAdd,
    BindingUpdate,
    ScheduleAttemptFailure,
    ClusterChanged,
}

/// Numbers of waiting bindings, by queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingBindings {
    /// Ready to be scheduled.
    pub(crate) active: usize,
    /// Failed, with a retry soon.
    pub(crate) backoff: usize,
    /// Without room.
    pub(crate) unschedulable: usize,
}

/// Metrics of the scheduler.
#[derive(Debug)]
pub(crate) struct SchedulerMetrics {
    attempts: Family<AttemptLabels, Counter>,
    took: Family<AttemptLabels, Histogram>,
    deciding: Histogram,
    incoming: Family<EventLabels, Counter>,
    pending: Family<QueueLabels, Gauge>,
}

impl Default for SchedulerMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            took: Family::new_with_constructor(short),
            deciding: short(),
            incoming: Family::default(),
            pending: Family::default(),
        }
    }
}

impl SchedulerMetrics {
    /// Adds the metrics to those of the process.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("karmada_scheduler");
        registry.register(
            "schedule_attempts",
            "Attempts to schedule a binding, by result",
            self.attempts.clone(),
        );
        let took = "Duration of scheduling a binding, including its writes";
        registry.register("e2e_scheduling_duration_seconds", took, self.took.clone());
        let deciding = "Duration of a scheduling decision";
        registry.register("scheduling_algorithm_duration_seconds", deciding, self.deciding.clone());
        registry.register(
            "queue_incoming_bindings",
            "Bindings added to the queue",
            self.incoming.clone(),
        );
        registry.register(
            "pending_bindings",
            "Bindings that wait, by the reason for it",
            self.pending.clone(),
        );
    }

    /// Records an attempt with its outcome and its duration.
    pub(crate) fn attempted(&self, trigger: Trigger, ending: Ending, took: Duration) {
        let result = match ending {
            Ending::Written => "scheduled",
            Ending::Withheld => "withheld",
            Ending::Failed => "error",
        };
        let schedule_type = if trigger == Trigger::ReplicasChanged {
            "ScaleSchedule"
        } else {
            "ReconcileSchedule"
        };
        let labels = AttemptLabels { result, schedule_type };
        self.attempts.get_or_create(&labels).inc();
        self.took.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Records the duration of a decision.
    pub(crate) fn decided(&self, took: Duration) {
        self.deciding.observe(took.as_secs_f64());
    }

    /// Counts a binding that enters the queue.
    pub(crate) fn incoming(&self, event: Incoming) {
        let event = match event {
            Incoming::BindingAdd => "BindingAdd",
            Incoming::BindingUpdate => "BindingUpdate",
            Incoming::ScheduleAttemptFailure => "ScheduleAttemptFailure",
            Incoming::ClusterChanged => "ClusterChanged",
        };
        self.incoming.get_or_create(&EventLabels { event }).inc();
    }

    /// Sets the numbers of waiting bindings.
    pub(crate) fn pending(&self, pending: PendingBindings) {
        let PendingBindings {
            active,
            backoff,
            unschedulable,
        } = pending;
        for (queue, count) in [
            ("active", active),
            ("backoff", backoff),
            ("unschedulable", unschedulable),
        ] {
            self.pending
                .get_or_create(&QueueLabels { queue })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_of_karmada() {
        let (metrics, mut registry) = (SchedulerMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        metrics.incoming(Incoming::ClusterChanged);
        metrics.attempted(Trigger::ReplicasChanged, Ending::Written, Duration::from_millis(3));
        metrics.pending(PendingBindings {
            active: 2,
            backoff: 1,
            unschedulable: 0,
        });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"karmada_scheduler_schedule_attempts_total{result="scheduled",schedule_type="ScaleSchedule"} 1"#,
            r#"karmada_scheduler_queue_incoming_bindings_total{event="ClusterChanged"} 1"#,
            r#"karmada_scheduler_pending_bindings{queue="active"} 2"#,
            r#"karmada_scheduler_e2e_scheduling_duration_seconds_bucket{le="0.004",result="scheduled","#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
