//! Annotations of Bulkhead on objects of Karmada, and their removal.

use anyhow::Context as _;
use bulkhead_api::{Cluster, ClusterResourceBinding, ResourceBinding};
use bulkhead_core::decide::application_failover::HEALTH_HISTORY;
use bulkhead_core::decide::failback::{HOME, STABLE};
use bulkhead_core::decide::graceful_eviction::FAILED_TEMPLATES;
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::is_not_found;
use bulkhead_runtime::pages;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::note;
use crate::account::shown;

/// Field manager of the changes.
const MANAGER: &str = "bulkhead-uninstall";

const OF_CLUSTERS: &[&str] = &[keys::TAINT_OWNERS, keys::CONDITION_HISTORY, STABLE, keys::DECISION];
const OF_BINDINGS: &[&str] = &[
    HOME,
    HEALTH_HISTORY,
    FAILED_TEMPLATES,
    keys::TEMPLATE_DIGEST,
    keys::DECISION,
];

/// Object with annotations to remove.
struct Annotated {
    /// Empty for an object without a namespace.
    namespace: String,
    name: String,
    keys: Vec<&'static str>,
}

/// Removes the annotations that have no meaning for other programs, and reports taints of drains, which stay. Adds a
/// line for each object to `lines`.
pub(super) async fn clear(client: &Client, dry_run: bool, lines: &mut Vec<String>) -> anyhow::Result<()> {
    let kinds = [
        (ApiResource::erase::<Cluster>(&()), OF_CLUSTERS),
        (ApiResource::erase::<ResourceBinding>(&()), OF_BINDINGS),
        (ApiResource::erase::<ClusterResourceBinding>(&()), OF_BINDINGS),
    ];
    for (resource, keys) in &kinds {
        for object in annotated(client, resource, keys).await? {
            lines.extend(remove(client, resource, &object, dry_run).await?);
        }
    }
    report_drains(client, lines).await
}

/// Returns the objects of a kind that have one of the annotations; none if the kind is not served.
async fn annotated(client: &Client, resource: &ApiResource, keys: &[&'static str]) -> anyhow::Result<Vec<Annotated>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let mut found = Vec::new();
    let take = |object: PartialObjectMeta<DynamicObject>| {
        let annotations = object.metadata.annotations.as_ref();
        let is_present = |key: &&str| annotations.is_some_and(|annotations| annotations.contains_key(*key));
        let keys: Vec<_> = keys.iter().copied().filter(is_present).collect();
        if !keys.is_empty() {
            found.push(Annotated {
                namespace: object.metadata.namespace.unwrap_or_default(),
                name: object.metadata.name.unwrap_or_default(),
                keys,
            });
        }
    };
    match pages::each(async |page| api.list_metadata(page).await, take).await {
        Err(error) if is_not_found(&error) => {}
        listed => listed.with_context(|| format!("listing the {}", resource.plural))?,
    }
    Ok(found)
}

/// Removes the annotations of one object. Returns a line about it, `None` if it was deleted meanwhile.
async fn remove(
    client: &Client,
    resource: &ApiResource,
    object: &Annotated,
    dry_run: bool,
) -> anyhow::Result<Option<String>> {
    let Annotated { namespace, name, keys } = object;
    let api: Api<DynamicObject> = if namespace.is_empty() {
        Api::all_with(client.clone(), resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, resource)
    };
    let removed: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
    let patch = Patch::Merge(json!({"metadata": {"annotations": removed}}));
    let parameters = PatchParams {
        dry_run,
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let shown = shown(&resource.kind, namespace, name);
    match api.patch(name, &parameters, &patch).await {
        Ok(_) => Ok(Some(format!(
            "changed {shown}: removed {}{}",
            keys.join(", "),
            note(dry_run)
        ))),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("removing annotations of {shown}")),
    }
}

/// Reports the clusters that keep the taint of a drain.
async fn report_drains(client: &Client, lines: &mut Vec<String>) -> anyhow::Result<()> {
    let clusters = match Api::<Cluster>::all(client.clone()).list(&ListParams::default()).await {
        Err(error) if is_not_found(&error) => return Ok(()),
        clusters => clusters.context("listing the clusters")?,
    };
    for cluster in &clusters.items {
        if cluster.spec.taints.iter().any(|taint| taint.key == keys::DRAIN_TAINT) {
            let what = "keeps workloads away from it; remove it from spec.taints to end the drain";
            lines.push(format!(
                "kept the taint {} of Cluster {}, which {what}",
                keys::DRAIN_TAINT,
                cluster.name_any()
            ));
        }
    }
    Ok(())
}
