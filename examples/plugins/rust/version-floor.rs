//! Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others.

use bulkhead_sdk::{Binding, Clusters, Filter, FilterVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Floor {
    minimum: String,
}

impl Default for Floor {
    fn default() -> Self {
        Self { minimum: "1.28".to_owned() }
    }
}

impl Plugin for Floor {
    const NAME: &'static str = "version-floor";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {"minimum": {"type": "string", "pattern": "^[0-9]{1,4}[.][0-9]{1,4}$"}},
        "additionalProperties": false,
        "examples": [null, {"minimum": "1.30"}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

/// Returns the major and minor number of a version such as `v1.30.2`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Filter for Floor {
    fn filter(&self, _binding: &Binding, candidates: &Clusters) -> Result<Vec<FilterVerdict>, PolicyError> {
        let minimum = version(&self.minimum);
        let verdict = |text: Option<String>| {
            let text = text.unwrap_or_default();
            match version(&text) {
                None => FilterVerdict::Abstain,
                found if found >= minimum => FilterVerdict::Fit,
                _ => {
                    let message = format!("it runs {text}, and {} is needed", self.minimum);
                    FilterVerdict::Unfit(Reason::new("VersionTooOld", message))
                }
            }
        };
        Ok(candidates.text("/status/kubernetesVersion").into_iter().map(verdict).collect())
    }
}

bulkhead_sdk::export!(Floor: Filter);
