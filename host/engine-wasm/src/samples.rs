//! Calls of every kind with plausible inputs, to warm up a guest and to compare its answers.

use std::sync::Arc;

use bulkhead_core::call::{
    Call, CallKind, ClusterTaintCall, EvictionCheckCall, FilterCall, HealthCall, InterpretCall, Operation, ScoreCall,
};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::snapshot::{Candidates, ClusterSnapshot};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use crate::host::bindings::bulkhead::policy::types::ObjectKind;

/// Names of the clusters.
const CLUSTERS: [&str; 2] = ["member1", "member2"];

/// Inputs of the calls.
pub(crate) struct Samples {
    object: Arc<Value>,
    clusters: ClusterSnapshot,
    cluster: Arc<Cluster>,
    binding: Binding,
    task: GracefulEvictionTask,
    observed: Vec<AggregatedStatusItem>,
}

impl Samples {
    /// Returns inputs about an object of this kind, a Deployment by default. `None` never occurs: all inputs are valid.
    pub(crate) fn about(kind: Option<&ObjectKind>) -> Option<Self> {
        let (api_version, kind) = kind.map_or(("apps/v1", "Deployment"), |kind| (&kind.api_version, &kind.kind));
        let metadata = json!({"name": "web", "namespace": "shop", "generation": 2, "labels": {"app": "web"}});
        let template = json!({"spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        let replicas = json!({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3});
        let condition = json!({"type": "Available", "status": "True", "reason": "Ready", "message": "all are ready"});
        let mut status = replicas.clone();
        status["observedGeneration"] = json!(2);
        status["conditions"] = json!([condition]);
        let object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": metadata,
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            "status": status,
        });
        let cluster = |name: &str| {
            let ready = json!({"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "ok"});
            let cluster = json!({
                "name": name,
                "labels": {"tier": "gold"},
                "spec": {"syncMode": "Push", "region": "north", "zones": ["a"]},
                "status": {"kubernetesVersion": "v1.36.0", "conditions": [ready]},
            });
            serde_json::from_value(cluster).ok().map(Arc::new)
        };
        let clusters: Option<Vec<Arc<Cluster>>> = CLUSTERS.into_iter().map(cluster).collect();
        let clusters = clusters?;
        let binding = json!({
            "namespace": "shop",
            "name": "web-deployment",
            "spec": {
                "resource": {"apiVersion": api_version, "kind": kind, "namespace": "shop", "name": "web"},
                "replicas": 3,
                "clusters": [{"name": "member2", "replicas": 3}],
            },
        });
        let task = json!({"fromCluster": "member1", "reason": "TaintUntolerated", "producer": "TaintManager"});
        let report = |name: &str| {
            let report = json!({"clusterName": name, "applied": true, "health": "Healthy", "status": replicas});
            serde_json::from_value(report).ok()
        };
        Some(Self {
            object: Arc::new(object),
            cluster: Arc::clone(clusters.first()?),
            clusters: ClusterSnapshot::new(clusters),
            binding: serde_json::from_value(binding).ok()?,
            task: serde_json::from_value(task).ok()?,
            observed: CLUSTERS.into_iter().map(report).collect::<Option<_>>()?,
        })
    }

    /// Returns a call of each of these kinds.
    pub(crate) fn calls(&self, kinds: impl IntoIterator<Item = CallKind>) -> Vec<Call<'_>> {
        kinds.into_iter().map(|kind| self.call(kind)).collect()
    }

    fn call(&self, kind: CallKind) -> Call<'_> {
        const ROWS: [u32; CLUSTERS.len()] = [0, 1];
        let now = Time::from_millis(0);
        let (binding, candidates) = (&self.binding, Candidates::of_rows(&self.clusters, &ROWS));
        match kind {
            CallKind::Health => Call::Health(HealthCall {
                object: &self.object,
                now,
            }),
            CallKind::ClusterTaint => Call::ClusterTaint(ClusterTaintCall {
                cluster: &self.cluster,
                now,
            }),
            CallKind::Filter => Call::Filter(FilterCall {
                binding,
                clusters: candidates,
                peers: &[],
                now,
            }),
            CallKind::Score => Call::Score(ScoreCall {
                binding,
                clusters: candidates,
                now,
            }),
            CallKind::EvictionCheck => Call::EvictionCheck(EvictionCheckCall {
                binding,
                task: &self.task,
                observed: &self.observed,
                now,
            }),
            CallKind::Interpret => Call::Interpret(InterpretCall {
                operation: Operation::Replicas { object: &self.object },
                now,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_inputs_are_valid() {
        let samples = Samples::about(None).unwrap();
        let calls = samples.calls(CallKind::ALL);
        let kinds: Vec<_> = calls.iter().map(Call::kind).collect();
        assert_eq!(kinds, CallKind::ALL);
    }
}
