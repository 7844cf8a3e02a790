use std::sync::atomic::{AtomicU64, Ordering};

use bulkhead_core::call::{EvictionCheckCall, HealthVerdict, Reason};
use bulkhead_core::combine::Attribution;
use bulkhead_core::composition::Composition;
use bulkhead_core::decide::graceful_eviction::{GracefulEvictionOptions, UnconfirmedTargets};
use bulkhead_core::journal::{Entry, Outcome, Subject};
use bulkhead_core::manifest::{PluginManifest, Tenancy};
use bulkhead_core::model::GracefulEvictionTask;
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use serde_json::json;

use super::*;

fn patterns(names: &[&str]) -> Vec<NamePattern> {
    names
        .iter()
        .map(|name| NamePattern::try_from((*name).to_owned()).unwrap())
        .collect()
}

fn binding(namespace: &str) -> Binding {
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    serde_json::from_value(json!({"namespace": namespace, "name": "web-deployment", "spec": {"resource": resource}}))
        .unwrap()
}

/// Returns a plugin with a scope; without namespaces of a tenant, it is one of the platform.
fn plugin(scope: &Value, tenant: &[&str]) -> FoundPlugin {
    let manifest = PluginManifest {
        scope: serde_json::from_value(scope.clone()).unwrap(),
        ..PluginManifest::of_file("hold", EngineKind::Lua, "hold.lua")
    };
    let mut found = FoundPlugin::find(manifest, |file| (file.to_owned(), Ok::<_, String>(Vec::new()))).unwrap();
    let namespaces = patterns(tenant);
    found.grant.tenancy = (!namespaces.is_empty()).then_some(Tenancy { namespaces });
    found
}

#[test]
fn a_question_is_inside_of_a_scope_if_every_selector_matches() {
    let check = |scope: Value, tenant: &[&str], kind: CallKind, expected: [bool; 3]| {
        let reach = Reach::of(&plugin(&scope, tenant));
        let covers = |namespace: &str| {
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                                "metadata": {"namespace": namespace, "name": "web", "labels": {"app": "web"}}});
            let binding = binding(namespace);
            let is_object = matches!(kind, CallKind::Health | CallKind::Interpret);
            let workload = if is_object {
                Workload::of_object(&object)
            } else {
                Workload::of_binding(&binding)
            };
            reach.covers(&Question {
                kind,
                workload: Some(workload),
                cluster: (kind == CallKind::EvictionCheck).then_some("member1"),
            })
        };
        assert_eq!(
            ["team-a", "team-ab", ""].map(covers),
            expected,
            "{scope} {tenant:?} {kind}"
        );
    };
    let all = || json!({});
    check(all(), &[], CallKind::Score, [true, true, true]);
    check(
        json!({"namespaces": ["team-a"]}),
        &[],
        CallKind::Score,
        [true, false, false],
    );
    check(
        json!({"namespaces": ["team-a*"]}),
        &[],
        CallKind::Health,
        [true, true, false],
    );
    check(all(), &["team-a"], CallKind::Health, [true, false, false]);
    check(all(), &["team-a"], CallKind::Filter, [false, false, false]);
    check(
        json!({"clusters": ["member*"]}),
        &[],
        CallKind::EvictionCheck,
        [true, true, true],
    );
    check(
        json!({"clusters": ["member2"]}),
        &[],
        CallKind::EvictionCheck,
        [false, false, false],
    );
    check(json!({"clusters": ["*"]}), &[], CallKind::Filter, [false, false, false]);
    check(
        json!({"labels": {"app": "web"}}),
        &[],
        CallKind::Interpret,
        [true, true, true],
    );
    check(
        json!({"labels": {"app": "web"}}),
        &[],
        CallKind::Score,
        [false, false, false],
    );
    let kinds = |kind: &str| json!({"kinds": [{"apiVersion": "apps/v1", "kind": kind}]});
    check(
        kinds("Deployment"),
        &["team-ab"],
        CallKind::EvictionCheck,
        [false, true, false],
    );
    check(
        kinds("StatefulSet"),
        &[],
        CallKind::EvictionCheck,
        [false, false, false],
    );
}

/// Policy that counts its calls.
struct Counting(PolicyId, AtomicU64);

impl Policy for Counting {
    fn id(&self) -> &PolicyId {
        &self.0
    }
    fn capabilities(&self) -> &[Capability] {
        &[]
    }
    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(Reply::EvictionCheck(EvictionVerdict::Abstain))
    }
}

#[test]
fn a_question_that_arrives_outside_of_the_scope_is_a_violation() {
    let inspector = Inspector::default();
    let counting = Arc::new(Counting(PolicyId::builtin("hold"), AtomicU64::new(0)));
    let watched = inspector.watch("hold", Arc::clone(&counting) as Arc<dyn Policy>);
    inspector.permit(&[plugin(&json!({"namespaces": ["team-a"]}), &[])]);
    let seen = |namespace: &str| {
        let call = EvictionCheckCall {
            binding: &binding(namespace),
            task: &GracefulEvictionTask::default(),
            observed: &[],
            now: Time::from_millis(7),
        };
        watched.call(&Call::EvictionCheck(call)).unwrap();
        let violations = inspector.violations(0);
        violations
            .iter()
            .map(|violation| violation.invariant)
            .collect::<Vec<_>>()
    };
    assert_eq!(seen("team-a"), [""; 0]);
    assert_eq!(seen("team-b"), ["S10"]);
    assert_eq!(counting.1.load(Ordering::Relaxed), 2, "every call is forwarded");
}

fn release() -> RecordedReply {
    RecordedReply::EvictionCheck(EvictionVerdict::Release(Reason::default()))
}

fn abstain() -> RecordedReply {
    RecordedReply::EvictionCheck(EvictionVerdict::Abstain)
}

fn hold() -> RecordedReply {
    RecordedReply::EvictionCheck(EvictionVerdict::Hold {
        reason: Reason::default(),
        recheck_after_s: None,
    })
}

fn unsupported() -> RecordedReply {
    RecordedReply::Fault {
        kind: FaultKind::Unsupported,
        message: String::new(),
    }
}

fn id(name: &str) -> PolicyId {
    PolicyId::builtin(name)
}

/// Returns the record of a release in a namespace by the policy `by`, with the replies of the plugin `hold` and of a
/// built-in check.
fn released(namespace: &str, by: &str, replies: [RecordedReply; 2], rule: EvictionRule) -> (Record, DecisionRecord) {
    let names = ["hold", "ResourceHealth"];
    let slot = |name: &str| PolicySlot {
        policy: id(name),
        build: None,
        mode: Mode::Enforce,
        weight: 1,
        answers: vec![CallKind::EvictionCheck],
    };
    let calls = replies.into_iter().enumerate().map(|(slot, reply)| RecordedCall {
        slot,
        kind: CallKind::EvictionCheck,
        about: "member1".to_owned(),
        reply,
    });
    let decision = DecisionRecord {
        trigger: String::new(),
        now: Time::from_millis(0),
        input: DecisionInput::GracefulEviction {
            binding: Arc::new(binding(namespace)),
            options: GracefulEvictionOptions::default(),
            unconfirmed: UnconfirmedTargets::new(),
        },
        composition: Composition {
            eviction_check: rule,
            ..Composition::default()
        },
        policies: names.map(slot).to_vec(),
        calls: calls.collect(),
        plan: Value::Null,
        clusters: Arc::default(),
    };
    let entry = Entry {
        at: Time::from_millis(0),
        controller: "gracefulEviction".to_owned(),
        subject: Subject::new("ResourceBinding", namespace, "web-deployment"),
        cluster: Some("member1".to_owned()),
        decision: Decision::Released,
        attribution: Attribution::policy(&id(by), Reason::default()),
        effect: String::new(),
        inputs: Vec::new(),
        explanation: None,
    };
    let record = Record {
        id: 1,
        process: String::new(),
        outcome: Outcome::Taken,
        entry,
    };
    (record, decision)
}

fn look(scope: &Value, tenant: &[&str], (record, decision): (Record, DecisionRecord)) -> Vec<&'static str> {
    let mut scopes = Scopes::default();
    scopes.permit(&plugin(scope, tenant));
    let broken = scopes.look(&record, Some(&Arc::new(decision)));
    broken.into_iter().map(|(invariant, _)| invariant).collect()
}

#[test]
fn a_recorded_reply_from_outside_of_the_scope_is_a_violation() {
    let check = |reply: RecordedReply, expected: &[&str]| {
        let scope = json!({"namespaces": ["team-a"]});
        let release = released(
            "team-b",
            "ResourceHealth",
            [reply, release()],
            EvictionRule::AnyReleaseWins,
        );
        assert_eq!(look(&scope, &[], release), expected);
    };
    check(unsupported(), &[]);
    check(abstain(), &[]);
    check(hold(), &["S10"]);
    check(release(), &["S10"]);
}

#[test]
fn a_release_that_the_plugin_of_a_tenant_makes_is_a_violation() {
    let check = |by: &str, replies: [RecordedReply; 2], rule: EvictionRule, expected: &[&str]| {
        let found = look(&json!({}), &["team-a"], released("team-a", by, replies, rule));
        assert_eq!(found, expected, "{by} {rule:?}");
    };
    let any = EvictionRule::AnyReleaseWins;
    check("ResourceHealth", [hold(), release()], any, &[]);
    check(
        "ResourceHealth",
        [unsupported(), release()],
        EvictionRule::AnyHoldWins,
        &[],
    );
    // The release is its own, it is recorded, and the other check holds.
    check("hold", [release(), hold()], any, &["S11", "S11", "S11"]);
    check("ResourceHealth", [release(), release()], any, &["S11"]);
    check("ResourceHealth", [unsupported(), hold()], any, &["S11"]);
    check(
        "ResourceHealth",
        [unsupported(), release()],
        EvictionRule::Quorum(2),
        &["S11"],
    );
}

#[test]
fn a_healthy_verdict_of_the_plugin_of_a_tenant_is_a_violation() {
    let check = |health: Health, tenant: &[&str], expected: &[&str]| {
        let verdict = HealthVerdict {
            health,
            reason: Reason::default(),
        };
        let (mut record, mut decision) = released(
            "team-a",
            "hold",
            [unsupported(), unsupported()],
            EvictionRule::default(),
        );
        record.entry.decision = Decision::HealthChanged;
        health.as_str().clone_into(&mut record.entry.effect);
        decision.calls.truncate(1);
        decision.calls[0].kind = CallKind::Health;
        decision.calls[0].reply = RecordedReply::Health(verdict);
        assert_eq!(
            look(&json!({"namespaces": ["team-a"]}), tenant, (record, decision)),
            expected
        );
    };
    check(Health::Healthy, &[], &[]);
    check(Health::Unhealthy, &["team-a"], &[]);
    check(Health::Healthy, &["team-a"], &["S11", "S11"]);
}
