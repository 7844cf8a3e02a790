//! Reports a StatefulSet as healthy while a share of its replicas is ready.

use bulkhead_sdk::{HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Share {
    percent: i64,
}

impl Default for Share {
    fn default() -> Self {
        Self { percent: 100 }
    }
}

impl Plugin for Share {
    const NAME: &'static str = "replica-share";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("apps/v1", "StatefulSet")];
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {"percent": {"type": "integer", "minimum": 1, "maximum": 100}},
        "additionalProperties": false,
        "examples": [null, {"percent": 50}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl HealthInterpreter for Share {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        let count = |pointer: &str, default| observed.get_s64(pointer).unwrap_or(default).clamp(0, i64::from(i32::MAX));
        let (desired, ready) = (count("/spec/replicas", 1), count("/status/readyReplicas", 0));
        if desired == 0 {
            return Ok(HealthVerdict::healthy(Reason::new("NoReplicas", "")));
        }
        let needed = (self.percent * desired + 99) / 100;
        let message = format!("{ready} of {desired} replicas are ready, {needed} are needed");
        Ok(if ready >= needed {
            HealthVerdict::healthy(Reason::new("EnoughReplicas", message))
        } else {
            HealthVerdict::unhealthy(Reason::new("TooFewReplicas", message))
        })
    }
}

bulkhead_sdk::export!(Share: HealthInterpreter);
