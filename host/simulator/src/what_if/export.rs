//! Input objects of a what-if question: exported to files, or read from a control plane.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, ResourceBinding};
use bulkhead_apiserver::Contents;
use bulkhead_core::model::BindingSpec;
use bulkhead_core::time::Time;
use bulkhead_plugin::{limits_of_files, read_documents};
use bulkhead_runtime::controller::is_not_found;
use bulkhead_runtime::pages;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Objects and notes of an export.
#[derive(Default)]
pub struct Export {
    /// Member clusters, in order of name.
    pub clusters: Vec<Cluster>,
    /// Bindings of namespaced objects, in order of namespace and name.
    pub bindings: Vec<ResourceBinding>,
    /// Bindings of cluster-scoped objects, in order of name.
    pub cluster_bindings: Vec<ClusterResourceBinding>,
    /// ClusterTaintPolicies.
    pub taint_policies: Vec<ClusterTaintPolicy>,
    /// EvictionPauses.
    pub pauses: Vec<EvictionPause>,
    /// Notes on missing or ignored objects, one sentence each.
    pub notes: Vec<String>,
}

/// Reads every `.yaml`, `.yml` and `.json` file of a directory. Files may contain several documents, and documents
/// may be lists, as `kubectl get -o yaml` prints them.
///
/// # Errors
///
/// A file cannot be read, an object does not match its kind, or there are no clusters or no bindings.
pub fn load(directory: &Path) -> anyhow::Result<Export> {
    let mut export = Export::default();
    let mut others = 0_usize;
    for path in files(directory)? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let documents: Vec<Value> = if is_json {
            vec![serde_json::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?]
        } else {
            let read = read_documents::<Value>(&path.display().to_string(), &text, &limits_of_files());
            let read = read.map_err(anyhow::Error::msg)?;
            export.notes.extend(
                read.warnings
                    .iter()
                    .map(|warning| format!("{}: {warning}", path.display())),
            );
            read.documents
        };
        // An export may have a hundred megabytes.
        drop(text);
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            for object in flattened(document) {
                if !export.take(object).with_context(|| path.display().to_string())? {
                    others += 1;
                }
            }
        }
    }
    if others > 0 {
        export.notes.push(format!(
            "{others} objects of other kinds are not needed and were skipped"
        ));
    }
    export.complete(&directory.display().to_string())
}

/// Reads the same objects from a control plane, page by page, without writing. `origin` names the control plane in
/// errors.
///
/// # Errors
///
/// A request fails, or there are no clusters or no bindings.
pub async fn load_live(client: &Client, origin: &str) -> anyhow::Result<Export> {
    let mut export = Export::default();
    export.clusters = all(client, &mut export.notes).await?;
    export.bindings = all(client, &mut export.notes).await?;
    export.cluster_bindings = all(client, &mut export.notes).await?;
    export.taint_policies = all(client, &mut export.notes).await?;
    export.pauses = all(client, &mut export.notes).await?;
    export.complete(origin)
}

/// Lists every object of a kind. A kind that is not served is noted.
async fn all<K>(client: &Client, notes: &mut Vec<String>) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let (api, mut found) = (Api::<K>::all(client.clone()), Vec::new());
    match pages::each(async |page| api.list(page).await, |object| found.push(object)).await {
        Err(error) if is_not_found(&error) => {
            notes.push(format!("this control plane does not serve the kind {}", K::kind(&())));
        }
        listed => listed.with_context(|| format!("listing {}", K::plural(&())))?,
    }
    Ok(found)
}

fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("reading the directory {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default();
        if path.is_file() && matches!(extension, "yaml" | "yml" | "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the items of a list, or the object itself.
fn flattened(mut document: Value) -> Vec<Value> {
    let is_list = document
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

fn read<K: DeserializeOwned>(object: Value) -> anyhow::Result<K> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let about = format!("{} {}", text("/kind"), text("/metadata/name"));
    serde_json::from_value(object).context(about)
}

impl Export {
    /// Sorts the objects, and adds notes on missing ones.
    fn complete(mut self, origin: &str) -> anyhow::Result<Self> {
        if self.clusters.is_empty() {
            bail!("{origin}: there is no Cluster here; `kubectl get clusters -o yaml` prints them");
        }
        if self.bindings.is_empty() && self.cluster_bindings.is_empty() {
            bail!("{origin}: there is no binding here; `kubectl get resourcebindings -A -o yaml` prints them");
        }
        if self.taint_policies.is_empty() {
            self.notes
                .push("there is no ClusterTaintPolicy: only built-in rules taint".to_owned());
        }
        if self.clusters.iter().all(|cluster| cluster.status.conditions.is_empty()) {
            self.notes.push(
                "no Cluster has conditions: the export has no status, so nothing is known to be ready".to_owned(),
            );
        }
        let repeated = sort_and_deduplicate(&mut self.clusters)
            + sort_and_deduplicate(&mut self.bindings)
            + sort_and_deduplicate(&mut self.cluster_bindings);
        let unmanaged = self.bindings.iter().filter(|binding| !binding.is_managed()).count()
            + self
                .cluster_bindings
                .iter()
                .filter(|binding| !binding.is_managed())
                .count();
        if unmanaged > 0 {
            self.notes.push(format!(
                "bindings that belong to no policy: {unmanaged}; no scheduler gives them another placement"
            ));
        }
        if repeated > 0 {
            self.notes.push(format!(
                "{repeated} Clusters and bindings were left out: another object has the same kind and name; the first \
                 of each is used, in order of file names"
            ));
        }
        Ok(self)
    }

    /// Adds an object if its kind is relevant. Returns true if it is.
    fn take(&mut self, object: Value) -> anyhow::Result<bool> {
        match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "Cluster" => self.clusters.push(read(object)?),
            "ResourceBinding" => self.bindings.push(read(object)?),
            "ClusterResourceBinding" => self.cluster_bindings.push(read(object)?),
            "ClusterTaintPolicy" => self.taint_policies.push(read(object)?),
            "EvictionPause" => self.pauses.push(read(object)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the newest timestamp in the export, in milliseconds since the Unix epoch. The export is at least that
    /// recent.
    pub(super) fn newest_ms(&self) -> i64 {
        let conditions = self.clusters.iter().flat_map(|cluster| &cluster.status.conditions);
        let transitions = conditions.filter_map(|condition| condition.last_transition_time);
        let taints = self
            .clusters
            .iter()
            .flat_map(|cluster| &cluster.spec.taints)
            .filter_map(|taint| taint.time_added);
        let tasks = self.specs().flat_map(|spec| &spec.graceful_eviction_tasks);
        let made = tasks.filter_map(|task| task.creation_timestamp);
        transitions
            .chain(taints)
            .chain(made)
            .map(|time| time.as_millis())
            .max()
            .unwrap_or(0)
    }

    /// Returns the specs of all bindings.
    pub(super) fn specs(&self) -> impl Iterator<Item = &BindingSpec> {
        let of_namespaces = self.bindings.iter().map(|binding| &binding.spec);
        of_namespaces.chain(self.cluster_bindings.iter().map(|binding| &binding.spec))
    }

    /// Returns the objects as an API server stores them. Metadata that an export may lack is added.
    pub(super) fn contents(self, start: Time) -> Contents {
        let mut objects = Vec::new();
        store(&mut objects, self.clusters, start);
        store(&mut objects, self.bindings, start);
        store(&mut objects, self.cluster_bindings, start);
        store(&mut objects, self.taint_policies, start);
        store(&mut objects, self.pauses, start);
        Contents {
            version: u64::try_from(objects.len()).unwrap_or(u64::MAX),
            objects,
        }
    }
}

/// Sorts objects by namespace and name, and keeps the first of each name. Returns the number of the others.
fn sort_and_deduplicate<K: Resource>(objects: &mut Vec<K>) -> usize {
    let before = objects.len();
    objects.sort_by_cached_key(|object| (object.meta().namespace.clone(), object.meta().name.clone()));
    objects.dedup_by(|later, first| {
        (&later.meta().namespace, &later.meta().name) == (&first.meta().namespace, &first.meta().name)
    });
    before - objects.len()
}

fn store<K: Resource<DynamicType = ()> + Serialize>(stored: &mut Vec<Value>, objects: Vec<K>, start: Time) {
    for object in objects {
        let mut value = json!(object);
        let version = (stored.len() + 1).to_string();
        value["apiVersion"] = json!(K::api_version(&()));
        value["kind"] = json!(K::kind(&()));
        let metadata = &mut value["metadata"];
        for (field, default) in [
            ("uid", json!(format!("exported-{version}"))),
            ("generation", json!(1)),
            ("creationTimestamp", json!(start.truncated())),
        ] {
            if metadata[field].is_null() {
                metadata[field] = default;
            }
        }
        metadata["resourceVersion"] = json!(version);
        stored.push(value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_in_two_files_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"},
        });
        let binding = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "a-deployment", "namespace": "default"},
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "a"},
                "replicas": 1, "clusters": [{"name": "m1", "replicas": 1}],
            },
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [cluster, binding]}).to_string();
        let note = |export: &Export| {
            export
                .notes
                .iter()
                .any(|note| note.starts_with("2 Clusters and bindings were left"))
        };
        fs::write(directory.path().join("all.json"), &list).unwrap();
        assert!(!note(&load(directory.path()).unwrap()));
        fs::write(directory.path().join("again.json"), &list).unwrap();
        let export = load(directory.path()).unwrap();
        assert_eq!((export.clusters.len(), export.bindings.len()), (1, 1));
        assert!(note(&export), "{:?}", export.notes);
    }
}
