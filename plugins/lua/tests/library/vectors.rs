//! Compares with cases that were made by executing Karmada's own scripts, when the file is there. It is not part of the
//! repository, since its inputs are Karmada's test data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::model::{AggregatedStatusItem, Health};
use bulkhead_core::policy::{Fault, Policy};
use bulkhead_core::time::Time;
use bulkhead_plugins_lua::Kind;
use serde_json::{Map, Value, json};

use crate::library;

/// 2026-06-01: later than every time in the cases.
const NOW_MS: i64 = 1_780_272_000_000;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/interpreter-thirdparty.json")
}

/// What Karmada's scripts answer, in our words: an error is `error`, and unknown health is what Karmada makes of an
/// error.
fn expected(case: &Value) -> Value {
    case.get("expected").cloned().unwrap_or_else(|| json!("error"))
}

fn ask(policy: &dyn Policy, case: &Value) -> Result<Reply, Fault> {
    let input = |name: &str| Arc::new(case["inputs"][name].clone());
    let (object, desired, observed) = (input("object"), input("desired"), input("observed"));
    let now = Time::from_millis(NOW_MS);
    let items: Vec<AggregatedStatusItem> =
        serde_json::from_value(case["inputs"]["statusItems"].clone()).unwrap_or_default();
    let operation = match case["operation"].as_str().unwrap() {
        "InterpretHealth" => return policy.call(&Call::Health(HealthCall { object: &object, now })),
        "InterpretReplica" => Operation::Replicas { object: &object },
        "InterpretComponent" => Operation::Components { object: &object },
        "ReviseReplica" => Operation::Revise { object: &object, replicas: case["inputs"]["replica"].as_i64().unwrap() },
        "Retain" => Operation::Retain { desired: &desired, observed: &observed },
        "InterpretStatus" => Operation::ReflectStatus { object: &object },
        "AggregateStatus" => Operation::AggregateStatus { object: &object, items: &items },
        "InterpretDependency" => Operation::Dependencies { object: &object },
        other => panic!("no operation {other}"),
    };
    policy.call(&Call::Interpret(InterpretCall { operation, now }))
}

/// An answer in the form of the file.
fn told(operation: &str, reply: Result<Reply, Fault>) -> Value {
    match reply {
        Err(_) => json!("error"),
        Ok(Reply::Health(verdict)) => match verdict.health {
            Health::Healthy => json!({"healthy": true}),
            Health::Unhealthy => json!({"healthy": false}),
            Health::Unknown => json!("error"),
        },
        Ok(Reply::Interpret(Some(told))) => match told {
            Interpretation::Replicas { replicas, requirements } => {
                json!({"replica": replicas, "requires": requirements})
            }
            Interpretation::Components(components) => json!({ "components": components }),
            Interpretation::Status(status) => json!({ "status": status }),
            Interpretation::Dependencies(dependencies) => json!({ "dependencies": dependencies }),
            Interpretation::Object(object) => {
                let name = match operation {
                    "Retain" => "retained",
                    "ReviseReplica" => "revised",
                    _ => "aggregatedStatus",
                };
                json!({ name: object })
            }
        },
        Ok(other) => panic!("{other:?}"),
    }
}

/// The same for both sides: lists that have no order sorted, quantities by value, times of the run as one word.
fn plain(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), plain(member, name)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(elements) => {
            let mut elements: Vec<_> = elements.iter().map(|element| plain(element, key)).collect();
            if matches!(key, "dependencies" | "components") {
                elements.sort_by_key(Value::to_string);
            }
            Value::Array(elements)
        }
        Value::String(text) if text == "{{NOW}}" || text == "2026-06-01T00:00:00Z" => json!("now"),
        Value::String(text) if matches!(key, "cpu" | "memory" | "nvidia.com/gpu") => {
            let quantity: Result<bulkhead_core::quantity::Quantity, _> = text.parse();
            quantity.map_or_else(|_| value.clone(), |quantity| json!(quantity.as_f64()))
        }
        other => other.clone(),
    }
}

/// Why our answer is another one, for the cases where we mean it to be.
fn deviation(case: &Value) -> Option<&'static str> {
    let object = &case["inputs"]["object"];
    let has = |pointer: &str| object.pointer(pointer).is_some_and(|value| !value.is_null());
    match (case["kind"]["kind"].as_str()?, case["operation"].as_str()?) {
        (_, "AggregateStatus") if case["inputs"]["statusItems"] == json!([]) => {
            Some("no reports are nil: production never sends an empty list")
        }
        (_, "InterpretDependency") if case["error"]["class"] == "returnType" => {
            Some("pods that use nothing have no dependencies, which is no error")
        }
        ("OCIRepository", "InterpretDependency") if !has("/spec/serviceAccountName") => {
            Some("a repository without a service account is no error")
        }
        ("HelmChart", "InterpretStatus") if has("/status/observedGeneration") => {
            Some("a chart's observed generation is collected, or the aggregate never is current")
        }
        ("HelmRelease", "AggregateStatus") if object["status"]["failures"].as_i64() > Some(0) => {
            Some("failures of the last aggregation are not counted again")
        }
        ("Workflow", "InterpretDependency")
            if has("/spec/volumes/0/secret") || has("/spec/templates") || has("/spec/volumeClaimTemplates") =>
        {
            Some("secrets and steps of a workflow are found, claims that it makes itself are not waited for")
        }
        (_, "AggregateStatus") if !has("/metadata/generation") => Some("the metadata of a template is left alone"),
        _ => None,
    }
}

#[test]
fn the_library_agrees_with_karmada_but_where_it_means_not_to() {
    let Ok(text) = std::fs::read_to_string(file()) else {
        eprintln!("skipped: there is no {}", file().display());
        return;
    };
    let library = library();
    let file: Value = serde_json::from_str(&text).unwrap();
    let (mut agreeing, mut meant, mut unexplained) = (0, BTreeMap::<_, u32>::new(), Vec::new());
    for case in file["cases"].as_array().unwrap().iter().filter(|case| case["operation"] != "Sequence") {
        let part = |name: &str| case["kind"][name].as_str().unwrap();
        let api_version = format!("{}/{}", part("group"), part("version"));
        let of = |(kind, _): &&(&Kind, Arc<dyn Policy>)| (kind.api_version, kind.kind) == (&*api_version, part("kind"));
        let (_, policy) = library.iter().find(of).unwrap_or_else(|| panic!("{api_version} is not covered"));
        let reply = ask(&**policy, case);
        let why = reply.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let told = told(case["operation"].as_str().unwrap(), reply);
        let (expected, got) = (plain(&expected(case), ""), plain(&told, ""));
        match (expected == got, deviation(case)) {
            (true, _) => agreeing += 1,
            (false, Some(reason)) => *meant.entry(reason).or_default() += 1,
            (false, None) => {
                unexplained.push(format!("{}\n  expected {expected}\n  got      {got} {why}", case["id"]));
            }
        }
    }
    println!("{agreeing} agree");
    for (reason, count) in &meant {
        println!("{count} differ on purpose: {reason}");
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    assert!(agreeing > 20 * meant.values().sum::<u32>(), "too few agree");
}
