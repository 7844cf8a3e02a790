//! Scores clusters by the free share of a resource.
//!
//! Configuration: `{"resource": "memory"}`; the default is `cpu`.

use bulkhead_sdk::{Binding, Clusters, Plugin, PolicyError, Score};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MostFree {
    resource: String,
}

impl Default for MostFree {
    fn default() -> Self {
        Self {
            resource: "cpu".to_owned(),
        }
    }
}

impl Plugin for MostFree {
    const NAME: &'static str = "most-free";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Scores clusters by the share of a resource that is free";
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

/// Returns the share in percent; 0 for a cluster that does not report the resource (both numbers are NaN).
fn share(free: f64, all: f64) -> u32 {
    if all > 0.0 {
        (free / all * 100.0).clamp(0.0, 100.0) as u32
    } else {
        0
    }
}

impl Score for MostFree {
    fn score(&self, _binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError> {
        let columns = feasible
            .free(&self.resource)
            .into_iter()
            .zip(feasible.allocatable(&self.resource));
        Ok(columns.map(|(free, all)| share(free, all)).collect())
    }
}

bulkhead_sdk::export!(MostFree: Score);
