//! Cases that call a single function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::affinity;
use bulkhead_core::decide::schedule::capacity::{self, AssumedWorkload, Estimation, Workload};
use bulkhead_core::decide::schedule::groups::{Bounds, Group, select_groups};
use bulkhead_core::decide::schedule::webster::{Party, TieBreak, allocate};
use bulkhead_core::decide::schedule::{IN_TREE, SchedulerOptions, backoff, enabled_plugins, placement_changed};
use bulkhead_core::model::{ClusterAffinity, Component, Placement, ReplicaRequirements};
use bulkhead_core::snapshot::ClusterSnapshot;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Table, federation};

/// Returns the function that runs a table, or `None` if the table is unknown.
pub(super) fn table(name: &str) -> Option<Table> {
    Some(match name {
        "webster" => webster,
        "clusterMatches" => cluster_matches,
        "pluginFilter" => plugin_filter,
        "placementChanged" => placement_change,
        "generalEstimator" => general_estimator,
        "selectGroups" => groups,
        "backoffSeconds" => backoff_seconds,
        _ => return None,
    })
}

/// Reads a field of a case. An absent or null field yields the default.
fn read<T: DeserializeOwned + Default>(case: &Value, name: &str) -> Result<T, String> {
    match case.get(name).filter(|value| !value.is_null()) {
        None => Ok(T::default()),
        Some(value) => serde_json::from_value(value.clone()).map_err(|error| format!("{name}: {error}")),
    }
}

fn webster(case: &Value) -> Result<Value, String> {
    let votes: BTreeMap<String, i64> = read(case, "weights")?;
    let initial: BTreeMap<String, i32> = read(case, "initial")?;
    let uid: String = read(case, "uid")?;
    let names: BTreeSet<&String> = votes.keys().chain(initial.keys()).collect();
    let party = |name: &&String| Party {
        votes: votes.get(*name).copied().unwrap_or(0),
        seats: initial.get(*name).copied().unwrap_or(0),
    };
    let mut parties: Vec<_> = names.iter().map(party).collect();
    allocate(read(case, "seats")?, &mut parties, TieBreak::of_uid(&uid));
    Ok(names
        .into_iter()
        .cloned()
        .zip(parties.iter().map(|party| json!(party.seats)))
        .collect())
}

fn cluster_matches(case: &Value) -> Result<Value, String> {
    let affinity: ClusterAffinity = read(case, "affinity")?;
    let cluster = federation::cluster(case.get("cluster").unwrap_or(&Value::Null))?;
    Ok(json!(affinity::matches(&affinity, &cluster)))
}

fn plugin_filter(case: &Value) -> Result<Value, String> {
    Ok(json!(enabled_plugins(&read::<Vec<String>>(case, "plugins")?, &IN_TREE)))
}

fn placement_change(case: &Value) -> Result<Value, String> {
    let placement: Placement = read(case, "placement")?;
    let (applied, observed): (String, String) = (read(case, "applied")?, read(case, "observed")?);
    Ok(json!(placement_changed(&placement, &applied, &observed)))
}

fn general_estimator(case: &Value) -> Result<Value, String> {
    let cluster = federation::cluster(case.get("cluster").unwrap_or(&Value::Null))?;
    let gates: BTreeMap<String, bool> = read(case, "gates")?;
    let gate = |name: &str, default: bool| gates.get(name).copied().unwrap_or(default);
    let options = SchedulerOptions {
        resource_models: gate("CustomizedClusterResourceModeling", true),
        overcommit_protection: gate("SchedulingOvercommitProtection", false),
        ..SchedulerOptions::default()
    };
    let requirements: Option<ReplicaRequirements> = read(case, "requirements")?;
    let components: Option<Vec<Component>> = read(case, "components")?;
    let assumed: Vec<AssumedWorkload> = read(case, "assumed")?;
    let workload = match &components {
        Some(components) => Workload::Sets(components),
        None => Workload::Replicas(requirements.as_ref().map(|requirements| &requirements.resource_request)),
    };
    let assumed = BTreeMap::from([(cluster.name.clone(), assumed)]);
    let estimation = Estimation {
        workload,
        options: &options,
        assumed: &assumed,
    };
    let snapshot = ClusterSnapshot::new([Arc::new(cluster)]);
    let estimates = capacity::general(&estimation, &snapshot, &[0]).map_err(|error| error.to_string())?;
    Ok(json!(estimates.first()))
}

fn groups(case: &Value) -> Result<Value, String> {
    let entries: Vec<Value> = read(case, "groups")?;
    let name = |entry: &Value| {
        entry
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let names: Vec<String> = entries.iter().map(name).collect();
    let mut groups = Vec::new();
    for (entry, name) in entries.iter().zip(&names) {
        groups.push(Group {
            name,
            value: read(entry, "value")?,
            weight: read(entry, "weight")?,
        });
    }
    let bounds = Bounds {
        groups_min: read(case, "min")?,
        groups_max: read(case, "max")?,
        value_min: read(case, "target")?,
    };
    let chosen = select_groups(&groups, bounds).unwrap_or_default();
    Ok(chosen
        .into_iter()
        .filter_map(|index| groups.get(index))
        .map(|group| json!(group.name))
        .collect())
}

fn backoff_seconds(case: &Value) -> Result<Value, String> {
    Ok(json!(backoff(read(case, "attempts")?).as_secs()))
}
