//! Outlines of clusters: the parts that an index of a journal needs.

use std::fmt;

use bulkhead_core::model::{Cluster, Condition, SyncMode, Taint};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Form in which the clusters of a decision are read.
pub trait ClusterForm: DeserializeOwned + PartialEq + fmt::Debug {
    /// Returns the name of the cluster.
    fn name(&self) -> &str;
}

impl ClusterForm for Cluster {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Outline of a cluster. It changes seldom, unlike the resource summary of a cluster with running workloads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Members")]
pub struct ClusterOutline {
    /// Name.
    pub name: String,
    /// Push or Pull mode.
    pub sync_mode: SyncMode,
    /// Region; empty without one.
    pub region: String,
    /// Taints, as the cluster has them.
    pub taints: Vec<Taint>,
    /// `Ready` condition, if the cluster has one.
    pub ready: Option<Condition>,
}

impl ClusterForm for ClusterOutline {
    fn name(&self) -> &str {
        &self.name
    }
}

impl From<&Cluster> for ClusterOutline {
    fn from(cluster: &Cluster) -> Self {
        Self {
            name: cluster.name.clone(),
            sync_mode: cluster.spec.sync_mode,
            region: cluster.spec.region.clone(),
            taints: cluster.spec.taints.clone(),
            ready: cluster.ready().cloned(),
        }
    }
}

/// Stored form of an outline: the members of a [`Cluster`] that are read.
#[derive(Deserialize)]
struct Members {
    name: String,
    #[serde(default)]
    spec: SpecMembers,
    #[serde(default)]
    status: StatusMembers,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecMembers {
    sync_mode: SyncMode,
    #[serde(default)]
    region: String,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
struct StatusMembers {
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl From<Members> for ClusterOutline {
    fn from(members: Members) -> Self {
        let Members { name, spec, status } = members;
        Self {
            name,
            sync_mode: spec.sync_mode,
            region: spec.region,
            taints: spec.taints,
            ready: Condition::find(&status.conditions, "Ready").cloned(),
        }
    }
}
