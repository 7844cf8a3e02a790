//! Records and decision records for tests.

use std::sync::Arc;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::taint::TaintOptions;
use bulkhead_core::journal::{
    CallRecorder, Decided, Decision, DecisionInput, DecisionRecord, Entry, Outcome, Record, Subject,
};
use bulkhead_core::model::Cluster;
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use serde_json::{Value, json};

pub(crate) fn record(id: u64, at_ms: i64) -> Record {
    let entry = Entry {
        at: Time::from_millis(at_ms),
        controller: "test".to_owned(),
        subject: Subject::new("Cluster", "", "member1"),
        cluster: Some("member1".to_owned()),
        decision: Decision::Tainted,
        attribution: Attribution::rule("Why", "because"),
        effect: "cluster.karmada.io/not-ready:NoSchedule".to_owned(),
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

/// Returns a decision without policies.
pub(crate) fn made(input: DecisionInput, clusters: Vec<Arc<Cluster>>, plan: Value) -> Arc<DecisionRecord> {
    let (_, recorder) = CallRecorder::start(&PolicySet::default(), &[], |_| true);
    let (trigger, now) = ("a test", Time::from_millis(1_700_000_000_123));
    Arc::new(DecisionRecord::from(Decided {
        trigger,
        now,
        input,
        clusters: clusters.into(),
        recorder,
        plan,
    }))
}

/// Returns a decision about the taints of one cluster.
pub(crate) fn decision(cluster: &str, ready: &str) -> Arc<DecisionRecord> {
    let cluster = json!({
        "name": cluster, "spec": {"syncMode": "Push"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "R", "message": "m"}]},
    });
    about_clusters(vec![Arc::new(serde_json::from_value(cluster).unwrap())])
}

/// Returns a decision about taints that reads these clusters.
pub(crate) fn about_clusters(clusters: Vec<Arc<Cluster>>) -> Arc<DecisionRecord> {
    let input = DecisionInput::Taint {
        options: TaintOptions::default(),
    };
    made(input, clusters, json!({"added": []}))
}
