//! Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0.

use std::collections::BTreeMap;

use bulkhead_sdk::{Binding, Clusters, Plugin, PolicyError, Score};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Costs {
    prices: BTreeMap<String, u32>,
}

impl Plugin for Costs {
    const NAME: &'static str = "cost-by-region";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "prices": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1000000}}
        },
        "additionalProperties": false,
        "examples": [null, {"prices": {"eu-west": 40, "us-east": 30}}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl Score for Costs {
    fn score(&self, _binding: &Binding, feasible: &Clusters) -> Result<Vec<u32>, PolicyError> {
        let cheapest = self.prices.values().min().copied().unwrap_or(0);
        let score = |region: &String| self.prices.get(region).map_or(0, |price| 100 * cheapest / price);
        Ok(feasible.regions().iter().map(score).collect())
    }
}

bulkhead_sdk::export!(Costs: Score);
