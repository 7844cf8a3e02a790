//! Outcome of a case, in the terms of the case file.

use bulkhead_core::call::{Call, HealthCall, InterpretCall, Interpretation, Operation};
use bulkhead_core::combine::{self, PolicyFault};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{EngineKind, FaultKind, PolicySet};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use super::case::Arguments;

/// A result, or an error with its possible classes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Results, keyed as in Karmada.
    Result(Value),
    /// An error. Bulkhead's fault kinds are coarser than the file's classes in places, so several classes are
    /// possible.
    Failed(&'static [&'static str], String),
}

impl Outcome {
    /// Returns the outcome for an operation without a rule.
    pub(super) fn no_handler() -> Self {
        Self::Failed(&["noHandler"], "no interpreter has a rule".to_owned())
    }

    /// Returns the outcome in printable form.
    pub(super) fn printed(&self) -> Value {
        match self {
            Self::Result(value) => value.clone(),
            Self::Failed(classes, message) => json!({"error": {"classes": classes, "message": message}}),
        }
    }
}

/// Returns the possible classes of a fault.
pub(super) fn classes(engine: EngineKind, kind: FaultKind) -> &'static [&'static str] {
    match (engine, kind) {
        // These classes also cover errors that `kube` raises in a script because a table is not a pod template.
        (_, FaultKind::Trap | FaultKind::Denied | FaultKind::Memory) => &["luaRuntime", "decodeResult"],
        (EngineKind::Webhook, FaultKind::BadReply) => &["webhook", "patch", "decodeResult"],
        (EngineKind::Webhook, _) => &["webhook"],
        (_, FaultKind::BadReply) => &["returnType", "luaEncode", "decodeResult", "dependencyValidation"],
        (_, FaultKind::OutOfFuel | FaultKind::Deadline) => &["timeout"],
        (_, FaultKind::MissingExport) => &["functionMissing", "functionWrongType"],
        (_, FaultKind::NotLoaded) => &["luaSyntax"],
        // Bulkhead returns an error in cases where Karmada panics.
        (_, FaultKind::GuestError) => &["input", "dependencyValidation", "panic"],
        (
            _,
            FaultKind::Unsupported
            | FaultKind::Quarantined
            | FaultKind::Unreachable
            | FaultKind::HostBusy
            | FaultKind::HostBug,
        ) => &[],
    }
}

/// Converts a fault into an outcome.
pub(super) fn failed(fault: &PolicyFault) -> Outcome {
    Outcome::Failed(classes(fault.policy.engine, fault.fault.kind), fault.fault.to_string())
}

/// Returns the call for an operation, given Karmada's name of the operation.
pub(super) fn policy_call<'a>(operation: &str, arguments: &'a Arguments, now: Time) -> Result<Call<'a>, String> {
    let object = &arguments.object;
    let operation = match operation {
        "InterpretHealth" => return Ok(Call::Health(HealthCall { object, now })),
        "InterpretReplica" => Operation::Replicas { object },
        "InterpretComponent" => Operation::Components { object },
        "ReviseReplica" => Operation::Revise {
            object,
            replicas: arguments.replicas,
        },
        "Retain" => Operation::Retain {
            desired: object,
            observed: &arguments.observed,
        },
        "InterpretStatus" => Operation::ReflectStatus { object },
        "AggregateStatus" => Operation::AggregateStatus {
            object,
            items: &arguments.items,
        },
        "InterpretDependency" => Operation::Dependencies { object },
        other => return Err(format!("unknown operation {other}")),
    };
    Ok(Call::Interpret(InterpretCall { operation, now }))
}

/// Runs an operation on a set of policies.
pub(super) fn ask(policies: &PolicySet, operation: &str, arguments: &Arguments) -> Result<Outcome, String> {
    let call = match policy_call(operation, arguments, Time::from_millis(1_767_225_600_000))? {
        Call::Health(call) => return Ok(health(policies, call)),
        Call::Interpret(call) => call,
        _ => return Err(format!("{operation} is no operation of an interpreter")),
    };
    let revised = matches!(call.operation, Operation::Revise { .. });
    let retained = matches!(call.operation, Operation::Retain { .. });
    Ok(match combine::interpret(policies, call) {
        Err(fault) => failed(&fault),
        Ok(outcome) => match outcome.interpretation {
            None => Outcome::no_handler(),
            Some(Interpretation::Replicas { replicas, requirements }) => {
                Outcome::Result(json!({"replica": replicas, "requires": requirements}))
            }
            Some(Interpretation::Components(components)) => Outcome::Result(json!({"components": components})),
            Some(Interpretation::Object(object)) if revised => Outcome::Result(json!({"revised": object})),
            Some(Interpretation::Object(object)) if retained => Outcome::Result(json!({"retained": object})),
            Some(Interpretation::Object(object)) => Outcome::Result(json!({"aggregatedStatus": object})),
            Some(Interpretation::Status(status)) => Outcome::Result(json!({"status": status})),
            Some(Interpretation::Dependencies(found)) => Outcome::Result(json!({"dependencies": found})),
        },
    })
}

/// For an object of the wrong shape, Bulkhead reports unknown health without a fault. In Karmada the script of a bundled
/// interpreter fails, or returns a value that is not a boolean, and the error has the same effect: the health is unknown.
fn health(policies: &PolicySet, call: HealthCall<'_>) -> Outcome {
    if policies.answering(&Call::Health(call.clone())).next().is_none() {
        return Outcome::no_handler();
    }
    let outcome = combine::health(policies, call);
    match (outcome.diagnostics.faults.first(), outcome.health) {
        (Some(fault), _) => failed(fault),
        (None, Health::Healthy) => Outcome::Result(json!({"healthy": true})),
        (None, Health::Unhealthy) => Outcome::Result(json!({"healthy": false})),
        (None, Health::Unknown) => Outcome::Failed(
            &["input", "luaRuntime", "returnType"],
            outcome.attribution.reason.to_string(),
        ),
    }
}
