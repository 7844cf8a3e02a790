//! Report sections with the final state.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_api::{AnyBinding, Work};
use bulkhead_apiserver::WriteResponse;
use bulkhead_core::decide::eviction::taint_based::applied_placement;
use bulkhead_core::model::ConditionStatus;
use bulkhead_core::names;
use bulkhead_core::time::Time;
use bulkhead_plugin::Layer;
use bulkhead_runtime::failures::Failure;
use kube::{Api, ResourceExt, api::ListParams};

use super::federation::Federation;
use super::observe::Observer;
use crate::report::{ClusterRow, PlacementRow, PluginRow, RetryRow, Totals, WriteRow};

pub(super) fn cluster_rows(
    federation: &Federation,
    observer: &Observer,
    records: &[bulkhead_core::journal::Record],
    start: Time,
) -> Vec<ClusterRow> {
    let end_ms = federation.now().millis_since(start);
    let row = |cluster: &Arc<bulkhead_api::Cluster>| {
        let model = cluster.to_model();
        let mut not_ready_ms = Vec::new();
        let mut since = None;
        let changes = records.iter().filter(|record| {
            record.entry.decision == bulkhead_core::journal::Decision::ReadyChanged
                && record.entry.subject.name == model.name
                && record.entry.at >= start
        });
        for change in changes {
            let at = change.entry.at.millis_since(start);
            if change.entry.effect == "True" {
                not_ready_ms.extend(since.take().map(|since| (since, at)));
            } else {
                since.get_or_insert(at);
            }
        }
        not_ready_ms.extend(since.map(|since| (since, end_ms)));
        ClusterRow {
            sync_mode: format!("{:?}", model.spec.sync_mode),
            region: model.spec.region.clone(),
            ready: model
                .ready()
                .map_or(ConditionStatus::Unknown, |ready| ready.status)
                .as_str()
                .to_owned(),
            taints: model.spec.taints.iter().map(ToString::to_string).collect(),
            not_ready_ms,
            ready_replicas: observer.ready_replicas(&model.name),
            name: model.name,
        }
    };
    federation.context().stores.clusters.list().iter().map(row).collect()
}

pub(super) async fn placement_rows(federation: &Federation) -> anyhow::Result<Vec<PlacementRow>> {
    let works = Api::<Work>::all(federation.client())
        .list(&ListParams::default())
        .await?;
    let mut waiting: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for work in works
        .items
        .iter()
        .filter(|work| work.metadata.deletion_timestamp.is_some())
    {
        let namespace = work.namespace().unwrap_or_default();
        let cluster = names::cluster_of_execution_namespace(&namespace)
            .unwrap_or_default()
            .to_owned();
        waiting.entry(work.name_any()).or_default().push(cluster);
    }
    let stores = &federation.context().stores;
    let mut rows: Vec<_> = stores
        .bindings
        .list()
        .iter()
        .map(|binding| placement_row(&**binding, &waiting))
        .collect();
    rows.extend(
        stores
            .cluster_bindings
            .list()
            .iter()
            .map(|binding| placement_row(&**binding, &waiting)),
    );
    Ok(rows)
}

fn placement_row<B: AnyBinding>(binding: &B, waiting: &BTreeMap<String, Vec<String>>) -> PlacementRow {
    let spec = binding.spec();
    let model = binding.to_model();
    let health = binding.status().aggregated_status.iter();
    let work = names::work_name(&spec.resource.kind, &spec.resource.name, &spec.resource.namespace);
    let unplaced = applied_placement(&model).is_none();
    PlacementRow {
        binding: model.key(),
        resource: spec.resource.to_string(),
        replicas: spec.replicas,
        clusters: if unplaced {
            BTreeMap::new()
        } else {
            spec.clusters
                .iter()
                .map(|target| (target.name.clone(), target.replicas))
                .collect()
        },
        health: health
            .filter_map(|item| Some((item.cluster_name.clone(), item.health?.as_str().to_owned())))
            .collect(),
        evicting_from: spec
            .graceful_eviction_tasks
            .iter()
            .map(|task| task.from_cluster.clone())
            .collect(),
        waiting_in: waiting.get(&work).cloned().unwrap_or_default(),
    }
}

pub(super) fn plugin_rows(federation: &Federation) -> Vec<PluginRow> {
    let report = federation.context().registry.report();
    let row = |plugin: bulkhead_plugin::PluginReport| PluginRow {
        name: plugin.id.name,
        version: plugin.id.version,
        engine: plugin.id.engine.as_str().to_owned(),
        library: plugin.layer == Layer::Library,
        calls: plugin.counts.calls,
        faults: plugin.counts.faults,
    };
    report.into_iter().map(row).collect()
}

pub(super) fn retry_rows(federation: &Federation) -> Vec<RetryRow> {
    let counts = federation.context().failures.counts();
    let mut rows: Vec<_> = counts
        .into_iter()
        .map(
            |Failure {
                 controller,
                 text: error,
                 count,
                 ..
             }| RetryRow {
                controller,
                error,
                count,
            },
        )
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

pub(super) fn write_rows(federation: &Federation) -> Vec<WriteRow> {
    let writes = federation.hub().writes().into_iter();
    let row = |(response, count): (WriteResponse, u64)| WriteRow {
        resource: response.resource,
        verb: response.verb.as_str().to_owned(),
        code: response.code,
        count,
    };
    writes.map(row).collect()
}

pub(super) fn totals(federation: &Federation) -> Totals {
    let budget = federation.context().scheduler_budget.usage();
    let sum = |requests: BTreeMap<String, u64>| requests.values().sum::<u64>();
    Totals {
        decisions: federation.journal().recorded(),
        scheduler_writes: budget.writes,
        scheduler_writes_delayed: budget.delayed,
        scheduler_write_wait_max_ms: u64::try_from(budget.longest_wait.as_millis()).unwrap_or(u64::MAX),
        control_plane_requests: sum(federation.hub().requests()),
        member_requests: federation
            .member_clusters()
            .map(|(_, member)| sum(member.server().requests()))
            .sum(),
    }
}
