//! Lifecycle of one pod: scheduling, becoming ready, failing, finishing.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Content, Object, ObjectKey, rfc3339, stable_hash};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::condition::{Condition, set_condition};
use crate::controllers::group_size::{group_size, pods_in};
use crate::controllers::time::add;
use crate::failure::FailureMode;
use crate::nodes::Amount;

/// Progress of a scheduled pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodProgress {
    failure: Option<FailureMode>,
    /// Time at which it was scheduled, or at which the failure that applies to it last changed.
    since: Timestamp,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The containers are being created.
    Starting,
    /// The image cannot be pulled.
    PullingFails,
    /// The containers run but are not ready.
    Unready,
    /// The containers have been ready since the given time.
    Ready(Timestamp),
    /// The containers crashed and are not restarted.
    Crashed,
    /// All containers terminated successfully.
    Succeeded,
    /// A container terminated with an error.
    Failed,
}

impl Stage {
    fn phase(self) -> &'static str {
        match self {
            Self::Starting | Self::PullingFails => "Pending",
            Self::Unready | Self::Ready(_) | Self::Crashed => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl PodProgress {
    /// Returns the progress of a pod seen for the first time: it was just scheduled, or was ready before the emulator
    /// started.
    fn seen(pod: &Content, failure: Option<FailureMode>, now: Timestamp) -> Self {
        let ready = array(pod, "/status/conditions")
            .iter()
            .find(|condition| condition["type"] == "Ready");
        let since = ready
            .filter(|ready| ready["status"] == "True")
            .map(|ready| text(ready, "/lastTransitionTime"));
        let stage = match since.and_then(|since| since.parse().ok()) {
            Some(since) => Stage::Ready(since),
            None => Stage::Starting,
        };
        Self {
            failure,
            since: now,
            stage,
        }
    }
}

impl Emulator {
    pub(super) fn sync_pod(&mut self, key: &ObjectKey) {
        let Some(mut pod) = self.store.get(key) else {
            return;
        };
        if matches!(text(pod.content(), "/status/phase"), "Succeeded" | "Failed") {
            self.release(key);
            return;
        }
        if pod.is_terminating() {
            return;
        }
        match (text(pod.content(), "/spec/nodeName"), group_size(pod.content())) {
            ("", group) => {
                let bound = match group {
                    Some(pods) => self.bind_group(key, &pod, pods),
                    None => self.bind(key, &pod),
                };
                let Some(bound) = bound else { return };
                pod = bound;
            }
            (node, group) => {
                let amount = Amount::of_pod(pod.content()).times(group.unwrap_or(1));
                if self.nodes.adopt(key, node, amount) {
                    self.retry_unscheduled();
                }
            }
        }
        self.unscheduled.remove(key);
        let stage = self.advance(key, pod.content());
        let status = self.pod_status(&pod, stage);
        self.write_status(key, &pod, status);
        if stage.is_final() {
            self.release(key);
        }
    }

    /// Assigns a single pod to a node. Returns the changed object if there is one.
    fn bind(&mut self, key: &ObjectKey, pod: &Object) -> Option<Arc<Object>> {
        let Some(node) = self.nodes.place(key, Amount::of_pod(pod.content())) else {
            self.leave_pending(key, pod);
            return None;
        };
        let mut value = pod.content().to_value();
        value["spec"]["nodeName"] = json!(node);
        let bound = self.store.update(key, value).ok();
        if bound.is_none() {
            // The pod was deleted, or admission rejected the update: its capacity is free again.
            self.release(key);
        }
        bound
    }

    /// Returns true if a failure applies to a scheduled pod.
    pub(super) fn is_failing(&self, key: &ObjectKey) -> bool {
        let progress = self.progress.get(key);
        progress.is_some_and(|progress| progress.failure.is_some())
    }

    pub(super) fn leave_pending(&mut self, key: &ObjectKey, pod: &Object) {
        self.unscheduled.insert(key.clone());
        let nodes_total = self.nodes.total();
        let mut conditions = array(pod.content(), "/status/conditions").to_vec();
        let condition = Condition {
            type_: "PodScheduled",
            is_true: false,
            reason: "Unschedulable",
            message: &format!("0/{nodes_total} nodes are available: insufficient cpu, memory or pods"),
        };
        set_condition(&mut conditions, &condition, self.clock.now());
        self.write_status(key, pod, json!({"phase": "Pending", "conditions": conditions}));
    }

    /// Advances a scheduled pod to its stage at the current time and sets the timer for the next one.
    fn advance(&mut self, key: &ObjectKey, pod: &Content) -> Stage {
        let now = self.clock.now();
        let failure = self.failures.of_pod(pod);
        let mut progress = self
            .progress
            .get(key)
            .copied()
            .unwrap_or_else(|| PodProgress::seen(pod, failure, now));
        if progress.failure != failure {
            progress.failure = failure;
            progress.since = now;
        }
        let due = add(progress.since, self.start_delay(key, pods_in(pod)));
        let finishes = !matches!(text(pod, "/spec/restartPolicy"), "" | "Always");
        let mut wake = None;
        let mut wait_until = |at: Timestamp| {
            wake = Some(at);
            at <= now
        };
        progress.stage = match (failure, progress.stage) {
            (_, stage) if stage.is_final() => stage,
            (Some(FailureMode::ImagePull), Stage::Starting | Stage::PullingFails) => Stage::PullingFails,
            (Some(FailureMode::NeverReady), Stage::Starting | Stage::PullingFails) => {
                if wait_until(due) {
                    Stage::Unready
                } else {
                    Stage::Starting
                }
            }
            (Some(FailureMode::NeverReady), _) => Stage::Unready,
            (Some(FailureMode::CrashLoop { .. }), Stage::Crashed) => Stage::Crashed,
            (Some(FailureMode::CrashLoop { ready_for }), Stage::Ready(since)) => {
                let crash_at = add(since.max(progress.since), ready_for);
                match (wait_until(crash_at), finishes) {
                    (false, _) => Stage::Ready(since),
                    (true, false) => Stage::Crashed,
                    (true, true) => Stage::Failed,
                }
            }
            (_, Stage::Ready(since)) => {
                if finishes && wait_until(add(since, self.timing.job_duration)) {
                    Stage::Succeeded
                } else {
                    Stage::Ready(since)
                }
            }
            (_, Stage::PullingFails) => Stage::Starting,
            (_, stage) => {
                if wait_until(due) {
                    Stage::Ready(now)
                } else {
                    stage
                }
            }
        };
        self.progress.insert(key.clone(), progress);
        match wake {
            Some(at) if at > now => self.wake_at(at, key),
            // The timer has already expired; the next stage may have its own timer.
            Some(_) if !progress.stage.is_final() => {
                self.dirty_pods.insert(key.clone());
            }
            _ => {}
        }
        progress.stage
    }

    /// Returns the time that a pod, or the slowest of several, takes to become ready. It is the same in each run,
    /// independent of other events.
    fn start_delay(&self, key: &ObjectKey, pods: u64) -> Duration {
        let timing = self.timing;
        if pods > 1 {
            return timing.replica_ready.base + timing.replica_ready.jitter;
        }
        let jitter_ms = timing.replica_ready.jitter.as_millis() as u64;
        let hash = stable_hash(timing.seed, &[&key.namespace, &key.name]);
        timing.replica_ready.base + Duration::from_millis(hash % (jitter_ms + 1))
    }

    fn pod_status(&self, pod: &Object, stage: Stage) -> Value {
        let now = self.clock.now();
        let value = pod.content();
        let is_ready = matches!(stage, Stage::Ready(_));
        let not_ready_reason = match stage {
            Stage::Ready(_) => "",
            Stage::Succeeded => "PodCompleted",
            Stage::Failed => "PodFailed",
            _ => "ContainersNotReady",
        };
        let mut conditions = array(value, "/status/conditions").to_vec();
        for (type_, is_true, reason) in [
            ("PodScheduled", true, ""),
            ("Initialized", true, ""),
            ("ContainersReady", is_ready, not_ready_reason),
            ("Ready", is_ready, not_ready_reason),
        ] {
            let condition = Condition {
                type_,
                is_true,
                reason,
                message: "",
            };
            set_condition(&mut conditions, &condition, now);
        }
        let started_at = match text(value, "/status/startTime") {
            "" => rfc3339(now),
            known => known.to_owned(),
        };
        let containers: Vec<Value> = array(value, "/spec/containers")
            .iter()
            .map(|container| container_status(container, stage, &started_at))
            .collect();
        let mut status = json!({"phase": stage.phase(), "startTime": started_at});
        status["conditions"] = Value::Array(conditions);
        status["containerStatuses"] = Value::Array(containers);
        if stage.phase() != "Pending" {
            let address = stable_hash(self.timing.seed, &[pod.uid()]);
            let ip = format!(
                "10.{}.{}.{}",
                address & 0xFF,
                (address >> 8) & 0xFF,
                1 + ((address >> 16) % 254)
            );
            status["podIPs"] = json!([{"ip": ip}]);
            status["podIP"] = json!(ip);
        }
        status
    }
}

fn container_status(container: &Value, stage: Stage, started_at: &str) -> Value {
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    let terminated = |exit_code: u8, reason: &str| json!({"terminated": {"exitCode": exit_code, "reason": reason}});
    let state = match stage {
        Stage::Starting => waiting("ContainerCreating"),
        Stage::PullingFails => waiting("ImagePullBackOff"),
        Stage::Crashed => waiting("CrashLoopBackOff"),
        Stage::Unready | Stage::Ready(_) => json!({"running": {"startedAt": started_at}}),
        Stage::Succeeded => terminated(0, "Completed"),
        Stage::Failed => terminated(1, "Error"),
    };
    let mut status = json!({
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": matches!(stage, Stage::Ready(_)),
        "started": matches!(stage, Stage::Unready | Stage::Ready(_)),
        "restartCount": u8::from(stage == Stage::Crashed),
    });
    status["state"] = state;
    status
}
