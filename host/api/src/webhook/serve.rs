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

/// Code of a response about a fault, or about a policy without a verdict.
const FAULT: u16 = 500;
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

/// Answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Body of the response.
    pub response: Value,
    /// Reason why the response has no verdict although a policy was called.
    pub failure: Option<Failure>,
}

/// Call of a policy without a verdict.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the operation in the protocol.
    pub operation: String,
    /// Object that was asked about.
    pub object: Arc<Value>,
    /// Code and message of the reason.
    pub message: String,
    /// True if the policy returned a fault; false if its verdict was that the health is unknown.
    pub is_fault: bool,
}

/// Reason why a request was not answered; the message appears in Karmada's log.
struct Refusal {
    code: u16,
    message: String,
    is_fault: bool,
}

impl Refusal {
    /// Creates a refusal for a fault of a policy.
    fn fault(message: String) -> Self {
        Self {
            code: FAULT,
            message,
            is_fault: true,
        }
    }

    /// Creates a refusal for an operation that no policy has a rule for.
    fn no_rule(operation: &str, object: &Value) -> Self {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        Self {
            code: 501,
            message: format!("no plugin answers {operation} for {kind}"),
            is_fault: false,
        }
    }
}

/// Answers the body of a request with the body of a response. If a policy fails or has no verdict, the response is
/// unsuccessful; an answer is never invented.
///
/// # Errors
///
/// The body is not a `ResourceInterpreterContext` with a request.
pub fn answer(policies: &PolicySet, body: &[u8], now: Time) -> Result<Answer, String> {
    let Envelope { request } =
        serde_json::from_slice(body).map_err(|error| format!("the body is not a {KIND} with a request: {error}"))?;
    let (mut response, refusal) = match respond(policies, &request, now) {
        Ok(fields) => (fields, None),
        Err(refusal) => {
            let status = json!({"code": refusal.code, "message": refusal.message});
            (json!({"successful": false, "status": status}), Some(refusal))
        }
    };
    response["uid"] = json!(request.uid);
    let Request { operation, object, .. } = request;
    let failure = refusal.filter(|refusal| refusal.code == FAULT).map(|refusal| Failure {
        operation,
        object,
        message: refusal.message,
        is_fault: refusal.is_fault,
    });
    Ok(Answer {
        response: json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}),
        failure,
    })
}

fn respond(policies: &PolicySet, request: &Request, now: Time) -> Result<Value, Refusal> {
    let object = &request.object;
    if request.operation == HEALTH {
        let outcome = combine::health(policies, HealthCall { object, now });
        let reason = &outcome.attribution.reason;
        return match (&outcome.attribution.policy, outcome.health) {
            (None, Health::Healthy) => Err(Refusal::no_rule(HEALTH, object)),
            (_, Health::Unknown) => Err(Refusal {
                code: FAULT,
                message: reason.to_string(),
                is_fault: !outcome.diagnostics.faults.is_empty(),
            }),
            (_, health) => Ok(json!({"successful": true, "healthy": health == Health::Healthy})),
        };
    }
    let operation = operation(request)?;
    let outcome = combine::interpret(policies, InterpretCall { operation, now });
    let interpretation = outcome
        .map_err(|fault| Refusal::fault(fault.reason().to_string()))?
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
                is_fault: false,
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
            same_identity(object, &changed).map_err(Refusal::fault)?;
            let patch = serde_json::to_vec(&json_patch::diff(object, &changed));
            let patch = patch.map_err(|error| Refusal::fault(format!("writing the patch: {error}")))?;
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
mod tests;
