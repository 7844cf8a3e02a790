//! DaemonSets: one pod on each node.

use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::json;

use crate::controllers::Emulator;
use crate::controllers::revisions::REVISION_LABEL;
use crate::controllers::workload::{NewPod, PodView, min_ready, template_hash, without_zeros};

impl Emulator {
    pub(super) fn sync_daemon_set(&mut self, key: &ObjectKey, object: &Object) {
        let value = object.content();
        let revision = template_hash(value);
        let pods = self.pods_of(object, REVISION_LABEL);
        self.keep_revisions(object, &revision, &pods);
        if self.step_daemon_set(object, &pods, &revision) {
            return;
        }
        let now = self.clock.now();
        let min_ready = min_ready(value);
        let desired = self.nodes.total();
        let ready = pods.iter().filter(|pod| pod.is_ready()).count();
        let available = pods.iter().filter(|pod| pod.is_available(min_ready, now)).count();
        let updated = pods.iter().filter(|pod| pod.revision == revision).count();
        self.wake_for_availability(key, &pods, min_ready);
        let status = json!({
            "observedGeneration": value["metadata"]["generation"],
            "currentNumberScheduled": pods.len(),
            "desiredNumberScheduled": desired,
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": available,
            "numberUnavailable": desired.saturating_sub(available),
            "updatedNumberScheduled": updated,
        });
        let status = without_zeros(
            status,
            &["numberAvailable", "numberUnavailable", "updatedNumberScheduled"],
        );
        self.write_status(key, object, status);
    }

    /// Creates pods on nodes that have none; otherwise replaces one outdated pod. Returns true if anything changed.
    fn step_daemon_set(&self, object: &Object, pods: &[PodView], revision: &str) -> bool {
        let mut has_stepped = false;
        for index in 0..self.nodes.total() {
            if pods.iter().all(|pod| pod.ordinal != index as u64) {
                has_stepped |= self.create_pod(
                    object,
                    NewPod {
                        ordinal: index as u64,
                        prefix: object.name(),
                        revision: (REVISION_LABEL, revision),
                        node: Some(self.nodes.name(index)),
                        group: None,
                    },
                );
            }
        }
        let is_settled = pods.iter().all(|pod| pod.is_ready() || pod.revision != revision);
        let outdated = pods
            .iter()
            .find(|pod| pod.revision != revision && !pod.is_terminating)
            .filter(|_| is_settled && object.content()["spec"]["updateStrategy"]["type"] != "OnDelete");
        has_stepped | outdated.is_some_and(|pod| self.delete(&pod.key))
    }
}
