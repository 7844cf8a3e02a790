//! Settings with Karmada's names and defaults (Karmada: `cmd/controller-manager/app/options`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bulkhead_api::admission::AdmissionOptions;
use bulkhead_core::decide::evict::EvictOptions;
use bulkhead_core::decide::eviction::{BrakeBy, BrakeSettings, PreCheck, Rate};
use bulkhead_core::decide::finish::{FinishOptions, PurgeWithoutReplacement, ReplacementHealth, RestoreSource};
use bulkhead_core::model::PurgeMode;
use bulkhead_core::pod::Detail;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::interpreter::NoInterpreter;
use crate::webhook::WebhookTransport;

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

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "duration"})
    }
}

/// The feature gates that exist so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum FeatureGate {
    /// Taint manager and ClusterTaintPolicy controller. Off by default, as in Karmada.
    Failover,
    /// Applications leave in mode `Gracefully`. On by default.
    GracefulEviction,
    /// Labels carry a piece of the old copy's status over to the new one. Off by default.
    StatefulFailoverInjection,
    /// Grades of nodes replace resource summaries when the scheduler estimates room. On by default.
    CustomizedClusterResourceModeling,
    /// Workloads of several components are placed as complete sets. Off by default.
    MultiplePodTemplatesScheduling,
    /// What was placed a moment ago counts as taken. Off by default.
    SchedulingOvercommitProtection,
    /// Bindings get the value of the PriorityClass that their policy names. On by default.
    PriorityBasedScheduling,
    /// Groups of workloads that must or must not run beside each other. Off by default.
    WorkloadAffinity,
    /// Requirements of replicas tell the priority class and the namespace. Off by default.
    ResourceQuotaEstimate,
    /// What a workload depends on goes where it goes, if its policy says `propagateDeps`. On by default.
    PropagateDeps,
    /// Taints of effect `PreferNoExecute`, as the proposal "Optimize Cluster Failover" describes them. Off by default.
    PreferNoExecute,
}

/// Settings of the controllers. Names, defaults and meaning are Karmada's unless a line says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Whether nodes and pods of member clusters are counted and summed up.
    pub enable_cluster_resource_modeling: bool,
    /// Whether `NoExecute` taints evict.
    pub enable_no_execute_taint_eviction: bool,
    /// Whether the taint manager runs at all.
    pub enable_taint_manager: bool,
    /// What happens to old copies where the policy does not say.
    pub no_execute_taint_eviction_purge_mode: PurgeMode,
    /// Evictions per second. Unlike Karmada's it is the rate of the whole process, whatever the number of workers;
    /// only evictions count, not items that turn out to need none; and 0 stops eviction.
    pub resource_eviction_rate: f64,
    /// Not in Karmada: evictions per second from any one cluster, within the rate above. Absent is no limit of its own.
    pub resource_eviction_rate_per_cluster: Option<f64>,
    /// Only proposed for Karmada: the rate while too many of many clusters fail.
    pub secondary_resource_eviction_rate: f64,
    /// Only proposed for Karmada: the share of clusters that fail, from 0 to 1, above which evictions slow down or
    /// stop; the proposal has 0.55. 1, the default, switches that off; when every cluster fails at once, nothing moves
    /// whatever this says.
    pub unhealthy_cluster_threshold: f64,
    /// Only proposed for Karmada: with more clusters than this, evictions slow down; with fewer, they stop.
    pub large_cluster_num_threshold: usize,
    /// Not in Karmada: which clusters the threshold looks at together.
    pub eviction_brake_by: BrakeBy,
    /// Only proposed for Karmada: what must be true of other clusters before a binding is evicted.
    pub eviction_pre_check: PreCheck,
    /// Not in Karmada: after how long in the queue an eviction is over age; one slot in four then goes to the oldest.
    /// 0 is never.
    pub eviction_aging: GoDuration,
    /// How long an eviction task without its own grace period may last.
    pub graceful_eviction_timeout: GoDuration,
    /// Not in Karmada: what the end of a task's grace period means while no healthy copy replaces the old one.
    /// `after-grace-period` is Karmada's rule.
    pub purge_without_replacement: PurgeWithoutReplacement,
    /// Not in Karmada: whether an eviction is called off when its cluster is well again and the workload found no
    /// other place. `never` is Karmada's rule.
    pub restore_recovered_source: RestoreSource,
    /// Not in Karmada: when a healthy report counts as one of a replacement. `covering` asks it to show as many
    /// available replicas as are placed there, because a report may be older than the placement; `reported` takes its
    /// word, as Karmada does.
    pub replacement_health: ReplacementHealth,
    /// Not in Karmada: whether workloads that a taint drove away go back once their home is well again, the copy that
    /// stands in staying until the one at home is healthy.
    pub enable_failback: bool,
    /// For how long a home must be ready, with the same taints, before anything goes back; twice as long after each
    /// return that did not last.
    pub failback_stabilization_window: GoDuration,
    /// How many workloads may be on their way back at a time.
    pub failback_concurrency: usize,
    /// Not in current Karmada: after how long a cluster that is not Ready gets a `NoExecute` taint by itself, as
    /// before version 1.14. 0 is never.
    pub failover_eviction_timeout: GoDuration,
    /// Whether ClusterTaintPolicies may add `NoExecute` taints.
    pub allow_no_execute_taint_policy: bool,
    /// For how long policies tolerate a cluster that is not ready, in seconds, unless they say otherwise. Karmada's
    /// webhook added 300 until 1.15; absent, as now, adds nothing.
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// The same for a cluster that cannot be reached.
    pub default_unreachable_toleration_seconds: Option<i64>,
    /// Only proposed for Karmada: whether policies may set `failover.cluster.purgeMode: Never`.
    pub allow_never_purging_clusters: bool,
    /// Not in Karmada: whether taints that a ClusterTaintPolicy added, and only those, go when the policy is edited or
    /// deleted or no longer selects the cluster. Without it they stay, and a policy removes others' taints, as there.
    pub cluster_taint_policy_clean_up: bool,
    /// Not in Karmada: a taint of a ClusterTaintPolicy is not removed while a condition that it hangs on changed more
    /// than four times in that time. 0 is no damping.
    pub cluster_taint_policy_damping_window: GoDuration,
    /// Name under which the scheduler serves bindings.
    pub scheduler_name: String,
    /// Which filter and score plugins the scheduler asks: names, `*` for all, `-name` for all but that one.
    pub plugins: Vec<String>,
    /// Whether selected clusters without a replica become targets too.
    pub enable_empty_workload_propagation: bool,
    /// Not in Karmada, where it cannot be switched off: whether the interpreters that come with the program for kinds
    /// of other projects are asked, after customizations and before the native rules.
    pub third_party_interpreters: bool,
    /// Not in Karmada: what counts for objects whose health nobody interprets; there they are healthy.
    pub health_without_interpreter: NoInterpreter,
    /// Not in Karmada: whether webhook interpreters may be asked over plain HTTP and send elsewhere; `karmada` is its rule.
    pub interpreter_webhook_transport: WebhookTransport,
    /// Writes per second that the scheduler may make in the long run.
    pub kube_api_qps: f64,
    /// Writes that the scheduler may make at once.
    pub kube_api_burst: u32,
    /// Whether accurate estimators are asked before a decision.
    pub enable_scheduler_estimator: bool,
    /// Whether those of Pull clusters are left alone.
    pub disable_scheduler_estimator_in_pull_mode: bool,
    /// How long all estimators together may take for one decision.
    pub scheduler_estimator_timeout: GoDuration,
    /// Namespace of the Services of estimators.
    pub scheduler_estimator_service_namespace: String,
    /// What the names of the Services of estimators start with; a hyphen and the cluster's name follow.
    pub scheduler_estimator_service_prefix: String,
    /// Port of estimators.
    pub scheduler_estimator_port: u16,
    /// File with the scheduler's certificate for estimators, PEM; empty for none.
    pub scheduler_estimator_cert_file: String,
    /// File with its key, PEM.
    pub scheduler_estimator_key_file: String,
    /// File with the CA that signs the certificates of estimators, PEM; empty for plain text.
    pub scheduler_estimator_ca_file: String,
    /// Whether estimators may have any certificate.
    pub insecure_skip_estimator_verify: bool,
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
            enable_cluster_resource_modeling: true,
            enable_no_execute_taint_eviction: false,
            enable_taint_manager: true,
            no_execute_taint_eviction_purge_mode: PurgeMode::Gracefully,
            resource_eviction_rate: 0.5,
            resource_eviction_rate_per_cluster: None,
            secondary_resource_eviction_rate: 0.1,
            unhealthy_cluster_threshold: 1.0,
            large_cluster_num_threshold: 10,
            eviction_brake_by: BrakeBy::Federation,
            eviction_pre_check: PreCheck::Feasible,
            eviction_aging: GoDuration::from_secs(600),
            graceful_eviction_timeout: GoDuration::from_secs(600),
            purge_without_replacement: PurgeWithoutReplacement::default(),
            restore_recovered_source: RestoreSource::default(),
            replacement_health: ReplacementHealth::default(),
            enable_failback: false,
            failback_stabilization_window: GoDuration::from_secs(600),
            failback_concurrency: 1,
            failover_eviction_timeout: GoDuration::from_secs(0),
            allow_no_execute_taint_policy: false,
            default_not_ready_toleration_seconds: None,
            default_unreachable_toleration_seconds: None,
            allow_never_purging_clusters: false,
            cluster_taint_policy_clean_up: true,
            cluster_taint_policy_damping_window: GoDuration::from_secs(0),
            scheduler_name: "default-scheduler".to_owned(),
            plugins: vec!["*".to_owned()],
            enable_empty_workload_propagation: false,
            third_party_interpreters: true,
            health_without_interpreter: NoInterpreter::Healthy,
            interpreter_webhook_transport: WebhookTransport::Strict,
            kube_api_qps: 40.0,
            kube_api_burst: 60,
            enable_scheduler_estimator: false,
            disable_scheduler_estimator_in_pull_mode: false,
            scheduler_estimator_timeout: GoDuration::from_secs(3),
            scheduler_estimator_service_namespace: "karmada-system".to_owned(),
            scheduler_estimator_service_prefix: "karmada-scheduler-estimator".to_owned(),
            scheduler_estimator_port: 10352,
            scheduler_estimator_cert_file: String::new(),
            scheduler_estimator_key_file: String::new(),
            scheduler_estimator_ca_file: String::new(),
            insecure_skip_estimator_verify: false,
        }
    }
}

impl Flags {
    /// Whether a gate is on.
    pub fn gate(&self, gate: FeatureGate) -> bool {
        let default = match gate {
            FeatureGate::CustomizedClusterResourceModeling
            | FeatureGate::GracefulEviction
            | FeatureGate::PriorityBasedScheduling
            | FeatureGate::PropagateDeps => true,
            FeatureGate::Failover
            | FeatureGate::StatefulFailoverInjection
            | FeatureGate::MultiplePodTemplatesScheduling
            | FeatureGate::SchedulingOvercommitProtection
            | FeatureGate::WorkloadAffinity
            | FeatureGate::ResourceQuotaEstimate
            | FeatureGate::PreferNoExecute => false,
        };
        self.feature_gates.get(&gate).copied().unwrap_or(default)
    }

    /// Which taints evict, and how. Without the gate nothing moves because of a cluster's health, whoever set the taint;
    /// a drain is a person's word and works all the same.
    pub fn evict_options(&self) -> EvictOptions {
        let failover = self.gate(FeatureGate::Failover) && self.enable_taint_manager;
        EvictOptions {
            no_execute: failover && self.enable_no_execute_taint_eviction,
            prefer_no_execute: failover && self.gate(FeatureGate::PreferNoExecute),
            default_purge_mode: self.no_execute_taint_eviction_purge_mode,
            preserve_state: self.gate(FeatureGate::StatefulFailoverInjection),
        }
    }

    /// Choices about the end of evictions.
    pub fn finish_options(&self) -> FinishOptions {
        FinishOptions {
            timeout_s: self.graceful_eviction_timeout.as_secs(),
            purge_without_replacement: self.purge_without_replacement,
            restore_source: self.restore_recovered_source,
            replacement_health: self.replacement_health,
        }
    }

    /// Switches of the webhooks.
    pub fn admission(&self) -> AdmissionOptions {
        AdmissionOptions {
            allow_no_execute_taint_policy: self.allow_no_execute_taint_policy,
            default_not_ready_toleration_seconds: self.default_not_ready_toleration_seconds,
            default_unreachable_toleration_seconds: self.default_unreachable_toleration_seconds,
            allow_never_purging_clusters: self.allow_never_purging_clusters,
            allow_prefer_no_execute: self.gate(FeatureGate::PreferNoExecute),
        }
    }

    /// What interpreters tell of pods.
    pub fn pod_detail(&self) -> Detail {
        if self.gate(FeatureGate::ResourceQuotaEstimate) { Detail::PriorityClass } else { Detail::Plain }
    }

    /// How fast evictions go, and when they slow down.
    pub fn brake(&self) -> BrakeSettings {
        BrakeSettings {
            rate: Rate::per_second(self.resource_eviction_rate),
            secondary_rate: Rate::per_second(self.secondary_resource_eviction_rate),
            unhealthy_threshold: self.unhealthy_cluster_threshold,
            large_number: self.large_cluster_num_threshold,
            by: self.eviction_brake_by,
        }
    }

    /// Whether the values are in range. The error names the flag and says what would be right.
    pub fn validate(&self) -> Result<(), String> {
        let periods = [
            ("cluster-status-update-frequency", self.cluster_status_update_frequency),
            ("cluster-monitor-period", self.cluster_monitor_period),
            ("cluster-monitor-grace-period", self.cluster_monitor_grace_period),
            ("cluster-startup-grace-period", self.cluster_startup_grace_period),
            ("cluster-lease-duration", self.cluster_lease_duration),
            ("failback-stabilization-window", self.failback_stabilization_window),
        ];
        for (name, period) in periods {
            if period.0.is_zero() {
                return Err(format!("{name}: must be greater than 0"));
            }
        }
        let rates = [
            ("resource-eviction-rate", Some(self.resource_eviction_rate)),
            ("resource-eviction-rate-per-cluster", self.resource_eviction_rate_per_cluster),
            ("secondary-resource-eviction-rate", Some(self.secondary_resource_eviction_rate)),
        ];
        for (name, rate) in rates {
            if rate.is_some_and(|rate| !rate.is_finite() || rate < 0.0) {
                return Err(format!("{name}: must be 0 (stop) or a positive number of evictions per second"));
            }
        }
        if !(0.0..=1.0).contains(&self.unhealthy_cluster_threshold) {
            return Err("unhealthy-cluster-threshold: must be a share from 0 to 1".to_owned());
        }
        if !self.kube_api_qps.is_finite() || self.kube_api_qps <= 0.0 {
            return Err("kube-api-qps: must be a number of writes per second greater than 0".to_owned());
        }
        if self.kube_api_burst == 0 {
            return Err("kube-api-burst: must be 1 or more".to_owned());
        }
        if self.failback_concurrency == 0 {
            return Err("failback-concurrency: must be 1 or more; enable-failback switches failback off".to_owned());
        }
        if self.scheduler_estimator_cert_file.is_empty() != self.scheduler_estimator_key_file.is_empty() {
            return Err("scheduler-estimator-cert-file and scheduler-estimator-key-file: must be given together".into());
        }
        if self.no_execute_taint_eviction_purge_mode == PurgeMode::Never {
            return Err("no-execute-taint-eviction-purge-mode: must be Gracefully or Directly".to_owned());
        }
        for (name, seconds) in [
            ("default-not-ready-toleration-seconds", self.default_not_ready_toleration_seconds),
            ("default-unreachable-toleration-seconds", self.default_unreachable_toleration_seconds),
        ] {
            if seconds.is_some_and(|seconds| seconds < 0) {
                return Err(format!("{name}: must not be negative; leave it out to add no toleration"));
            }
        }
        let always_purges = self.purge_without_replacement == PurgeWithoutReplacement::AfterGracePeriod;
        if self.restore_recovered_source == RestoreSource::Never && !always_purges {
            return Err(
                "restore-recovered-source: never goes with purge-without-replacement: after-grace-period only; \
                        a workload that fits nowhere would be stuck for ever"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
