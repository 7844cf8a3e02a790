//! Failed applications whose template changes while no other cluster takes them.

use super::*;
use crate::decide::reasons::{REASON_APPLICATION_FAILURE, REASON_TAINT_UNTOLERATED};
use crate::model::ConditionStatus;

/// Returns a binding of a failed application without a target that leaves `m1`. The template has version 2; `failed` is
/// the recorded version.
fn unplaced(task: &Value, failed: Option<&str>) -> Binding {
    let mut whole = json!({"reason": REASON_APPLICATION_FAILURE});
    for (field, value) in task.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let mut binding = binding(json!([]), false, "False", &whole);
    binding.spec.resource.resource_version = "2".to_owned();
    let annotation = failed.map(|version| (FAILED_TEMPLATES.to_owned(), json!({"m1": version}).to_string()));
    binding.annotations.extend(annotation);
    binding
}

fn plan(binding: &Binding, sources: &[Cluster], options: GracefulEvictionOptions) -> GracefulEvictionPlan {
    let snapshot = GracefulEvictionSnapshot {
        sources,
        options,
        ..snapshot(binding, &CONFIRMED, 5)
    };
    decide(snapshot, &policies(hold))
}

fn versions(entries: &[(&str, &str)]) -> FailedTemplates {
    let entry = |(cluster, version): &(&str, &str)| ((*cluster).to_owned(), (*version).to_owned());
    entries.iter().map(entry).collect()
}

#[test]
fn a_changed_template_brings_a_failed_application_back_at_once() {
    let (well, lost) = (cluster("m1", "True", json!([])), cluster("m1", "False", json!([])));
    let options = GracefulEvictionOptions::default();
    let check = |binding: &Binding, source: &Cluster, options, expected: &str| {
        let plan = plan(binding, std::slice::from_ref(source), options);
        assert_eq!(summary(&plan), expected, "{:?} {source:?}", binding.annotations);
        let is_back = expected == "called off: TemplateChanged";
        let clusters = plan.clusters.map(|clusters| serde_json::to_value(clusters).unwrap());
        assert_eq!(clusters, is_back.then(|| json!([{"name": "m1", "replicas": 1}])));
        assert_eq!(plan.failed_templates, is_back.then(FailedTemplates::new));
    };
    let of_task = |task: Value| unplaced(&task, Some("1"));
    check(&of_task(json!({})), &well, options, "called off: TemplateChanged");
    check(&of_task(json!({})), &lost, options, "held: Ill");
    let tainted = cluster("m1", "True", json!([{"key": "k", "effect": "NoExecute"}]));
    check(&of_task(json!({})), &tainted, options, "held: Ill");
    // The version that failed, and tasks without a recorded version.
    check(&unplaced(&json!({}), Some("2")), &well, options, "held: Ill");
    check(&unplaced(&json!({}), None), &well, options, "held: Ill");
    let mut unreadable = unplaced(&json!({}), None);
    unreadable
        .annotations
        .insert(FAILED_TEMPLATES.to_owned(), "{".to_owned());
    check(&unreadable, &well, options, "held: Ill");
    // Another reason, and a person's request.
    check(&of_task(json!({"reason": "other"})), &well, options, "held: Ill");
    let kept = of_task(json!({"suppressDeletion": true}));
    check(&kept, &well, options, "held: DeletionSuppressed");
    for off in [
        GracefulEvictionOptions {
            restore_source: RestoreSource::Never,
            ..options
        },
        GracefulEvictionOptions {
            keeps_last_place: false,
            ..options
        },
    ] {
        check(&of_task(json!({})), &well, off, "held: Ill");
    }
}

#[test]
fn a_placed_application_goes_on_leaving_when_its_template_changes() {
    let mut placed = unplaced(&json!({}), Some("1"));
    placed.spec.clusters = vec![TargetCluster::new("m2", 3)];
    placed.status.scheduler_observed_generation = placed.generation;
    placed.status.conditions[0].status = ConditionStatus::True;
    let well = [cluster("m1", "True", json!([]))];
    assert_eq!(
        summary(&plan(&placed, &well, GracefulEvictionOptions::default())),
        "held: Ill"
    );
}

#[test]
fn no_more_clusters_come_back_than_the_placement_allows() {
    let sources = ["m1", "m2"].map(|name| cluster(name, "True", json!([])));
    let check = |placement: Value, expected: &[&str]| {
        let mut binding = unplaced(&json!({}), Some("1"));
        let failed = json!({"m1": "1", "m2": "1"}).to_string();
        binding.annotations.insert(FAILED_TEMPLATES.to_owned(), failed);
        binding.spec.placement = Some(serde_json::from_value(placement).unwrap());
        let mut second = binding.spec.graceful_eviction_tasks[0].clone();
        second.from_cluster = "m2".to_owned();
        binding.spec.graceful_eviction_tasks.push(second);
        let plan = plan(&binding, &sources, GracefulEvictionOptions::default());
        let called_off = plan.called_off.iter().map(|(task, _)| task.from_cluster.as_str());
        assert_eq!(called_off.collect::<Vec<_>>(), expected);
        let targets = plan.clusters.unwrap_or_default();
        assert_eq!(targets.len(), expected.len());
        let rest: &[(&str, &str)] = if expected.len() == 2 { &[] } else { &[("m2", "1")] };
        assert_eq!(plan.failed_templates, Some(versions(rest)));
    };
    check(json!({}), &["m1", "m2"]);
    let one = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    check(json!({"spreadConstraints": one}), &["m1"]);
}

#[test]
fn the_version_is_recorded_with_the_time_of_the_task() {
    let check = |task: Value, failed: Option<&str>, expected: Option<FailedTemplates>| {
        let binding = unplaced(&task, failed);
        let plan = plan(&binding, &[], GracefulEvictionOptions::default());
        assert_eq!(plan.failed_templates, expected, "{task} {failed:?}");
    };
    let new = json!({"creationTimestamp": null});
    check(new.clone(), None, Some(versions(&[("m1", "2")])));
    check(new.clone(), Some("1"), Some(versions(&[("m1", "2")])));
    check(new.clone(), Some("2"), None);
    check(json!({}), None, None);
    let by_taint = json!({"creationTimestamp": null, "reason": REASON_TAINT_UNTOLERATED});
    check(by_taint.clone(), None, None);
    // The version of a task that another program ended.
    check(by_taint, Some("1"), Some(FailedTemplates::new()));
    let mut unnamed = unplaced(&new, None);
    unnamed.spec.resource.resource_version.clear();
    assert_eq!(
        plan(&unnamed, &[], GracefulEvictionOptions::default()).failed_templates,
        None
    );
    let as_karmada = GracefulEvictionOptions {
        restore_source: RestoreSource::Never,
        ..GracefulEvictionOptions::default()
    };
    assert_eq!(plan(&unplaced(&new, None), &[], as_karmada).failed_templates, None);
}
