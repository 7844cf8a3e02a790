use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Condition, FailoverBehavior, Health, Placement, PurgeMode, WorkloadAffinityGroups};
use crate::time::Time;

/// `ResourceBinding` (with a namespace) or `ClusterResourceBinding` (without), as decisions and plugins see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Namespace; absent for a `ClusterResourceBinding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Generation of `spec`, incremented on every change.
    #[serde(default)]
    pub generation: i64,
    /// Labels, including the permanent ids.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations, including the applied placement.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Time of the deletion request; absent while the binding is not being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Desired state.
    pub spec: BindingSpec,
    /// Observed state.
    #[serde(default)]
    pub status: BindingStatus,
}

impl Binding {
    /// Returns the API kind that follows from the scope.
    pub fn kind(&self) -> &'static str {
        if self.namespace.is_some() {
            "ResourceBinding"
        } else {
            "ClusterResourceBinding"
        }
    }

    /// Returns `namespace/name`, or only the name for cluster scope.
    pub fn key(&self) -> String {
        self.namespace
            .as_ref()
            .map_or_else(|| self.name.clone(), |namespace| format!("{namespace}/{}", self.name))
    }
}

/// `spec` of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BindingSpec {
    /// Reference to the resource template.
    pub resource: ObjectReference,
    /// True if dependencies are propagated too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagate_deps: bool,
    /// Requirements of one replica; present only if the interpreter can determine them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// Desired replicas across all clusters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Pod templates of a multi-component workload, preserved as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<serde_json::Value>,
    /// Target clusters chosen by the scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetCluster>,
    /// Placement, copied from the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Pending removals of old copies, in eviction order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,
    /// Snapshots of the bindings that depend on this one, preserved as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<serde_json::Value>,
    /// Name of the responsible scheduler; empty means `default-scheduler`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// Failover behavior, copied from the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,
    /// `Abort` or `Overwrite`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conflict_resolution: String,
    /// True if objects in member clusters are kept when the template is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Time at which rescheduling was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_triggered_at: Option<Time>,
    /// Suspension of dispatching and scheduling, preserved as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<serde_json::Value>,
    /// Fields that decisions do not read, preserved on writes.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

const WORKLOAD_AFFINITY_GROUPS: &str = "workloadAffinityGroups";
const AFFINITY_GROUP: &str = "affinityGroup";
const ANTI_AFFINITY_GROUP: &str = "antiAffinityGroup";

impl BindingSpec {
    /// Returns true if the cluster is a target cluster.
    pub fn targets(&self, cluster: &str) -> bool {
        self.clusters.iter().any(|target| target.name == cluster)
    }

    /// Returns true if an eviction from the cluster is in progress.
    pub fn is_evicting(&self, cluster: &str) -> bool {
        self.graceful_eviction_tasks
            .iter()
            .any(|task| task.from_cluster == cluster)
    }

    /// Returns true if the binding counts as a workload in Karmada: it has replicas, requirements or components.
    pub fn is_workload(&self) -> bool {
        self.replicas > 0 || self.replica_requirements.is_some() || !self.components.is_empty()
    }

    /// Returns the workload affinity group, whose members must share clusters; empty for none.
    pub fn affinity_group(&self) -> &str {
        self.workload_group(AFFINITY_GROUP)
    }

    /// Returns the workload anti-affinity group, whose members must not share clusters; empty for none.
    pub fn anti_affinity_group(&self) -> &str {
        self.workload_group(ANTI_AFFINITY_GROUP)
    }

    /// Sets the workload affinity groups; without any, the field is removed.
    pub fn set_workload_groups(&mut self, groups: WorkloadAffinityGroups) {
        let groups = [
            (AFFINITY_GROUP, groups.affinity_group),
            (ANTI_AFFINITY_GROUP, groups.anti_affinity_group),
        ];
        let fields: serde_json::Map<String, serde_json::Value> = groups
            .into_iter()
            .filter_map(|(name, group)| Some((name.to_owned(), serde_json::Value::String(group?))))
            .collect();
        if fields.is_empty() {
            self.rest.remove(WORKLOAD_AFFINITY_GROUPS);
        } else {
            self.rest
                .insert(WORKLOAD_AFFINITY_GROUPS.to_owned(), serde_json::Value::Object(fields));
        }
    }

    fn workload_group(&self, name: &str) -> &str {
        let groups = self.rest.get(WORKLOAD_AFFINITY_GROUPS);
        groups
            .and_then(|groups| groups.get(name))
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the scheduling priority; pending bindings with a higher number are scheduled first.
    pub fn schedule_priority(&self) -> i32 {
        let priority = self
            .rest
            .get("schedulePriority")
            .and_then(|priority| priority.get("priority"));
        priority
            .and_then(serde_json::Value::as_i64)
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or(0)
    }

    /// Returns true if scheduling is suspended.
    pub fn scheduling_suspended(&self) -> bool {
        self.suspension_flag("scheduling")
    }

    /// Returns true if dispatching to the cluster is suspended.
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

/// Reference to a resource template.
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
    /// Uid, used to break ties in replica division.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Version of the template that the binding was created from.
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

/// Requirements of one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// Requests by resource name, as Kubernetes quantities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_request: BTreeMap<String, String>,
    /// Node claim, namespace and priority class, preserved as received.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// Target cluster of a scheduling result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TargetCluster {
    /// Name of the member cluster.
    pub name: String,
    /// Replicas on the cluster; omitted on the wire if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Replicas by component, preserved as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<serde_json::Value>,
}

impl TargetCluster {
    /// Creates a target cluster without components.
    pub fn new(name: impl Into<String>, replicas: i32) -> Self {
        Self {
            name: name.into(),
            replicas,
            components: Vec::new(),
        }
    }

    /// Formats targets as `member1:1, member2:2`, and as `nowhere` if there are none.
    pub fn list(targets: &[Self]) -> String {
        if targets.is_empty() {
            return "nowhere".to_owned();
        }
        let text = |target: &Self| format!("{}:{}", target.name, target.replicas);
        targets.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

/// Pending removal of an old copy from a cluster.
///
/// Other programs write tasks too, so no field is required on reading, and unknown fields and values are written back
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct GracefulEvictionTask {
    /// Cluster that the workload leaves.
    #[serde(default)]
    pub from_cluster: String,
    /// Purge mode of the old copy; also absent if [`Self::foreign_purge_mode`] is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_mode: Option<PurgeMode>,
    /// Replicas on the cluster before the eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// `CamelCase` reason of at most 32 characters, for example `TaintUntolerated`.
    #[serde(default)]
    pub reason: String,
    /// Human-readable message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Component that evicted the workload.
    #[serde(default)]
    pub producer: String,
    /// Grace period of this task in seconds; if absent, the controller's flag applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// `true`: keep the old copy until an operator changes this field; `false`: delete it now, as decided by an
    /// operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_deletion: Option<bool>,
    /// Labels to set on the new copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preserved_label_state: BTreeMap<String, String>,
    /// Start of the grace period. Karmada's evictors leave it to the graceful eviction controller, which costs a
    /// second write; Bulkhead's evictors set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Clusters on which the workload ran before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters_before_failover: Vec<String>,
    /// Fields of other programs, preserved and not read.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

const PURGE_MODE: &str = "purgeMode";

impl GracefulEvictionTask {
    /// Returns a purge mode that is not one of [`PurgeMode`]; the handling of such an old copy is unknown.
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
    /// Generation that the scheduler last processed.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    pub scheduler_observed_generation: i64,
    /// Name of the active affinity group. (Karmada defines this JSON name.)
    #[serde(
        default,
        rename = "schedulerObservingAffinityName",
        skip_serializing_if = "String::is_empty"
    )]
    pub scheduler_observed_affinity_name: String,
    /// Time of the last successful scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Time>,
    /// Conditions such as `Scheduled` and `FullyApplied`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Status reported by the member clusters, sorted by cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = super::schema::reports_of_a_binding))]
    pub aggregated_status: Vec<AggregatedStatusItem>,
}

fn is_zero_i64(value: &i64) -> bool {
    *value == 0
}

/// Status reported by one member cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Name of the member cluster; empty if it is absent, as in Karmada.
    #[serde(default)]
    pub cluster_name: String,
    /// Reflected status of the object in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<serde_json::Value>,
    /// True if the manifest was applied; absent means false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Error message if the manifest was not applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
    /// Health of the object in the cluster; absent until it is evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// Cluster reports, indexed for lookups by name. Lookups in the order of the reports, which are sorted by cluster,
/// take one comparison each. Other lookups take a binary search.
#[derive(Clone, Debug)]
pub struct Reports<'a> {
    items: &'a [AggregatedStatusItem],
    next: usize,
    sorted: Option<bool>,
}

impl<'a> Reports<'a> {
    /// Creates the index for the reports of a binding.
    pub fn new(items: &'a [AggregatedStatusItem]) -> Self {
        Self {
            items,
            next: 0,
            sorted: None,
        }
    }

    /// Returns the report of a cluster.
    pub fn of(&mut self, cluster: &str) -> Option<&'a AggregatedStatusItem> {
        let items = self.items;
        let expected = items.get(self.next).filter(|item| item.cluster_name == cluster);
        let position = match expected {
            Some(_) => Some(self.next),
            None if *self
                .sorted
                .get_or_insert_with(|| items.is_sorted_by_key(|item| &item.cluster_name)) =>
            {
                items
                    .binary_search_by(|item| item.cluster_name.as_str().cmp(cluster))
                    .ok()
            }
            None => items.iter().position(|item| item.cluster_name == cluster),
        }?;
        self.next = position + 1;
        items.get(position)
    }
}

#[cfg(test)]
mod tests;
