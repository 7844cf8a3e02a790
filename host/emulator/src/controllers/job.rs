//! Jobs: pods that run to completion.

use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Content, Object, ObjectKey};
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::condition::{self, Condition, set_condition};
use crate::controllers::group::Naming;
use crate::controllers::workload::{PodView, count, spec_number, stamp, without_zeros};

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
        let value = object.content();
        let is_over = ["Complete", "Failed"].iter().any(|type_| {
            condition::find(array(value, "/status/conditions"), type_)
                .is_some_and(|condition| condition["status"] == "True")
        });
        if is_over {
            return;
        }
        let pods = self.pods_of(object, REVISION_LABEL);
        let succeeded = count(&pods, |pod| pod.phase == "Succeeded");
        let failed = count(&pods, |pod| pod.phase == "Failed");
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
        let active_total = count(active.iter().copied(), |_| true);
        let changed = if matches!(outcome, Outcome::Running) {
            let wanted = parallelism.min(completions - succeeded);
            let naming = Naming {
                prefix: object.name(),
                revision: (REVISION_LABEL, object.name()),
            };
            self.add_pods(object, pods.iter(), wanted.saturating_sub(active_total), naming)
        } else {
            active.iter().filter(|pod| self.delete(&pod.key)).count()
        };
        if changed > 0 || self.merge_groups(pods.iter().filter(|pod| pod.is_finished())) {
            return;
        }
        let status = json!({
            "active": active_total,
            "ready": count(active.iter().copied(), PodView::is_ready),
            "succeeded": succeeded,
            "failed": failed,
        });
        let mut status = without_zeros(status, &["active", "succeeded", "failed"]);
        self.describe_outcome(value, &outcome, &mut status);
        self.write_status(key, object, status);
    }

    fn describe_outcome(&self, value: &Content, outcome: &Outcome, status: &mut Value) {
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
