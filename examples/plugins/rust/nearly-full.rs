//! Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again.

use bulkhead_sdk::{Cluster, ClusterTaint, Plugin, PolicyError, Reason, TaintChange, TaintEffect};
use serde::Deserialize;

const KEY: &str = "example.io/nearly-full";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Limits {
    add_at_percent: u32,
    remove_below_percent: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { add_at_percent: 90, remove_below_percent: 75 }
    }
}

impl Plugin for Limits {
    const NAME: &'static str = "nearly-full";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const TAINT_KEYS: &'static [&'static str] = &[KEY];
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "addAtPercent": {"type": "integer", "minimum": 1, "maximum": 100},
            "removeBelowPercent": {"type": "integer", "minimum": 1, "maximum": 100}
        },
        "additionalProperties": false,
        "examples": [null, {"addAtPercent": 95, "removeBelowPercent": 80}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl ClusterTaint for Limits {
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError> {
        let document = cluster.document();
        let pods = |pointer| document.get_quantity_milli(pointer).unwrap_or(0);
        let allocatable = pods("/status/resourceSummary/allocatable/pods");
        let allocated = pods("/status/resourceSummary/allocated/pods");
        if allocatable <= 0 {
            return Ok(Vec::new());
        }
        let used = (100.0 * allocated.max(0) as f64 / allocatable as f64).min(999.0) as u32;
        let message = format!("{used} % of the pods are in use");
        let is_tainted = cluster.taints().iter().any(|taint| taint.key == KEY);
        let effect = TaintEffect::PreferNoSchedule;
        Ok(if !is_tainted && used >= self.add_at_percent {
            vec![TaintChange::add_taint(KEY, effect, Reason::new("NearlyFull", message))]
        } else if is_tainted && used < self.remove_below_percent {
            vec![TaintChange::remove_taint(KEY, effect, Reason::new("RoomForPods", message))]
        } else {
            Vec::new()
        })
    }
}

bulkhead_sdk::export!(Limits: ClusterTaint);
