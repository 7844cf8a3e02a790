//! Evictions per cluster, counted for the metrics.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::PoisonError;
use std::time::Duration;

use super::{Eviction, TaintManager};
use crate::metrics::{BINDING_KINDS, ClusterKindLabels, ClusterLabels, LabelValue, MemberKindLabels, Metrics};

/// Window over which a rate is measured.
const RATE_WINDOW: Duration = Duration::from_mins(1);

/// Counts of evictions, by cluster.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<String, Count>);

#[derive(Debug, Default)]
struct Count {
    attempts: u64,
    successes: u64,
    /// Times of the successes within the window.
    recent: VecDeque<Duration>,
    /// Kinds of resource that have a gauge, which must return to 0.
    resources: BTreeSet<String>,
}

impl Count {
    fn forget_old(&mut self, now: Duration) {
        while self
            .recent
            .front()
            .is_some_and(|at| now.saturating_sub(*at) > RATE_WINDOW)
        {
            self.recent.pop_front();
        }
    }

    fn show_rate(&self, metrics: &Metrics, labels: &ClusterLabels) {
        let rate = self.recent.len() as f64 / RATE_WINDOW.as_secs_f64();
        metrics.evict_rate.get_or_create(labels).set(rate);
    }
}

fn labels(cluster: &str) -> ClusterLabels {
    ClusterLabels {
        cluster_name: cluster.to_owned(),
    }
}

impl Counts {
    /// Records an eviction attempt. `waited` is the time that a written eviction had waited; `None` means that it
    /// failed.
    pub(super) fn attempted(&mut self, metrics: &Metrics, cluster: &str, waited: Option<Duration>, now: Duration) {
        let count = self.0.entry(cluster.to_owned()).or_default();
        count.attempts += 1;
        if let Some(waited) = waited {
            count.successes += 1;
            count.recent.push_back(now);
            metrics
                .evict_processing_latency
                .get_or_create(&labels(cluster))
                .observe(waited.as_secs_f64());
        }
        count.forget_old(now);
        count.show_rate(metrics, &labels(cluster));
        let share = count.successes as f64 / count.attempts as f64;
        metrics.evict_success_rate.get_or_create(&labels(cluster)).set(share);
    }

    /// Removes the counts of a deleted cluster, and its gauges by kind of resource.
    pub(super) fn forget(&mut self, metrics: &Metrics, cluster: &str) {
        let resources = self.0.remove(cluster).map(|count| count.resources).unwrap_or_default();
        for resource_kind in resources {
            metrics.evict_kind_total.remove(&ClusterKindLabels {
                cluster_name: cluster.to_owned(),
                resource_kind: LabelValue(resource_kind),
            });
        }
    }

    /// Sets the numbers of waiting evictions, by kind of binding (with the name of its queue) and by kind of
    /// resource.
    pub(super) fn waiting(
        &mut self,
        metrics: &Metrics,
        cluster: &str,
        kinds: &BTreeMap<(&'static str, &'static str), i64>,
        resources: &BTreeMap<String, i64>,
        now: Duration,
    ) {
        let known = self.0.contains_key(cluster);
        if !known && kinds.is_empty() {
            return;
        }
        let count = self.0.entry(cluster.to_owned()).or_default();
        for resource_kind in BINDING_KINDS {
            let waiting = kinds
                .iter()
                .filter(|((kind, _), _)| *kind == resource_kind)
                .map(|(_, n)| n)
                .sum();
            let labels = MemberKindLabels {
                member_cluster: cluster.to_owned(),
                resource_kind,
            };
            metrics.kind_total.get_or_create(&labels).set(waiting);
        }
        metrics
            .evict_total
            .get_or_create(&labels(cluster))
            .set(kinds.values().sum());
        count.resources.extend(resources.keys().cloned());
        for resource_kind in &count.resources {
            let labels = ClusterKindLabels {
                cluster_name: cluster.to_owned(),
                resource_kind: LabelValue(resource_kind.clone()),
            };
            metrics
                .evict_kind_total
                .get_or_create(&labels)
                .set(resources.get(resource_kind).copied().unwrap_or(0));
        }
        count.forget_old(now);
        count.show_rate(metrics, &labels(cluster));
    }
}

impl TaintManager {
    /// Updates the metrics of a cluster's evictions.
    pub(super) fn count(&self, name: &str) {
        let waiting: Vec<_> = self
            .queue()
            .items()
            .filter(|(_, from)| *from == name)
            .map(|(eviction, _)| eviction.clone())
            .collect();
        let resource_kind = |eviction: &Eviction| {
            let stores = &self.deps.stores;
            let resource = if eviction.binding.namespace.is_empty() {
                stores.cluster_bindings.get(&eviction.binding)?.spec.resource.clone()
            } else {
                stores.bindings.get(&eviction.binding)?.spec.resource.clone()
            };
            Some(format!("{}/{}", resource.api_version, resource.kind))
        };
        let mut kinds = BTreeMap::<_, i64>::new();
        let mut resources = BTreeMap::<String, i64>::new();
        for eviction in &waiting {
            *kinds
                .entry((eviction.binding_kind(), eviction.queue_name()))
                .or_default() += 1;
            if let Some(kind) = resource_kind(eviction) {
                *resources.entry(kind).or_default() += 1;
            }
        }
        let (ready, now) = (self.queue().ready(), self.now());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.waiting(&self.deps.metrics, name, &kinds, &resources, now);
        for queue in ["binding-eviction", "cluster-binding-eviction"] {
            let depth = ready.iter().filter(|eviction| eviction.queue_name() == queue).count();
            self.deps.metrics.depth(queue, i64::try_from(depth).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_go_back_to_zero_and_old_evictions_leave_the_rate() {
        let (metrics, mut counts) = (Metrics::default(), Counts::default());
        let at = Duration::from_secs;
        let kinds = BTreeMap::from([(("ResourceBinding", "binding-eviction"), 2)]);
        let resources = BTreeMap::from([("apps/v1/Deployment".to_owned(), 2)]);
        counts.waiting(&metrics, "member1", &kinds, &resources, at(0));
        counts.attempted(&metrics, "member1", Some(at(4)), at(4));
        counts.attempted(&metrics, "member1", None, at(6));
        let holds = |line: &str| {
            let text = metrics.text();
            assert!(text.lines().any(|existing| existing == line), "no {line:?} in:\n{text}");
        };
        holds(r#"eviction_kind_total{member_cluster="member1",resource_kind="ResourceBinding"} 2"#);
        holds(r#"evict_kind_total{cluster_name="member1",resource_kind="apps/v1/Deployment"} 2"#);
        holds(r#"evict_total{cluster_name="member1"} 2"#);
        holds(r#"evict_success_rate{cluster_name="member1"} 0.5"#);
        holds(r#"evict_processing_latency_seconds_count{cluster_name="member1"} 1"#);
        counts.waiting(&metrics, "member1", &BTreeMap::new(), &BTreeMap::new(), at(100));
        holds(r#"eviction_kind_total{member_cluster="member1",resource_kind="ResourceBinding"} 0"#);
        holds(r#"evict_kind_total{cluster_name="member1",resource_kind="apps/v1/Deployment"} 0"#);
        holds(r#"evict_rate{cluster_name="member1"} 0.0"#);
        counts.forget(&metrics, "member1");
        metrics.forget_cluster("member1");
        let text = metrics.text();
        assert!(!text.contains("member1"), "series of a deleted cluster:\n{text}");
    }
}
