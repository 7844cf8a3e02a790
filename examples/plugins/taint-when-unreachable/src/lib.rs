//! Taints a cluster that has not been ready for a configurable time and removes the taint when it is ready again.
//!
//! Configuration: `{"afterSeconds": 300}`.

use bulkhead_sdk::{Cluster, ClusterTaint, ConditionStatus, Plugin, PolicyError, Reason, TaintChange, TaintEffect};
use serde::Deserialize;

const KEY: &str = "example.io/unreachable";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TaintWhenUnreachable {
    after_seconds: u32,
}

impl Plugin for TaintWhenUnreachable {
    const NAME: &'static str = "taint-when-unreachable";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Taints a cluster that has not been ready for some time";
    const TAINT_KEYS: &'static [&'static str] = &[KEY];
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {"afterSeconds": {"type": "integer", "minimum": 0, "maximum": 86400}},
        "required": ["afterSeconds"],
        "additionalProperties": false,
        "examples": [{"afterSeconds": 300}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        bulkhead_sdk::config(config)
    }
}

impl ClusterTaint for TaintWhenUnreachable {
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError> {
        let tainted = cluster.taints().iter().any(|taint| taint.key == KEY);
        let Some(ready) = cluster.condition("Ready") else {
            return Ok(Vec::new());
        };
        if ready.status == ConditionStatus::True {
            let removal = || {
                let reason = Reason::new("Ready", "the cluster is ready again");
                TaintChange::remove_taint(KEY, TaintEffect::NoExecute, reason)
            };
            return Ok(if tainted { vec![removal()] } else { Vec::new() });
        }
        let now_s = bulkhead_sdk::now_ms().div_euclid(1000);
        let for_s = now_s.saturating_sub(ready.last_transition_s.unwrap_or(now_s));
        if tainted || for_s < i64::from(self.after_seconds) {
            return Ok(Vec::new());
        }
        let reason = Reason::new("Unreachable", format!("not ready for {for_s} s ({})", ready.reason));
        Ok(vec![TaintChange::add_taint(KEY, TaintEffect::NoExecute, reason)])
    }
}

bulkhead_sdk::export!(TaintWhenUnreachable: ClusterTaint);
