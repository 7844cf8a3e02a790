//! Objects that were exported to files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, ResourceBinding};
use bulkhead_core::model;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What an export has.
#[derive(Default)]
pub struct Export {
    /// Member clusters, in order of name.
    pub clusters: Vec<model::Cluster>,
    /// Bindings of both kinds, in order of key.
    pub bindings: Vec<model::Binding>,
    /// Taint policies.
    pub taint_policies: Vec<ClusterTaintPolicy>,
    /// Pauses of evictions.
    pub pauses: Vec<bulkhead_core::decide::eviction::EvictionPause>,
    /// What is missing or was left out, one sentence each.
    pub notes: Vec<String>,
}

/// Reads every `.yaml`, `.yml` and `.json` file of a directory. Files may have several documents, and documents may be
/// lists, as `kubectl get -o yaml` prints them.
///
/// # Errors
///
/// A file that cannot be read, an object that is not what its kind says, no clusters, or no bindings.
pub fn load(directory: &Path) -> anyhow::Result<Export> {
    let mut export = Export::default();
    let mut others = 0_usize;
    for path in files(directory)? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let documents: Vec<Value> = if is_json {
            vec![serde_json::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?]
        } else {
            // What is read as YAML has a limit of nodes, which thousands of bindings in one file exceed.
            serde_saphyr::from_multiple(&text)
                .map_err(|error| anyhow::anyhow!("{}: {error} (large exports are read as JSON)", path.display()))?
        };
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            for object in flattened(document) {
                if !export.take(&object).with_context(|| path.display().to_string())? {
                    others += 1;
                }
            }
        }
    }
    if export.clusters.is_empty() {
        bail!(
            "{}: there is no Cluster in this export; `kubectl get clusters -o yaml` prints them",
            directory.display()
        );
    }
    if export.bindings.is_empty() {
        bail!(
            "{}: there is no binding in this export; `kubectl get resourcebindings -A -o yaml` prints them",
            directory.display()
        );
    }
    if export.taint_policies.is_empty() {
        export.notes.push("there is no ClusterTaintPolicy: only built-in rules taint".to_owned());
    }
    if others > 0 {
        export.notes.push(format!("{others} objects of other kinds do not matter here and were left out"));
    }
    export.clusters.sort_by(|a, b| a.name.cmp(&b.name));
    export.bindings.sort_by_key(model::Binding::key);
    Ok(export)
}

fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("reading the directory {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_file() && matches!(extension, "yaml" | "yml" | "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The items of a list, or the object itself.
fn flattened(document: Value) -> Vec<Value> {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document.get("items").and_then(Value::as_array) {
        Some(items) if is_list => items.clone(),
        _ => vec![document],
    }
}

fn read<K: DeserializeOwned>(object: &Value) -> anyhow::Result<K> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let about = || format!("{} {}", text("/kind"), text("/metadata/name"));
    serde_json::from_value(object.clone()).with_context(about)
}

impl Export {
    /// Takes an object if it matters. Returns whether it does.
    fn take(&mut self, object: &Value) -> anyhow::Result<bool> {
        match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "Cluster" => self.clusters.push(read::<Cluster>(object)?.to_model()),
            "ResourceBinding" => self.bindings.push(read::<ResourceBinding>(object)?.to_model()),
            "ClusterResourceBinding" => self.bindings.push(read::<ClusterResourceBinding>(object)?.to_model()),
            "ClusterTaintPolicy" => self.taint_policies.push(read(object)?),
            "EvictionPause" => self.pauses.push(read::<EvictionPause>(object)?.to_model()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The newest moment that the export speaks of, in milliseconds since the Unix epoch: it was made after that.
    pub(super) fn newest_ms(&self) -> i64 {
        let conditions = self.clusters.iter().flat_map(|cluster| &cluster.status.conditions);
        let transitions = conditions.filter_map(|condition| condition.last_transition_time);
        let taints = self.clusters.iter().flat_map(|cluster| &cluster.spec.taints).filter_map(|taint| taint.time_added);
        let tasks = self.bindings.iter().flat_map(|binding| &binding.spec.graceful_eviction_tasks);
        let made = tasks.filter_map(|task| task.creation_timestamp);
        transitions.chain(taints).chain(made).map(|time| time.as_millis()).max().unwrap_or(0)
    }
}
