//! Health of Deployments, by the rules that are built into the host.

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

/// What the verdict depends on, read in one call.
const FIELDS: [&str; 5] = [
    "/metadata/generation",
    "/status/observedGeneration",
    "/spec/replicas",
    "/status/updatedReplicas",
    "/status/availableReplicas",
];

/// An integer, absent when nothing is there; anything else has the wrong shape.
fn integer(value: Option<Value>) -> Result<Option<i64>, ()> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Integer(integer)) => Ok(Some(integer)),
        Some(_) => Err(()),
    }
}

fn judge(observed: &Object) -> Result<HealthVerdict, ()> {
    let fields = FIELDS.map(str::to_owned);
    let mut fields = observed.get_many(&fields).into_iter().map(integer);
    let mut next = || fields.next().unwrap_or(Ok(None));
    let (generation, seen) = (next()?.unwrap_or(0), next()?.unwrap_or(0));
    let (desired, updated, available) = (next()?, next()?.unwrap_or(0), next()?.unwrap_or(0));
    let unhealthy = |code, message| HealthVerdict::unhealthy(Reason::new(code, message));
    Ok(if seen != generation {
        unhealthy("GenerationNotObserved", format!("the status is about generation {seen}, not {generation}"))
    } else if let Some(desired) = desired.filter(|desired| updated < *desired) {
        unhealthy("ReplicasNotUpdated", format!("{updated} of {desired} replicas are updated"))
    } else if available < updated {
        unhealthy("ReplicasNotAvailable", format!("{available} of {updated} replicas are available"))
    } else {
        let message = format!("{available} of {updated} replicas are available");
        HealthVerdict::healthy(Reason::new("ReplicasAvailable", message))
    })
}

impl HealthInterpreter for DeploymentHealth {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        let malformed = || Reason::new("MalformedObject", "a generation or a number of replicas is no integer");
        Ok(judge(observed).unwrap_or_else(|()| HealthVerdict::unknown(malformed())))
    }
}

bulkhead_sdk::export!(DeploymentHealth: HealthInterpreter);
