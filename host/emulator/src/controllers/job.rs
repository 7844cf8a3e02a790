//! Jobs: pods that run to completion.

use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::condition::{self, Condition, set_condition};
use crate::controllers::workload::{NewPod, PodView, spec_number, stamp, without_zeros};

const REVISION_LABEL: &str = "batch.kubernetes.io/job-name";

/// State of a job.
enum Outcome {
    Running,
    Suspended,
    Complete,
    Failed,
}

impl Emulator {
    pub(super) fn sync_job(&mut self, key: &ObjectKey, object: &Object) {
        let value = object.value();
        let is_over = ["Complete", "Failed"].iter().any(|type_| {
            condition::find(array(value, "/status/conditions"), type_)
                .is_some_and(|condition| condition["status"] == "True")
        });
        if is_over {
            return;
        }
        let pods = self.pods_of(object, REVISION_LABEL);
        let succeeded = in_phase(&pods, "Succeeded");
        let failed = in_phase(&pods, "Failed");
        let parallelism = spec_number(value, "parallelism", 1);
        let completions = spec_number(value, "completions", parallelism);
        let outcome = if failed > spec_number(value, "backoffLimit", 6) {
            Outcome::Failed
        } else if succeeded >= completions {
            Outcome::Complete
        } else if value["spec"]["suspend"] == true {
            Outcome::Suspended
        } else {
            Outcome::Running
        };
        let active: Vec<&PodView> = pods
            .iter()
            .filter(|pod| !pod.is_finished() && !pod.is_terminating)
            .collect();
        let changed = if matches!(outcome, Outcome::Running) {
            let wanted = parallelism.min(completions - succeeded);
            self.start_job_pods(object, &pods, wanted.saturating_sub(active.len() as u64))
        } else {
            active.iter().filter(|pod| self.delete(&pod.key)).count()
        };
        if changed > 0 {
            return;
        }
        let ready = active.iter().filter(|pod| pod.is_ready()).count();
        let status = json!({
            "active": active.len(),
            "ready": ready,
            "succeeded": succeeded,
            "failed": failed,
        });
        let mut status = without_zeros(status, &["active", "succeeded", "failed"]);
        self.describe_outcome(value, &outcome, &mut status);
        self.write_status(key, object, status);
    }

    fn start_job_pods(&self, object: &Object, pods: &[PodView], missing: u64) -> usize {
        (0..)
            .filter(|ordinal| pods.iter().all(|pod| pod.ordinal != *ordinal))
            .take(missing as usize)
            .filter(|&ordinal| {
                self.create_pod(
                    object,
                    NewPod {
                        ordinal,
                        prefix: object.name(),
                        revision: (REVISION_LABEL, object.name()),
                        node: None,
                    },
                )
            })
            .count()
    }

    fn describe_outcome(&self, value: &Value, outcome: &Outcome, status: &mut Value) {
        let now = self.clock.now();
        let mut conditions = array(value, "/status/conditions").to_vec();
        let was_suspended = condition::find(&conditions, "Suspended").is_some();
        let mut set = |type_: &str, is_true: bool, reason: &str| {
            let condition = Condition {
                type_,
                is_true,
                reason,
                message: "",
            };
            set_condition(&mut conditions, &condition, now);
        };
        match outcome {
            Outcome::Suspended => set("Suspended", true, "JobSuspended"),
            Outcome::Running if was_suspended => set("Suspended", false, "JobResumed"),
            Outcome::Running => {}
            Outcome::Complete => {
                set("SuccessCriteriaMet", true, "CompletionsReached");
                set("Complete", true, "CompletionsReached");
                status["completionTime"] = stamp(now);
            }
            Outcome::Failed => {
                set("FailureTarget", true, "BackoffLimitExceeded");
                set("Failed", true, "BackoffLimitExceeded");
            }
        }
        if !conditions.is_empty() {
            status["conditions"] = Value::Array(conditions);
        }
        if !matches!(outcome, Outcome::Suspended) {
            status["startTime"] = match text(value, "/status/startTime") {
                "" => stamp(now),
                known => json!(known),
            };
        }
    }
}

fn in_phase(pods: &[PodView], phase: &str) -> u64 {
    pods.iter().filter(|pod| pod.phase == phase).count() as u64
}
