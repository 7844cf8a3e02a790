//! Reports the health of an Argo Rollout from the phase that its controller writes.

use bulkhead_sdk::{HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason};

struct Rollout;

impl Plugin for Rollout {
    const NAME: &'static str = "rollout-health";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("argoproj.io/v1alpha1", "Rollout")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

impl HealthInterpreter for Rollout {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        let generation = observed.get_s64("/metadata/generation").unwrap_or(0);
        // The controller writes the number as a text.
        let seen = observed.get_string("/status/observedGeneration").unwrap_or_else(|| "0".to_owned());
        if seen != generation.to_string() {
            let message = format!("the controller has seen generation {seen} of {generation}");
            return Ok(HealthVerdict::unknown(Reason::new("NotObserved", message)));
        }
        let message = observed.get_string("/status/message").unwrap_or_default();
        Ok(match observed.get_string("/status/phase").as_deref() {
            Some(phase @ ("Healthy" | "Paused")) => HealthVerdict::healthy(Reason::new(phase, message)),
            Some(phase @ ("Degraded" | "Progressing")) => HealthVerdict::unhealthy(Reason::new(phase, message)),
            _ => HealthVerdict::unknown(Reason::new("UnknownPhase", message)),
        })
    }
}

bulkhead_sdk::export!(Rollout: HealthInterpreter);
