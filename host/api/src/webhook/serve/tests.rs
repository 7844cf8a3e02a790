use bulkhead_core::call::{HealthVerdict, Reason};
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::policy::{Capability, Fault, PolicyId};

use super::*;
use crate::webhook::context::{reply, request};

/// Policy that answers for widgets, and has no rule for components.
struct Widgets {
    id: PolicyId,
    capabilities: Vec<Capability>,
}

impl Widgets {
    fn set() -> PolicySet {
        let on = |kind| Capability::on(kind, "example.io/v1", "Widget");
        let capabilities = vec![
            on(CallKind::Health),
            on(CallKind::Interpret),
            Capability::any(CallKind::Score),
        ];
        PolicySet::new(vec![Arc::new(Self {
            id: PolicyId::builtin("widgets"),
            capabilities,
        })])
    }
}

impl Policy for Widgets {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let actual = match call {
            Call::Health(call) if call.object["spec"]["state"] == "broken" => {
                return Err(Fault::new(FaultKind::Trap, "unreachable"));
            }
            Call::Health(call) => {
                let health = match call.object["spec"]["state"].as_str() {
                    Some("good") => Health::Healthy,
                    Some("bad") => Health::Unhealthy,
                    _ => Health::Unknown,
                };
                return Ok(Reply::Health(HealthVerdict {
                    health,
                    reason: Reason::new("State", "as it says"),
                }));
            }
            Call::Interpret(call) => match &call.operation {
                Operation::Components { .. } => None,
                Operation::Replicas { .. } => Some(Interpretation::Replicas {
                    replicas: 3,
                    requirements: Some(Default::default()),
                }),
                Operation::ReflectStatus { .. } => Some(Interpretation::Status(Some(json!({"seen": true})))),
                Operation::Dependencies { .. } => Some(Interpretation::Dependencies(vec![DependentObjectReference {
                    api_version: "v1".to_owned(),
                    kind: "Secret".to_owned(),
                    name: "s".to_owned(),
                    ..Default::default()
                }])),
                Operation::Revise { object, replicas } => Some(changed(object, "replicas", &json!(replicas))),
                Operation::Retain { desired, observed } => Some(changed(desired, "kept", &observed["spec"])),
                Operation::AggregateStatus { object, items } => Some(changed(object, "items", &json!(items))),
            },
            _ => return Err(Fault::new(FaultKind::Unsupported, "")),
        };
        Ok(Reply::Interpret(actual))
    }
}

fn changed(object: &Value, field: &str, value: &Value) -> Interpretation {
    let mut changed = object.clone();
    changed["spec"][field] = value.clone();
    Interpretation::Object(changed)
}

fn widget(state: &str) -> Arc<Value> {
    let metadata = json!({"name": "x", "namespace": "ns"});
    Arc::new(json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata, "spec": {"state": state}}))
}

fn now() -> Time {
    Time::from_millis(0)
}

/// Passes a call through both sides of the protocol.
fn through(call: &Call<'_>) -> Result<Reply, String> {
    let body = request(call, "u").unwrap().to_string();
    let answer = answer(&Widgets::set(), body.as_bytes(), now()).unwrap();
    reply(call, "u", answer.response.to_string().as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn karmada_receives_the_verdict_of_the_policy() {
    let (object, observed) = (widget("good"), widget("bad"));
    let items = [AggregatedStatusItem {
        cluster_name: "m1".to_owned(),
        ..Default::default()
    }];
    for operation in [
        Operation::Replicas { object: &object },
        Operation::Revise {
            object: &object,
            replicas: 5,
        },
        Operation::Retain {
            desired: &object,
            observed: &observed,
        },
        Operation::ReflectStatus { object: &object },
        Operation::AggregateStatus {
            object: &object,
            items: &items,
        },
        Operation::Dependencies { object: &object },
    ] {
        let call = Call::Interpret(InterpretCall { operation, now: now() });
        let asked = Widgets::set().iter().next().unwrap().call(&call).unwrap();
        assert_eq!(through(&call), Ok(asked));
    }
}

#[test]
fn health_is_returned_only_if_it_is_known() {
    let health = |state: &str| {
        let object = widget(state);
        through(&Call::Health(HealthCall {
            object: &object,
            now: now(),
        }))
        .map(|reply| match reply {
            Reply::Health(verdict) => verdict.health,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(health("good"), Ok(Health::Healthy));
    assert_eq!(health("bad"), Ok(Health::Unhealthy));
    let unknown = health("odd").unwrap_err();
    assert!(unknown.contains("State: as it says"), "{unknown}");
}

#[test]
fn a_fault_differs_from_a_verdict_and_from_a_missing_rule() {
    let failure = |state: &str, operation: &str| {
        let request = json!({"uid": "u", "operation": operation, "object": widget(state)});
        let body = json!({"request": request}).to_string();
        let answer = answer(&Widgets::set(), body.as_bytes(), now()).unwrap();
        answer.failure.map(|failure| {
            assert_eq!(
                (failure.operation.as_str(), &failure.object),
                (operation, &widget(state))
            );
            (failure.is_fault, failure.message)
        })
    };
    let unknown = failure("odd", HEALTH).unwrap();
    assert_eq!(unknown, (false, "State: as it says".to_owned()));
    let (is_fault, message) = failure("broken", HEALTH).unwrap();
    assert!(is_fault && message.starts_with("PluginTrapped: "), "{message}");
    assert_eq!(failure("good", HEALTH), None);
    assert_eq!(failure("good", "InterpretComponent"), None);
    assert_eq!(failure("good", "Interpret"), None);
}

#[test]
fn a_call_without_a_policy_is_refused() {
    let object = Arc::new(json!({"apiVersion": "v1", "kind": "Other", "metadata": {"name": "x"}}));
    let health = through(&Call::Health(HealthCall {
        object: &object,
        now: now(),
    }))
    .unwrap_err();
    assert!(
        health.contains("no plugin answers InterpretHealth for Other"),
        "{health}"
    );
    let widget = widget("good");
    let operation = Operation::Components { object: &widget };
    let components = through(&Call::Interpret(InterpretCall { operation, now: now() })).unwrap_err();
    assert!(
        components.contains("no plugin answers InterpretComponent for Widget"),
        "{components}"
    );
    assert!(
        answer(&Widgets::set(), b"{}", now())
            .unwrap_err()
            .contains("not a ResourceInterpreterContext")
    );
}

#[test]
fn an_object_of_another_identity_is_refused() {
    let object = widget("good");
    let mut other = Value::clone(&object);
    other["metadata"]["namespace"] = json!("kube-system");
    let refused = encoded(&object, Interpretation::Object(other)).unwrap_err();
    assert_eq!(refused.code, 500);
    assert!(
        refused
            .message
            .contains("metadata.namespace is \"kube-system\", not \"ns\""),
        "{}",
        refused.message
    );
    assert!(encoded(&object, Interpretation::Object(Value::clone(&object))).is_ok());
}

#[test]
fn only_operations_with_a_rule_are_offered() {
    let rules = rules(&Widgets::set(), now());
    let operations = [
        "AggregateStatus",
        "InterpretDependency",
        "InterpretHealth",
        "InterpretReplica",
        "InterpretStatus",
        "Retain",
        "ReviseReplica",
    ];
    let expected = Rule {
        operations: operations.map(str::to_owned).to_vec(),
        api_groups: vec!["example.io".to_owned()],
        api_versions: vec!["v1".to_owned()],
        kinds: vec!["Widget".to_owned()],
    };
    assert_eq!(rules, [expected]);
}
