//! Secrets that must not reach the disk.

use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, HealthVerdict, Reason, Reply};
use bulkhead_core::decide::health::{self, HealthSnapshot, Uncovered};
use bulkhead_core::journal::{CallRecorder, Decided, DecisionInput, DecisionRecord, Record, Sink, canonical, plan};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_journal::{read, segment};
use serde_json::{Value, json};

use crate::records::record;
use crate::support::{health_decision, open};

/// Returns every form of a secret, with the secret in it.
fn forms() -> Vec<(&'static str, Value)> {
    vec![
        ("hunter01", json!({"args": ["--verbose", "--password=hunter01"]})),
        ("hunter02", json!({"args": ["-H", "Authorization: Bearer hunter02"]})),
        (
            "hunter03",
            json!({"servers": "nats://u:hunter00@a,nats://u:hunter03@b"}),
        ),
        ("hunter04", json!({"dsn": "postgres://u:p/hunter04@h"})),
        (
            "hunter05XXXXXXXXXXXXXXXX",
            json!({"hook": "https://hooks.example.com/services/T0/B0/hunter05XXXXXXXXXXXXXXXX"}),
        ),
        (
            "hunter06",
            json!({"original": "{\"kind\":\"Secret\",\"data\":{\"key\":\"hunter06\"}}"}),
        ),
        ("hunter07", json!({"values": "db:\n  host: db\n  login: hunter07\n"})),
        ("73914682", json!({"password": 73_914_682})),
        ("hunter09", json!({"passwords": ["hunter09"]})),
        ("hunter10", json!({"credentials": {"pass": "hunter10"}})),
        ("hunter11", json!({"tokens": {"ci": "hunter11"}})),
        ("hunter12", json!({"secretValue": "hunter12"})),
        ("hunter13", json!({"encryptionKey": "hunter13"})),
        ("hunter14", json!({"pwd": "hunter14"})),
        ("hunter15", json!({"dsn": "app:hunter15@tcp(db:3306)/shop"})),
        ("hunter16", json!({"dsn": "user=app password=hunter16 host=db"})),
        (
            "hunter17",
            json!({"hook": "https://chat.example.com/hook?access=hunter17"}),
        ),
    ]
}

fn object() -> Value {
    json!({
        "apiVersion": "example.io/v1", "kind": "Shop", "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"replicas": 2}, "status": {"replicas": 2},
    })
}

#[test]
fn a_secret_in_any_of_these_forms_is_nowhere_in_the_segments() {
    for (secret, form) in forms() {
        let mut objects = Vec::new();
        let mut object_with = |pointer: &str, member: &str, value: &Value| {
            let mut object = object();
            object.pointer_mut(pointer).unwrap()[member] = value.clone();
            objects.push(object);
        };
        object_with("/spec", "template", &json!({"spec": {"containers": [form]}}));
        object_with("/spec", "settings", &form);
        object_with("/status", "observed", &form);
        object_with("", "settings", &form);
        for (member, value) in form.as_object().unwrap() {
            object_with("/spec", member, value);
            object_with("/status", member, value);
            let text = value.as_str().map_or_else(|| form.to_string(), str::to_owned);
            object_with("/metadata", "annotations", &json!({"example.io/note": text}));
        }
        for object in objects {
            let directory = tempfile::tempdir().unwrap();
            open(directory.path()).keep(&record(1, 5), Some(&health_decision(object.clone())));
            let bytes = std::fs::read(segment::path(directory.path(), 1)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains(secret) && !text.contains("hunter"),
                "{object} leaves {text}"
            );
            let contents = read(directory.path()).unwrap();
            let kept = contents.records[0].decision.clone().unwrap();
            assert!(kept.redacted > 0, "{object}");
            let input = canonical(&kept.decision.input);
            assert_eq!(
                input.pointer("/health/object/spec/replicas"),
                Some(&json!(2)),
                "{object}"
            );
            assert_eq!(
                input.pointer("/health/object/status/replicas"),
                Some(&json!(2)),
                "{object}"
            );
        }
    }
}

/// Health interpreter with one message for everything.
struct Says(PolicyId, [Capability; 1], Option<FaultKind>, &'static str);

impl Policy for Says {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        if let Some(kind) = self.2 {
            return Err(Fault::new(kind, self.3));
        }
        let reason = Reason::new("Ill", self.3);
        Ok(Reply::Health(HealthVerdict {
            health: Health::Unhealthy,
            reason,
        }))
    }
}

/// Returns a decision about an object by an interpreter, and its record.
fn decided(object: Value, fault: Option<FaultKind>, message: &'static str) -> (Record, Arc<DecisionRecord>) {
    let says = Says(
        PolicyId::builtin("says"),
        [Capability::any(CallKind::Health)],
        fault,
        message,
    );
    let says = PolicySet::new(vec![Arc::new(says) as Arc<dyn Policy>]);
    let (policies, recorder) = CallRecorder::start(&says, &[CallKind::Health], |_| true);
    let (object, uncovered, now) = (Arc::new(object), Uncovered::Healthy, Time::from_millis(5));
    let outcome = health::decide(
        HealthSnapshot {
            object: &object,
            uncovered,
            now,
        },
        &policies,
    );
    let plan = plan::health(&outcome);
    let input = DecisionInput::Health { object, uncovered };
    let decision = DecisionRecord::from(Decided {
        trigger: "a test",
        now,
        input,
        clusters: Vec::new().into(),
        recorder,
        plan,
    });
    let mut record = record(1, 5);
    record.entry.attribution = outcome.attribution;
    (record, Arc::new(decision))
}

#[test]
fn a_message_of_a_guest_that_repeats_a_secret_is_cleaned_and_the_decision_replays() {
    let mut object = object();
    object["spec"]["template"] = json!({"env": [{"name": "ADDRESS", "value": "hunter01"}]});
    object["status"]["joinToken"] = json!("hunter02");
    for fault in [None, Some(FaultKind::GuestError)] {
        for (message, expected) in [
            (
                "ADDRESS is hunter01 and not hunter02",
                "ADDRESS is (redacted) and not (redacted)",
            ),
            ("shop {\"env\": {\"a\": \"hunter03\"}} is ill", "shop (redacted) is ill"),
            ("3 of 4 replicas of shop are ready", "3 of 4 replicas of shop are ready"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let (record, decision) = decided(object.clone(), fault, message);
            open(directory.path()).keep(&record, Some(&decision));
            let bytes = std::fs::read(segment::path(directory.path(), 1)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("hunter"), "{message} leaves {text}");
            let contents = read(directory.path()).unwrap();
            let stored = &contents.records[0];
            assert_eq!(stored.record.entry.attribution.reason.message, expected);
            let kept = &stored.decision.as_ref().unwrap().decision;
            assert_eq!(kept.decide(&kept.policies(|_| None)), kept.plan, "{message}");
        }
    }
}

#[test]
fn messages_of_records_are_cleaned_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record(1, 5);
    record.entry.attribution.reason.message = "calling https://u:hunter01@hook/x?key=hunter02: EOF".to_owned();
    open(directory.path()).keep(&record, None);
    let contents = read(directory.path()).unwrap();
    let message = &contents.records[0].record.entry.attribution.reason.message;
    assert!(message.starts_with("calling https://hook/x?(redacted)"), "{message}");
    assert!(!message.contains("hunter"), "{message}");
}
