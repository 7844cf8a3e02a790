//! Restricts workloads to clusters that have a label.
//!
//! Configuration: `{"key": "tier", "value": "gold"}`; without `value`, any value of the label is accepted.

use bulkhead_sdk::{Binding, Clusters, Filter, FilterVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequireLabel {
    key: String,
    value: Option<String>,
}

impl Plugin for RequireLabel {
    const NAME: &'static str = "require-label";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Lets workloads run only on clusters with a label";
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {"key": {"type": "string", "minLength": 1}, "value": {"type": "string"}},
        "required": ["key"],
        "additionalProperties": false,
        "examples": [{"key": "tier", "value": "gold"}, {"key": "tier"}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        bulkhead_sdk::config(config)
    }
}

impl Filter for RequireLabel {
    fn filter(&self, _binding: &Binding, candidates: &Clusters) -> Result<Vec<FilterVerdict>, PolicyError> {
        let verdict = |label: Option<String>| match (label, &self.value) {
            (Some(_), None) => FilterVerdict::Fit,
            (Some(found), Some(wanted)) if found == *wanted => FilterVerdict::Fit,
            (Some(found), _) => {
                FilterVerdict::Unfit(Reason::new("WrongLabel", format!("label {} is {found}", self.key)))
            }
            (None, _) => FilterVerdict::Unfit(Reason::new("NoLabel", format!("no label {}", self.key))),
        };
        Ok(candidates.label(&self.key).into_iter().map(verdict).collect())
    }
}

bulkhead_sdk::export!(RequireLabel: Filter);
