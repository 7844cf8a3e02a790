//! Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer.

use bulkhead_sdk::{Cluster, ClusterTaint, ConditionStatus, Plugin, PolicyError, Reason, TaintChange, TaintEffect};
use serde::Deserialize;

const KEY: &str = "example.io/unstable";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Limits {
    add_after_seconds: i64,
    remove_after_seconds: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { add_after_seconds: 60, remove_after_seconds: 300 }
    }
}

impl Plugin for Limits {
    const NAME: &'static str = "condition-history";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const TAINT_KEYS: &'static [&'static str] = &[KEY];
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "addAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 86400},
            "removeAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 86400}
        },
        "additionalProperties": false,
        "examples": [null, {"addAfterSeconds": 30, "removeAfterSeconds": 600}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl ClusterTaint for Limits {
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError> {
        let Some(ready) = cluster.condition("Ready") else { return Ok(Vec::new()) };
        let Some(since) = ready.last_transition_s else { return Ok(Vec::new()) };
        let age = bulkhead_sdk::now_ms().div_euclid(1000) - since;
        let is_ready = ready.status == ConditionStatus::True;
        let is_tainted = cluster.taints().iter().any(|taint| taint.key == KEY);
        let effect = TaintEffect::NoSchedule;
        let (add_after, remove_after) = (self.add_after_seconds, self.remove_after_seconds);
        Ok(if !is_ready && !is_tainted && age >= add_after {
            let message = format!("not ready for {age} s, the limit is {add_after} s");
            vec![TaintChange::add_taint(KEY, effect, Reason::new("NotReadyForLong", message))]
        } else if is_ready && is_tainted && age >= remove_after {
            let message = format!("ready for {age} s, the limit is {remove_after} s");
            vec![TaintChange::remove_taint(KEY, effect, Reason::new("ReadyForLong", message))]
        } else {
            Vec::new()
        })
    }
}

bulkhead_sdk::export!(Limits: ClusterTaint);
