//! Rendering of a resource template into the Work of one member cluster (Karmada:
//! `pkg/controllers/binding/common.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_api::work::{Manifest, WorkSpec, WorkloadTemplate};
use bulkhead_api::{AnyBinding, Work};
use bulkhead_core::model::TargetCluster;
use bulkhead_core::names::{self, keys};
use bulkhead_core::overriding::{self, Applied, Overridden};
use bulkhead_core::prune::{prune, prune_time_to_live};
use bulkhead_core::shape::Malformed;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// Data that all Works of a binding share.
pub(crate) struct Source<'a, B> {
    /// The binding.
    pub(crate) binding: &'a B,
    /// Permanent ID of the binding.
    pub(crate) permanent_id: &'a str,
    /// The resource template.
    pub(crate) template: &'a Arc<Value>,
    /// Labels that the manifest takes over from an old copy.
    pub(crate) preserved_labels: &'a BTreeMap<String, String>,
}

/// Returns the Work of one target cluster. `overridden` has the template with the cluster's replicas and the changes of
/// override policies, which the Work records; `existing` is the current Work, whose own ID the manifest must carry.
///
/// # Errors
///
/// The manifest cannot be cleaned of the control plane's fields.
pub(crate) fn work<B: AnyBinding>(
    source: &Source<'_, B>,
    overridden: Overridden,
    target: &TargetCluster,
    existing: Option<&Work>,
) -> Result<Work, Malformed> {
    let Source {
        binding,
        permanent_id,
        preserved_labels,
        ..
    } = *source;
    let Overridden {
        object: mut manifest,
        applied,
    } = overridden;
    let spec = binding.spec();
    let resource = &spec.resource;
    let generation = manifest["metadata"]["generation"].as_i64().filter(|g| *g > 0);
    let conflict = conflict_resolution(&manifest, &spec.conflict_resolution);
    prune(&mut manifest)?;
    prune_time_to_live(&mut manifest);
    let mut work = existing.cloned().unwrap_or_default();
    let namespace = names::execution_namespace(&target.name);
    let name = names::work_name(&resource.kind, &resource.name, &resource.namespace);
    let mut back_reference = match binding.namespace() {
        Some(namespace) => {
            vec![
                (keys::RESOURCE_BINDING_NAMESPACE, namespace),
                (keys::RESOURCE_BINDING_NAME, binding.name_any()),
            ]
        }
        None => vec![(keys::CLUSTER_RESOURCE_BINDING_NAME, binding.name_any())],
    };
    back_reference.push((keys::CONFLICT_RESOLUTION, conflict.to_owned()));
    let work_id = work.labels().get(keys::WORK_ID).cloned();
    label(&mut manifest, B::ID_LABEL, permanent_id);
    label(&mut manifest, keys::MANAGED, "true");
    if let Some(work_id) = &work_id {
        label(&mut manifest, keys::WORK_ID, work_id);
    }
    annotate(&mut manifest, keys::TEMPLATE_UID, &resource.uid);
    if let Some(generation) = generation {
        annotate(&mut manifest, keys::TEMPLATE_GENERATION, &generation.to_string());
    }
    annotate(&mut manifest, keys::WORK_NAMESPACE, &namespace);
    annotate(&mut manifest, keys::WORK_NAME, &name);
    for (key, value) in &back_reference {
        annotate(&mut manifest, key, value);
        work.annotations_mut().insert((*key).to_owned(), value.clone());
    }
    record_overrides(&mut work, &applied);
    for (key, value) in preserved_labels {
        label(&mut manifest, key, value);
    }
    record_managed(&mut manifest);
    work.metadata.namespace = Some(namespace);
    work.metadata.name = Some(name);
    work.labels_mut()
        .insert(B::ID_LABEL.to_owned(), permanent_id.to_owned());
    let finalizers = work.finalizers_mut();
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == keys::EXECUTION_FINALIZER)
    {
        finalizers.push(keys::EXECUTION_FINALIZER.to_owned());
    }
    work.spec = WorkSpec {
        workload: WorkloadTemplate {
            manifests: vec![Manifest::from(&manifest)],
        },
        suspend_dispatching: Some(spec.dispatching_suspended(&target.name)),
        preserve_resources_on_deletion: Some(spec.preserve_resources_on_deletion.unwrap_or(false)),
    };
    Ok(work)
}

/// Records the rules of override policies that changed the manifest. In Karmada, the record of a policy that no longer
/// applies stays.
fn record_overrides(work: &mut Work, applied: &[Applied]) {
    let of_scope = |is_cluster_wide: bool| {
        let rules = applied
            .iter()
            .filter(move |rule| rule.namespace.is_empty() == is_cluster_wide);
        overriding::record(rules)
    };
    for (key, record) in [
        (keys::APPLIED_CLUSTER_OVERRIDES, of_scope(true)),
        (keys::APPLIED_OVERRIDES, of_scope(false)),
    ] {
        match record {
            Some(record) => drop(work.annotations_mut().insert(key.to_owned(), record)),
            None => drop(work.annotations_mut().remove(key)),
        }
    }
}

/// Returns the conflict resolution of the template if it is valid, otherwise that of the binding.
fn conflict_resolution(template: &Value, of_binding: &str) -> &'static str {
    match template["metadata"]["annotations"][keys::CONFLICT_RESOLUTION].as_str() {
        Some("overwrite") => "overwrite",
        Some("abort") => "abort",
        _ if of_binding == "Overwrite" => "overwrite",
        _ => "abort",
    }
}

fn metadata_map<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({}));
    metadata
        .as_object_mut()?
        .entry(field)
        .or_insert_with(|| json!({}))
        .as_object_mut()
}

fn label(object: &mut Value, key: &str, value: &str) {
    if let Some(labels) = metadata_map(object, "labels") {
        labels.insert(key.to_owned(), json!(value));
    }
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    if let Some(annotations) = metadata_map(object, "annotations") {
        annotations.insert(key.to_owned(), json!(value));
    }
}

/// Records the labels and annotations that were set from here, so that one that is dropped later is dropped in the
/// member too. The list of annotations contains the two records themselves.
fn record_managed(manifest: &mut Value) {
    let keys_of = |map: Option<&mut Map<String, Value>>| {
        map.map(|map| map.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let mut labels = keys_of(metadata_map(manifest, "labels"));
    let mut annotations = keys_of(metadata_map(manifest, "annotations"));
    annotations.extend([keys::MANAGED_ANNOTATIONS.to_owned(), keys::MANAGED_LABELS.to_owned()]);
    labels.sort();
    annotations.sort();
    annotations.dedup();
    annotate(manifest, keys::MANAGED_ANNOTATIONS, &annotations.join(","));
    annotate(manifest, keys::MANAGED_LABELS, &labels.join(","));
}

#[cfg(test)]
mod tests {
    use bulkhead_api::ResourceBinding;

    use super::*;

    #[test]
    fn preserved_labels_are_on_the_manifest_and_in_its_notes_and_go_again() {
        let binding: ResourceBinding = serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "job-flink", "namespace": "default"},
            "spec": {"resource": {"apiVersion": "flink.org/v1", "kind": "Job", "namespace": "default", "name": "job"}},
        }))
        .unwrap();
        let template = Arc::new(json!({
            "apiVersion": "flink.org/v1", "kind": "Job",
            "metadata": {"name": "job", "namespace": "default", "labels": {"app": "job", "resume": "old"}},
        }));
        let target = TargetCluster::new("m2", 0);
        let render = |preserved_labels: &BTreeMap<String, String>, existing: Option<&Work>| {
            let source = Source {
                binding: &binding,
                permanent_id: "id",
                template: &template,
                preserved_labels,
            };
            let overridden = Overridden {
                object: Value::clone(&template),
                applied: Vec::new(),
            };
            work(&source, overridden, &target, existing).unwrap()
        };
        let check = |work: &Work, resume: &str, job: Option<&str>| {
            let manifest = work.spec.workload.manifests[0].value().unwrap();
            let label = |key: &str| {
                manifest
                    .pointer("/metadata/labels")
                    .and_then(|all| all.get(key)?.as_str())
            };
            assert_eq!(
                (label("resume"), label("job-id"), label("app")),
                (Some(resume), job, Some("job"))
            );
            let noted = manifest
                .pointer("/metadata/annotations")
                .and_then(|all| all.get(keys::MANAGED_LABELS)?.as_str());
            assert_eq!(noted.unwrap_or_default().contains("job-id"), job.is_some());
        };
        let state = BTreeMap::from([("job-id", "f00"), ("resume", "new")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let first = render(&state, None);
        check(&first, "new", Some("f00"));
        check(&render(&BTreeMap::new(), Some(&first)), "old", None);
    }
}
