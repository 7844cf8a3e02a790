//! Reading of a journal while it grows.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bulkhead_core::journal::{Outcome, Sink};
use bulkhead_core::model::Cluster;
use bulkhead_journal::{
    ClusterOutline, DecisionOutline, Follower, News, Problem, Stored, StoredDecision, read, segment,
};
use serde_json::json;

use crate::records::{about_clusters, decision, record};
use crate::support::{open, open_segmented};

/// Reads on. Returns the ids of the records, negative for abandoned ones.
fn added(follower: &mut Follower) -> Vec<i64> {
    let mut ids = Vec::new();
    let problems = follower.read_new(|_, news| {
        let (id, is_abandoned) = match news {
            News::Record(stored) => (stored.record.id, stored.record.outcome == Outcome::Abandoned),
            News::Abandoned(id) => (id, true),
        };
        let id = i64::try_from(id).unwrap();
        ids.push(if is_abandoned { -id } else { id });
    });
    assert_eq!(problems.unwrap(), []);
    ids
}

fn record_of(news: News) -> Stored {
    match news {
        News::Record(stored) => stored,
        News::Abandoned(id) => panic!("record {id} is abandoned"),
    }
}

#[test]
fn each_record_is_passed_once_with_its_inputs() {
    let directory = tempfile::tempdir().unwrap();
    // A segment holds a few records.
    let writer = open_segmented(directory.path(), 2_000);
    let mut follower = Follower::new(directory.path());
    let mut found = Vec::new();
    for id in 1..=40 {
        // The inputs share clusters with earlier ones of their segment.
        let ready = if id % 3 == 0 { "True" } else { "False" };
        writer.keep(&record(id, 5), Some(&decision("member1", ready)));
        if id % 4 != 0 {
            let problems = follower.read_new(|segment, news| found.push((segment, record_of(news))));
            assert_eq!(problems.unwrap(), []);
        }
    }
    let problems = follower.read_new(|segment, news| found.push((segment, record_of(news))));
    assert_eq!(problems.unwrap(), []);
    assert!(segment::list(directory.path()).unwrap().len() > 3);
    assert!(found.is_sorted_by_key(|(segment, _)| *segment));
    let found: Vec<_> = found.into_iter().map(|(_, stored)| stored).collect();
    assert_eq!(found, read(directory.path()).unwrap().records);
    assert_eq!(added(&mut follower), [0; 0]);
}

/// A cluster with running workloads has a new resource summary for each decision.
#[test]
fn versions_of_a_cluster_with_the_same_outline_share_it() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let cluster = |name: &str, ready: &str, pods: u64| -> Arc<Cluster> {
        let cluster = json!({
            "name": name,
            "spec": {"syncMode": "Pull", "region": "r", "taints": [{"key": "a", "effect": "NoExecute"}]},
            "status": {
                "conditions": [
                    {"type": "CompleteAPIEnablements", "status": "True"},
                    {"type": "Ready", "status": ready, "reason": "R"},
                ],
                "resourceSummary": {"allocated": {"pods": pods.to_string()}},
            },
        });
        Arc::new(serde_json::from_value(cluster).unwrap())
    };
    let fleets = [("True", 1), ("True", 2), ("False", 3), ("True", 1), ("False", 4)];
    for (id, (ready, pods)) in (1..).zip(fleets) {
        let clusters = vec![cluster("member1", "True", 7), cluster("member2", ready, pods)];
        writer.keep(&record(id, 5), Some(&about_clusters(clusters)));
    }
    let mut found = Vec::new();
    let problems = Follower::<DecisionOutline>::new(directory.path()).read_new(|_, news| match news {
        News::Record(stored) => found.push(Arc::clone(&stored.decision.unwrap().clusters)),
        News::Abandoned(id) => panic!("record {id} is abandoned"),
    });
    assert_eq!(problems.unwrap(), []);
    let status = |fleet: &Arc<[Arc<ClusterOutline>]>| fleet[1].ready.as_ref().map(|ready| ready.status.as_str());
    let statuses: Vec<_> = found.iter().map(status).collect();
    assert_eq!(
        statuses,
        fleets.map(|(ready, _)| Some(ready)),
        "the outlines are those of the clusters"
    );
    assert!(Arc::ptr_eq(&found[0], &found[1]));
    assert!(Arc::ptr_eq(&found[0][0], &found[2][0]));
    assert!(!Arc::ptr_eq(&found[0][1], &found[2][1]));
    let outline = json!({
        "name": found[0][1].name, "sync_mode": found[0][1].sync_mode, "region": found[0][1].region,
        "taints": found[0][1].taints,
    });
    let expected = json!({
        "name": "member2", "sync_mode": "Pull", "region": "r", "taints": [{"key": "a", "effect": "NoExecute"}],
    });
    assert_eq!(outline, expected);
}

#[test]
fn an_abandonment_comes_with_its_record_or_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_segmented(directory.path(), 1);
    let mut follower = Follower::new(directory.path());
    writer.keep(&record(1, 5), None);
    writer.abandon(1);
    writer.keep(&record(2, 5), None);
    assert_eq!(added(&mut follower), [-1, 2]);
    writer.abandon(2);
    writer.keep(&record(3, 5), None);
    assert_eq!(added(&mut follower), [-2, 3]);
    writer.abandon(3);
    assert_eq!(added(&mut follower), [-3]);
    assert_eq!(added(&mut follower), [0; 0]);
}

/// The records of a segment are passed on before the rest of it is read.
#[test]
fn a_late_abandonment_follows_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_segmented(directory.path(), 60_000);
    (1..=400).for_each(|id| writer.keep(&record(id, 5), None));
    for id in [2, 250, 399] {
        writer.abandon(id);
    }
    assert!(segment::list(directory.path()).unwrap().len() > 2);
    let mut follower = Follower::new(directory.path());
    let ids = added(&mut follower);
    let records: Vec<_> = ids.iter().map(|id| id.abs()).collect();
    let first = |id: i64| records.iter().position(|found| *found == id).unwrap();
    assert!((1..400).all(|id| first(id) < first(id + 1)));
    let abandoned: Vec<_> = ids.iter().copied().filter(|id| *id < 0).collect();
    assert_eq!(
        abandoned,
        [-250, -399],
        "record 2 is two segments back, where it cannot be changed any more"
    );
    assert_eq!(added(&mut follower), [0; 0]);
}

#[test]
fn an_unfinished_write_is_read_once_it_is_complete() {
    let whole = tempfile::tempdir().unwrap();
    let writer = open(whole.path());
    (1..=3).for_each(|id| writer.keep(&record(id, 5), Some(&decision("member1", "True"))));
    let bytes = fs::read(segment::path(whole.path(), 1)).unwrap();
    for cut in (0..bytes.len()).step_by(11) {
        let directory = tempfile::tempdir().unwrap();
        let path = segment::path(directory.path(), 1);
        let mut follower = Follower::<StoredDecision>::new(directory.path());
        let mut ids = Vec::new();
        fs::write(&path, &bytes[..cut]).unwrap();
        let problems = follower
            .read_new(|_, news| ids.push(record_of(news).record.id))
            .unwrap();
        assert!(problems.iter().all(Problem::is_harmless), "{cut}: {problems:?}");
        fs::write(&path, &bytes).unwrap();
        let problems_after = follower.read_new(|_, news| ids.push(record_of(news).record.id));
        assert_eq!(problems_after.unwrap(), []);
        assert_eq!(ids, [1, 2, 3], "{cut}");
    }
}

#[test]
fn a_journal_that_is_replaced_is_read_from_its_start() {
    let fill = |directory: &Path, ids: std::ops::RangeInclusive<u64>, ready: &str| {
        let writer = open(directory);
        ids.for_each(|id| writer.keep(&record(id, 5), Some(&decision("member1", ready))));
    };
    // Shorter and longer than the first one.
    for count in [1, 9] {
        let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(directory.path(), 1..=4, "True");
        let mut follower = Follower::new(directory.path());
        assert_eq!(added(&mut follower), [1, 2, 3, 4]);
        fill(other.path(), 1..=count, "False");
        fs::copy(segment::path(other.path(), 1), segment::path(directory.path(), 1)).unwrap();
        let expected: Vec<_> = (1..=i64::try_from(count).unwrap()).collect();
        assert_eq!(added(&mut follower), expected);
    }
}

#[test]
fn segments_that_make_room_are_no_problem() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_segmented(directory.path(), 1);
    let mut follower = Follower::new(directory.path());
    writer.keep(&record(1, 5), None);
    assert_eq!(added(&mut follower), [1]);
    (2..=6).for_each(|id| writer.keep(&record(id, 5), None));
    for (_, path) in segment::list(directory.path()).unwrap().into_iter().take(3) {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(added(&mut follower), [4, 5, 6]);
    (7..=8).for_each(|id| writer.keep(&record(id, 5), None));
    assert_eq!(added(&mut follower), [7, 8]);
}
