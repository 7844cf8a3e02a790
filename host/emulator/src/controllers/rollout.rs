//! ReplicaSets of Deployments: one for each revision of the template, as `kubectl rollout history` and `undo` need them.
//!
//! Members for people have them. Simulations have none: they read no revisions, and each would cost writes.

use std::cmp::Reverse;
use std::sync::Arc;

use bulkhead_apiserver::json::text;
use bulkhead_apiserver::{Content, Object, ObjectKey};
use serde_json::{Map, Value, json};

use crate::controllers::Emulator;
use crate::controllers::replicas::REVISION_LABEL;
use crate::controllers::workload::{PodView, controller_reference, count, min_ready, spec_number, without_zeros};

/// Annotation with the number of a revision.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Annotation of `kubectl apply`, which is not copied to ReplicaSets.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Emulator {
    /// Returns the ReplicaSets of a Deployment, after creating the one of the current template.
    pub(super) fn replica_sets(&self, deployment: &Object, hash: &str) -> Vec<Arc<Object>> {
        if !self.has_replica_sets {
            return Vec::new();
        }
        let mut sets = self.store.dependents(deployment.uid(), self.kinds.replica_set);
        let name = format!("{}-{hash}", deployment.name());
        let newest = sets.iter().map(|set| revision_of(set.content())).max().unwrap_or(0);
        match sets.iter().position(|set| set.name() == name) {
            None => {
                let set = replica_set(deployment, &name, hash, newest + 1);
                let created = self.store.create(self.kinds.replica_set, deployment.namespace(), set);
                sets.extend(created.ok());
            }
            Some(current) => {
                // A revision that returns gets a new number.
                let is_old = revision_of(sets[current].content()) < newest;
                if let Some(renewed) = is_old.then(|| self.annotate(&sets[current], newest + 1)).flatten() {
                    sets[current] = renewed;
                }
            }
        }
        sets
    }

    /// Writes the replicas and the status of ReplicaSets and the revision of their Deployment, and deletes the oldest
    /// ReplicaSets without pods.
    pub(super) fn settle_replica_sets(&self, deployment: &Object, sets: &[Arc<Object>], pods: &[PodView], hash: &str) {
        let mut idle = Vec::new();
        for set in sets {
            let of_set = text(set.content(), &format!("/metadata/labels/{REVISION_LABEL}"));
            let own: Vec<&PodView> = pods.iter().filter(|pod| pod.revision == of_set).collect();
            self.settle(set, &own);
            if of_set == hash {
                let revision = revision_of(set.content());
                if revision_of(deployment.content()) != revision {
                    let key = ObjectKey::new(self.kinds.deployment, deployment.namespace(), deployment.name());
                    self.set_revision(&key, deployment, revision);
                }
            } else if own.is_empty() {
                idle.push(set);
            }
        }
        let limit = spec_number(deployment.content(), "revisionHistoryLimit", 10) as usize;
        idle.sort_by_key(|set| Reverse(revision_of(set.content())));
        for set in idle.into_iter().skip(limit) {
            self.delete(&ObjectKey::new(self.kinds.replica_set, set.namespace(), set.name()));
        }
    }

    fn settle(&self, set: &Arc<Object>, pods: &[&PodView]) {
        let key = ObjectKey::new(self.kinds.replica_set, set.namespace(), set.name());
        let mut set = Arc::clone(set);
        let pods = || pods.iter().copied();
        let replicas = count(pods(), |_| true);
        if set.content()["spec"]["replicas"] != replicas {
            let mut changed = set.content().to_value();
            changed["spec"]["replicas"] = json!(replicas);
            // Another writer was faster; its change causes the next sync.
            let Ok(stored) = self.store.update(&key, changed) else {
                return;
            };
            set = stored;
        }
        let (now, min_ready) = (self.clock.now(), min_ready(set.content()));
        let status = json!({
            "observedGeneration": set.content()["metadata"]["generation"],
            "replicas": replicas,
            "fullyLabeledReplicas": replicas,
            "readyReplicas": count(pods(), PodView::is_ready),
            "availableReplicas": count(pods(), |pod| pod.is_available(min_ready, now)),
        });
        let zeros = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        self.write_status(&key, &set, without_zeros(status, &zeros));
    }

    fn annotate(&self, set: &Object, revision: u64) -> Option<Arc<Object>> {
        self.set_revision(
            &ObjectKey::new(self.kinds.replica_set, set.namespace(), set.name()),
            set,
            revision,
        )
    }

    fn set_revision(&self, key: &ObjectKey, object: &Object, revision: u64) -> Option<Arc<Object>> {
        let mut changed = object.content().to_value();
        changed["metadata"]["annotations"][REVISION] = json!(revision.to_string());
        self.store.update(key, changed).ok()
    }
}

fn revision_of(object: &Content) -> u64 {
    object["metadata"]["annotations"][REVISION]
        .as_str()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Returns the annotations of a workload that its revisions get too.
pub(super) fn copied_annotations(workload: &Content) -> Map<String, Value> {
    let known = workload["metadata"]["annotations"].as_object().into_iter().flatten();
    let copied = known.filter(|(key, _)| *key != LAST_APPLIED && *key != REVISION);
    copied.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns a new ReplicaSet without replicas.
fn replica_set(deployment: &Object, name: &str, hash: &str, revision: u64) -> Value {
    let value = deployment.content();
    let mut template = value["spec"]["template"].clone();
    template["metadata"]["labels"][REVISION_LABEL] = json!(hash);
    let mut selector = value["spec"]["selector"].clone();
    selector["matchLabels"][REVISION_LABEL] = json!(hash);
    let mut annotations = copied_annotations(value);
    annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    });
    if let Some(seconds) = value["spec"].get("minReadySeconds") {
        set["spec"]["minReadySeconds"] = seconds.clone();
    }
    set
}
