//! Taints a cluster whose condition `Ready` keeps changing, and removes the taint when it has been stable for a while.

use std::ops::Range;

use bulkhead_sdk::{
    Cluster, ClusterTaint, ConditionStatus, Plugin, PolicyError, Reason, TaintChange, TaintEffect, Value,
};
use serde::Deserialize;

const KEY: &str = "example.io/flapping";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Flapping {
    changes: usize,
    window_seconds: i64,
}

impl Default for Flapping {
    fn default() -> Self {
        Self { changes: 3, window_seconds: 600 }
    }
}

impl Plugin for Flapping {
    const NAME: &'static str = "condition-history";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const TAINT_KEYS: &'static [&'static str] = &[KEY];
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "changes": {"type": "integer", "minimum": 1, "maximum": 7},
            "windowSeconds": {"type": "integer", "minimum": 1, "maximum": 86400}
        },
        "additionalProperties": false,
        "examples": [null, {"changes": 5, "windowSeconds": 3600}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

/// Returns the seconds of a time such as `2026-07-01T12:30:00Z` since the Unix epoch.
fn seconds(time: &str) -> Option<i64> {
    let number = |digits: Range<usize>| time.get(digits)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 719_469;
    Some(days * 86400 + number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?)
}

impl ClusterTaint for Flapping {
    fn decide(&self, cluster: &Cluster) -> Result<Vec<TaintChange>, PolicyError> {
        let (now, window) = (bulkhead_sdk::now_ms().div_euclid(1000), self.window_seconds);
        let is_recent = |since: &Option<Value>| match since {
            Some(Value::Text(time)) => seconds(time).is_some_and(|time| now - time < window),
            _ => false,
        };
        // The first entry is the start of the history.
        let history = cluster.document().get_each("/conditionHistory/Ready", "/since");
        let recent = history.iter().skip(1).filter(|since| is_recent(since)).count();
        let is_ready = cluster.condition("Ready").is_some_and(|ready| ready.status == ConditionStatus::True);
        let is_tainted = cluster.taints().iter().any(|taint| taint.key == KEY);
        let effect = TaintEffect::NoSchedule;
        Ok(if !is_tainted && recent >= self.changes {
            let message = format!("the condition Ready has changed {recent} times in {window} s");
            vec![TaintChange::add_taint(KEY, effect, Reason::new("Flapping", message))]
        } else if is_tainted && is_ready && recent == 0 {
            let message = format!("the condition Ready has not changed in {window} s");
            vec![TaintChange::remove_taint(KEY, effect, Reason::new("Stable", message))]
        } else {
            Vec::new()
        })
    }
}

bulkhead_sdk::export!(Flapping: ClusterTaint);
