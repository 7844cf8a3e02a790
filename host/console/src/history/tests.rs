use std::path::Path;
use std::sync::Arc;

use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::{Decision, Entry, Journal, Subject};
use bulkhead_journal::{Bounds, Writer};

use super::*;

/// Journal of a process for tests.
pub(crate) struct TestJournal(Journal);

impl TestJournal {
    /// Starts the journal of a process in a directory.
    pub(crate) fn start(directory: &Path, process: &str) -> Self {
        let bounds = Bounds {
            segment_bytes: 4_000,
            ..Bounds::default()
        };
        Self::with(directory, process, bounds)
    }

    /// Starts a journal with the bounds of a file.
    pub(crate) fn with(directory: &Path, process: &str, bounds: Bounds) -> Self {
        let opened = Writer::open(directory, bounds, |error| panic!("{error}")).unwrap();
        let journal = Journal::with_sink(0, opened.last_id, Box::new(Arc::new(opened.writer)));
        Self(journal.of_process(process))
    }

    /// Records a decision without inputs, and returns its number.
    pub(crate) fn record(
        &self,
        at_s: i64,
        subject: &Subject,
        cluster: Option<&str>,
        (decision, effect): (Decision, &str),
    ) -> u64 {
        self.0.record(Entry {
            at: Time::from_millis(at_s * 1000),
            controller: "test".to_owned(),
            subject: subject.clone(),
            cluster: cluster.map(str::to_owned),
            decision,
            attribution: Attribution::rule("Why", "because"),
            effect: effect.to_owned(),
            inputs: Vec::new(),
            explanation: None,
        })
    }

    /// Marks a decision as abandoned.
    pub(crate) fn abandon(&self, number: u64) {
        self.0.abandon(number);
    }
}

pub(crate) fn binding(name: &str) -> Subject {
    Subject::new("ResourceBinding", "default", name)
}

pub(crate) fn cluster(name: &str) -> Subject {
    Subject::new("Cluster", "", name)
}

fn stored(directory: &Path) -> Vec<Stored<DecisionOutline>> {
    let records = bulkhead_journal::read(directory).unwrap().records;
    records.into_iter().map(Stored::into_outline).collect()
}

#[test]
fn states_of_clusters_follow_the_records_and_are_kept_for_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    journal.record(1, &cluster("m1"), Some("m1"), (Decision::ReadyChanged, "True"));
    journal.record(2, &cluster("m1"), Some("m1"), (Decision::Tainted, "b:NoExecute"));
    journal.record(3, &cluster("m1"), Some("m1"), (Decision::Tainted, "a=x:NoSchedule"));
    journal.record(4, &cluster("m1"), Some("m1"), (Decision::Untainted, "b:NoExecute"));
    let mut history = History::default();
    for stored in stored(folder.path()) {
        history.add(None, News::Record(stored));
    }
    history.finish();
    let at = |second: i64| {
        let time = Some(Time::from_millis(second * 1000));
        let found = history.clusters().at(time).next();
        found.map(|(_, state)| format!("{} {}", state.ready, state.taints.join(" ")))
    };
    assert_eq!(at(0), None);
    assert_eq!(at(1).as_deref(), Some("True "));
    assert_eq!(at(3).as_deref(), Some("True a=x:NoSchedule b:NoExecute"));
    assert_eq!(at(9).as_deref(), Some("True a=x:NoSchedule"));
}

#[test]
fn rows_share_their_reasons_and_origins() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    for (at_s, name) in [(1, "a"), (2, "b")] {
        journal.record(at_s, &binding(name), None, (Decision::Scheduled, "m1:1"));
    }
    let mut history = History::default();
    for stored in stored(folder.path()) {
        history.add(None, News::Record(stored));
    }
    let [first, second] = history.rows() else {
        panic!("{} rows", history.rows().len());
    };
    assert!(Arc::ptr_eq(&first.cause, &second.cause) && Arc::ptr_eq(&first.origin, &second.origin));
    assert!(size_of::<Row>() <= 96, "a row has {} bytes", size_of::<Row>());
}

#[test]
fn known_records_count_once_and_a_later_abandonment_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let journal = TestJournal::start(folder.path(), "3f9a1c2e55");
    let number = journal.record(1, &binding("web"), None, (Decision::Scheduled, "m1:1"));
    let mut history = History::default();
    let mut read = || {
        for stored in stored(folder.path()) {
            history.add(None, News::Record(stored));
        }
        history.finish();
        (history.version(), history.rows().len(), history.rows()[0].is_taken())
    };
    assert_eq!(read(), (1, 1, true));
    assert_eq!(read(), (1, 1, true));
    journal.abandon(number);
    assert_eq!(read(), (2, 1, false));
    assert_eq!(read(), (2, 1, false));
}

#[test]
fn the_records_of_several_processes_are_in_order_of_time_and_a_clock_that_is_set_back_changes_no_order() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = TestJournal::start(folders[0].path(), "0123456789");
    let second = TestJournal::start(folders[1].path(), "3f9a1c2e55");
    for (at_s, name) in [(10, "a"), (5, "b"), (30, "c")] {
        first.record(at_s, &binding(name), None, (Decision::Scheduled, ""));
    }
    second.record(20, &binding("d"), None, (Decision::Scheduled, ""));
    let mut history = History::default();
    for folder in &folders {
        for stored in stored(folder.path()) {
            history.add(None, News::Record(stored));
        }
    }
    history.finish();
    let names = |rows: &[Row]| {
        rows.iter()
            .map(|row| row.subject.name.clone())
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(names(history.rows()), "abdc");
    let time = |second: i64| Some(Time::from_millis(second * 1000));
    assert_eq!(names(history.until(time(20))), "abd");
    assert_eq!(names(history.between(time(20), time(20))), "d");
    assert_eq!(names(history.between(time(31), None)), "");
}
