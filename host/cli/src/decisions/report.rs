//! `bulkhead report`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write};

use anyhow::Context as _;
use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ResourceBinding, Work};
use bulkhead_core::journal::Subject;
use bulkhead_core::names;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_runtime::controller::is_not_found;
use bulkhead_runtime::pages;
use bulkhead_server::hub::{Hub, HubArguments, RequestTimeout};
use bulkhead_simulator::recorded::comparison::{Comparer, Comparison, Difference, Present, PresentBinding};
use clap::Args;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::Common;
use crate::block_on::block_on;

/// Maximum number of copies listed individually per section.
const SHOWN_MAX: usize = 50;

/// Compare a journal of mode report with the control plane: actions of Karmada, and those that Bulkhead would have
/// taken, with its reasons. Copies that Karmada deleted and Bulkhead holds come first.
///
/// Reads bindings, Clusters and the metadata of Works, and writes nothing. Run it after a failure, when the evictions
/// are over. Exit code: 0 if nothing differs, 1 if something does, 2 if the journal or the control plane cannot be
/// read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead report --journal journal --kubeconfig karmada.kubeconfig
  bulkhead report --journal journal -o json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArguments,

    #[command(flatten)]
    timeout: RequestTimeout,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let mut comparer = Comparer::default();
    arguments.common.find(None, |stored| {
        comparer.add(&stored);
        None::<()>
    })?;
    let (present, address) = block_on(async {
        let limit = arguments.timeout.limit();
        let hub = Hub::connect_within(&arguments.hub, &WritePermit::report_only(), limit).await?;
        let present = present(&hub.reader(limit)).await?;
        anyhow::Ok((present, hub.address))
    })?;
    let comparison = comparer.compare(&present);
    arguments.common.print(|| text(&comparison, &address), &comparison)?;
    Ok(comparison.is_equal())
}

/// Clusters of the Works of each name that are not being deleted.
type Works = BTreeMap<String, BTreeSet<String>>;

/// Reads the state of the control plane.
async fn present(client: &Client) -> anyhow::Result<Present> {
    let mut present = Present::default();
    let mut works = Works::new();
    let api = Api::<Work>::all(client.clone());
    let take = |work: PartialObjectMeta<Work>| {
        let namespace = work.namespace().unwrap_or_default();
        let cluster = names::cluster_of_execution_namespace(&namespace);
        if let Some(cluster) = cluster.filter(|_| work.metadata.deletion_timestamp.is_none()) {
            works.entry(work.name_any()).or_default().insert(cluster.to_owned());
        }
    };
    read::<Work>(pages::each(async |page| api.list_metadata(page).await, take).await)?;
    each(client, |binding: ResourceBinding| add(&binding, &works, &mut present)).await?;
    each(client, |binding: ClusterResourceBinding| {
        add(&binding, &works, &mut present);
    })
    .await?;
    each(client, |cluster: Cluster| {
        let taints = cluster.spec.taints.iter().map(ToString::to_string).collect();
        present.taints.insert(cluster.name_any(), taints);
    })
    .await?;
    Ok(present)
}

fn add<B: AnyBinding>(binding: &B, works: &Works, present: &mut Present) {
    let (spec, namespace) = (binding.spec(), binding.namespace().unwrap_or_default());
    let resource = &spec.resource;
    let work = names::work_name(&resource.kind, &resource.name, &resource.namespace);
    let works = works.get(&work).cloned().unwrap_or_default();
    let targets: BTreeSet<_> = spec.clusters.iter().map(|target| target.name.clone()).collect();
    let tasks: BTreeSet<_> = spec
        .graceful_eviction_tasks
        .iter()
        .map(|task| task.from_cluster.clone())
        .collect();
    present.bindings.insert(
        Subject::new(&B::kind(&()), &namespace, &binding.name_any()),
        PresentBinding { targets, tasks, works },
    );
}

/// Lists all objects of a kind. A kind that is not served has none.
async fn each<K>(client: &Client, take: impl FnMut(K)) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api = Api::<K>::all(client.clone());
    read::<K>(pages::each(async |page| api.list(page).await, take).await)
}

/// Returns the result of a list of a kind.
fn read<K: Resource<DynamicType = ()>>(listed: kube::Result<()>) -> anyhow::Result<()> {
    match listed {
        Err(error) if is_not_found(&error) => Ok(()),
        listed => listed.with_context(|| format!("listing {}", K::plural(&()))),
    }
}

fn text(comparison: &Comparison, address: &str) -> String {
    let mut out = String::new();
    let span = match (comparison.first, comparison.last) {
        (Some(first), Some(last)) => format!(", {first} to {last}"),
        _ => String::new(),
    };
    let _ = writeln!(
        out,
        "{} decisions about evictions and taints{span}, compared with {address}",
        comparison.decisions
    );
    let sections = [
        ("DELETED BY KARMADA, HELD BY BULKHEAD", &comparison.deleted_by_karmada),
        ("KEPT BY KARMADA, RELEASED BY BULKHEAD", &comparison.kept_by_karmada),
        ("EVICTED BY KARMADA ONLY", &comparison.evicted_by_karmada),
        ("EVICTED BY BULKHEAD ONLY", &comparison.evicted_by_bulkhead),
    ];
    for (heading, differences) in sections {
        let _ = writeln!(out, "\n{heading}: {}", differences.len());
        for difference in differences.iter().take(SHOWN_MAX) {
            let _ = writeln!(out, "  {}", line(difference));
        }
        if differences.len() > SHOWN_MAX {
            let more = differences.len() - SHOWN_MAX;
            let _ = writeln!(out, "  … and {more} more; -o json has all of them");
        }
    }
    let _ = writeln!(out, "\nTAINTS: {}", comparison.taints.len());
    for taint in &comparison.taints {
        let action = if taint.exists { "removes" } else { "adds" };
        let _ = writeln!(
            out,
            "  {}: Bulkhead {action} {} (#{}): {}",
            taint.cluster, taint.taint, taint.decision, taint.why
        );
    }
    let alike = comparison.alike;
    let _ = writeln!(
        out,
        "\nALIKE: {} evicted, {} ended, {} held by both",
        alike.evicted, alike.ended, alike.held
    );
    out
}

fn line(difference: &Difference) -> String {
    let decision = match (&difference.decision, difference.at) {
        (Some(id), Some(at)) => format!(" (#{id}, {at})"),
        _ => String::new(),
    };
    let work = if difference.work_exists {
        "; its Work exists"
    } else {
        ""
    };
    format!(
        "{} on {}: {}: {}{work}{decision}",
        difference.binding, difference.cluster, difference.reason, difference.why
    )
}
