//! Holds evictions in business hours, Monday to Friday in UTC.

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BusinessHours {
    open: i64,
    close: i64,
}

impl Default for BusinessHours {
    fn default() -> Self {
        Self { open: 8, close: 18 }
    }
}

impl Plugin for BusinessHours {
    const NAME: &'static str = "business-hours";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {
            "open": {"type": "integer", "minimum": 0, "maximum": 24},
            "close": {"type": "integer", "minimum": 0, "maximum": 24}
        },
        "additionalProperties": false,
        "examples": [null, {"open": 7, "close": 20}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl EvictionCheck for BusinessHours {
    fn check(&self, _binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let now = bulkhead_sdk::now_ms().div_euclid(1000);
        let (day, second) = (now.div_euclid(86400), now.rem_euclid(86400));
        // 1970 began on a Thursday.
        let is_workday = (day + 3).rem_euclid(7) < 5;
        if !is_workday || second < self.open * 3600 || second >= self.close * 3600 {
            return Ok(EvictionVerdict::Release(Reason::new("OutOfHours", "")));
        }
        let message = format!("evictions wait until {:02}:00 UTC", self.close);
        let recheck = u32::try_from(self.close * 3600 - second).unwrap_or(u32::MAX);
        Ok(EvictionVerdict::hold_for(Reason::new("BusinessHours", message), recheck))
    }
}

bulkhead_sdk::export!(BusinessHours: EvictionCheck);
