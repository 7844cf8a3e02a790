//! Holds old copies during a change freeze.
//!
//! Configuration: `{"namespaces": ["default"], "message": "quarter-end"}`. Without namespaces, all evictions are
//! held.

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChangeFreeze {
    namespaces: Vec<String>,
    message: String,
}

impl Plugin for ChangeFreeze {
    const NAME: &'static str = "hold-during-freeze";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Holds old copies during a change freeze";
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "namespaces": {"type": "array", "items": {"type": "string"}},
            "message": {"type": "string"}
        },
        "additionalProperties": false,
        "examples": [null, {"namespaces": ["default"], "message": "quarter-end"}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl EvictionCheck for ChangeFreeze {
    fn check(&self, binding: &Binding, task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let namespace = binding.namespace().unwrap_or_default();
        if !self.namespaces.is_empty() && !self.namespaces.contains(&namespace) {
            return Ok(EvictionVerdict::Abstain);
        }
        let cluster = task.from_cluster();
        let why = if self.message.is_empty() {
            "change freeze"
        } else {
            &self.message
        };
        Ok(EvictionVerdict::hold(Reason::new(
            "ChangeFreeze",
            format!("{why}: nothing is deleted on {cluster}"),
        )))
    }
}

bulkhead_sdk::export!(ChangeFreeze: EvictionCheck);
