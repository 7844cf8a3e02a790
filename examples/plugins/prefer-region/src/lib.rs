//! Scores clusters of one region above all others.
//!
//! Configuration: `{"region": "eu-west"}`.

use bulkhead_sdk::{Clusters, Document, Plugin, PolicyError, Score};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreferRegion {
    region: String,
}

impl Plugin for PreferRegion {
    const NAME: &'static str = "prefer-region";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {"region": {"type": "string"}},
        "required": ["region"],
        "additionalProperties": false
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        serde_json::from_str(config).map_err(|error| PolicyError::InvalidConfig(error.to_string()))
    }
}

impl Score for PreferRegion {
    fn score(&self, _binding: &Document, feasible: &Clusters, _now_s: i64) -> Result<Vec<u32>, PolicyError> {
        let wanted = serde_json::to_string(&self.region).unwrap_or_default();
        let score = |index| if feasible.get(index, "/spec/region").as_ref() == Some(&wanted) { 100 } else { 0 };
        Ok((0..feasible.len()).map(score).collect())
    }
}

bulkhead_sdk::export_scheduler_score!(PreferRegion);
