//! A fixed call of each kind.

use std::sync::Arc;

use bulkhead_core::call::{
    Call, ClusterTaintCall, EvictionCheckCall, FilterCall, HealthCall, InterpretCall, Operation, Reply, ScoreCall,
};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::policy::{Fault, Policy};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use serde_json::json;

/// Calls the function and returns its answer; `kind` is the kind of the object for calls about an object.
pub(crate) fn ask(policy: &dyn Policy, point: EntryPoint, kind: &str) -> Result<Reply, Fault> {
    let object = &Arc::new(json!({
        "apiVersion": "example.io/v1",
        "kind": kind,
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "web"}]}}},
        "status": {"readyReplicas": 3},
        "list": [1, 2, 3],
    }));
    let cluster = |name: &str| {
        Arc::new(Cluster {
            name: name.to_owned(),
            ..Cluster::default()
        })
    };
    let snapshot = ClusterSnapshot::new(["member1", "member2", "member3"].map(cluster));
    let (binding, task) = (&Binding::default(), &GracefulEvictionTask::default());
    let items = &[AggregatedStatusItem {
        cluster_name: "member1".to_owned(),
        ..AggregatedStatusItem::default()
    }];
    let member = cluster("member1");
    let (clusters, now) = (snapshot.present(), Time::from_millis(1_700_000_000_000));
    let interpret = |operation| Call::Interpret(InterpretCall { operation, now });
    policy.call(&match point {
        EntryPoint::Health => Call::Health(HealthCall { object, now }),
        EntryPoint::ClusterTaint => Call::ClusterTaint(ClusterTaintCall { cluster: &member, now }),
        EntryPoint::Filter => Call::Filter(FilterCall {
            binding,
            clusters,
            peers: &[],
            now,
        }),
        EntryPoint::Score => Call::Score(ScoreCall { binding, clusters, now }),
        EntryPoint::EvictionCheck => Call::EvictionCheck(EvictionCheckCall {
            binding,
            task,
            observed: items,
            now,
        }),
        EntryPoint::Replicas => interpret(Operation::Replicas { object }),
        EntryPoint::Revise => interpret(Operation::Revise { object, replicas: 5 }),
        EntryPoint::ReflectStatus => interpret(Operation::ReflectStatus { object }),
        EntryPoint::AggregateStatus => interpret(Operation::AggregateStatus { object, items }),
        EntryPoint::Retain => interpret(Operation::Retain {
            desired: object,
            observed: object,
        }),
        EntryPoint::Components => interpret(Operation::Components { object }),
        EntryPoint::Dependencies => interpret(Operation::Dependencies { object }),
    })
}
