//! Health of Deployments, by the rules built into the host.

use bulkhead_sdk::{HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason, Value};

struct DeploymentHealth;

impl Plugin for DeploymentHealth {
    const NAME: &'static str = "deployment-health";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Health of Deployments: observed, updated and available";
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("apps/v1", "Deployment")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

/// Fields that the verdict depends on, each with the pointer of its parent map.
const FIELDS: [(&str, &str); 5] = [
    ("/spec", "/spec/replicas"),
    ("/status", "/status/updatedReplicas"),
    ("/status", "/status/availableReplicas"),
    ("/metadata", "/metadata/generation"),
    ("/status", "/status/observedGeneration"),
];

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Boolean(_) => "a boolean",
        Value::Integer(_) | Value::Number(_) => "a number",
        Value::Text(_) => "a string",
        Value::Array(_) => "a list",
        Value::Fields(_) => "an object",
    }
}

/// Describes a field of the wrong type, for example `spec.replicas is a string, not an integer`.
fn malformed(pointer: &str, value: &Value, expected: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    format!("{path} is {}, not {expected}", type_name(value))
}

/// Returns the integer in a value, or `None` for null. A float without a fractional part counts as an integer.
fn integer(pointer: &str, value: &Value) -> Result<Option<i64>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Integer(integer) => Ok(Some(*integer)),
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e18 => Ok(Some(*number as i64)),
        other => Err(malformed(pointer, other, "an integer")),
    }
}

/// Reads the integers at [`FIELDS`] with one call. The error names the field that has the wrong type.
fn read(observed: &Object) -> Result<[Option<i64>; 5], String> {
    let values = observed.get_many(&FIELDS.map(|(_, pointer)| pointer.to_owned()));
    let mut integers = [None; 5];
    for (slot, ((parent, pointer), value)) in integers.iter_mut().zip(FIELDS.into_iter().zip(values)) {
        *slot = match value {
            Some(value) => integer(pointer, &value)?,
            // A missing field is valid unless its parent exists and is not a map.
            None => match observed.get(parent) {
                None | Some(Value::Null | Value::Fields(_)) => None,
                Some(other) => return Err(malformed(parent, &other, "an object")),
            },
        };
    }
    Ok(integers)
}

fn judge(observed: &Object) -> Result<HealthVerdict, String> {
    let [desired, updated, available, generation, seen] = read(observed)?;
    let [updated, available, generation, seen] = [updated, available, generation, seen].map(Option::unwrap_or_default);
    let unhealthy = |code, message| HealthVerdict::unhealthy(Reason::new(code, message));
    Ok(if seen != generation {
        unhealthy(
            "GenerationNotObserved",
            format!("the status is about generation {seen}, not {generation}"),
        )
    } else if let Some(desired) = desired.filter(|desired| updated < *desired) {
        unhealthy(
            "ReplicasNotUpdated",
            format!("{updated} of {desired} replicas are updated"),
        )
    } else if available < updated {
        unhealthy(
            "ReplicasNotAvailable",
            format!("{available} of {updated} replicas are available"),
        )
    } else {
        let message = format!("{available} of {updated} replicas are available");
        HealthVerdict::healthy(Reason::new("ReplicasAvailable", message))
    })
}

impl HealthInterpreter for DeploymentHealth {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        Ok(judge(observed).unwrap_or_else(|why| HealthVerdict::unknown(Reason::new("MalformedObject", why))))
    }
}

bulkhead_sdk::export!(DeploymentHealth: HealthInterpreter);
