//! What came of a case, in the words of the file.

use bulkhead_core::call::{Call, HealthCall, InterpretCall, Interpretation, Operation};
use bulkhead_core::combine::{self, PolicyFault};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{EngineKind, FaultKind, PolicySet};
use bulkhead_core::time::Time;
use serde_json::{Value, json};

use super::case::Arguments;

/// A result, or an error that is of one of some classes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Keyed as in Karmada's own results.
    Told(Value),
    /// An error. What we tell apart is coarser than the file in places, so that it may be of several classes.
    Failed(&'static [&'static str], String),
}

impl Outcome {
    /// Nobody has a rule.
    pub(super) fn no_handler() -> Self {
        Self::Failed(&["noHandler"], "nobody has a rule".to_owned())
    }

    /// As it is printed when it is not what was expected.
    pub(super) fn printed(&self) -> Value {
        match self {
            Self::Told(value) => value.clone(),
            Self::Failed(classes, message) => json!({"error": {"classes": classes, "message": message}}),
        }
    }
}

/// The classes that a fault may be of.
pub(super) fn classes(engine: EngineKind, kind: FaultKind) -> &'static [&'static str] {
    match (engine, kind) {
        // What `kube` raises in a script because a table is no pod template is one of these as well.
        (_, FaultKind::Trap | FaultKind::Denied | FaultKind::Memory) => &["luaRuntime", "decodeResult"],
        (EngineKind::Webhook, FaultKind::BadReply) => &["webhook", "patch", "decodeResult"],
        (EngineKind::Webhook, _) => &["webhook"],
        (_, FaultKind::BadReply) => &["returnType", "luaEncode", "decodeResult", "dependencyValidation"],
        (_, FaultKind::OutOfFuel | FaultKind::Deadline) => &["timeout"],
        (_, FaultKind::MissingExport) => &["functionMissing", "functionWrongType"],
        (_, FaultKind::NotLoaded) => &["luaSyntax"],
        // Where Karmada panics we have an error.
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

/// A fault as an outcome.
pub(super) fn failed(fault: &PolicyFault) -> Outcome {
    Outcome::Failed(classes(fault.policy.engine, fault.fault.kind), fault.fault.to_string())
}

/// The call that asks for an operation, by Karmada's name for it.
pub(super) fn question<'a>(operation: &str, arguments: &'a Arguments, now: Time) -> Result<Call<'a>, String> {
    let object = &arguments.object;
    let operation = match operation {
        "InterpretHealth" => return Ok(Call::Health(HealthCall { object, now })),
        "InterpretReplica" => Operation::Replicas { object },
        "InterpretComponent" => Operation::Components { object },
        "ReviseReplica" => Operation::Revise { object, replicas: arguments.replicas },
        "Retain" => Operation::Retain { desired: object, observed: &arguments.observed },
        "InterpretStatus" => Operation::ReflectStatus { object },
        "AggregateStatus" => Operation::AggregateStatus { object, items: &arguments.items },
        "InterpretDependency" => Operation::Dependencies { object },
        other => return Err(format!("unknown operation {other}")),
    };
    Ok(Call::Interpret(InterpretCall { operation, now }))
}

/// Asks a set of policies what the operation comes to.
pub(super) fn ask(policies: &PolicySet, operation: &str, arguments: &Arguments) -> Result<Outcome, String> {
    let call = match question(operation, arguments, Time::from_millis(1_767_225_600_000))? {
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
                Outcome::Told(json!({"replica": replicas, "requires": requirements}))
            }
            Some(Interpretation::Components(components)) => Outcome::Told(json!({"components": components})),
            Some(Interpretation::Object(object)) if revised => Outcome::Told(json!({"revised": object})),
            Some(Interpretation::Object(object)) if retained => Outcome::Told(json!({"retained": object})),
            Some(Interpretation::Object(object)) => Outcome::Told(json!({"aggregatedStatus": object})),
            Some(Interpretation::Status(status)) => Outcome::Told(json!({"status": status})),
            Some(Interpretation::Dependencies(found)) => Outcome::Told(json!({"dependencies": found})),
        },
    })
}

/// An object of the wrong shape is no fault but an unknown health here, and an error in Karmada.
fn health(policies: &PolicySet, call: HealthCall<'_>) -> Outcome {
    if policies.answering(&Call::Health(call.clone())).next().is_none() {
        return Outcome::no_handler();
    }
    let outcome = combine::health(policies, call);
    match (outcome.remarks.faults.first(), outcome.health) {
        (Some(fault), _) => failed(fault),
        (None, Health::Healthy) => Outcome::Told(json!({"healthy": true})),
        (None, Health::Unhealthy) => Outcome::Told(json!({"healthy": false})),
        (None, Health::Unknown) => Outcome::Failed(&["input"], outcome.because.reason.to_string()),
    }
}
