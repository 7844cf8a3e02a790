//! StatefulSets: numbered pods that are created, deleted and replaced one at a time.

use bulkhead_apiserver::json::text;
use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::json;

use crate::controllers::Emulator;
use crate::controllers::revisions::REVISION_LABEL;
use crate::controllers::workload::{NewPod, PodView, min_ready, spec_number, template_hash};

impl Emulator {
    pub(super) fn sync_stateful_set(&mut self, key: &ObjectKey, object: &Object) {
        let value = object.value();
        let hash = template_hash(value);
        let update_revision = format!("{}-{hash}", object.name());
        let pods = self.pods_of(object, REVISION_LABEL);
        self.keep_revisions(object, &hash, &pods);
        if self.step_stateful_set(object, &pods, &update_revision) {
            return;
        }
        let now = self.clock.now();
        let min_ready = min_ready(value);
        let desired = spec_number(value, "replicas", 1);
        let count = |holds: &dyn Fn(&PodView) -> bool| pods.iter().filter(|pod| holds(pod)).count() as u64;
        let updated = count(&|pod| pod.revision == update_revision);
        let ready = count(&PodView::is_ready);
        let available = count(&|pod| pod.is_available(min_ready, now));
        // The update revision becomes current when all pods have been replaced and are ready.
        let is_rolled_out = updated == desired && ready == desired && pods.len() as u64 == desired;
        let current_revision = match text(value, "/status/currentRevision") {
            known if !known.is_empty() && !is_rolled_out => known.to_owned(),
            _ => update_revision.clone(),
        };
        let current = count(&|pod| pod.revision == current_revision);
        self.wake_for_availability(key, &pods, min_ready);
        let status = json!({
            "observedGeneration": value["metadata"]["generation"],
            "replicas": pods.len(),
            "readyReplicas": ready,
            "availableReplicas": available,
            "currentReplicas": current,
            "updatedReplicas": updated,
            "currentRevision": current_revision,
            "updateRevision": update_revision,
            "collisionCount": 0,
        });
        self.write_status(key, object, status);
    }

    /// Takes the next step towards the desired pods. Returns true if there was one.
    fn step_stateful_set(&self, object: &Object, pods: &[PodView], revision: &str) -> bool {
        let value = object.value();
        let desired = spec_number(value, "replicas", 1);
        let is_ordered = value["spec"]["podManagementPolicy"] != "Parallel";
        if let Some(finished) = pods.iter().find(|pod| pod.is_finished() && !pod.is_terminating) {
            return self.delete(&finished.key);
        }
        let mut has_stepped = false;
        for ordinal in 0..desired {
            match pods.iter().find(|pod| pod.ordinal == ordinal) {
                None => {
                    has_stepped |= self.create_pod(
                        object,
                        NewPod {
                            ordinal,
                            prefix: object.name(),
                            revision: (REVISION_LABEL, revision),
                            node: None,
                        },
                    );
                    if is_ordered {
                        return has_stepped;
                    }
                }
                Some(pod) if is_ordered && !pod.is_ready() && pod.revision == revision => return false,
                Some(_) => {}
            }
        }
        if has_stepped {
            return true;
        }
        let excess = pods.iter().rev().find(|pod| pod.ordinal >= desired);
        if let Some(excess) = excess {
            return !excess.is_terminating && self.delete(&excess.key);
        }
        if value["spec"]["updateStrategy"]["type"] == "OnDelete" {
            return false;
        }
        let partition = value["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
            .as_u64()
            .unwrap_or_default();
        let outdated = pods
            .iter()
            .rev()
            .find(|pod| pod.ordinal >= partition && pod.revision != revision);
        // All pods of the new revision must be ready before the next pod is deleted. Outdated pods need not be ready.
        let others_ready = |outdated: &PodView| {
            pods.iter()
                .all(|pod| pod.is_ready() || pod.ordinal == outdated.ordinal || pod.revision != revision)
        };
        outdated.is_some_and(|pod| !pod.is_terminating && others_ready(pod) && self.delete(&pod.key))
    }
}
