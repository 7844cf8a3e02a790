//! Columns of `kubectl get` for pods and workloads.

use serde_json::{Value, json};

use super::age;
use super::cells::{AGE, Columns, Rule, match_labels, or_none};
use crate::json::{array, text};
use crate::object::is_terminating;

const SELECTOR: (&str, i64, Rule) = ("Selector", 1, |object, _| {
    match_labels(&object["spec"]["selector"]["matchLabels"])
});

/// Returns an integer, 0 if it is absent.
fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the desired replicas, 1 by default.
fn wanted(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Returns the values of a field of all containers of a pod template.
pub(super) fn of_containers(template: &Value, field: &str) -> Value {
    let containers = array(template, "/spec/containers").iter();
    let values: Vec<&str> = containers.filter_map(|container| container[field].as_str()).collect();
    json!(values.join(","))
}

/// Returns the columns with names and images of the containers of a workload.
pub(super) fn container_columns() -> [(&'static str, i64, Rule); 2] {
    [
        ("Containers", 1, |object, _| {
            of_containers(&object["spec"]["template"], "name")
        }),
        ("Images", 1, |object, _| {
            of_containers(&object["spec"]["template"], "image")
        }),
    ]
}

fn wide(mut columns: Columns) -> Columns {
    columns.extend(container_columns());
    columns.push(SELECTOR);
    columns
}

pub(super) fn deployment() -> Columns {
    wide(vec![
        ("Ready", 0, |object, _| {
            json!(format!(
                "{}/{}",
                number(object, "/status/readyReplicas"),
                wanted(object)
            ))
        }),
        ("Up-to-date", 0, |object, _| {
            json!(number(object, "/status/updatedReplicas"))
        }),
        ("Available", 0, |object, _| {
            json!(number(object, "/status/availableReplicas"))
        }),
        AGE,
    ])
}

pub(super) fn stateful_set() -> Columns {
    let mut columns: Columns = vec![
        ("Ready", 0, |object, _| {
            json!(format!(
                "{}/{}",
                number(object, "/status/readyReplicas"),
                wanted(object)
            ))
        }),
        AGE,
    ];
    columns.extend(container_columns());
    columns
}

pub(super) fn replica_set() -> Columns {
    wide(vec![
        ("Desired", 0, |object, _| json!(wanted(object))),
        ("Current", 0, |object, _| json!(number(object, "/status/replicas"))),
        ("Ready", 0, |object, _| json!(number(object, "/status/readyReplicas"))),
        AGE,
    ])
}

pub(super) fn daemon_set() -> Columns {
    wide(vec![
        ("Desired", 0, |object, _| {
            json!(number(object, "/status/desiredNumberScheduled"))
        }),
        ("Current", 0, |object, _| {
            json!(number(object, "/status/currentNumberScheduled"))
        }),
        ("Ready", 0, |object, _| json!(number(object, "/status/numberReady"))),
        ("Up-to-date", 0, |object, _| {
            json!(number(object, "/status/updatedNumberScheduled"))
        }),
        ("Available", 0, |object, _| {
            json!(number(object, "/status/numberAvailable"))
        }),
        ("Node Selector", 0, |object, _| {
            match_labels(&object["spec"]["template"]["spec"]["nodeSelector"])
        }),
        AGE,
    ])
}

pub(super) fn job() -> Columns {
    wide(vec![
        ("Status", 0, |object, _| json!(job_status(object))),
        ("Completions", 0, |object, _| {
            let done = number(object, "/status/succeeded");
            let (spec, parallel) = (&object["spec"], object["spec"]["parallelism"].as_i64().unwrap_or(1));
            json!(match spec["completions"].as_i64() {
                Some(completions) => format!("{done}/{completions}"),
                None if parallel > 1 => format!("{done}/1 of {parallel}"),
                None => format!("{done}/1"),
            })
        }),
        ("Duration", 0, |object, now| {
            let (started, ended) = (
                text(object, "/status/startTime"),
                text(object, "/status/completionTime"),
            );
            let end = ended.parse().unwrap_or(now);
            json!(if started.is_empty() {
                String::new()
            } else {
                age::at(started, end)
            })
        }),
        AGE,
    ])
}

fn job_status(object: &Value) -> &'static str {
    let holds = |type_: &str| {
        array(object, "/status/conditions")
            .iter()
            .any(|condition| condition["type"] == type_ && condition["status"] == "True")
    };
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if is_terminating(object) => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) fn cron_job() -> Columns {
    vec![
        ("Schedule", 0, |object, _| json!(text(object, "/spec/schedule"))),
        ("Timezone", 0, |object, _| or_none(object, "/spec/timeZone")),
        ("Suspend", 0, |object, _| {
            json!(if object["spec"]["suspend"] == true {
                "True"
            } else {
                "False"
            })
        }),
        ("Active", 0, |object, _| json!(array(object, "/status/active").len())),
        ("Last Schedule", 0, |object, now| {
            match text(object, "/status/lastScheduleTime") {
                "" => json!("<none>"),
                moment => json!(age::at(moment, now)),
            }
        }),
        AGE,
    ]
}

pub(super) fn pod() -> Columns {
    vec![
        ("Ready", 0, |object, _| {
            let ready = array(object, "/status/containerStatuses")
                .iter()
                .filter(|status| status["ready"] == true);
            json!(format!("{}/{}", ready.count(), array(object, "/spec/containers").len()))
        }),
        ("Status", 0, |object, _| json!(pod_status(object))),
        ("Restarts", 0, |object, _| {
            let statuses = array(object, "/status/containerStatuses").iter();
            json!(
                statuses
                    .filter_map(|status| status["restartCount"].as_i64())
                    .sum::<i64>()
            )
        }),
        AGE,
        ("IP", 1, |object, _| or_none(object, "/status/podIP")),
        ("Node", 1, |object, _| or_none(object, "/spec/nodeName")),
        ("Nominated Node", 1, |object, _| {
            or_none(object, "/status/nominatedNodeName")
        }),
        ("Readiness Gates", 1, |_, _| json!("<none>")),
    ]
}

/// Returns the reason why a container waits or terminated, or else the phase.
fn pod_status(object: &Value) -> String {
    if is_terminating(object) {
        return "Terminating".to_owned();
    }
    let why = |status: &Value| {
        let state = ["waiting", "terminated"]
            .into_iter()
            .find_map(|state| status["state"][state]["reason"].as_str());
        state.filter(|reason| !reason.is_empty()).map(str::to_owned)
    };
    let reason = array(object, "/status/containerStatuses").iter().rev().find_map(why);
    let own = text(object, "/status/reason");
    reason.unwrap_or_else(|| {
        if own.is_empty() {
            text(object, "/status/phase").to_owned()
        } else {
            own.to_owned()
        }
    })
}
