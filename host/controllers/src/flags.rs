//! Settings with Karmada's names and defaults (Karmada: `cmd/controller-manager/app/options`).

mod duration;

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_api::admission::AdmissionOptions;
use bulkhead_core::decide::application_failover::FailoverOptions;
use bulkhead_core::decide::eviction::taint_based::EvictOptions;
use bulkhead_core::decide::eviction::{BrakeBy, BrakeSettings, PreCheck, Rate};
use bulkhead_core::decide::graceful_eviction::{
    GracefulEvictionOptions, PurgeWithoutReplacement, ReplacementHealth, RestoreSource,
};
use bulkhead_core::model::PurgeMode;
use bulkhead_core::pod::Detail;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::duration::GoDuration;
use crate::interpreter::NoInterpreter;
use crate::webhook::WebhookTransport;

/// Feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum FeatureGate {
    /// Taint manager and ClusterTaintPolicy controller. Off by default, as in Karmada.
    Failover,
    /// Applications are evicted in purge mode `Gracefully`. On by default.
    GracefulEviction,
    /// Labels pass parts of the old copy's status to the new copy. Off by default.
    StatefulFailoverInjection,
    /// Capacity estimates of the scheduler use node grades instead of resource summaries. On by default.
    CustomizedClusterResourceModeling,
    /// Workloads with several components are placed as complete sets. Off by default.
    MultiplePodTemplatesScheduling,
    /// Recently placed workloads count as used capacity. Off by default.
    SchedulingOvercommitProtection,
    /// Bindings get the value of the PriorityClass that their policy names. On by default.
    PriorityBasedScheduling,
    /// Affinity and anti-affinity between groups of workloads. Off by default.
    WorkloadAffinity,
    /// Replica requirements include the priority class and the namespace. Off by default.
    ResourceQuotaEstimate,
    /// Dependencies of a workload are propagated to its clusters if its policy sets `propagateDeps`. On by default.
    PropagateDeps,
    /// Taints of effect `PreferNoExecute`, as the proposal "Optimize Cluster Failover" describes them. Off by default.
    PreferNoExecute,
}

/// Settings of the controllers. Names, defaults and meaning are Karmada's unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Flags {
    /// Feature gates that differ from their default.
    #[schemars(schema_with = "gates")]
    pub feature_gates: BTreeMap<FeatureGate, bool>,
    /// Probe interval of a member cluster, counted from the end of the last probe.
    pub cluster_status_update_frequency: GoDuration,
    /// Time for which a cluster must answer probes before it is Ready again.
    pub cluster_success_threshold: GoDuration,
    /// Time for which the probes of a cluster must fail before it is not Ready.
    pub cluster_failure_threshold: GoDuration,
    /// Interval between two checks of the leases of Pull clusters.
    pub cluster_monitor_period: GoDuration,
    /// Time for which a Pull cluster's lease may be stale before the cluster is Unknown.
    pub cluster_monitor_grace_period: GoDuration,
    /// Time for which a Pull cluster that never reported may be silent before it is Unknown.
    pub cluster_startup_grace_period: GoDuration,
    /// Duration of a Pull agent's lease.
    pub cluster_lease_duration: GoDuration,
    /// Part of `cluster-lease-duration` after which an agent renews its lease, greater than 0 and less than 1.
    pub cluster_lease_renew_interval_fraction: f64,
    /// Counts and sums up the nodes and pods of member clusters.
    pub enable_cluster_resource_modeling: bool,
    /// Evicts workloads because of `NoExecute` taints.
    pub enable_no_execute_taint_eviction: bool,
    /// Enables the taint manager.
    pub enable_taint_manager: bool,
    /// Purge mode of evictions for policies that do not set one.
    pub no_execute_taint_eviction_purge_mode: PurgeMode,
    /// Evictions per second. Unlike in Karmada it is the rate of the whole process, independent of the number of
    /// workers. Only evictions count, not items that turn out to need none. 0 stops eviction.
    pub resource_eviction_rate: f64,
    /// Not in Karmada: evictions per second from each cluster, within the rate above. Absent: no limit per cluster.
    pub resource_eviction_rate_per_cluster: Option<f64>,
    /// Only proposed for Karmada: evictions per second while too many of a large number of clusters fail.
    pub secondary_resource_eviction_rate: f64,
    /// Only proposed for Karmada: share of faulty clusters, from 0 to 1, above which evictions slow down or stop. A
    /// cluster is faulty if it is not ready or has a `NoExecute` or `PreferNoExecute` taint other than that of a drain.
    /// The proposal has 0.55. 1, the default, disables the threshold. When no cluster is ready, nothing is evicted
    /// regardless of this value.
    pub unhealthy_cluster_threshold: f64,
    /// Only proposed for Karmada: number of clusters above which evictions slow down instead of stopping.
    pub large_cluster_num_threshold: usize,
    /// Not in Karmada: grouping of clusters for the threshold of failed clusters.
    pub eviction_brake_by: BrakeBy,
    /// Only proposed for Karmada: condition on the other clusters for an eviction, because of a taint or of an application
    /// that failed.
    pub eviction_pre_check: PreCheck,
    /// Not in Karmada: time in the queue after which an eviction is overdue. Every fourth slot then goes to the
    /// oldest eviction. 0 disables aging.
    pub eviction_aging: GoDuration,
    /// Maximum duration of an eviction task without its own grace period.
    pub graceful_eviction_timeout: GoDuration,
    /// Not in Karmada: effect of an expired grace period while no healthy copy replaces the old one.
    /// `after-grace-period` is Karmada's behaviour.
    pub purge_without_replacement: PurgeWithoutReplacement,
    /// Not in Karmada: cancellation of an eviction whose cluster has recovered before the workload found another
    /// place. `never` is Karmada's behaviour.
    pub restore_recovered_source: RestoreSource,
    /// Not in Karmada: condition under which a healthy report counts for a replacement. `covering` requires as many
    /// available replicas as are placed there, because a report may be older than the placement. `reported` accepts
    /// the reported health, as Karmada does.
    pub replacement_health: ReplacementHealth,
    /// Not in Karmada: returns workloads that left because of a taint to their home cluster, once it is healthy
    /// again. The copy on the stand-in cluster stays until the copy at home is healthy.
    pub enable_failback: bool,
    /// Time for which a home cluster must be ready, with unchanged taints, before workloads return. It doubles after
    /// each return that did not last.
    pub failback_stabilization_window: GoDuration,
    /// Maximum number of workloads that return at the same time.
    pub failback_concurrency: usize,
    /// Not in current Karmada: time after which a cluster that is not Ready automatically gets a `NoExecute` taint,
    /// as before version 1.14. 0 disables the taint.
    pub failover_eviction_timeout: GoDuration,
    /// Allows ClusterTaintPolicies to add `NoExecute` taints.
    pub allow_no_execute_taint_policy: bool,
    /// Seconds for which policies tolerate a cluster that is not ready, unless they set a toleration. Karmada's
    /// webhook added 300 until 1.15. Absent, the default, adds no toleration.
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// Seconds for which policies tolerate an unreachable cluster, unless they set a toleration.
    pub default_unreachable_toleration_seconds: Option<i64>,
    /// Only proposed for Karmada: allows `failover.cluster.purgeMode: Never` in policies.
    pub allow_never_purging_clusters: bool,
    /// Not in Karmada: removes the taints that a ClusterTaintPolicy added, and only those, when the policy is edited
    /// or deleted or no longer selects the cluster. If disabled, they stay and a policy removes the taints of others,
    /// as in Karmada.
    pub cluster_taint_policy_clean_up: bool,
    /// Not in Karmada: window in which changes of conditions are counted. A taint of a ClusterTaintPolicy is not
    /// removed while a condition that it depends on changed more than four times within it. 0 disables damping.
    pub cluster_taint_policy_damping_window: GoDuration,
    /// Not in Karmada: writes a FailoverRecord for each binding that leaves a cluster. Its steps then have events at the
    /// template only, and not at the binding too.
    pub failover_records: bool,
    /// Name of the scheduler. It schedules the bindings that carry this name.
    pub scheduler_name: String,
    /// Filter and score plugins of the scheduler: names, `*` for all, `-name` to exclude one.
    pub plugins: Vec<String>,
    /// Makes selected clusters targets even if they get no replica.
    pub enable_empty_workload_propagation: bool,
    /// Not in Karmada, where it is always on: enables the built-in interpreters for kinds of other projects. They are
    /// consulted after customizations and before the native rules.
    pub third_party_interpreters: bool,
    /// Not in Karmada, where such objects are healthy: treatment of objects whose kind has no health interpreter.
    pub health_without_interpreter: NoInterpreter,
    /// Not in Karmada: transport rules for webhook interpreters. `karmada` allows plain HTTP and redirects.
    pub interpreter_webhook_transport: WebhookTransport,
    /// Not in Karmada: starts mode `all` although objects exist that only Karmada's controllers act upon. Nothing acts
    /// upon these objects then.
    pub ignore_unimplemented: bool,
    /// Sustained rate of the scheduler's writes, per second.
    pub kube_api_qps: f64,
    /// Maximum burst of the scheduler's writes.
    pub kube_api_burst: u32,
    /// Queries accurate estimators before a scheduling decision.
    pub enable_scheduler_estimator: bool,
    /// Skips the accurate estimators of Pull clusters.
    pub disable_scheduler_estimator_in_pull_mode: bool,
    /// Timeout of all estimator requests of one decision together.
    pub scheduler_estimator_timeout: GoDuration,
    /// Namespace of the Services of the estimators.
    pub scheduler_estimator_service_namespace: String,
    /// Name prefix of the Services of the estimators. A hyphen and the name of the cluster follow.
    pub scheduler_estimator_service_prefix: String,
    /// Port of the estimators.
    pub scheduler_estimator_port: u16,
    /// File with the scheduler's client certificate for estimators, PEM; empty for none.
    pub scheduler_estimator_cert_file: String,
    /// File with the key of that certificate, PEM.
    pub scheduler_estimator_key_file: String,
    /// File with the CA that signs the certificates of the estimators, PEM; empty for plain text.
    pub scheduler_estimator_ca_file: String,
    /// Accepts any certificate from estimators.
    pub insecure_skip_estimator_verify: bool,
}

/// Returns the schema of a map of feature gates. The schema of a map admits any key, because the values of an enum with
/// descriptions are not in a list.
fn gates(generator: &mut SchemaGenerator) -> Schema {
    let names = generator.subschema_for::<FeatureGate>();
    json_schema!({"type": "object", "propertyNames": names, "additionalProperties": {"type": "boolean"}})
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
            cluster_lease_renew_interval_fraction: 0.25,
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
            failover_records: true,
            scheduler_name: "default-scheduler".to_owned(),
            plugins: vec!["*".to_owned()],
            enable_empty_workload_propagation: false,
            third_party_interpreters: true,
            health_without_interpreter: NoInterpreter::Healthy,
            interpreter_webhook_transport: WebhookTransport::Strict,
            ignore_unimplemented: false,
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
    /// True if a feature gate is on.
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

    /// Returns the taint effects that evict, and the options of evictions. Without the `Failover` gate the health of
    /// a cluster evicts nothing, regardless of the author of its taint. Drains are explicit requests and do not need
    /// the gate.
    pub fn evict_options(&self) -> EvictOptions {
        let failover = self.gate(FeatureGate::Failover) && self.enable_taint_manager;
        EvictOptions {
            no_execute: failover && self.enable_no_execute_taint_eviction,
            prefer_no_execute: failover && self.gate(FeatureGate::PreferNoExecute),
            default_purge_mode: self.no_execute_taint_eviction_purge_mode,
            preserve_state: self.gate(FeatureGate::StatefulFailoverInjection),
        }
    }

    /// Returns the options for application failover.
    pub fn failover_options(&self) -> FailoverOptions {
        FailoverOptions {
            graceful_eviction: self.gate(FeatureGate::GracefulEviction),
            preserve_state: self.gate(FeatureGate::StatefulFailoverInjection),
            pre_check: Some(self.eviction_pre_check),
        }
    }

    /// Returns the options for the end of evictions.
    pub fn graceful_eviction_options(&self) -> GracefulEvictionOptions {
        GracefulEvictionOptions {
            timeout_s: self.graceful_eviction_timeout.as_secs(),
            purge_without_replacement: self.purge_without_replacement,
            restore_source: self.restore_recovered_source,
            replacement_health: self.replacement_health,
            keeps_last_place: true,
        }
    }

    /// Returns the options of the admission webhooks.
    pub fn admission(&self) -> AdmissionOptions {
        AdmissionOptions {
            allow_no_execute_taint_policy: self.allow_no_execute_taint_policy,
            default_not_ready_toleration_seconds: self.default_not_ready_toleration_seconds,
            default_unreachable_toleration_seconds: self.default_unreachable_toleration_seconds,
            allow_never_purging_clusters: self.allow_never_purging_clusters,
            allow_prefer_no_execute: self.gate(FeatureGate::PreferNoExecute),
        }
    }

    /// Returns the level of detail at which interpreters describe pods.
    pub fn pod_detail(&self) -> Detail {
        if self.gate(FeatureGate::ResourceQuotaEstimate) {
            Detail::PriorityClass
        } else {
            Detail::Plain
        }
    }

    /// Returns the eviction rates and the thresholds that slow them down.
    pub fn brake(&self) -> BrakeSettings {
        BrakeSettings {
            rate: Rate::per_second(self.resource_eviction_rate),
            secondary_rate: Rate::per_second(self.secondary_resource_eviction_rate),
            unhealthy_threshold: self.unhealthy_cluster_threshold,
            large_number: self.large_cluster_num_threshold,
            by: self.eviction_brake_by,
        }
    }

    /// Returns the interval at which an agent renews its lease. It is 0 if the fraction is out of range.
    pub fn cluster_lease_renew_interval(&self) -> Duration {
        let seconds = self.cluster_lease_duration.0.as_secs_f64() * self.cluster_lease_renew_interval_fraction;
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Checks that the values are in range. The error names the flag and the valid range.
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
            (
                "resource-eviction-rate-per-cluster",
                self.resource_eviction_rate_per_cluster,
            ),
            (
                "secondary-resource-eviction-rate",
                Some(self.secondary_resource_eviction_rate),
            ),
        ];
        for (name, rate) in rates {
            if rate.is_some_and(|rate| !rate.is_finite() || rate < 0.0) {
                return Err(format!(
                    "{name}: must be 0 (stop) or a positive number of evictions per second"
                ));
            }
        }
        if self.cluster_lease_renew_interval().is_zero() || self.cluster_lease_renew_interval_fraction >= 1.0 {
            return Err("cluster-lease-renew-interval-fraction: must be greater than 0 and less than 1".to_owned());
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
            return Err(
                "scheduler-estimator-cert-file and scheduler-estimator-key-file: must be given together".into(),
            );
        }
        if self.no_execute_taint_eviction_purge_mode == PurgeMode::Never {
            return Err("no-execute-taint-eviction-purge-mode: must be Gracefully or Directly".to_owned());
        }
        for (name, seconds) in [
            (
                "default-not-ready-toleration-seconds",
                self.default_not_ready_toleration_seconds,
            ),
            (
                "default-unreachable-toleration-seconds",
                self.default_unreachable_toleration_seconds,
            ),
        ] {
            if seconds.is_some_and(|seconds| seconds < 0) {
                return Err(format!(
                    "{name}: must not be negative; leave it out to add no toleration"
                ));
            }
        }
        let always_purges = self.purge_without_replacement == PurgeWithoutReplacement::AfterGracePeriod;
        if self.restore_recovered_source == RestoreSource::Never && !always_purges {
            return Err(
                "restore-recovered-source: never requires purge-without-replacement: after-grace-period; \
                a workload that fits nowhere would stay stuck"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
