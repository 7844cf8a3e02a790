//! Lets workloads run only on clusters with the configured labels.

use bulkhead_sdk::{Binding, Clusters, Filter, FilterVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Required {
    labels: Vec<Label>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    key: String,
    /// Any value fits if it is absent.
    value: Option<String>,
}

impl Plugin for Required {
    const NAME: &'static str = "label-filter";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "labels": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"key": {"type": "string", "minLength": 1}, "value": {"type": "string"}},
                    "required": ["key"],
                    "additionalProperties": false
                }
            }
        },
        "additionalProperties": false,
        "examples": [null, {"labels": [{"key": "tier", "value": "gold"}, {"key": "example.io/audited"}]}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl Filter for Required {
    fn filter(&self, _binding: &Binding, candidates: &Clusters) -> Result<Vec<FilterVerdict>, PolicyError> {
        let mut verdicts = vec![FilterVerdict::Fit; candidates.len() as usize];
        // The first label that a cluster lacks is the reason.
        for Label { key, value } in &self.labels {
            for (verdict, found) in verdicts.iter_mut().zip(candidates.label(key)) {
                if !matches!(verdict, FilterVerdict::Fit) {
                    continue;
                }
                *verdict = match (found, value) {
                    (None, _) => FilterVerdict::Unfit(Reason::new("LabelMissing", format!("no label {key}"))),
                    (Some(found), Some(value)) if found != *value => {
                        let message = format!("label {key} is {found}, not {value}");
                        FilterVerdict::Unfit(Reason::new("LabelDiffers", message))
                    }
                    _ => FilterVerdict::Fit,
                };
            }
        }
        Ok(verdicts)
    }
}

bulkhead_sdk::export!(Required: Filter);
