use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Condition, FailoverBehavior, Placement, PurgeMode};
use crate::time::Time;

/// A `ResourceBinding` (with a namespace) or a `ClusterResourceBinding` (without), as decisions and plugins see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Namespace; absent for a `ClusterResourceBinding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Bumped by every change of `spec`.
    #[serde(default)]
    pub generation: i64,
    /// Labels, among them the permanent ids.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations, among them the applied placement.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Set while it is being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Desired state.
    pub spec: BindingSpec,
    /// Observed state.
    #[serde(default)]
    pub status: BindingStatus,
}

impl Binding {
    /// The API kind that the scope implies.
    pub fn kind(&self) -> &'static str {
        if self.namespace.is_some() { "ResourceBinding" } else { "ClusterResourceBinding" }
    }

    /// `namespace/name`, or the name alone.
    pub fn key(&self) -> String {
        self.namespace.as_ref().map_or_else(|| self.name.clone(), |namespace| format!("{namespace}/{}", self.name))
    }
}

/// `spec` of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BindingSpec {
    /// The resource template.
    pub resource: ObjectReference,
    /// Whether dependencies travel along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagate_deps: bool,
    /// What one replica needs; present only when the interpreter can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// Desired replicas over all clusters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Several pod templates, kept as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<serde_json::Value>,
    /// The scheduling result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
    /// Copied from the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Old copies that are on their way out, in the order of eviction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,
    /// Snapshots of bindings that this one is a dependency of, kept as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<serde_json::Value>,
    /// Which scheduler is in charge; empty is `default-scheduler`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// Copied from the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,
    /// `Abort` or `Overwrite`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conflict_resolution: String,
    /// Whether member objects outlive the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// A rescheduling was asked for at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_triggered_at: Option<Time>,
    /// Suspension of dispatching and scheduling, kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<serde_json::Value>,
    /// Fields that decisions do not read, kept so that a write loses nothing.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl BindingSpec {
    /// Whether a cluster is in the scheduling result.
    pub fn targets(&self, cluster: &str) -> bool {
        self.clusters.iter().any(|target| target.name == cluster)
    }

    /// Whether an eviction from the cluster is under way.
    pub fn is_evicting(&self, cluster: &str) -> bool {
        self.graceful_eviction_tasks.iter().any(|task| task.from_cluster == cluster)
    }

    /// Karmada's test of "is a workload": replicas, requirements or components.
    pub fn is_workload(&self) -> bool {
        self.replicas > 0 || self.replica_requirements.is_some() || !self.components.is_empty()
    }

    /// The group of workloads that this one must run beside; empty for none.
    pub fn affinity_group(&self) -> &str {
        self.workload_group("affinityGroup")
    }

    /// The group of workloads that this one must not run beside; empty for none.
    pub fn anti_affinity_group(&self) -> &str {
        self.workload_group("antiAffinityGroup")
    }

    fn workload_group(&self, name: &str) -> &str {
        let groups = self.rest.get("workloadAffinityGroups");
        groups.and_then(|groups| groups.get(name)).and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// Which of several waiting bindings is scheduled first: the higher number.
    pub fn schedule_priority(&self) -> i32 {
        let priority = self.rest.get("schedulePriority").and_then(|priority| priority.get("priority"));
        priority.and_then(serde_json::Value::as_i64).and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0)
    }

    /// Whether scheduling is suspended.
    pub fn scheduling_suspended(&self) -> bool {
        self.suspension_flag("scheduling")
    }

    /// Whether dispatching to the cluster is suspended.
    pub fn dispatching_suspended(&self, cluster: &str) -> bool {
        let listed = || {
            self.suspension
                .as_ref()
                .and_then(|suspension| suspension.pointer("/dispatchingOnClusters/clusterNames"))
                .and_then(serde_json::Value::as_array)
                .is_some_and(|names| names.iter().any(|name| name.as_str() == Some(cluster)))
        };
        self.suspension_flag("dispatching") || listed()
    }

    fn suspension_flag(&self, name: &str) -> bool {
        self.suspension
            .as_ref()
            .and_then(|suspension| suspension.get(name))
            .and_then(serde_json::Value::as_bool)
            .unwrap_or(false)
    }
}

/// A reference to the resource template.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid, which ties in replica division are broken by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Version of the template that the binding was made from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// `Kind namespace/name`.
impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// What one replica needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// Requests by resource name, as Kubernetes quantities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// Node claim, namespace and priority class, kept as they came.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// One entry of a scheduling result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TargetCluster {
    /// Name of the member cluster.
    pub name: String,
    /// Replicas there; 0 is absent on the wire.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Replicas by component, kept as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<serde_json::Value>,
}

impl TargetCluster {
    /// An entry without components.
    pub fn new(name: impl Into<String>, replicas: i32) -> Self {
        Self { name: name.into(), replicas, components: Vec::new() }
    }
}

/// An old copy that is on its way out of a cluster.
///
/// Tasks may come from other programs, so nothing is required on reading, and what is not understood is written
/// back as it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct GracefulEvictionTask {
    /// The cluster it leaves.
    #[serde(default)]
    pub from_cluster: String,
    /// What happens to the old copy; absent also when [`Self::foreign_purge_mode`] is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_mode: Option<PurgeMode>,
    /// Replicas it had there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// One word of at most 32 characters, for example `TaintUntolerated`.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Who evicted.
    #[serde(default)]
    pub producer: String,
    /// Own grace period in seconds; absent leaves it to the controller's flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// `true`: kept until a person says otherwise; `false`: a person said so, drop it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_deletion: Option<bool>,
    /// Labels for the new copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preserved_label_state: BTreeMap<String, String>,
    /// When the grace period began. Karmada's evictors leave it to the graceful eviction controller, which costs a
    /// second write; ours stamp it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Where the workload ran before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters_before_failover: Vec<String>,
    /// What another program wrote and nothing here reads.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

const PURGE_MODE: &str = "purgeMode";

impl GracefulEvictionTask {
    /// A purge mode that is none of ours: nobody here knows what may happen to the old copy.
    pub fn foreign_purge_mode(&self) -> Option<&serde_json::Value> {
        self.rest.get(PURGE_MODE)
    }
}

impl Serialize for GracefulEvictionTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for GracefulEvictionTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let mode = fields.remove(PURGE_MODE).filter(|mode| !mode.is_null());
        let known = mode.as_ref().and_then(|mode| PurgeMode::deserialize(mode).ok());
        let mut task = Self::deserialize(serde_json::Value::Object(fields)).map_err(D::Error::custom)?;
        task.purge_mode = known;
        if let Some(mode) = mode.filter(|_| known.is_none()) {
            task.rest.insert(PURGE_MODE.to_owned(), mode);
        }
        Ok(task)
    }
}

/// `status` of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BindingStatus {
    /// Generation that the scheduler has seen through.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    pub scheduler_observed_generation: i64,
    /// Name of the active affinity group. (The JSON name is Karmada's own.)
    #[serde(default, rename = "schedulerObservingAffinityName", skip_serializing_if = "String::is_empty")]
    pub scheduler_observed_affinity_name: String,
    /// When it was last scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Time>,
    /// `Scheduled`, `FullyApplied`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the member clusters report, sorted by cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<AggregatedStatusItem>,
}

fn is_zero_i64(value: &i64) -> bool {
    *value == 0
}

/// What one member cluster reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Name of the member cluster.
    pub cluster_name: String,
    /// Reflected status of the object there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<serde_json::Value>,
    /// Whether the manifest was applied; absent is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// Health of the object there; absent while nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// Reports by cluster. Each look-up is one comparison for clusters that are asked about in the order of the reports,
/// which are sorted by cluster; others cost a binary search.
#[derive(Clone, Debug)]
pub struct Reports<'a> {
    items: &'a [AggregatedStatusItem],
    next: usize,
    sorted: Option<bool>,
}

impl<'a> Reports<'a> {
    /// The reports of a binding.
    pub fn new(items: &'a [AggregatedStatusItem]) -> Self {
        Self { items, next: 0, sorted: None }
    }

    /// What a cluster reports.
    pub fn of(&mut self, cluster: &str) -> Option<&'a AggregatedStatusItem> {
        let items = self.items;
        let expected = items.get(self.next).filter(|item| item.cluster_name == cluster);
        let position = match expected {
            Some(_) => Some(self.next),
            None if *self.sorted.get_or_insert_with(|| items.is_sorted_by_key(|item| &item.cluster_name)) => {
                items.binary_search_by(|item| item.cluster_name.as_str().cmp(cluster)).ok()
            }
            None => items.iter().position(|item| item.cluster_name == cluster),
        }?;
        self.next = position + 1;
        items.get(position)
    }
}

/// Health of an object in a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Health {
    /// It does its work.
    Healthy,
    /// It does not.
    Unhealthy,
    /// Nobody can tell; never a reason to evict.
    Unknown,
}

impl Health {
    /// The wire spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_are_found_in_whatever_order() {
        let check = |reported: &[&str], asked: &[&str]| {
            let item = |name: &&str| AggregatedStatusItem { cluster_name: (*name).to_owned(), ..Default::default() };
            let items: Vec<_> = reported.iter().map(item).collect();
            let mut reports = Reports::new(&items);
            for cluster in asked {
                let found = reports.of(cluster).map(|item| item.cluster_name.as_str());
                assert_eq!(found, reported.contains(cluster).then_some(*cluster), "{asked:?} of {reported:?}");
            }
        };
        check(&["a", "b", "c"], &["a", "b", "c"]);
        check(&["a", "b", "c"], &["c", "x", "a", "a", "b", "c", "d"]);
        check(&["c", "a", "b"], &["a", "b", "x", "c"]);
        check(&[], &["a"]);
    }

    #[test]
    fn tasks_of_other_programs_come_back_as_they_came() {
        let check = |wire: serde_json::Value, purge_mode, foreign: Option<&str>| {
            let task: GracefulEvictionTask = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!(task.purge_mode, purge_mode, "{wire}");
            assert_eq!(task.foreign_purge_mode().and_then(serde_json::Value::as_str), foreign, "{wire}");
            let written = serde_json::to_value(&task).unwrap();
            for (field, value) in wire.as_object().unwrap() {
                if field != "purgeMode" || foreign.is_some() {
                    assert_eq!(written.get(field), Some(value), "{field} of {wire}");
                }
            }
        };
        check(json!({}), None, None);
        check(json!({"fromCluster": "m1", "purgeMode": "Immediately"}), Some(PurgeMode::Directly), None);
        check(json!({"fromCluster": "m1", "purgeMode": "Graciously"}), Some(PurgeMode::Gracefully), None);
        check(json!({"fromCluster": "m1", "purgeMode": "Eventually", "ticket": 7}), None, Some("Eventually"));
    }
}
