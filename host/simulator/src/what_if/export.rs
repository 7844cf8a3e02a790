//! Input objects of a what-if question: exported to files, or read from a control plane.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use bulkhead_api::decode::decode;
use bulkhead_api::{
    AnyBinding, Cluster, ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, FieldError, ResourceBinding,
};
use bulkhead_apiserver::Contents;
use bulkhead_apiserver::json::text;
use bulkhead_core::model::BindingSpec;
use bulkhead_core::time::Time;
use bulkhead_plugin::{Positions, limits_of_files, read_documents};
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
        let documents = documents(&path, &mut export.notes)?.into_iter().enumerate();
        for (document, value) in documents.filter(|(_, value)| !value.is_null()) {
            let is_list = list_items(&value).is_some();
            for (index, object) in flattened(value).into_iter().enumerate() {
                let item = if is_list {
                    format!("items[{index}]")
                } else {
                    String::new()
                };
                match export.take(&object) {
                    Ok(is_needed) => others += usize::from(!is_needed),
                    Err(error) => bail!(at_field(&path, document, &item, &object, &error)),
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

/// Reads the documents of a file that are not empty. An export may have a hundred megabytes, so its text is not kept.
fn documents(path: &Path, notes: &mut Vec<String>) -> anyhow::Result<Vec<Value>> {
    let (name, text) = (path.display(), text_of(path)?);
    if path.extension().is_some_and(|extension| extension == "json") {
        return serde_json::from_str(&text)
            .map(|document| vec![document])
            .map_err(|error| anyhow!(json_error(&name.to_string(), &error)));
    }
    let read = read_documents::<Value>(&name.to_string(), &text, &limits_of_files()).map_err(anyhow::Error::msg)?;
    notes.extend(read.warnings.iter().map(|warning| format!("{name}: {warning}")));
    Ok(read.documents)
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

/// Formats an error about a value with file, line and column, object and field. The text is read again for the position.
fn at_field(path: &Path, document: usize, item: &str, object: &Value, error: &FieldError) -> String {
    let joined = |parts: [&str; 2], separator| {
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(separator)
    };
    let positions = Positions::read(&text_of(path).unwrap_or_default(), &limits_of_files());
    let position = positions.value(document, &joined([item, &error.path], "."));
    let position = position.map_or_else(String::new, |at| format!(":{at}"));
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let cause = joined([&error.path, &error.message], ": ");
    format!("{}{position}: {kind} {name}: {cause}", path.display())
}

/// Formats a syntax error of JSON as `file:line:column: cause`.
fn json_error(name: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let (message, end) = (error.to_string(), format!(" at line {line} column {column}"));
    format!("{name}:{line}:{column}: {}", message.trim_end_matches(&end))
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
    if list_items(&document).is_none() {
        return vec![document];
    }
    match document["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// Returns the items of a document that is a list.
fn list_items(document: &Value) -> Option<&Vec<Value>> {
    let is_list = text(document, "/kind").ends_with("List");
    document.get("items")?.as_array().filter(|_| is_list)
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
    fn take(&mut self, object: &Value) -> Result<bool, FieldError> {
        match text(object, "/kind") {
            "Cluster" => self.clusters.push(decode(object)?),
            "ResourceBinding" => self.bindings.push(decode(object)?),
            "ClusterResourceBinding" => self.cluster_bindings.push(decode(object)?),
            "ClusterTaintPolicy" => self.taint_policies.push(decode(object)?),
            "EvictionPause" => self.pauses.push(decode(object)?),
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

    #[test]
    fn an_export_of_hundreds_of_thousands_of_values_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let other =
            |n| format!("- {{kind: ConfigMap, metadata: {{name: c{n}, namespace: default}}, data: {{a: b}}}}\n");
        let others = (0..30_000).map(other).collect::<Vec<_>>().concat();
        let text = format!(
            "kind: List\nitems:\n- {{kind: Cluster, metadata: {{name: m1}}, spec: {{syncMode: Push}}}}\n{others}\
             - {{kind: ResourceBinding, metadata: {{name: a, namespace: default}}, spec: {{resource: {{apiVersion: v1, kind: \
             ConfigMap, name: a}}}}}}\n"
        );
        fs::write(directory.path().join("all.yaml"), text).unwrap();
        let export = load(directory.path()).unwrap();
        assert_eq!((export.clusters.len(), export.bindings.len()), (1, 1));
        assert!(
            export
                .notes
                .iter()
                .any(|note| note.starts_with("30000 objects of other kinds")),
            "{:?}",
            export.notes
        );
    }

    #[test]
    fn a_wrong_value_of_an_export_has_its_line_and_column() {
        let check = |file: &str, text: &str, expected: &str| {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(file), text).unwrap();
            let error = load(directory.path()).err().map(|error| format!("{error:#}"));
            let error = error.unwrap_or_default();
            let start = format!("{}/{expected}", directory.path().display());
            assert!(error.starts_with(&start), "{error}");
        };
        let cluster =
            "kind: Cluster\nmetadata: {name: m1}\nspec:\n  syncMode: Push\n  taints:\n  - {key: a, effect: 7}\n";
        check(
            "a.yaml",
            &format!("kind: Other\n---\n{cluster}"),
            "a.yaml:8:22: Cluster m1: spec.taints[0].effect: ",
        );
        let binding =
            "{\"kind\": \"ResourceBinding\", \"metadata\": {\"name\": \"b\"},\n\"spec\": {\"replicas\": \"three\"}}";
        check(
            "a.json",
            &format!("{{\"kind\": \"List\", \"items\": [\n{{\"kind\": \"Other\"}},\n{binding}]}}"),
            "a.json:4:22: ResourceBinding b: spec.replicas: ",
        );
        check(
            "a.json",
            "{\"kind\": \"List\",\n\"items\": [}",
            "a.json:2:11: expected value",
        );
        check("a.yaml", "kind: List\nitems: [\n", "a.yaml:2:8: ");
    }
}
