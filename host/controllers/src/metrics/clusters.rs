//! Metrics of the probes of member clusters. Their names are those of the proposal in Karmada's issue 7553.

use std::time::Duration;

use bulkhead_core::decide::cluster_ready::Probe;
use bulkhead_core::model::ConditionStatus;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{MemberLabels, short};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    member_cluster: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransitionLabels {
    member_cluster: String,
    from_state: &'static str,
    to_state: &'static str,
}

/// Results of a probe, as values of the label `result`.
const RESULTS: [&str; 2] = ["success", "error"];
/// States of the Ready condition.
const STATES: [ConditionStatus; 3] = [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];

/// Metrics of the probes of member clusters.
#[derive(Debug)]
pub(crate) struct ClusterMetrics {
    probes: Family<ProbeLabels, Counter>,
    succeeded: Family<MemberLabels, Gauge>,
    took: Family<MemberLabels, Histogram>,
    transitions: Family<TransitionLabels, Counter>,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            probes: Family::default(),
            succeeded: Family::default(),
            took: Family::new_with_constructor(short),
            transitions: Family::default(),
        }
    }
}

impl ClusterMetrics {
    /// Adds the metrics to those of the process.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "cluster_health_probe",
            "Probes of a member cluster, by result",
            self.probes.clone(),
        );
        let succeeded = "1 if the last probe of the cluster succeeded, before thresholds";
        registry.register("cluster_health_probe_success", succeeded, self.succeeded.clone());
        registry.register(
            "cluster_health_probe_duration_seconds",
            "Duration of a probe of a member cluster",
            self.took.clone(),
        );
        let transitions = "Changes of the Ready condition of a cluster that this process wrote";
        registry.register("cluster_health_transitions", transitions, self.transitions.clone());
    }

    /// Records a probe with its result and its duration.
    pub(crate) fn probed(&self, cluster: &str, probe: Probe, took: Duration) {
        let [success, error] = RESULTS;
        let result = if probe == Probe::Ready { success } else { error };
        let member_cluster = cluster.to_owned();
        self.probes.get_or_create(&ProbeLabels { member_cluster, result }).inc();
        let labels = MemberLabels::of(cluster);
        self.succeeded
            .get_or_create(&labels)
            .set((probe == Probe::Ready).into());
        self.took.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a change of the Ready condition.
    pub(crate) fn changed(&self, cluster: &str, from: ConditionStatus, to: ConditionStatus) {
        self.transitions.get_or_create(&transition(cluster, from, to)).inc();
    }

    /// Removes the metrics of a deleted cluster.
    pub(crate) fn forget(&self, cluster: &str) {
        let labels = MemberLabels::of(cluster);
        self.succeeded.remove(&labels);
        self.took.remove(&labels);
        for result in RESULTS {
            self.probes.remove(&ProbeLabels {
                member_cluster: cluster.to_owned(),
                result,
            });
        }
        for (from, to) in STATES.into_iter().flat_map(|from| STATES.map(|to| (from, to))) {
            self.transitions.remove(&transition(cluster, from, to));
        }
    }
}

fn transition(cluster: &str, from: ConditionStatus, to: ConditionStatus) -> TransitionLabels {
    TransitionLabels {
        member_cluster: cluster.to_owned(),
        from_state: from.as_str(),
        to_state: to.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_and_transitions_of_a_cluster_are_counted_until_it_is_deleted() {
        let (metrics, mut registry) = (ClusterMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let text = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        metrics.probed("m1", Probe::Ready, Duration::from_millis(3));
        metrics.probed("m1", Probe::Ready, Duration::from_millis(3));
        metrics.probed("m1", Probe::NotReady, Duration::from_millis(3));
        metrics.changed("m1", ConditionStatus::True, ConditionStatus::False);
        for line in [
            r#"cluster_health_probe_total{member_cluster="m1",result="success"} 2"#,
            r#"cluster_health_probe_total{member_cluster="m1",result="error"} 1"#,
            r#"cluster_health_probe_success{member_cluster="m1"} 0"#,
            r#"cluster_health_probe_duration_seconds_count{member_cluster="m1"} 3"#,
            r#"cluster_health_transitions_total{member_cluster="m1",from_state="True",to_state="False"} 1"#,
        ] {
            assert!(text().lines().any(|existing| existing == line), "{line} in\n{}", text());
        }
        metrics.forget("m1");
        assert!(!text().contains("m1"), "{}", text());
    }
}
