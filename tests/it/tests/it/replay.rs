//! Every decision of every example is reproduced from its record, byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bulkhead_journal::{Contents, DecisionOutline, Follower, News, Stored};
use bulkhead_simulator::recorded::Recording;
use bulkhead_simulator::recorded::explain::explain;
use bulkhead_simulator::recorded::replay::{Replayer, Summary};
use bulkhead_simulator::scenario;
use bulkhead_simulator::simulation::{self, Detail, RunOptions};

use crate::support::{engines, root};

/// Returns the folders of all examples that are scenarios.
fn examples() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("examples")).unwrap();
    let mut names: Vec<_> = folders
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("scenario.yaml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs an example and returns its journal.
pub(crate) fn recorded(name: &str, seed: u64) -> Contents {
    let scenario = scenario::load(&root().join("examples").join(name).join("scenario.yaml")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let recording = Recording::start(directory.path()).unwrap();
    let options = RunOptions {
        seed: Some(seed),
        engines: engines(),
        detail: Detail::Highlights,
        explain: None,
        sink: Some(recording.sink()),
        progress: None,
        is_last: false,
    };
    let finished = simulation::run(&scenario, options).unwrap();
    assert!(finished.report.held(), "{name}: recording changes what happens");
    recording.end().unwrap();
    let contents = bulkhead_journal::read(directory.path()).unwrap();
    assert!(contents.problems.is_empty(), "{name}: {:?}", contents.problems);
    assert_outlines(name, directory.path(), &contents.records);
    contents
}

/// Checks that the outlines that are read alone are those of the whole records.
fn assert_outlines(name: &str, journal: &Path, records: &[Stored]) {
    let mut outlines = Vec::new();
    let mut follower = Follower::<DecisionOutline>::new(journal);
    let take = |_, news| match news {
        News::Record(stored) => outlines.push(stored),
        News::Abandoned(id) => panic!("record {id} is abandoned"),
    };
    let problems = follower.read_new(take).unwrap();
    assert!(problems.is_empty(), "{name}: {problems:?}");
    assert_eq!(outlines.len(), records.len(), "{name}");
    for (outline, record) in outlines.iter().zip(records) {
        assert_eq!(*outline, record.clone().into_outline(), "{name}");
    }
}

fn assert_exact(name: &str, how: &str, summary: &Summary) {
    let actual: Vec<_> = summary
        .different
        .iter()
        .map(|replay| format!("{name}, {how}: decision {}: {:?}", replay.id, replay.differences))
        .collect();
    assert!(actual.is_empty(), "{}", actual.join("\n"));
    assert!(summary.exact > 0, "{name}, {how}: no decision was made again");
}

fn kind(stored: &Stored) -> Option<&'static str> {
    use bulkhead_core::journal::DecisionInput;
    Some(match stored.decision.as_ref()?.decision.input {
        DecisionInput::Taint { .. } => "taint",
        DecisionInput::Evict { .. } => "evict",
        DecisionInput::Schedule { .. } => "schedule",
        DecisionInput::GracefulEviction { .. } => "finish",
        DecisionInput::Failover { .. } => "failover",
        DecisionInput::Failback { .. } => "failback",
        DecisionInput::Health { .. } => "health",
    })
}

#[test]
fn every_decision_of_every_example_replays_exactly() {
    let mut kinds = BTreeMap::<&str, usize>::new();
    for name in examples() {
        let contents = recorded(&name, 7);
        assert_exact(
            &name,
            "built-in policies asked again",
            &Replayer::default().replay_all(&contents.records),
        );
        assert_exact(
            &name,
            "all answers as recorded",
            &Replayer::with_recorded_replies().replay_all(&contents.records),
        );
        for stored in &contents.records {
            if let Some(kind) = kind(stored) {
                *kinds.entry(kind).or_default() += 1;
                assert!(
                    !explain(stored).findings.is_empty(),
                    "{name}: decision {} has no findings",
                    stored.record.id
                );
            }
        }
    }
    let sorts: Vec<_> = kinds.keys().copied().collect();
    assert_eq!(
        sorts,
        ["evict", "failback", "failover", "finish", "health", "schedule", "taint"],
        "{kinds:?}"
    );
}

/// Journals that commit e85b902 wrote: two of its examples with seed 7. Only words of messages have changed since.
#[test]
fn journals_of_the_previous_version_open_and_replay() {
    for (name, decisions) in [("failback", 55), ("nginx-duplicated", 24)] {
        let contents = bulkhead_journal::read(&root().join("tests/it/journals/e85b902").join(name)).unwrap();
        assert!(contents.problems.is_empty(), "{name}: {:?}", contents.problems);
        let summary = Replayer::default().replay_all(&contents.records);
        assert_eq!(summary.exact + summary.different.len(), decisions, "{name}");
        let differences = summary.different.iter().flat_map(|replay| &replay.differences);
        let others: Vec<_> = differences.filter(|found| !found.path.ends_with("/message")).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
        assert!(summary.different.len() < decisions / 10, "{name}");
        for stored in contents.records.iter().filter(|stored| kind(stored).is_some()) {
            assert!(
                !explain(stored).findings.is_empty(),
                "{name}: decision {}",
                stored.record.id
            );
        }
    }
}

#[test]
fn a_record_that_says_something_else_than_was_decided_is_found() {
    let mut contents = recorded("nginx-divided", 1);
    let changed = contents
        .records
        .iter_mut()
        .find(|stored| kind(stored) == Some("evict"))
        .unwrap();
    let id = changed.record.id;
    let mut kept = (**changed.decision.as_ref().unwrap()).clone();
    kept.decision.plan["evict"]["task"]["fromCluster"] = "member2".into();
    changed.decision = Some(Arc::new(kept));
    let summary = Replayer::default().replay_all(&contents.records);
    let actual: Vec<_> = summary
        .different
        .iter()
        .map(|replay| (replay.id, replay.differences[0].path.as_str()))
        .collect();
    assert_eq!(actual, [(id, "/evict/task/fromCluster")]);
}

#[test]
fn decisions_are_recorded_before_anything_follows_from_them() {
    let contents = recorded("nginx-divided", 3);
    let mut seen = std::collections::BTreeSet::new();
    for stored in &contents.records {
        use bulkhead_core::journal::Decision;
        let entry = &stored.record.entry;
        match entry.decision {
            Decision::Scheduled => {
                seen.insert(entry.subject.key());
            }
            Decision::Evicted => assert!(seen.contains(&entry.subject.key()), "evicted before it was scheduled"),
            _ => {}
        }
        assert!(stored.decision.is_some() || !matches!(entry.decision, Decision::Scheduled | Decision::Evicted));
    }
    assert!(!seen.is_empty());
}
