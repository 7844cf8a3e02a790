//! Deployments and ReplicaSets: interchangeable pods and their rolling replacement.
//!
//! In simulations a Deployment owns its pods directly. In members for people there are ReplicaSets in between, whose
//! pods the Deployment creates and deletes as well: see [`super::rollout`].

use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Content, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::condition::{self, Condition, set_condition};
use crate::controllers::group::Naming;
use crate::controllers::time::add;
use crate::controllers::workload::{PodView, count, min_ready, spec_number, stamp, template_hash, without_zeros};

pub(super) const REVISION_LABEL: &str = "pod-template-hash";

/// Pod counts of a Deployment.
struct Counts {
    desired: u64,
    replicas: u64,
    updated: u64,
    ready: u64,
    available: u64,
}

impl Counts {
    fn is_complete(&self) -> bool {
        self.updated == self.desired && self.replicas == self.desired && self.available == self.desired
    }
}

impl Emulator {
    pub(super) fn sync_replicas(&mut self, key: &ObjectKey, object: &Object) {
        let value = object.content();
        let is_deployment = key.kind == self.kinds.deployment;
        if !is_deployment && is_controlled(value) {
            // The Deployment takes care of its ReplicaSets.
            self.mark_owners(object);
            return;
        }
        // A ReplicaSet never replaces pods, so all of them count as created from the current template.
        let revision = if is_deployment {
            template_hash(value)
        } else {
            text(value, &format!("/metadata/labels/{REVISION_LABEL}")).to_owned()
        };
        let sets = if is_deployment {
            self.replica_sets(object, &revision)
        } else {
            Vec::new()
        };
        let owners = sets.iter().map(|set| &**set).chain([object]);
        let mut pods: Vec<PodView> = owners.flat_map(|owner| self.pods_of(owner, REVISION_LABEL)).collect();
        pods.retain(|pod| !pod.is_terminating && !pod.is_finished());
        if !is_deployment {
            for pod in &mut pods {
                pod.revision.clone_from(&revision);
            }
        }
        // The created and deleted pods trigger another sync; the status is written once the pods have settled.
        let current = sets
            .iter()
            .find(|set| set.name().ends_with(&revision))
            .map_or(object, |set| &**set);
        if self.scale(object, current, &pods, &revision) > 0 {
            return;
        }
        let now = self.clock.now();
        let min_ready = min_ready(value);
        if self.merge_groups(pods.iter().filter(|pod| pod.is_available(min_ready, now))) {
            return;
        }
        let counts = Counts {
            desired: spec_number(value, "replicas", 1),
            replicas: count(&pods, |_| true),
            updated: count(&pods, |pod| pod.revision == revision),
            ready: count(&pods, PodView::is_ready),
            available: count(&pods, |pod| pod.is_available(min_ready, now)),
        };
        self.wake_for_availability(key, &pods, min_ready);
        self.settle_replica_sets(object, &sets, &pods, &revision);
        let status = if is_deployment {
            self.deployment_status(key, value, &counts)
        } else {
            let status = json!({
                "observedGeneration": value["metadata"]["generation"],
                "replicas": counts.replicas,
                "fullyLabeledReplicas": counts.replicas,
                "readyReplicas": counts.ready,
                "availableReplicas": counts.available,
            });
            without_zeros(status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"])
        };
        self.write_status(key, object, status);
    }

    /// Creates and deletes pods. Returns the number of changed objects.
    ///
    /// `owner` is the owner of new pods: the workload itself or its current ReplicaSet.
    fn scale(&self, object: &Object, owner: &Object, pods: &[PodView], revision: &str) -> usize {
        let value = object.content();
        let desired = spec_number(value, "replicas", 1);
        let strategy = &value["spec"]["strategy"];
        let (current, old): (Vec<&PodView>, Vec<&PodView>) = pods.iter().partition(|pod| pod.revision == revision);
        if strategy["type"] == "Recreate" && !old.is_empty() {
            return old.iter().filter(|pod| self.delete(&pod.key)).count();
        }
        let mut surge = share(&strategy["rollingUpdate"]["maxSurge"], desired, u64::div_ceil);
        let unavailable = share(&strategy["rollingUpdate"]["maxUnavailable"], desired, |a, b| a / b);
        // A rollout with neither surge nor unavailable pods could not make progress.
        if surge == 0 && unavailable == 0 {
            surge = 1;
        }
        let updated = count(current.iter().copied(), |_| true);
        // The counters of a status are 32-bit numbers.
        let most = desired.saturating_add(surge).min(i32::MAX as u64);
        let room = most.saturating_sub(count(pods, |_| true));
        let prefix = if owner.content()["kind"] == "Deployment" {
            format!("{}-{revision}", owner.name())
        } else {
            owner.name().to_owned()
        };
        let naming = Naming {
            prefix: &prefix,
            revision: (REVISION_LABEL, revision),
        };
        let missing = desired.saturating_sub(updated).min(room);
        let mut changed = self.add_pods(owner, current.iter().copied(), missing, naming);

        let mut last_first = current;
        last_first.sort_by_key(|pod| (pod.is_ready(), std::cmp::Reverse((pod.is_group, pod.ordinal))));
        changed += self.remove_pods(&last_first, updated.saturating_sub(desired));

        let now = self.clock.now();
        let available = count(pods, |pod| pod.is_available(min_ready(value), now));
        let removable = available.saturating_sub(desired.saturating_sub(unavailable));
        let (ready, unready): (Vec<&PodView>, Vec<&PodView>) = old.into_iter().partition(|pod| pod.is_ready());
        changed + self.remove_pods(&unready, u64::MAX) + self.remove_pods(&ready, removable)
    }

    fn deployment_status(&mut self, key: &ObjectKey, value: &Content, counts: &Counts) -> Value {
        let now = self.clock.now();
        let mut conditions = array(value, "/status/conditions").to_vec();
        let rolling = &value["spec"]["strategy"]["rollingUpdate"];
        let tolerated = share(&rolling["maxUnavailable"], counts.desired, |a, b| a / b);
        let is_available = counts.available >= counts.desired.saturating_sub(tolerated);
        let (reason, message) = if is_available {
            ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        let available = Condition {
            type_: "Available",
            is_true: is_available,
            reason,
            message,
        };
        set_timed_condition(&mut conditions, &available, false, now);
        self.set_progressing(key, value, counts, &mut conditions);
        let mut status = json!({
            "observedGeneration": value["metadata"]["generation"],
            "replicas": counts.replicas,
            "updatedReplicas": counts.updated,
            "readyReplicas": counts.ready,
            "availableReplicas": counts.available,
            "unavailableReplicas": counts.desired.max(counts.replicas).saturating_sub(counts.available),
        });
        status["conditions"] = Value::Array(conditions);
        without_zeros(
            status,
            &[
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ],
        )
    }

    /// Sets the `Progressing` condition and the timer for its deadline.
    fn set_progressing(&mut self, key: &ObjectKey, value: &Content, counts: &Counts, conditions: &mut Vec<Value>) {
        let now = self.clock.now();
        let name = key.name.as_str();
        let status = &value["status"];
        let known = condition::find(conditions, "Progressing").cloned().unwrap_or_default();
        let was = |field: &str| status[field].as_u64().unwrap_or_default();
        // A completed rollout stays complete until the next change of the template, even if pods fail later.
        let stays_complete = known["reason"] == "NewReplicaSetAvailable"
            && counts.updated == counts.replicas
            && counts.updated == was("updatedReplicas");
        if stays_complete {
            return;
        }
        let is_new = known.is_null() || status["observedGeneration"] != value["metadata"]["generation"];
        let has_moved = is_new
            || counts.updated > was("updatedReplicas")
            || counts.ready > was("readyReplicas")
            || counts.available > was("availableReplicas")
            || counts.replicas - counts.updated < was("replicas").saturating_sub(was("updatedReplicas"));
        let moved_at = known["lastUpdateTime"]
            .as_str()
            .and_then(|at| at.parse::<Timestamp>().ok())
            .filter(|_| !has_moved)
            .unwrap_or(now);
        let deadline_s = spec_number(value, "progressDeadlineSeconds", 600);
        let deadline = add(moved_at, std::time::Duration::from_secs(deadline_s));
        // The update that reports the missed deadline must not cause another update.
        let has_missed = !has_moved && known["reason"] == "ProgressDeadlineExceeded";
        let (is_true, reason, message) = if counts.is_complete() {
            (
                true,
                "NewReplicaSetAvailable",
                format!("Deployment \"{name}\" has successfully progressed."),
            )
        } else if has_missed || deadline <= now {
            (
                false,
                "ProgressDeadlineExceeded",
                format!("Deployment \"{name}\" has timed out progressing."),
            )
        } else {
            self.wake_at(deadline, key);
            (
                true,
                "ReplicaSetUpdated",
                format!("Deployment \"{name}\" is progressing."),
            )
        };
        let progressing = Condition {
            type_: "Progressing",
            is_true,
            reason,
            message: &message,
        };
        set_timed_condition(conditions, &progressing, has_moved, now);
    }
}

/// Returns true if a ReplicaSet belongs to a Deployment.
fn is_controlled(set: &Content) -> bool {
    array(set, "/metadata/ownerReferences")
        .iter()
        .any(|owner| owner["kind"] == "Deployment")
}

/// Sets a condition with a `lastUpdateTime`, which changes with the reason or if `is_touched` is set.
fn set_timed_condition(conditions: &mut Vec<Value>, new: &Condition<'_>, is_touched: bool, now: Timestamp) {
    let has_reason = condition::find(conditions, new.type_).is_some_and(|known| known["reason"] == new.reason);
    let set = set_condition(conditions, new, now);
    if is_touched || !has_reason {
        set["lastUpdateTime"] = stamp(now);
    }
}

/// Returns a number of pods, given as such or as a percentage of the desired ones; 25 % if absent.
fn share(given: &Value, desired: u64, divide: fn(u64, u64) -> u64) -> u64 {
    if let Some(pods) = given.as_u64() {
        return pods;
    }
    let percent = given
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(25);
    divide(desired.saturating_mul(percent), 100)
}
