//! Holds an eviction until the old copy reports a complete backup, or until that takes too long.

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

/// Seconds between two checks.
const RECHECK: i64 = 30;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Backup {
    max_seconds: i64,
}

impl Default for Backup {
    fn default() -> Self {
        Self { max_seconds: 3600 }
    }
}

impl Plugin for Backup {
    const NAME: &'static str = "backup-first";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REUSABLE: bool = true;
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": ["object", "null"],
        "properties": {"maxSeconds": {"type": "integer", "minimum": 1, "maximum": 604800}},
        "additionalProperties": false,
        "examples": [null, {"maxSeconds": 600}]
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        Ok(bulkhead_sdk::config::<Option<Self>>(config)?.unwrap_or_default())
    }
}

impl EvictionCheck for Backup {
    fn check(&self, binding: &Binding, task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let (from, reports) = (task.from_cluster(), binding.observed());
        let phases = reports.clusters().into_iter().zip(reports.text("/backup/phase"));
        let phase = phases.filter(|(cluster, _)| *cluster == from).find_map(|(_, phase)| phase);
        let phase = phase.unwrap_or_else(|| "missing".to_owned());
        if phase == "Completed" {
            return Ok(EvictionVerdict::Release(Reason::new("BackupCompleted", "")));
        }
        let message = format!("the backup in {from} is {phase}");
        let now = bulkhead_sdk::now_ms().div_euclid(1000);
        let left = task.since_s().map_or(RECHECK, |since| self.max_seconds - (now - since));
        if left <= 0 {
            let message = format!("{message} after {} s", self.max_seconds);
            return Ok(EvictionVerdict::Release(Reason::new("BackupOverdue", message)));
        }
        let recheck = u32::try_from(left.min(RECHECK)).unwrap_or(u32::MAX);
        Ok(EvictionVerdict::hold_for(Reason::new("BackupPending", message), recheck))
    }
}

bulkhead_sdk::export!(Backup: EvictionCheck);
