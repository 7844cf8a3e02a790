//! Scores clusters of one region above all others.
//!
//! Configuration: `{"region": "eu-west"}`.

use bulkhead_sdk::{Binding, Clusters, Plugin, PolicyError, Score};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreferRegion {
    region: String,
}

impl Plugin for PreferRegion {
    const NAME: &'static str = "prefer-region";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Scores clusters of one region above all others";
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {"region": {"type": "string"}},
        "required": ["region"],
        "additionalProperties": false,
        "examples": [{"region": "eu-west"}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        bulkhead_sdk::config(config)
    }
}

impl Score for PreferRegion {
    fn score(&self, _binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError> {
        Ok(feasible
            .regions()
            .iter()
            .map(|region| if *region == self.region { 100 } else { 0 })
            .collect())
    }
}

bulkhead_sdk::export!(PreferRegion: Score);
