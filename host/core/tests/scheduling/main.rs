//! Scheduling with Karmada's in-tree plugins: invariants for all placements and sets of clusters.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod explained;
mod faulty_filter;
mod lost;
mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::decide::schedule::{
    IN_TREE, Outcome, ScheduleError, ScheduleExplanation, SchedulePlan, SchedulerOptions, SchedulingSnapshot, decide,
    decide_explained, trigger,
};
use bulkhead_core::model::{Binding, Cluster, ReplicaSchedulingType, SpreadConstraint, TargetCluster};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::SchedulingPolicy;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: [&str; 8] = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];

fn a_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn an_affinity() -> impl Strategy<Value = Value> {
    let (names, excluded) = (
        prop::collection::vec(a_name(), 0..6),
        prop::collection::vec(a_name(), 0..3),
    );
    let label = prop::option::of(prop::sample::select(vec!["a", "b", "c"]));
    (names, excluded, label).prop_map(|(names, exclude, label)| match label {
        Some(label) => json!({"labelSelector": {"matchLabels": {"l": label}}, "exclude": exclude}),
        None => json!({"clusterNames": names, "exclude": exclude}),
    })
}

fn a_cluster(name: &'static str) -> impl Strategy<Value = Value> {
    let capacity = prop_oneof![6 => (0_i64..40).prop_map(|cpu| cpu.to_string()), 1 => Just("x".to_owned())];
    let pods = prop_oneof![8 => 0_i64..50, 1 => Just(5_000_000_000)];
    let places = (
        prop::sample::select(vec!["", "r1", "r2", "r3"]),
        prop::sample::select(vec!["a", "b", "c"]),
    );
    let models = prop::option::of(prop::collection::vec(-1_i64..4, 3));
    (
        capacity,
        pods,
        places,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        models,
    )
        .prop_map(move |(cpu, pods, (region, label), tainted, deleting, silent, models)| {
            let mut spec = json!({"syncMode": "Push", "region": region});
            if tainted {
                spec["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
            }
            let resources = json!([{"name": "deployments", "kind": "Deployment"}]);
            let mut status = json!({"apiEnablements": [{"groupVersion": "apps/v1", "resources": resources}]});
            if !silent {
                status["resourceSummary"] = json!({"allocatable": {"cpu": cpu, "pods": pods.to_string()}});
                if let Some(counts) = models {
                    let grade = |grade: usize| json!({"grade": grade, "ranges": [{"name": "cpu", "min": "2"}]});
                    spec["resourceModels"] = (0..2).map(grade).collect();
                    status["resourceSummary"]["allocatableModelings"] = counts
                        .iter()
                        .enumerate()
                        .map(|(grade, count)| json!({"grade": grade, "count": count}))
                        .collect();
                }
            }
            let mut cluster = json!({"name": name, "labels": {"l": label}, "spec": spec, "status": status});
            if deleting {
                cluster["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            cluster
        })
}

fn clusters() -> impl Strategy<Value = Vec<Arc<Cluster>>> {
    let all = NAMES.map(|name| prop::option::weighted(0.8, a_cluster(name)));
    all.prop_map(|clusters| {
        let parse = |cluster| Arc::new(serde_json::from_value(cluster).unwrap());
        clusters.into_iter().flatten().map(parse).collect()
    })
}

fn a_scheduling() -> impl Strategy<Value = Value> {
    let divided = |preference: &str, weights: Value| json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference, "weightPreference": weights});
    let weights = prop::collection::vec((an_affinity(), -1_i64..5), 0..3).prop_map(move |rules| {
        let rule = |(affinity, weight)| json!({"targetCluster": affinity, "weight": weight});
        divided(
            "Weighted",
            json!({"staticWeightList": rules.into_iter().map(rule).collect::<Vec<_>>()}),
        )
    });
    prop_oneof![
        Just(Value::Null),
        Just(json!({"replicaSchedulingType": "Duplicated"})),
        Just(json!({})),
        Just(divided("Aggregated", Value::Null)),
        Just(divided("Weighted", json!({"dynamicWeight": "AvailableReplicas"}))),
        weights,
    ]
}

fn constraints() -> impl Strategy<Value = Vec<Value>> {
    let field = prop::sample::select(vec!["cluster", "region", "zone", "provider", "rack", ""]);
    let constraint = (field, -1_i64..5, -1_i64..5)
        .prop_map(|(field, min, max)| json!({"spreadByField": field, "minGroups": min, "maxGroups": max}));
    prop::collection::vec(constraint, 0..3)
}

fn a_placement() -> impl Strategy<Value = Value> {
    let term = (
        0_usize..3,
        an_affinity(),
        prop::option::of(prop::collection::vec(an_affinity(), 0..3)),
    );
    let terms = prop::option::weighted(0.3, prop::collection::vec(term, 0..3));
    (prop::option::of(an_affinity()), terms, constraints(), a_scheduling()).prop_map(
        |(affinity, terms, constraints, scheduling)| {
            let mut placement = json!({"spreadConstraints": constraints});
            if let Some(affinity) = affinity {
                placement["clusterAffinity"] = affinity;
            }
            if !scheduling.is_null() {
                placement["replicaScheduling"] = scheduling;
            }
            if let Some(terms) = terms {
                let term = |(name, affinity, overflow): (usize, Value, Option<Vec<Value>>)| {
                    let mut term = affinity;
                    term["affinityName"] = json!(format!("g{name}"));
                    if let Some(overflow) = overflow {
                        let entry = |mut entry: Value| {
                            entry["affinityName"] = json!("o");
                            entry
                        };
                        term["overflowAffinities"] = overflow.into_iter().map(entry).collect();
                    }
                    term
                };
                placement["clusterAffinities"] = terms.into_iter().map(term).collect();
            }
            placement
        },
    )
}

fn a_binding() -> impl Strategy<Value = Binding> {
    let targets = prop::collection::vec((a_name(), -1_i32..20), 0..4);
    let evicted = prop::collection::vec(a_name(), 0..2);
    let request = prop::option::weighted(0.9, prop::sample::select(vec!["1", "500m", "0", "x"]));
    (
        a_placement(),
        -1_i32..40,
        targets,
        evicted,
        request,
        "[a-c]{0,2}",
        any::<bool>(),
    )
        .prop_map(|(placement, replicas, targets, evicted, request, uid, again)| {
            let mut names = BTreeSet::new();
            let targets: Vec<_> = targets
                .into_iter()
                .filter(|(name, _)| names.insert(*name))
                .map(|(name, replicas)| json!({"name": name, "replicas": replicas}))
                .collect();
            let task = |name: &&str| json!({"fromCluster": name, "reason": "TaintUntolerated", "producer": "p"});
            let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": uid});
            let mut spec = json!({
                "resource": resource, "replicas": replicas, "clusters": targets, "placement": placement,
                "gracefulEvictionTasks": evicted.iter().map(task).collect::<Vec<_>>(),
            });
            if let Some(request) = request {
                spec["replicaRequirements"] = json!({"resourceRequest": {"cpu": request}});
            }
            let mut status =
                json!({"schedulerObservingAffinityName": "g1", "lastScheduledTime": "2026-01-01T00:00:00Z"});
            if again {
                spec["rescheduleTriggeredAt"] = json!("2026-01-02T00:00:00Z");
            } else {
                status["schedulerObservingAffinityName"] = json!("");
            }
            let binding = json!({"namespace": "ns", "name": "b", "generation": 1, "spec": spec, "status": status});
            serde_json::from_value(binding).unwrap()
        })
}

fn policies(order: &[&str]) -> PolicySet {
    let policy = |name: &&str| SchedulingPolicy::by_name(name).map(|policy| Arc::new(policy) as Arc<dyn Policy>);
    PolicySet::new(order.iter().filter_map(policy).collect())
}

fn plan(binding: &Binding, clusters: &[Arc<Cluster>], order: &[&str]) -> SchedulePlan {
    ask(binding, clusters, order, decide)
}

fn explained(binding: &Binding, clusters: &[Arc<Cluster>]) -> SchedulePlan {
    ask(binding, clusters, &IN_TREE, decide_explained)
}

fn ask(
    binding: &Binding,
    clusters: &[Arc<Cluster>],
    order: &[&str],
    decide: fn(SchedulingSnapshot<'_>, &PolicySet) -> SchedulePlan,
) -> SchedulePlan {
    let (options, assumed) = (SchedulerOptions::default(), BTreeMap::new());
    let clusters = Arc::new(ClusterSnapshot::new(clusters.iter().cloned()));
    let (peers, accurate, now) = (&[][..], None, Time::from_millis(0));
    let snapshot = SchedulingSnapshot {
        binding,
        clusters: &clusters,
        peers,
        accurate,
        assumed: &assumed,
        options: &options,
        now,
    };
    decide(snapshot, &policies(order))
}

fn placed(plan: &SchedulePlan) -> Option<&[TargetCluster]> {
    match &plan.outcome {
        Outcome::Place(targets) => Some(targets),
        _ => None,
    }
}

fn sum(targets: &[TargetCluster]) -> i64 {
    targets.iter().map(|target| i64::from(target.replicas)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(600), ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_clusters_and_plugins_does_not_matter(
        binding in a_binding(), clusters in clusters(), order in Just(IN_TREE.to_vec()).prop_shuffle(),
    ) {
        let (one, mut reversed) = (plan(&binding, &clusters, &IN_TREE), clusters.clone());
        reversed.reverse();
        let other = plan(&binding, &reversed, &order);
        prop_assert_eq!(&one.affinity_name, &other.affinity_name);
        match (&one.outcome, &other.outcome) {
            // If several plugins reject a cluster, the reported reason depends on the plugin order.
            (Outcome::Clear(_), Outcome::Clear(_)) => {}
            (one, other) => prop_assert_eq!(one, other),
        }
    }

    #[test]
    fn replicas_are_conserved(binding in a_binding(), clusters in clusters()) {
        let plan = plan(&binding, &clusters, &IN_TREE);
        let Some(targets) = placed(&plan) else { return Ok(()) };
        let (spec, placement) = (&binding.spec, binding.spec.placement.as_ref().unwrap());
        if !(spec.replicas > 0 || spec.replica_requirements.is_some()) {
            prop_assert!(targets.iter().all(|target| target.replicas == 0));
        } else if placement.replica_scheduling_type() == ReplicaSchedulingType::Divided {
            let kept = spec.clusters.iter().any(|target| target.replicas < 0);
            prop_assert!(kept || sum(targets) == i64::from(spec.replicas), "{targets:?}");
        } else if placement.cluster_affinities.is_none() {
            prop_assert!(targets.iter().all(|target| target.replicas == spec.replicas), "{targets:?}");
        }
    }

    #[test]
    fn nothing_is_placed_on_a_rejected_cluster(binding in a_binding(), clusters in clusters()) {
        let plan = plan(&binding, &clusters, &IN_TREE);
        let rejected: BTreeSet<&str> = plan.rejections.iter().map(|(name, _)| name).collect();
        for target in placed(&plan).unwrap_or_default() {
            let cluster = clusters.iter().find(|cluster| cluster.name == target.name);
            prop_assert!(cluster.is_some_and(|cluster| !cluster.is_terminating()), "{target:?}");
            prop_assert!(!rejected.contains(target.name.as_str()), "{target:?}");
            prop_assert!(!binding.spec.is_evicting(&target.name), "{target:?}");
        }
    }

    #[test]
    fn scheduling_twice_changes_nothing(binding in a_binding(), clusters in clusters()) {
        let mut binding = binding;
        binding.spec.reschedule_triggered_at = None;
        let first = plan(&binding, &clusters, &IN_TREE);
        let Some(targets) = placed(&first) else { return Ok(()) };
        let placement = binding.spec.placement.clone().unwrap();
        let dynamic = placement.replica_scheduling.as_ref().is_some_and(|scheduling| {
            scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided
        });
        // A workload without replicas may be placed on no cluster, and then no longer tolerates taints as a current
        // target.
        if targets.is_empty() {
            return Ok(());
        }
        // Swapping for capacity depends on the placed replicas, so a divided selection may change once more. The score
        // of a region too: placed replicas are room in their cluster, and their clusters score higher.
        let by_region = |constraint: &SpreadConstraint| constraint.spread_by_field == "region";
        if dynamic && !placement.spread_constraints.is_empty() || placement.spread_constraints.iter().any(by_region) {
            return Ok(());
        }
        let mut names: Vec<_> = targets.iter().map(|target| (target.name.clone(), target.replicas)).collect();
        binding.spec.clusters = targets.to_vec();
        if let Some(name) = &first.affinity_name {
            binding.status.scheduler_observed_affinity_name.clone_from(name);
        }
        let second = plan(&binding, &clusters, &IN_TREE);
        let again = placed(&second).map(|targets| {
            let mut names: Vec<_> = targets.iter().map(|target| (target.name.clone(), target.replicas)).collect();
            names.sort();
            names
        });
        names.sort();
        if placement.cluster_affinities.is_none() {
            prop_assert_eq!(again, Some(names));
        }
    }

    #[test]
    fn survivors_keep_their_place_when_a_cluster_fails(clusters in clusters(), replicas in 1_i32..30) {
        let divided = json!({
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        });
        let spec = json!({
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}}, "placement": {"replicaScheduling": divided},
        });
        let mut binding: Binding =
            serde_json::from_value(json!({"namespace": "ns", "name": "b", "spec": spec})).unwrap();
        let before = plan(&binding, &clusters, &IN_TREE);
        let Some(targets) = placed(&before).filter(|targets| targets.len() > 1) else { return Ok(()) };
        let (failed, survivors) = targets.split_first().unwrap();
        binding.spec.clusters = survivors.to_vec();
        let task = json!([{"fromCluster": failed.name, "reason": "TaintUntolerated", "producer": "p"}]);
        binding.spec.graceful_eviction_tasks = serde_json::from_value(task).unwrap();
        match &plan(&binding, &clusters, &IN_TREE).outcome {
            Outcome::Place(after) => {
                prop_assert_eq!(sum(after), i64::from(replicas));
                for survivor in survivors {
                    let now = after.iter().find(|target| target.name == survivor.name);
                    prop_assert!(now.is_some_and(|now| now.replicas >= survivor.replicas), "{survivor:?} in {after:?}");
                }
            }
            outcome => prop_assert!(matches!(outcome, Outcome::Keep(ScheduleError::Unschedulable(_))), "{outcome:?}"),
        }
    }

    #[test]
    fn no_input_is_too_strange(binding in a_binding(), clusters in clusters()) {
        let snapshot = ClusterSnapshot::new(clusters.iter().cloned());
        let placement = binding.spec.placement.clone().unwrap();
        let _ = trigger(&binding, &placement, &snapshot, &SchedulerOptions::default());
        let plan = plan(&binding, &clusters, &IN_TREE);
        let explained = explained(&binding, &clusters);
        prop_assert_eq!(&explained.outcome, &plan.outcome);
        let explanation = explained.explanation.unwrap();
        let actual = serde_json::to_string(&explanation).unwrap();
        prop_assert_eq!(serde_json::from_str::<ScheduleExplanation>(&actual).unwrap(), explanation);
        if let Some(error) = plan.error() {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
