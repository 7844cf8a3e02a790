//! Holds old copies during a change freeze.
//!
//! Configuration: `{"namespaces": ["default"], "message": "quarter-end"}`. Without namespaces everything is held.

use bulkhead_sdk::{Document, EvictionCheck, EvictionVerdict, Plugin, PolicyError, Reason};
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
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "namespaces": {"type": "array", "items": {"type": "string"}},
            "message": {"type": "string"}
        },
        "additionalProperties": false
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        let config: Option<Self> =
            serde_json::from_str(config).map_err(|error| PolicyError::InvalidConfig(error.to_string()))?;
        Ok(config.unwrap_or_default())
    }
}

impl EvictionCheck for ChangeFreeze {
    fn check(&self, binding: &Document, task: &Document, _now_s: i64) -> Result<EvictionVerdict, PolicyError> {
        let namespace = binding.get_string("/namespace").unwrap_or_default();
        if !self.namespaces.is_empty() && !self.namespaces.contains(&namespace) {
            return Ok(EvictionVerdict::Abstain);
        }
        let cluster = task.get_string("/fromCluster").unwrap_or_default();
        let why = if self.message.is_empty() { "change freeze" } else { &self.message };
        Ok(EvictionVerdict::hold(Reason::new("ChangeFreeze", format!("{why}: nothing is deleted on {cluster}"))))
    }
}

bulkhead_sdk::export_eviction_check!(ChangeFreeze);
