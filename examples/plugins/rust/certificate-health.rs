//! Reports the health of a cert-manager Certificate from its conditions.

use bulkhead_sdk::{HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason, Value};

struct Certificate;

impl Plugin for Certificate {
    const NAME: &'static str = "certificate-health";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("cert-manager.io/v1", "Certificate")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

impl HealthInterpreter for Certificate {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        let types = observed.get_each("/status/conditions", "/type");
        let place = |name: &str| {
            let is_named = |found: &Option<Value>| matches!(found, Some(Value::Text(text)) if text == name);
            types.iter().position(is_named).map(|index| format!("/status/conditions/{index}"))
        };
        let text = |place: &str, field: &str| observed.get_string(&format!("{place}/{field}")).unwrap_or_default();
        let Some(ready) = place("Ready") else {
            return Ok(HealthVerdict::unknown(Reason::new("NotObserved", "there is no condition Ready")));
        };
        let generation = observed.get_s64("/metadata/generation").unwrap_or(0);
        let seen = observed.get_s64(&format!("{ready}/observedGeneration")).unwrap_or(generation);
        if seen < generation {
            let message = format!("the condition is about generation {seen} of {generation}");
            return Ok(HealthVerdict::unknown(Reason::new("NotObserved", message)));
        }
        let message = text(&ready, "message");
        Ok(match text(&ready, "status").as_str() {
            "True" => HealthVerdict::healthy(Reason::new("Ready", message)),
            "False" => match place("Issuing") {
                Some(issuing) if text(&issuing, "status") == "True" => {
                    HealthVerdict::unknown(Reason::new("Issuing", text(&issuing, "message")))
                }
                _ => HealthVerdict::unhealthy(Reason::new("NotReady", message)),
            },
            _ => HealthVerdict::unknown(Reason::new("ReadyUnknown", message)),
        })
    }
}

bulkhead_sdk::export!(Certificate: HealthInterpreter);
