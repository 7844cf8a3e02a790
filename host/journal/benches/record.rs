//! Cost of recording: from a decision to bytes outside the process, and back to the same decision.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::{EvictOptions, Evictable};
use bulkhead_core::decide::eviction::{JudgeSnapshot, PreCheck, Priority, judge};
use bulkhead_core::journal::{
    CallRecorder, Decided, Decision, DecisionInput, DecisionRecord, Entry, Limits, Outcome, Record, Sink, Subject, plan,
};
use bulkhead_core::model::{Binding, Cluster};
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use bulkhead_journal::{Background, Bounds, DecisionOutline, Follower, News, Writer, read};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;

fn clusters(count: usize) -> Arc<[Arc<Cluster>]> {
    let cluster = |n: usize| {
        let (status, taints) = if n == 0 {
            (
                "False",
                json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"}]),
            )
        } else {
            ("True", json!([]))
        };
        Arc::new(
            serde_json::from_value(json!({
                "name": format!("member{n}"), "spec": {"syncMode": "Push", "taints": taints},
                "status": {"conditions": [{"type": "Ready", "status": status}]},
            }))
            .unwrap(),
        )
    };
    (0..count).map(cluster).collect()
}

fn binding() -> Binding {
    let placement = json!({"clusterAffinity": {"clusterNames": ["member0", "member1"]}});
    serde_json::from_value(json!({
        "namespace": "default", "name": "app-deployment", "generation": 3,
        "annotations": {"policy.karmada.io/applied-placement": placement.to_string()},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "app"},
            "replicas": 3, "clusters": [{"name": "member0", "replicas": 3}], "placement": placement,
        },
    }))
    .unwrap()
}

fn decide(binding: &Binding, clusters: &Arc<[Arc<Cluster>]>) -> DecisionRecord {
    let (now, options) = (
        Time::from_millis(1_700_000_000_000),
        EvictOptions {
            no_execute: true,
            ..EvictOptions::default()
        },
    );
    let judged = judge(JudgeSnapshot {
        binding: Evictable::from(binding),
        cluster: clusters.first().map(|cluster| &**cluster),
        clusters,
        options,
        pre_check: PreCheck::Feasible,
        pauses: &[],
        now,
    });
    let (_, recorder) = CallRecorder::start(&PolicySet::default(), &[], |_| true);
    let input = DecisionInput::Evict {
        binding: Arc::new(binding.clone()),
        cluster: "member0".to_owned(),
        options,
        pre_check: PreCheck::Feasible,
        pauses: Vec::new(),
        limits: Limits::default(),
        priority: Some(Priority::default()),
    };
    let plan = plan::evict(&judged);
    DecisionRecord::from(Decided {
        trigger: "a benchmark",
        now,
        input,
        clusters: Arc::clone(clusters),
        recorder,
        plan,
    })
}

fn record(id: u64) -> Record {
    let entry = Entry {
        at: Time::from_millis(1_700_000_000_000),
        controller: "taint-manager".to_owned(),
        subject: Subject::new("ResourceBinding", "default", "app-deployment"),
        cluster: Some("member0".to_owned()),
        decision: Decision::Evicted,
        attribution: Attribution::rule("TaintUntolerated", "the taint is not tolerated"),
        effect: "3 replicas to be placed elsewhere, purge mode Gracefully".to_owned(),
        inputs: Vec::new(),
        explanation: None,
    };
    Record {
        id,
        process: String::new(),
        outcome: Outcome::Taken,
        entry,
    }
}

/// Sink that keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn keep(&self, _: &Record, _: Option<&Arc<DecisionRecord>>) {}

    fn abandon(&self, _: u64) {}
}

fn recording(c: &mut Criterion) {
    let (binding, clusters) = (binding(), clusters(50));
    c.bench_function("decide one eviction and make its decision record, 50 clusters", |b| {
        b.iter(|| black_box(decide(&binding, &clusters)));
    });
    // Cost for the deciding thread. Records that arrive faster than they can be kept wait for the disk.
    let background = Background::start(Nowhere, || ()).unwrap();
    let mut id = 0;
    c.bench_function("hand in one eviction", |b| {
        b.iter_batched(
            || (record(1), Arc::new(decide(&binding, &clusters))),
            |(record, decision)| background.keep(&record, Some(&decision)),
            criterion::BatchSize::SmallInput,
        );
    });
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}"))
        .unwrap()
        .writer;
    c.bench_function("keep one eviction, 50 clusters that did not change", |b| {
        b.iter_batched(
            || Arc::new(decide(&binding, &clusters)),
            |decision| {
                id += 1;
                writer.keep(&record(id), Some(&decision));
            },
            criterion::BatchSize::SmallInput,
        );
    });
}

fn replaying(c: &mut Criterion) {
    let (binding, clusters) = (binding(), clusters(50));
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}"))
        .unwrap()
        .writer;
    for id in 1..=10_000 {
        writer.keep(&record(id), Some(&Arc::new(decide(&binding, &clusters))));
    }
    let mut group = c.benchmark_group("10,000 decisions");
    group.sample_size(10);
    group.bench_function("read and make again", |b| {
        b.iter(|| {
            let contents = read(directory.path()).unwrap();
            let kept = contents.records.iter().filter_map(|stored| stored.decision.as_ref());
            let exact = kept
                .filter(|kept| kept.decision.decide(&kept.decision.policies(|_| None)) == kept.decision.plan)
                .count();
            assert_eq!(exact, 10_000);
        });
    });
    group.bench_function("read", |b| {
        b.iter(|| assert_eq!(read(directory.path()).unwrap().records.len(), 10_000));
    });
    group.bench_function("read the outlines", |b| {
        b.iter(|| {
            let mut outlines = 0;
            let mut follower = Follower::<DecisionOutline>::new(directory.path());
            let problems = follower.read_new(|_, news| {
                outlines += usize::from(matches!(news, News::Record(stored) if stored.decision.is_some()));
            });
            assert_eq!((problems.unwrap().len(), outlines), (0, 10_000));
        });
    });
    group.finish();
}

criterion_group!(benches, recording, replaying);
criterion_main!(benches);
