//! Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported.

use bulkhead_sdk::{Binding, Clusters, Plugin, PolicyError, Score};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Share {
    resource: String,
}

impl Default for Share {
    fn default() -> Self {
        Self { resource: "cpu".to_owned() }
    }
}

impl Plugin for Share {
    const NAME: &'static str = "free-share";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {"resource": {"type": "string", "minLength": 1}},
        "additionalProperties": false,
        "examples": [null, {"resource": "memory"}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl Score for Share {
    fn score(&self, _binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError> {
        let score = |(free, all): (f64, f64)| if all > 0.0 { (100.0 * free / all).clamp(0.0, 100.0) as u32 } else { 0 };
        let amounts = feasible.free(&self.resource).into_iter().zip(feasible.allocatable(&self.resource));
        Ok(amounts.map(score).collect())
    }
}

bulkhead_sdk::export!(Share: Score);
