//! A well-behaved policy satisfies every law, and for each law there is a policy that violates only that law.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bulkhead_core::call::{Call, CallKind, FilterVerdict, HealthVerdict, Reason, Reply, TaintVerdict};
use bulkhead_core::manifest::Budget;
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Fault, FaultKind, Policy};
use bulkhead_plugin::{LoadError, LoadStage};
use serde_json::{Value, json};

use crate::report::{Check, Outcome};
use crate::scripted::{Scripted, TAINT_KEY, clusters, good, object, taint};
use crate::subject::Subject;

fn examined(policy: &Scripted) -> Vec<Check> {
    let keys = [TAINT_KEY.to_owned()];
    super::run(&Subject::new(policy, Budget::default()).with_taint_keys(&keys), &[])
}

fn failed(checks: &[Check]) -> Vec<&str> {
    checks
        .iter()
        .filter(|check| check.failed())
        .map(|check| check.name.as_str())
        .collect()
}

/// Asserts that the policy violates exactly this law and that the report contains these words.
fn breaks(policy: &Scripted, law: &str, words: &str) {
    let checks = examined(policy);
    assert_eq!(failed(&checks), [law], "{checks:#?}");
    let why = checks.iter().find_map(|check| match &check.outcome {
        Outcome::Failed { why } => Some(why.clone()),
        _ => None,
    });
    let why = why.unwrap_or_default();
    assert!(why.contains(words), "no {words:?} in {why:?}");
}

fn health(health: Health, code: &str) -> Reply {
    Reply::Health(HealthVerdict {
        health,
        reason: Reason::new(code, ""),
    })
}

fn fault<T>(kind: FaultKind) -> Result<T, Fault> {
    Err(Fault::new(kind, "on purpose"))
}

#[test]
fn a_policy_that_behaves_holds_to_every_law() {
    for kind in CallKind::ALL {
        let checks = examined(&Scripted::good(kind));
        assert_eq!(failed(&checks), Vec::<&str>::new(), "{checks:#?}");
        let skipped: Vec<_> = checks.iter().filter(|check| check.skipped()).collect();
        assert_eq!(
            skipped.len(),
            1,
            "only its configuration cannot be checked: {skipped:#?}"
        );
        assert!(
            checks
                .iter()
                .filter(|check| check.kind == Some(kind))
                .all(|check| check.steps > 0)
        );
    }
}

#[test]
fn a_law_is_not_held_by_a_call_that_faults() {
    for kind in CallKind::ALL {
        for fault_kind in [FaultKind::Trap, FaultKind::BadReply, FaultKind::Denied] {
            let checks = examined(&Scripted::good(kind).answering(move |_| fault(fault_kind)));
            let held: Vec<_> = checks.iter().filter(|check| check.outcome == Outcome::Passed).collect();
            assert!(held.is_empty(), "{fault_kind:?}: {held:#?}");
            assert!(failed(&checks).contains(&"no input makes it fail"), "{checks:#?}");
            let judged = |check: &&Check| check.kind.is_some() && check.skipped();
            let why = format!(
                "not judged: the call faults: {} (",
                crate::call_result::fault_name(fault_kind)
            );
            for check in checks.iter().filter(judged) {
                let Outcome::Skipped { why: actual } = &check.outcome else {
                    continue;
                };
                assert!(actual.starts_with(&why), "{}: {actual}", check.name);
            }
        }
    }
}

#[test]
fn a_law_is_held_by_the_answers_among_faults() {
    let traps = |call: &Call<'_>| {
        if object(call).get("metadata").is_none() {
            fault(FaultKind::Trap)
        } else {
            Ok(good(call))
        }
    };
    let checks = examined(&Scripted::good(CallKind::Health).answering(traps));
    assert_eq!(failed(&checks), ["no input makes it fail"]);
    let law = "the same question gets the same answer";
    assert!(
        checks
            .iter()
            .any(|check| check.name == law && check.outcome == Outcome::Passed),
        "{checks:#?}"
    );
}

#[test]
fn an_error_of_the_plugins_own_is_an_answer() {
    for kind in [FaultKind::GuestError, FaultKind::Unsupported] {
        let checks = examined(&Scripted::good(CallKind::Health).answering(move |_| fault(kind)));
        assert_eq!(failed(&checks), Vec::<&str>::new());
    }
}

#[test]
fn a_law_is_not_held_by_errors_of_the_plugins_own_alone() {
    let checks = examined(&Scripted::good(CallKind::Health).answering(|_| fault(FaultKind::GuestError)));
    let held: Vec<_> = checks.iter().filter(|check| check.outcome == Outcome::Passed).collect();
    assert!(held.is_empty(), "{held:#?}");
}

#[test]
fn no_input_makes_it_fail() {
    let law = "no input makes it fail";
    let traps = |when: fn(&Value) -> bool, words: &str| {
        let answer = move |call: &Call<'_>| {
            if when(&object(call)) {
                fault(FaultKind::Trap)
            } else {
                Ok(good(call))
            }
        };
        breaks(&Scripted::good(CallKind::Health).answering(answer), law, words);
    };
    traps(
        |object| object["status"] == json!(-1),
        "Game whose status is -1: trap (on purpose)",
    );
    traps(|object| object.get("metadata").is_none(), "Game without fields: trap");
    traps(
        |object| object.pointer("/status/deep").is_some(),
        "nested 80 levels deep: trap",
    );
    traps(
        |object| object.pointer("/spec/entries").is_some(),
        "Game of 1048576 bytes: trap",
    );
    let many = |call: &Call<'_>| {
        if clusters(call) > 1_900 {
            fault(FaultKind::MissingExport)
        } else {
            Ok(good(call))
        }
    };
    breaks(
        &Scripted::good(CallKind::Filter).answering(many),
        law,
        "2000 clusters: missing-export",
    );
}

#[test]
fn a_huge_input_may_be_too_much_for_a_small_budget_only() {
    let answer = |call: &Call<'_>| {
        let huge = object(call).pointer("/spec/entries").is_some();
        if huge {
            fault(FaultKind::OutOfFuel)
        } else {
            Ok(good(call))
        }
    };
    let policy = Scripted::good(CallKind::Health).answering(answer);
    breaks(&policy, "no input makes it fail", "out-of-fuel");
    let small = Budget {
        steps: 100_000,
        ..Budget::default()
    };
    let checks = super::run(&Subject::new(&policy, small), &[]);
    assert_eq!(failed(&checks), Vec::<&str>::new());
}

#[test]
fn well_formed_questions_stay_within_the_budget() {
    let law = "well-formed questions stay within the budget";
    let pending = |call: &Call<'_>| object(call).pointer("/status/phase") == Some(&json!("Pending"));
    let answer = move |call: &Call<'_>| {
        if pending(call) {
            fault(FaultKind::OutOfFuel)
        } else {
            Ok(good(call))
        }
    };
    breaks(
        &Scripted::good(CallKind::Health).answering(answer),
        law,
        "Game with missing replicas: out-of-fuel",
    );
    let cost = move |call: &Call<'_>| if pending(call) { 10_000_001 } else { 10 };
    breaks(
        &Scripted::good(CallKind::Health).costing(cost),
        law,
        "took 10000001 steps of 10000000",
    );
}

#[test]
fn the_same_question_gets_the_same_answer() {
    let last = Mutex::new(String::new());
    let answer = move |call: &Call<'_>| {
        let asked = format!("{call:?}");
        let before = std::mem::replace(&mut *last.lock().unwrap(), asked.clone());
        let pending = object(call).pointer("/status/phase") == Some(&json!("Pending"));
        Ok(if pending && before == asked {
            health(Health::Unknown, "Bored")
        } else {
            good(call)
        })
    };
    let policy = Scripted::good(CallKind::Health).answering(answer);
    breaks(
        &policy,
        "the same question gets the same answer",
        "Unhealthy (NotReady: as reported) first, then Unknown (Bored)",
    );
}

#[test]
fn no_state_survives_a_call() {
    let poisoned = AtomicBool::new(false);
    let answer = move |call: &Call<'_>| {
        let junk = !object(call)["metadata"].is_object() && object(call).get("metadata").is_some();
        poisoned.fetch_or(junk, Ordering::Relaxed);
        Ok(if poisoned.load(Ordering::Relaxed) {
            health(Health::Unknown, "Poisoned")
        } else {
            good(call)
        })
    };
    let policy = Scripted::good(CallKind::Health).answering(answer);
    breaks(
        &policy,
        "no state survives a call",
        "asked again after Game whose metadata is null",
    );
}

#[test]
fn unknown_fields_change_nothing() {
    let law = "unknown fields change nothing";
    let counts = |part: &'static str| {
        move |call: &Call<'_>| {
            let count = object(call)[part].as_object().map_or(0, serde_json::Map::len);
            Ok(health(Health::Healthy, &format!("Fields{count}")))
        }
    };
    breaks(
        &Scripted::good(CallKind::Health).answering(counts("spec")),
        law,
        "Fields",
    );
    breaks(
        &Scripted::good(CallKind::Health).answering(counts("status")),
        law,
        "Fields",
    );
    let strict = |call: &Call<'_>| {
        let Call::ClusterTaint(asked) = call else {
            return fault(FaultKind::HostBug);
        };
        if asked.cluster.spec.rest.is_empty() {
            Ok(good(call))
        } else {
            fault(FaultKind::GuestError)
        }
    };
    let policy = Scripted::good(CallKind::ClusterTaint).answering(strict);
    breaks(&policy, law, "then the fault guest-error (on purpose)");
}

#[test]
fn every_reason_has_a_code_of_one_word() {
    let law = "every reason has a code of one CamelCase word";
    for code in ["not ready", "", "notReady"] {
        let answer = move |_: &Call<'_>| Ok(health(Health::Unhealthy, code));
        breaks(
            &Scripted::good(CallKind::Health).answering(answer),
            law,
            &format!("{code:?} is not one CamelCase"),
        );
    }
    let long = |_: &Call<'_>| Ok(health(Health::Unhealthy, &"X".repeat(65)));
    breaks(&Scripted::good(CallKind::Health).answering(long), law, "at most 64");
}

#[test]
fn every_cluster_gets_one_verdict_and_a_score_is_from_0_to_100() {
    let law = "every cluster gets one verdict, and a score is from 0 to 100";
    let high = |call: &Call<'_>| Ok(Reply::Score(vec![101; clusters(call) as usize]));
    breaks(
        &Scripted::good(CallKind::Score).answering(high),
        law,
        "the score 101 is outside 0..=100",
    );
    let fewer = |call: &Call<'_>| {
        Ok(Reply::Filter(vec![
            FilterVerdict::Fit;
            clusters(call).saturating_sub(1) as usize
        ]))
    };
    breaks(
        &Scripted::good(CallKind::Filter).answering(fewer),
        law,
        "23 verdicts for 24 clusters",
    );
}

#[test]
fn the_order_of_clusters_changes_nothing() {
    let law = "the order of clusters changes nothing";
    let by_place = |call: &Call<'_>| {
        Ok(Reply::Score(
            (0..clusters(call) as i64).map(|place| place % 101).collect(),
        ))
    };
    breaks(
        &Scripted::good(CallKind::Score).answering(by_place),
        law,
        "in another order: 0 first, then 23 for cluster 0",
    );
    let first = |call: &Call<'_>| {
        let verdict = |place| {
            if place == 0 {
                FilterVerdict::Fit
            } else {
                FilterVerdict::Abstain
            }
        };
        Ok(Reply::Filter((0..clusters(call)).map(verdict).collect()))
    };
    breaks(
        &Scripted::good(CallKind::Filter).answering(first),
        law,
        "fit first, then abstain for cluster 0",
    );
}

#[test]
fn steps_grow_at_most_linearly_with_the_clusters() {
    let law = "steps grow at most linearly with the clusters";
    for kind in [CallKind::Filter, CallKind::Score, CallKind::EvictionCheck] {
        let policy = Scripted::good(kind).costing(|call| clusters(call).pow(2));
        breaks(
            &policy,
            law,
            "for 2000: more than 3 times as much for the second doubling",
        );
    }
    let unmetered = Scripted::good(CallKind::Filter).costing(|_| 0);
    let checks = examined(&unmetered);
    let check = checks.iter().find(|check| check.name == law).unwrap();
    assert_eq!(check.outcome, Outcome::skipped("its engine does not meter steps"));
}

#[test]
fn taints_have_declared_keys_only() {
    let answer = |call: &Call<'_>| {
        let Call::ClusterTaint(asked) = call else {
            return fault(FaultKind::HostBug);
        };
        let key = if asked.cluster.is_ready() {
            TAINT_KEY
        } else {
            "example.io/other"
        };
        Ok(Reply::ClusterTaint(TaintVerdict {
            changes: vec![taint(key)],
        }))
    };
    let policy = Scripted::good(CallKind::ClusterTaint).answering(answer);
    breaks(
        &policy,
        "taints have declared keys only",
        "\"example.io/other\" is not among the declared keys",
    );
}

#[test]
fn a_schema_accepts_its_own_examples_and_they_load() {
    let policy = Scripted::good(CallKind::Health);
    let load = |config: &Value| {
        if config.get("key").is_some() {
            return Ok(std::sync::Arc::new(Scripted::good(CallKind::Health)) as std::sync::Arc<dyn Policy>);
        }
        let message = "missing field `key`".to_owned();
        Err(LoadError {
            plugin: "p".into(),
            origin: "p.lua".into(),
            stage: LoadStage::Configured,
            message,
        })
    };
    let outcome = |schema: Value| {
        let subject = Subject::new(&policy, Budget::default())
            .with_config_schema(&schema)
            .with_loader(&load);
        super::configuration::examples(&subject)
    };
    let check = |schema: Value, words: &str| match outcome(schema) {
        Outcome::Failed { why } => assert!(why.contains(words), "no {words:?} in {why:?}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        outcome(json!({"type": "object", "examples": [{"key": "tier"}]})),
        Outcome::Passed
    );
    assert_eq!(
        outcome(json!({"type": "object"})),
        Outcome::skipped("the schema has no examples")
    );
    check(
        json!({"type": "string", "examples": [{"key": "tier"}]}),
        "the schema refuses its example",
    );
    check(
        json!({"type": "object", "examples": [{}]}),
        "does not load: plugin p (p.lua) failed to configure: missing",
    );
    check(json!({"type": 3, "examples": [1]}), "schema is not a valid JSON Schema");
    let old = "http://json-schema.org/draft-04/schema#";
    check(json!({"$schema": old, "examples": {"key": "tier"}}), "not a list");
}
