use serde_json::json;

use super::*;

const NOW: i64 = 100_000;

/// Returns the spec of a binding that is placed on `targets` and leaves `leaving`.
fn spec(targets: &[&str], leaving: &[&str]) -> BindingSpec {
    let clusters: Vec<_> = targets
        .iter()
        .map(|name| json!({"name": name, "replicas": 1}))
        .collect();
    let task = |name: &&str| {
        json!({
            "fromCluster": name, "reason": "TaintUntolerated", "message": "of the task", "producer": "TaintManager",
            "creationTimestamp": "1970-01-01T00:00:07Z",
        })
    };
    let tasks: Vec<_> = leaving.iter().map(task).collect();
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    serde_json::from_value(json!({"resource": resource, "clusters": clusters, "gracefulEvictionTasks": tasks})).unwrap()
}

fn note(number: u64, state: FailoverState, cluster: &str, reason: &str) -> FailoverNote {
    FailoverNote {
        number,
        time: Time::from_millis(i64::try_from(number).unwrap() * 1_000 + 500),
        state,
        cluster: cluster.to_owned(),
        reason: reason.to_owned(),
        message: format!("because of {reason}"),
        decision: format!("3f9a1c2e55-{number}"),
    }
}

/// Updates a record, and checks that a second update without decisions changes nothing.
fn updated(record: &FailoverRecordStatus, spec: &BindingSpec, notes: &[FailoverNote]) -> FailoverRecordStatus {
    let once = update(record, spec, notes, Time::from_millis(NOW));
    assert_eq!(update(&once, spec, &[], Time::from_millis(NOW + 60_000)), once);
    once
}

/// Returns the steps as `state from > to: reason (decision)`.
fn steps(record: &FailoverRecordStatus) -> Vec<String> {
    let number = |id: &str| id.rsplit('-').next().unwrap_or_default().to_owned();
    let text = |step: &FailoverStep| {
        let (to, number) = (step.to.join(" "), number(&step.decision));
        format!("{:?} {} > {to}: {} ({number})", step.state, step.from, step.reason)
    };
    record.steps.iter().map(text).collect()
}

#[test]
fn an_eviction_its_hold_and_its_release_are_three_steps_with_their_reasons() {
    let evicted = note(1, FailoverState::Evicted, "m1", "TaintUntolerated");
    let held = note(2, FailoverState::Held, "m1", "NotHealthy");
    // The notes come in any order.
    let record = updated(&Default::default(), &spec(&["m2"], &["m1"]), &[held, evicted]);
    assert_eq!(
        steps(&record),
        ["Evicted m1 > m2: TaintUntolerated (1)", "Held m1 > : NotHealthy (2)"]
    );
    assert_eq!((record.leaving.clone(), record.evicted), (vec!["m1".to_owned()], 1));
    assert_eq!(record.steps[0].message, "because of TaintUntolerated");
    assert_eq!(record.steps[0].time, Time::from_millis(1_000), "whole seconds");
    let released = note(3, FailoverState::Released, "m1", "ReplacementHealthy");
    let record = updated(&record, &spec(&["m2"], &[]), &[released]);
    assert_eq!(steps(&record)[2], "Released m1 > m2: ReplacementHealthy (3)");
    assert_eq!((record.leaving.len(), record.released, record.called_off), (0, 1, 0));
}

#[test]
fn a_hold_keeps_its_time_and_has_its_latest_reason() {
    let leaving = spec(&["m2"], &["m1"]);
    let first = [
        note(1, FailoverState::Evicted, "m1", "TaintUntolerated"),
        note(2, FailoverState::Held, "m1", "NotApplied"),
    ];
    let record = updated(&Default::default(), &leaving, &first);
    let record = updated(&record, &leaving, &[note(9, FailoverState::Held, "m1", "NotHealthy")]);
    assert_eq!(steps(&record)[1..], ["Held m1 > : NotHealthy (9)"]);
    assert_eq!(record.steps[1].time, Time::from_millis(2_000));
}

#[test]
fn a_binding_that_was_never_evicted_has_an_empty_record() {
    let held = note(2, FailoverState::Held, "m1", "NotHealthy");
    assert_eq!(
        updated(&Default::default(), &spec(&["m1"], &[]), &[held]),
        FailoverRecordStatus::default()
    );
}

#[test]
fn an_eviction_of_another_program_is_recorded_from_its_task_and_explained_later() {
    let leaving = spec(&["m2"], &["m1"]);
    let record = updated(&Default::default(), &leaving, &[]);
    assert_eq!(steps(&record), ["Evicted m1 > m2: TaintUntolerated ()"]);
    assert_eq!(
        (record.steps[0].time, &*record.steps[0].message),
        (Time::from_millis(7_000), "of the task")
    );
    let late = note(1, FailoverState::Evicted, "m1", "TaintUntolerated");
    let record = updated(&record, &leaving, &[late]);
    assert_eq!(steps(&record), ["Evicted m1 > m2: TaintUntolerated (1)"]);
    assert_eq!(record.evicted, 1);
}

#[test]
fn an_end_that_was_decided_in_another_process_is_recorded_from_the_missing_task() {
    let record = updated(&Default::default(), &spec(&["m2"], &["m1", "m3"]), &[]);
    let record = updated(&record, &spec(&["m2", "m3"], &[]), &[]);
    assert_eq!(
        steps(&record)[2..],
        [
            "Released m1 > m2 m3: EvictionTaskGone ()",
            "CalledOff m3 > m2 m3: EvictionTaskGone ()"
        ]
    );
    assert_eq!((record.evicted, record.released, record.called_off), (2, 1, 1));
    let released = note(4, FailoverState::Released, "m1", "ReplacementHealthy");
    let record = updated(&record, &spec(&["m2", "m3"], &[]), &[released]);
    assert_eq!(steps(&record)[2], "Released m1 > m2 m3: ReplacementHealthy (4)");
    assert_eq!(record.released, 1, "it is the same end");
}

#[test]
fn a_whole_failover_between_two_updates_is_recorded() {
    let notes = [
        note(1, FailoverState::Evicted, "m1", "TaintUntolerated"),
        note(2, FailoverState::Released, "m1", "ReplacementHealthy"),
        note(3, FailoverState::Evicted, "m2", "Failback"),
    ];
    let record = updated(&Default::default(), &spec(&["m1"], &["m2"]), &notes);
    assert_eq!(
        steps(&record),
        [
            "Evicted m1 > : TaintUntolerated (1)",
            "Released m1 > m1: ReplacementHealthy (2)",
            "Evicted m2 > m1: Failback (3)",
        ]
    );
}

#[test]
fn the_end_of_an_eviction_that_was_never_seen_is_recorded_once() {
    let released = [note(4, FailoverState::Released, "m1", "ReplacementHealthy")];
    let record = updated(&Default::default(), &spec(&["m2"], &[]), &released);
    assert_eq!(steps(&record), ["Released m1 > m2: ReplacementHealthy (4)"]);
    // The write that had no answer was in effect.
    assert_eq!(updated(&record, &spec(&["m2"], &[]), &released), record);
}

#[test]
fn the_targets_of_an_eviction_are_those_that_a_scheduler_chooses_later() {
    let evicted = note(1, FailoverState::Evicted, "m1", "ApplicationFailure");
    let record = updated(&Default::default(), &spec(&[], &["m1"]), &[evicted]);
    assert_eq!(steps(&record), ["Evicted m1 > : ApplicationFailure (1)"]);
    let record = updated(&record, &spec(&["m3"], &["m1"]), &[]);
    assert_eq!(steps(&record), ["Evicted m1 > m3: ApplicationFailure (1)"]);
}

#[test]
fn a_record_is_bounded_and_does_not_forget_what_is_leaving() {
    let names: Vec<_> = (0..50).map(|index| format!("m{index:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut long = note(1, FailoverState::Evicted, "m00", "TaintUntolerated");
    long.message = "ü".repeat(2_000);
    let record = updated(&Default::default(), &spec(&names, &names), &[long.clone()]);
    assert_eq!(
        (record.steps.len(), record.evicted, record.leaving.len()),
        (FAILOVER_STEPS_MAX, 50, 50)
    );
    assert_eq!(record.steps[0].from, "m30", "the oldest steps are dropped");
    assert!(record.steps.iter().all(|step| step.to.len() == TARGETS_MAX));
    let record = updated(&Default::default(), &spec(&[], &["m00"]), &[long]);
    assert_eq!(record.steps[0].message.chars().count(), MESSAGE_CHARS_MAX);
}

#[test]
fn decisions_about_old_copies_are_steps_and_no_others() {
    let steps = Decision::ALL
        .into_iter()
        .filter(|decision| FailoverState::after(*decision).is_some());
    assert_eq!(
        steps.collect::<Vec<_>>(),
        [
            Decision::Evicted,
            Decision::Held,
            Decision::Released,
            Decision::CalledOff
        ]
    );
}

#[test]
fn an_eviction_of_which_only_the_task_was_seen_is_recorded_once() {
    let task = &spec(&["m1"], &["m1"]).graceful_eviction_tasks[0];
    let begun = FailoverNote::of_task(task).unwrap();
    let ended = note(8, FailoverState::Released, "m1", "Healthy");
    let expected = ["Evicted m1 > : TaintUntolerated ()", "Released m1 > m2: Healthy (8)"];
    let record = updated(&Default::default(), &spec(&["m2"], &[]), &[ended, begun.clone()]);
    assert_eq!(steps(&record), expected);
    let record = updated(&record, &spec(&["m2"], &[]), &[begun]);
    assert_eq!(steps(&record), expected);
    let untimed = GracefulEvictionTask {
        creation_timestamp: None,
        ..task.clone()
    };
    assert_eq!(FailoverNote::of_task(&untimed), None);
}
