//! Room that scheduled workloads take up in the summaries of their clusters.

use std::collections::BTreeMap;

use bulkhead_apiserver::ApiServer;
use bulkhead_core::decide::schedule::capacity::Assumptions;
use bulkhead_core::model::{Binding, Component, TargetCluster};
use bulkhead_core::quantity::{Format, Quantity};
use bulkhead_core::time::Time;
use tokio::sync::mpsc::UnboundedReceiver;

use super::cluster_status::change_status;

/// Replicas that clusters gain.
pub(super) struct Gain {
    pub(super) binding: Binding,
    pub(super) targets: Vec<TargetCluster>,
}

/// Adds the requests of each gain to the summary of its cluster. Counts of nodes by grade stay as they are: no member
/// cluster exists that could place pods on its nodes.
pub(super) async fn take(hub: ApiServer, mut gains: UnboundedReceiver<Gain>) {
    while let Some(Gain { binding, targets }) = gains.recv().await {
        let (mut assumptions, now) = (Assumptions::default(), Time::from_millis(0));
        assumptions.assume(&binding, &targets, now);
        for (cluster, workloads) in assumptions.by_cluster(now) {
            // The object came from the same server, so that its status can be read.
            let _ = change_status(&hub, &cluster, |cluster| {
                if let Some(summary) = &mut cluster.status.resource_summary {
                    let components = workloads.iter().flat_map(|workload| &workload.components);
                    components.for_each(|component| add(&mut summary.allocated, component));
                }
            });
        }
    }
}

fn add(allocated: &mut BTreeMap<String, String>, component: &Component) {
    let replicas = i128::from(component.replicas);
    let mut add = |resource: &str, amount: Quantity| {
        let before = allocated.get(resource).and_then(|text| text.parse().ok());
        let sum = before.map_or(amount, |before: Quantity| before.plus(amount));
        allocated.insert(resource.to_owned(), sum.to_string());
    };
    add("pods", Quantity::from_units(replicas, Format::Decimal));
    let requests = component.replica_requirements.iter();
    for (resource, request) in requests.flat_map(|requirements| &requirements.resource_request) {
        if let Ok(request) = request.parse::<Quantity>() {
            add(
                resource,
                Quantity::from_millis(request.millis() * replicas, request.format()),
            );
        }
    }
}
