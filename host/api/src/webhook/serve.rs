//! Server side of the protocol: answers requests to hooks with policies, so that a Karmada without plugin support can
//! use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, HealthCall, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::combine;
use bulkhead_core::identity::same_identity;
use bulkhead_core::model::{AggregatedStatusItem, Health};
use bulkhead_core::policy::{FaultKind, Policy, PolicySet};
use bulkhead_core::time::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Rule;
use super::context::{API_VERSION, KIND};

/// Name of the health operation in the protocol.
const HEALTH: &str = "InterpretHealth";
/// Names of all operations in the protocol.
pub const OPERATIONS: [&str; 8] = [
    "InterpretReplica",
    "InterpretComponent",
    "ReviseReplica",
    "Retain",
    "InterpretStatus",
    "AggregateStatus",
    HEALTH,
    "InterpretDependency",
];

#[derive(Deserialize)]
struct Envelope {
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    operation: String,
    object: Arc<Value>,
    #[serde(default)]
    observed_object: Arc<Value>,
    #[serde(default)]
    replicas: i64,
    #[serde(default)]
    aggregated_status: Vec<AggregatedStatusItem>,
}

/// Reason why a request was not answered; the message appears in Karmada's log.
struct Refusal {
    code: u16,
    message: String,
}

impl Refusal {
    /// Creates a refusal for an operation that no policy has a rule for.
    fn no_rule(operation: &str, object: &Value) -> Self {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        Self {
            code: 501,
            message: format!("no plugin answers {operation} for {kind}"),
        }
    }
}

/// Answers the body of a request with the body of a response. If a policy fails or has no verdict, the response is
/// unsuccessful; an answer is never invented.
///
/// # Errors
///
/// The body is not a `ResourceInterpreterContext` with a request.
pub fn answer(policies: &PolicySet, body: &[u8], now: Time) -> Result<Value, String> {
    let Envelope { request } =
        serde_json::from_slice(body).map_err(|error| format!("the body is not a {KIND} with a request: {error}"))?;
    let mut response = match respond(policies, &request, now) {
        Ok(fields) => fields,
        Err(Refusal { code, message }) => {
            json!({"successful": false, "status": {"code": code, "message": message}})
        }
    };
    response["uid"] = json!(request.uid);
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

fn respond(policies: &PolicySet, request: &Request, now: Time) -> Result<Value, Refusal> {
    let object = &request.object;
    if request.operation == HEALTH {
        let outcome = combine::health(policies, HealthCall { object, now });
        let reason = &outcome.attribution.reason;
        return match (&outcome.attribution.policy, outcome.health) {
            (None, Health::Healthy) => Err(Refusal::no_rule(HEALTH, object)),
            (_, Health::Unknown) => Err(Refusal {
                code: 500,
                message: reason.to_string(),
            }),
            (_, health) => Ok(json!({"successful": true, "healthy": health == Health::Healthy})),
        };
    }
    let operation = operation(request)?;
    let outcome = combine::interpret(policies, InterpretCall { operation, now });
    let interpretation = outcome
        .map_err(|fault| Refusal {
            code: 500,
            message: fault.reason().to_string(),
        })?
        .interpretation;
    let interpretation = interpretation.ok_or_else(|| Refusal::no_rule(&request.operation, object))?;
    encoded(object, interpretation)
}

fn operation(request: &Request) -> Result<Operation<'_>, Refusal> {
    let Request {
        object,
        observed_object: observed,
        ..
    } = request;
    Ok(match request.operation.as_str() {
        "InterpretReplica" => Operation::Replicas { object },
        "InterpretComponent" => Operation::Components { object },
        "ReviseReplica" => Operation::Revise {
            object,
            replicas: request.replicas,
        },
        "Retain" => Operation::Retain {
            desired: object,
            observed,
        },
        "InterpretStatus" => Operation::ReflectStatus { object },
        "AggregateStatus" => Operation::AggregateStatus {
            object,
            items: &request.aggregated_status,
        },
        "InterpretDependency" => Operation::Dependencies { object },
        other => {
            return Err(Refusal {
                code: 400,
                message: format!("unknown operation {other:?}"),
            });
        }
    })
}

fn encoded(object: &Value, interpretation: Interpretation) -> Result<Value, Refusal> {
    let mut response = match interpretation {
        Interpretation::Replicas { replicas, requirements } => {
            json!({"replicas": replicas, "replicaRequirements": requirements})
        }
        Interpretation::Components(components) => json!({"components": components}),
        Interpretation::Dependencies(dependencies) => json!({"dependencies": dependencies}),
        // Karmada treats a response without a status as an error.
        Interpretation::Status(status) => json!({"rawStatus": status.unwrap_or_else(|| json!({}))}),
        Interpretation::Object(changed) => {
            same_identity(object, &changed).map_err(|message| Refusal { code: 500, message })?;
            let patch = serde_json::to_vec(&json_patch::diff(object, &changed));
            let patch = patch.map_err(|error| Refusal {
                code: 500,
                message: format!("writing the patch: {error}"),
            })?;
            json!({"patchType": "JSONPatch", "patch": k8s_openapi::ByteString(patch)})
        }
    };
    response["successful"] = json!(true);
    Ok(response)
}

/// Returns the operations that these policies answer, as rules of a hook in a fixed order: for each kind that a
/// policy names, the operations that it has a rule for. Policies that name no kinds are left out, because a hook
/// takes over a kind entirely: Karmada calls no other interpreter when the hook has no answer.
pub fn rules(policies: &PolicySet, now: Time) -> Vec<Rule> {
    let mut offered: BTreeMap<(String, String), BTreeSet<&'static str>> = BTreeMap::new();
    for policy in policies.iter() {
        for capability in policy.capabilities() {
            let Some(kind) = &capability.object_kind else { continue };
            let operations = match capability.kind {
                CallKind::Health => vec![HEALTH],
                CallKind::Interpret => answered(policy, kind, now),
                CallKind::ClusterTaint | CallKind::Filter | CallKind::Score | CallKind::EvictionCheck => continue,
            };
            offered.entry(kind.clone()).or_default().extend(operations);
        }
    }
    let rule = |((api_version, kind), operations): ((String, String), BTreeSet<&str>)| {
        let (group, version) = bulkhead_core::names::split_api_version(&api_version);
        Rule {
            operations: operations.into_iter().map(str::to_owned).collect(),
            api_groups: vec![group.to_owned()],
            api_versions: vec![version.to_owned()],
            kinds: vec![kind],
        }
    };
    offered
        .into_iter()
        .filter(|(_, operations)| !operations.is_empty())
        .map(rule)
        .collect()
}

/// Returns the operations that a policy does not answer with "unsupported". The probe object is empty, because the
/// existence of a rule does not depend on the object.
fn answered(policy: &dyn Policy, (api_version, kind): &(String, String), now: Time) -> Vec<&'static str> {
    let object = Arc::new(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "probe"}}));
    let operations = [
        Operation::Replicas { object: &object },
        Operation::Components { object: &object },
        Operation::Revise {
            object: &object,
            replicas: 1,
        },
        Operation::Retain {
            desired: &object,
            observed: &object,
        },
        Operation::ReflectStatus { object: &object },
        Operation::AggregateStatus {
            object: &object,
            items: &[],
        },
        Operation::Dependencies { object: &object },
    ];
    let has_rule = |operation: &Operation<'_>| {
        let call = Call::Interpret(InterpretCall {
            operation: operation.clone(),
            now,
        });
        match policy.call(&call) {
            Ok(reply) => reply != Reply::Interpret(None),
            Err(fault) => fault.kind != FaultKind::Unsupported,
        }
    };
    operations
        .iter()
        .filter(|operation| has_rule(operation))
        .map(Operation::name)
        .collect()
}

#[cfg(test)]
mod tests {
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
                    Operation::Dependencies { .. } => {
                        Some(Interpretation::Dependencies(vec![DependentObjectReference {
                            api_version: "v1".to_owned(),
                            kind: "Secret".to_owned(),
                            name: "s".to_owned(),
                            ..Default::default()
                        }]))
                    }
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
        Arc::new(
            json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata, "spec": {"state": state}}),
        )
    }

    fn now() -> Time {
        Time::from_millis(0)
    }

    /// Passes a call through both sides of the protocol.
    fn through(call: &Call<'_>) -> Result<Reply, String> {
        let body = request(call, "u").unwrap().to_string();
        let answer = answer(&Widgets::set(), body.as_bytes(), now()).unwrap();
        reply(call, "u", answer.to_string().as_bytes()).map_err(|error| error.to_string())
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
}
