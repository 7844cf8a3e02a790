//! Settings with Karmada's names and defaults (Karmada: `cmd/controller-manager/app/options`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bulkhead_core::model::PurgeMode;
use bulkhead_core::pod::Detail;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::interpreter::NoInterpreter;

/// A duration spelled as Go spells it, for example `10s`, `1m30s`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GoDuration(pub Duration);

impl GoDuration {
    /// A whole number of seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Whole seconds, cut.
    pub fn as_secs(self) -> i64 {
        i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX)
    }
}

impl std::str::FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration such as 10s, 1m30s or 500ms");
        if text == "0" {
            return Ok(Self::default());
        }
        let (mut rest, mut total_ms) = (text, 0_f64);
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
            let unit_ms = match &rest[..unit_end] {
                "ms" => 1.0,
                "s" => 1_000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                _ => return Err(wrong()),
            };
            total_ms += number * unit_ms;
            rest = &rest[unit_end..];
        }
        if total_ms > 1e15 {
            return Err(wrong());
        }
        Ok(Self(Duration::from_millis(total_ms.round() as u64)))
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        if ms == 0 {
            return f.write_str("0s");
        }
        let (hours, minutes, seconds, millis) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        for (amount, unit) in [(hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms")] {
            if amount > 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The feature gates that exist so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FeatureGate {
    /// Taint manager and ClusterTaintPolicy controller. Off by default, as in Karmada.
    Failover,
    /// Grades of nodes replace resource summaries when the scheduler estimates room. On by default.
    CustomizedClusterResourceModeling,
    /// Workloads of several components are placed as complete sets. Off by default.
    MultiplePodTemplatesScheduling,
    /// What was placed a moment ago counts as taken. Off by default.
    SchedulingOvercommitProtection,
    /// Groups of workloads that must or must not run beside each other. Off by default.
    WorkloadAffinity,
    /// Requirements of replicas tell the priority class and the namespace. Off by default.
    ResourceQuotaEstimate,
}

/// Settings of the controllers. Names, defaults and meaning are Karmada's unless a line says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Flags {
    /// Gates that differ from their default.
    pub feature_gates: BTreeMap<FeatureGate, bool>,
    /// How often a member cluster is probed, counted from the end of the last probe.
    pub cluster_status_update_frequency: GoDuration,
    /// For how long a cluster must answer before it is Ready again.
    pub cluster_success_threshold: GoDuration,
    /// For how long a cluster must fail before it is not Ready.
    pub cluster_failure_threshold: GoDuration,
    /// How often the leases of Pull clusters are looked at.
    pub cluster_monitor_period: GoDuration,
    /// For how long a Pull cluster's lease may be stale before it is Unknown.
    pub cluster_monitor_grace_period: GoDuration,
    /// The same for a Pull cluster that never reported.
    pub cluster_startup_grace_period: GoDuration,
    /// How long a Pull agent's lease lasts; it is renewed after a quarter of that.
    pub cluster_lease_duration: GoDuration,
    /// Whether `NoExecute` taints evict.
    pub enable_no_execute_taint_eviction: bool,
    /// Whether the taint manager runs at all.
    pub enable_taint_manager: bool,
    /// What happens to old copies where the policy does not say.
    pub no_execute_taint_eviction_purge_mode: PurgeMode,
    /// Evictions per second. Unlike Karmada's it is the rate of the whole process, whatever the number of workers;
    /// only evictions count, not items that turn out to need none; and 0 stops eviction.
    pub resource_eviction_rate: f64,
    /// How long an eviction task without its own grace period may last.
    pub graceful_eviction_timeout: GoDuration,
    /// Not in current Karmada: after how long a cluster that is not Ready gets a `NoExecute` taint by itself, as
    /// before version 1.14. 0 is never.
    pub failover_eviction_timeout: GoDuration,
    /// Whether ClusterTaintPolicies may add `NoExecute` taints.
    pub allow_no_execute_taint_policy: bool,
    /// Name under which the scheduler serves bindings.
    pub scheduler_name: String,
    /// Which filter and score plugins the scheduler asks: names, `*` for all, `-name` for all but that one.
    pub plugins: Vec<String>,
    /// Whether selected clusters without a replica become targets too.
    pub enable_empty_workload_propagation: bool,
    /// Not in Karmada: what counts for objects whose health nobody interprets; there they are healthy.
    pub health_without_interpreter: NoInterpreter,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            feature_gates: BTreeMap::new(),
            cluster_status_update_frequency: GoDuration::from_secs(10),
            cluster_success_threshold: GoDuration::from_secs(30),
            cluster_failure_threshold: GoDuration::from_secs(30),
            cluster_monitor_period: GoDuration::from_secs(5),
            cluster_monitor_grace_period: GoDuration::from_secs(40),
            cluster_startup_grace_period: GoDuration::from_secs(60),
            cluster_lease_duration: GoDuration::from_secs(40),
            enable_no_execute_taint_eviction: false,
            enable_taint_manager: true,
            no_execute_taint_eviction_purge_mode: PurgeMode::Gracefully,
            resource_eviction_rate: 0.5,
            graceful_eviction_timeout: GoDuration::from_secs(600),
            failover_eviction_timeout: GoDuration::from_secs(0),
            allow_no_execute_taint_policy: false,
            scheduler_name: "default-scheduler".to_owned(),
            plugins: vec!["*".to_owned()],
            enable_empty_workload_propagation: false,
            health_without_interpreter: NoInterpreter::Healthy,
        }
    }
}

impl Flags {
    /// Whether a gate is on.
    pub fn gate(&self, gate: FeatureGate) -> bool {
        let default = match gate {
            FeatureGate::CustomizedClusterResourceModeling => true,
            FeatureGate::Failover
            | FeatureGate::MultiplePodTemplatesScheduling
            | FeatureGate::SchedulingOvercommitProtection
            | FeatureGate::WorkloadAffinity
            | FeatureGate::ResourceQuotaEstimate => false,
        };
        self.feature_gates.get(&gate).copied().unwrap_or(default)
    }

    /// What interpreters tell of pods.
    pub fn pod_detail(&self) -> Detail {
        if self.gate(FeatureGate::ResourceQuotaEstimate) { Detail::PriorityClass } else { Detail::Plain }
    }

    /// Whether the values are in range. The error names the flag and says what would be right.
    pub fn validate(&self) -> Result<(), String> {
        let periods = [
            ("cluster-status-update-frequency", self.cluster_status_update_frequency),
            ("cluster-monitor-period", self.cluster_monitor_period),
            ("cluster-monitor-grace-period", self.cluster_monitor_grace_period),
            ("cluster-startup-grace-period", self.cluster_startup_grace_period),
            ("cluster-lease-duration", self.cluster_lease_duration),
        ];
        for (name, period) in periods {
            if period.0.is_zero() {
                return Err(format!("{name}: must be greater than 0"));
            }
        }
        if !self.resource_eviction_rate.is_finite() || self.resource_eviction_rate < 0.0 {
            return Err("resource-eviction-rate: must be 0 (stop) or a positive number of evictions per second".into());
        }
        if self.no_execute_taint_eviction_purge_mode == PurgeMode::Never {
            return Err("no-execute-taint-eviction-purge-mode: must be Gracefully or Directly".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_spelled_as_in_go() {
        let check = |text: &str, millis: Option<u64>| {
            let parsed = text.parse::<GoDuration>().ok().map(|duration| duration.0.as_millis() as u64);
            assert_eq!(parsed, millis, "{text:?}");
        };
        check("10s", Some(10_000));
        check("1m30s", Some(90_000));
        check("500ms", Some(500));
        check("1.5h", Some(5_400_000));
        check("0", Some(0));
        check("0s", Some(0));
        check("", None);
        check("10", None);
        check("s", None);
        check("10 s", None);
        check("-5s", None);
        assert_eq!(GoDuration(Duration::from_millis(90_500)).to_string(), "1m30s500ms");
    }
}
