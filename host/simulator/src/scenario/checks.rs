//! Validation of events and expectations: combinations of fields, and references to objects.

use bulkhead_controllers::controller_names;
use serde_json::json;

use super::loaded::{EventAction, LoadedEvent, ManifestObject};
use super::loader::Loader;
use super::manifests::Use;
use super::source::ObjectOrigin;
use super::{DrainSpec, EventSpec, Expectation, ManifestSource, ObjectSpec};

impl Loader {
    pub(super) fn event(&mut self, field: &str, spec: &EventSpec) -> Option<LoadedEvent> {
        if spec.at > self.duration {
            self.problem(&format!("{field}.at"), format!("is after the end at {}", self.duration));
        }
        let given = [
            spec.state.is_some(),
            spec.failure_modes.is_some(),
            spec.apply.is_some(),
            spec.delete.is_some(),
            spec.drain.is_some(),
            spec.undrain.is_some(),
            spec.reschedule.is_some(),
            spec.kill_controller.is_some(),
            spec.plugins.is_some(),
            spec.fault.is_some(),
        ];
        let about_cluster = spec.state.is_some() || spec.failure_modes.is_some();
        if given.iter().filter(|given| **given).count() != 1 || spec.cluster.is_some() != about_cluster {
            let message = "needs exactly one of: cluster with state, cluster with failureModes, apply, delete, drain, \
                           undrain, reschedule, kill-controller, plugins, fault";
            self.problem(field, message);
            return None;
        }
        if spec.for_.is_some() && spec.kill_controller.is_none() {
            self.problem(&format!("{field}.for"), "goes with kill-controller only");
        }
        let cluster = spec.cluster.clone().unwrap_or_default();
        if about_cluster {
            self.known_cluster(&format!("{field}.cluster"), &cluster);
        }
        if let Some(fault) = &spec.fault {
            if let Some(mistake) = fault.mistake() {
                self.problem(&format!("{field}.fault"), mistake);
            }
            for (name, cluster) in [("cluster", &fault.cluster), ("peer", &fault.peer)] {
                if let Some(cluster) = cluster {
                    self.known_cluster(&format!("{field}.fault.{name}"), cluster);
                }
            }
        }
        let action = if let Some(fault) = &spec.fault {
            EventAction::Fault(fault.clone())
        } else if let Some(state) = spec.state {
            EventAction::ClusterState(cluster, state)
        } else if let Some(modes) = &spec.failure_modes {
            self.failure_modes(field, modes);
            EventAction::FailureModes(cluster, modes.clone())
        } else if let Some(source) = &spec.apply {
            let objects = self.manifests(&format!("{field}.apply"), source, Use::Apply);
            let description = match source {
                ManifestSource::File(file) => file.clone(),
                ManifestSource::Generated(generated) => generated.file.clone(),
                ManifestSource::Inline(_) => describe(&objects),
            };
            EventAction::Apply(description, objects)
        } else if let Some(object) = &spec.delete {
            if !self.serves(&object.api_version, &object.kind) {
                let message = format!("the kind {} {} is not served", object.api_version, object.kind);
                self.problem(&format!("{field}.delete"), message);
            }
            EventAction::Delete(object.clone())
        } else if let Some(drain) = &spec.drain {
            self.known_cluster(&format!("{field}.drain.cluster"), &drain.cluster);
            EventAction::Apply(format!("drain of {}", drain.cluster), vec![drain_object(drain)])
        } else if let Some(cluster) = &spec.undrain {
            self.known_cluster(&format!("{field}.undrain"), cluster);
            let (api_version, kind) = ("bulkhead.dev/v1alpha1".to_owned(), "ClusterDrain".to_owned());
            EventAction::Delete(ObjectSpec {
                api_version,
                kind,
                namespace: String::new(),
                name: cluster.clone(),
            })
        } else if let Some(binding) = &spec.reschedule {
            EventAction::Reschedule(binding.clone())
        } else if let Some(controller) = &spec.kill_controller {
            if controller != "*" && !controller_names().any(|known| known == controller) {
                let known = controller_names().collect::<Vec<_>>().join(", ");
                let message = format!("there is no controller {controller:?}; there are {known}, and * for all");
                self.problem(&format!("{field}.kill-controller"), message);
            }
            EventAction::KillController(controller.clone(), spec.for_.unwrap_or_default())
        } else {
            let plugins = spec.plugins.clone().unwrap_or_default();
            EventAction::Plugins(self.plugins(&format!("{field}.plugins"), plugins))
        };
        Some(LoadedEvent { at: spec.at, action })
    }

    pub(super) fn expectation(&mut self, field: &str, expectation: &Expectation) {
        let subjects = [
            expectation.binding.is_some(),
            expectation.bindings_on.is_some(),
            expectation.cluster.is_some(),
            expectation.workload.is_some(),
            expectation.event.is_some(),
            expectation.decision.is_some(),
        ];
        if subjects.iter().filter(|given| **given).count() != 1 {
            let message = "needs exactly one subject: binding, bindingsOn, cluster, workload, event or decision";
            self.problem(field, message);
            return;
        }
        let of_binding = expectation.clusters.is_some()
            || expectation.clusters_one_of.is_some()
            || expectation.evicting_from.is_some()
            || expectation.works_in.is_some()
            || expectation.recorded.is_some();
        let of_cluster = expectation.ready.is_some() || expectation.taints.is_some();
        let of_workload = expectation.ready_replicas.is_some()
            || expectation.ready_replicas_min.is_some()
            || expectation.images.is_some();
        for (subject, checks, name, fields) in [
            (
                expectation.binding.is_some(),
                of_binding,
                "binding",
                "clusters, clustersOneOf, evictingFrom, worksIn, recorded",
            ),
            (expectation.cluster.is_some(), of_cluster, "cluster", "ready, taints"),
            (
                expectation.workload.is_some(),
                of_workload,
                "workload",
                "readyReplicas, readyReplicasMin, images",
            ),
        ] {
            if subject && !checks {
                self.problem(field, format!("{name} needs at least one of: {fields}"));
            } else if checks && !subject {
                self.problem(field, format!("{fields} go with {name}"));
            }
        }
        if expectation.at.is_some() && expectation.from.is_some() {
            self.problem(field, "has both at (one moment) and from (every moment): choose one");
        }
        if expectation.until.is_some() && expectation.from.is_none() {
            self.problem(&format!("{field}.until"), "goes with from");
        }
        for (name, time) in [
            ("at", expectation.at),
            ("from", expectation.from),
            ("until", expectation.until),
        ] {
            if time.is_some_and(|time| time > self.duration) {
                self.problem(
                    &format!("{field}.{name}"),
                    format!("is after the end at {}", self.duration),
                );
            }
        }
        if expectation
            .workload
            .as_ref()
            .is_some_and(|workload| parse_workload(workload).is_none())
        {
            self.problem(&format!("{field}.workload"), "is not of the form Kind namespace/name");
        }
        let placements = expectation
            .clusters
            .iter()
            .chain(expectation.clusters_one_of.iter().flatten());
        let mut named: Vec<String> = placements.flat_map(|placement| placement.keys().cloned()).collect();
        named.extend(expectation.evicting_from.iter().flatten().cloned());
        named.extend(expectation.works_in.iter().flatten().cloned());
        named.extend(expectation.cluster.iter().cloned());
        named.extend(expectation.bindings_on.iter().map(|on| on.cluster.clone()));
        named.extend(
            expectation
                .ready_replicas
                .iter()
                .flat_map(|by_cluster| by_cluster.keys().cloned()),
        );
        named.extend(
            expectation
                .images
                .iter()
                .flat_map(|by_cluster| by_cluster.keys().cloned()),
        );
        for cluster in named {
            self.known_cluster(field, &cluster);
        }
    }
}

/// Formats objects as a list of kinds and names.
fn describe(objects: &[ManifestObject]) -> String {
    let text = |object: &ManifestObject, pointer: &str| {
        object
            .value
            .pointer(pointer)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let names = objects
        .iter()
        .map(|object| format!("{} {}", text(object, "/kind"), text(object, "/metadata/name")));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the ClusterDrain that `bulkhead drain` creates; its name is that of the cluster.
fn drain_object(drain: &DrainSpec) -> ManifestObject {
    let mut value = json!({
        "apiVersion": "bulkhead.dev/v1alpha1",
        "kind": "ClusterDrain",
        "metadata": {"name": drain.cluster},
        "spec": {"clusterName": drain.cluster},
    });
    if let Some(rate) = drain.evictions_per_second {
        value["spec"]["evictionsPerSecond"] = json!(rate);
    }
    ManifestObject {
        origin: ObjectOrigin::generated(format!("drain of {}", drain.cluster)),
        value,
    }
}

/// Parses `Kind namespace/name` into kind, namespace and name.
pub fn parse_workload(text: &str) -> Option<(&str, &str, &str)> {
    let (kind, key) = text.split_once(' ')?;
    let (namespace, name) = key.split_once('/')?;
    (!kind.is_empty() && !namespace.is_empty() && !name.is_empty()).then_some((kind, namespace, name))
}
