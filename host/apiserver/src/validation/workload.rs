//! Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs.

use serde_json::{Value, json};

use super::{metadata, pod};
use crate::cause::Cause;
use crate::json::text;
use crate::kind::ResourceKind;

/// Numbers that must not be negative.
const COUNTS: [&str; 9] = [
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
];

/// Validates a workload.
pub(super) fn check(kind: &ResourceKind, object: &Value, wrong: &mut Vec<Cause>) {
    match &*kind.kind {
        "CronJob" => check_cron_job(object, wrong),
        "Job" => check_job(&object["spec"], "spec", wrong),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => check_selecting(kind, &object["spec"], wrong),
        _ => {}
    }
}

fn check_counts(spec: &Value, path: &str, wrong: &mut Vec<Cause>) {
    for field in COUNTS {
        if let Some(number) = spec[field].as_i64().filter(|number| *number < 0) {
            let path = format!("{path}.{field}");
            wrong.push(Cause::invalid(
                path,
                &json!(number),
                "must be greater than or equal to 0",
            ));
        }
    }
}

/// Validates a kind that selects its pods.
fn check_selecting(kind: &ResourceKind, spec: &Value, wrong: &mut Vec<Cause>) {
    check_counts(spec, "spec", wrong);
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() {
        wrong.push(Cause::required("spec.selector", ""));
    } else if is_empty(selector) {
        let why = format!("empty selector is invalid for {}", kind.kind.to_lowercase());
        wrong.push(Cause::invalid("spec.selector", &json!({}), &why));
    } else if !selects(selector, labels) {
        let shown = if labels.is_null() { json!({}) } else { labels.clone() };
        let why = "`selector` does not match template `labels`";
        wrong.push(Cause::invalid("spec.template.metadata.labels", &shown, why));
    }
    check_template(&spec["template"], "spec.template", wrong);
    let policy = &spec["template"]["spec"]["restartPolicy"];
    // Other values are reported with the pod.
    if policy == "OnFailure" || policy == "Never" {
        wrong.push(Cause::not_supported(
            "spec.template.spec.restartPolicy",
            policy,
            &[json!("Always")],
        ));
    }
}

fn check_template(template: &Value, path: &str, wrong: &mut Vec<Cause>) {
    metadata::check_labels(&template["metadata"]["labels"], &format!("{path}.labels"), wrong);
    metadata::check_annotations(
        &template["metadata"]["annotations"],
        &format!("{path}.annotations"),
        wrong,
    );
    pod::check(&template["spec"], &format!("{path}.spec"), wrong);
}

fn check_job(spec: &Value, path: &str, wrong: &mut Vec<Cause>) {
    check_counts(spec, path, wrong);
    check_template(&spec["template"], &format!("{path}.template"), wrong);
    let policy = &spec["template"]["spec"]["restartPolicy"];
    if policy.is_null() || policy == "Always" {
        let path = format!("{path}.template.spec.restartPolicy");
        wrong.push(Cause::required(path, "valid values: \"OnFailure\", \"Never\""));
    }
}

fn check_cron_job(object: &Value, wrong: &mut Vec<Cause>) {
    if text(object, "/spec/schedule").is_empty() {
        wrong.push(Cause::required("spec.schedule", ""));
    }
    check_job(&object["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec", wrong);
}

fn is_empty(selector: &Value) -> bool {
    let labels = selector["matchLabels"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty);
    labels && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
}

/// Returns true if labels satisfy a label selector.
fn selects(selector: &Value, labels: &Value) -> bool {
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && selector["matchExpressions"]
            .as_array()
            .into_iter()
            .flatten()
            .all(|expression| {
                let actual = labels.get(text(expression, "/key"));
                let is_listed = || {
                    expression["values"]
                        .as_array()
                        .is_some_and(|values| actual.is_some_and(|actual| values.contains(actual)))
                };
                match text(expression, "/operator") {
                    "In" => is_listed(),
                    "NotIn" => !is_listed(),
                    "Exists" => actual.is_some(),
                    "DoesNotExist" => actual.is_none(),
                    _ => false,
                }
            })
}
