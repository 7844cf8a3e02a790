//! Holds an eviction until other healthy copies run in a majority of the zones.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_sdk::{
    Binding, EvictionCheck, EvictionTask, EvictionVerdict, HealthState, Plugin, PolicyError, Reason,
};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Quorum {
    /// Zone by name of the cluster.
    zones: BTreeMap<String, String>,
}

impl Plugin for Quorum {
    const NAME: &'static str = "quorum-by-zone";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {"zones": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
        "additionalProperties": false,
        "examples": [null, {"zones": {"member1": "a", "member2": "b", "member3": "c"}}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl EvictionCheck for Quorum {
    fn check(&self, binding: &Binding, task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let all = self.zones.values().collect::<BTreeSet<_>>().len();
        if all == 0 {
            return Ok(EvictionVerdict::Abstain);
        }
        let (from, reports) = (task.from_cluster(), binding.observed());
        let healthy: BTreeSet<_> = reports
            .clusters()
            .iter()
            .zip(reports.health())
            .filter(|(cluster, health)| **cluster != from && *health == Some(HealthState::Healthy))
            .filter_map(|(cluster, _)| self.zones.get(cluster))
            .collect();
        let (found, needed) = (healthy.len(), all / 2 + 1);
        let message = format!("healthy copies in {found} of {all} zones");
        Ok(if found >= needed {
            EvictionVerdict::Release(Reason::new("Quorum", message))
        } else {
            EvictionVerdict::hold(Reason::new("NoQuorum", format!("{message}, {needed} are needed")))
        })
    }
}

bulkhead_sdk::export!(Quorum: EvictionCheck);
