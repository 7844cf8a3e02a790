//! Inputs of the guests, large enough that a copy is measurable.

use std::sync::Arc;

use bulkhead_core::call::{Call, ClusterTaintCall, EvictionCheckCall, HealthCall, Reply, ScoreCall};
use bulkhead_core::model::{Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::policy::{Fault, Policy};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use serde_json::{Map, Value, json};

use crate::component::LendingCall;

/// Size of the texts in the inputs, in bytes.
const TEXT_BYTES: usize = 120 << 10;
/// Number of clusters, elements of lists and members of maps.
const COUNT: usize = 500;

/// An object, a binding and clusters with long texts and lists.
pub(crate) struct Inputs {
    object: Arc<Value>,
    binding: Binding,
    task: GracefulEvictionTask,
    clusters: ClusterSnapshot,
    cluster: Cluster,
}

impl Inputs {
    pub(crate) fn new() -> Self {
        let text = "x".repeat(TEXT_BYTES);
        let short = "y".repeat(1 << 10);
        let map: Map<_, _> = (0..COUNT)
            .map(|index| (format!("{index}-{}", "k".repeat(100)), json!(index)))
            .collect();
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "nginx"},
            "s": text,
            "": "root",
            "l": vec![json!({"s": short, "q": "100m"}); COUNT],
            "m": map,
            "q": "9".repeat(TEXT_BYTES),
        });
        let deep = (0..60).fold(json!(1), |value, _| json!({"a": value}));
        let status = json!({"s": text, "deep": deep, "n": 3});
        let report = |index: usize| json!({"clusterName": format!("member{index}"), "applied": true, "status": status});
        let target = |index: usize| json!({"name": format!("member{index}"), "replicas": 1});
        let binding = json!({
            "namespace": "default",
            "name": "nginx-deployment",
            "annotations": {"large": text},
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
                "replicas": 3,
                "clusters": (0..COUNT).map(target).collect::<Vec<_>>(),
            },
            "status": {"aggregatedStatus": (0..4).map(report).collect::<Vec<_>>()},
        });
        let task = json!({"fromCluster": "member1", "reason": text, "producer": "test"});
        let cluster = |index: usize, text: &str| {
            let api =
                json!({"groupVersion": format!("example.io/v{index}"), "resources": [{"name": text, "kind": "K"}]});
            json!({
                "name": format!("member{index}"),
                "labels": {"tier": "gold", "text": text},
                "spec": {"syncMode": "Push", "region": "eu", "provider": "cloud", "zones": vec!["zone-with-a-name"; COUNT]},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": text}],
                    "apiEnablements": [api],
                },
            })
        };
        let clusters = (0..COUNT).map(|index| Arc::new(read::<Cluster>(cluster(index, &short))));
        Self {
            object: Arc::new(object),
            binding: read(binding),
            task: read(task),
            clusters: ClusterSnapshot::new(clusters),
            cluster: read(cluster(0, &text)),
        }
    }

    /// Makes the call that the component of a function answers.
    pub(crate) fn ask(&self, policy: &dyn Policy, lending_call: LendingCall) -> Result<Reply, Fault> {
        let (binding, now) = (&self.binding, Time::from_millis(0));
        policy.call(&match lending_call {
            LendingCall::Health => Call::Health(HealthCall {
                object: &self.object,
                now,
            }),
            LendingCall::Taints => Call::ClusterTaint(ClusterTaintCall {
                cluster: &self.cluster,
                now,
            }),
            LendingCall::Score => Call::Score(ScoreCall {
                binding,
                clusters: self.clusters.present(),
                now,
            }),
            LendingCall::Eviction => {
                let observed = &binding.status.aggregated_status;
                Call::EvictionCheck(EvictionCheckCall {
                    binding,
                    task: &self.task,
                    observed,
                    now,
                })
            }
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
