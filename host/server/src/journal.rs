//! `bulkhead run --journal`: decisions persist, and no action is taken that cannot be recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::journal::{Decision, DecisionRecord, Record, Sink};
use bulkhead_journal::{Background, Bounds, Opened, Writer};
use bulkhead_runtime::connection::{JournalGuard, WritePermit};
use bulkhead_runtime::journal_barrier::JournalBarrier;
use clap::Args;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::say;
use crate::help;

/// Interval of fsync. A crash of the process alone loses no records in between.
const SYNC: Duration = Duration::from_secs(1);
/// Interval of the removal of expired segments, in monotonic time.
const EXPIRE: Duration = Duration::from_hours(1);
/// Time limit for pending records at shutdown.
const END: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(next_help_heading = "Journal")]
pub(super) struct JournalArguments {
    /// Directory in which every decision is recorded before it takes effect, for `bulkhead history`, `explain`,
    /// `replay` and `diff`. Each process needs its own. If it becomes unwritable, the process stops.
    #[arg(long, value_name = "DIR", env = help::JOURNAL_VARIABLE, hide_env_values = true)]
    journal: Option<PathBuf>,

    /// Maximum size of the journal in bytes; the oldest decisions are removed first.
    #[arg(long, value_name = "BYTES", default_value_t = Bounds::default().bytes_max, requires = "journal")]
    journal_bytes_max: u64,

    /// Retention of decisions.
    #[arg(long, value_name = "DURATION", default_value = "720h", requires = "journal")]
    journal_age_max: GoDuration,
}

/// Open journal of a running process.
pub(super) struct Running {
    /// Id of the last existing record.
    pub(super) last_id: u64,
    /// Writer of the journal.
    writer: Arc<Writer>,
    /// Records that are not written yet.
    barrier: JournalBarrier,
    background: Arc<Background>,
    failed: Arc<Notify>,
}

impl JournalArguments {
    /// Opens the requested journal. If a later write to it fails, the permit is revoked before the dependent write
    /// is sent.
    pub(super) fn open(&self, permit: &WritePermit) -> anyhow::Result<Option<Running>> {
        let Some(directory) = &self.journal else { return Ok(None) };
        let age_max_ms = i64::try_from(self.journal_age_max.0.as_millis()).unwrap_or(i64::MAX);
        let bounds = Bounds { bytes_max: self.journal_bytes_max, age_max_ms, ..Bounds::default() };
        open(directory, bounds, permit).map(Some)
    }

    /// Returns the directory of the requested journal.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.journal.as_deref()
    }
}

fn open(directory: &Path, bounds: Bounds, permit: &WritePermit) -> anyhow::Result<Running> {
    let failed = Arc::new(Notify::new());
    let (ended, notified) = (permit.clone(), Arc::clone(&failed));
    let on_failure = move |error: &bulkhead_journal::JournalError| {
        ended.end();
        say(&format!("the journal cannot be written, so this process sends no more writes: {error}"));
        notified.notify_one();
    };
    let Opened { writer, last_id, records, cut } = Writer::open(directory, bounds, on_failure)?;
    if let Some(cut) = cut {
        say(&format!("journal {cut}"));
    }
    say(&format!("journal {} has {records} decisions", directory.display()));
    let (writer, guard) = (Arc::new(writer), JournalGuard::of(permit));
    let background = Background::start(Arc::clone(&writer), move || guard.stored());
    let background = Arc::new(background.context("starting the journal")?);
    Ok(Running { last_id, writer, barrier: permit.journal_barrier().clone(), background, failed })
}

impl Running {
    /// Waits for the last decisions, which no write may depend on.
    pub(super) async fn end(&self) {
        // A slow disk must not delay the shutdown further.
        let _ = tokio::time::timeout(END, self.barrier.wait()).await;
    }

    /// Syncs the journal to disk periodically. Returns when it cannot be written.
    pub(super) async fn keep_up(&self) -> String {
        let mut expired = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = self.failed.notified() => return "the journal cannot be written".to_owned(),
                () = tokio::time::sleep(SYNC) => {}
            }
            let expire = expired.elapsed() >= EXPIRE;
            if expire {
                expired = Instant::now();
            }
            let writer = Arc::clone(&self.writer);
            let tidied = tokio::task::spawn_blocking(move || {
                if expire {
                    writer.expire();
                }
                writer.sync()
            });
            match tidied.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return format!("the journal cannot be written: {error}"),
                Err(error) => return format!("the journal cannot be written: {error}"),
            }
        }
    }
}

/// Creates a random id of the process, for the ids of its decisions.
pub(super) fn process_uid() -> String {
    let uid = uuid::Uuid::new_v4().simple().to_string();
    uid.chars().take(10).collect()
}

/// Returns the sink of the controllers' records: important ones go to the log, and all to the journal if there is
/// one.
pub(super) fn logged(journal: Option<&Running>) -> Box<dyn Sink> {
    let journal = journal.map(|running| (running.barrier.clone(), Arc::clone(&running.background)));
    Box::new(Logged(journal))
}

/// Sink that logs important records and writes all records to the journal, tracking the pending ones.
struct Logged(Option<(JournalBarrier, Arc<Background>)>);

impl Sink for Logged {
    fn keep(&self, record: &Record, decision: Option<&Arc<DecisionRecord>>) {
        if let Some((barrier, journal)) = &self.0 {
            barrier.add();
            journal.keep(record, decision);
        }
        if let Some(line) = line(record) {
            say(&line);
        }
    }

    fn abandon(&self, id: u64) {
        if let Some((barrier, journal)) = &self.0 {
            barrier.add();
            journal.abandon(id);
        }
    }

    fn keeps_decision_records(&self) -> bool {
        self.0.is_some()
    }
}

/// Formats the log line of a decision; `None` for decisions that are not logged.
fn line(record: &Record) -> Option<String> {
    let (entry, decision) = (&record.entry, record.entry.decision);
    let is_told = decision.is_about_place() || matches!(decision, Decision::ReadyChanged | Decision::PluginsChanged);
    is_told.then(|| {
        let on = entry.cluster.as_ref().map(|cluster| format!(" on {cluster}")).unwrap_or_default();
        let effect = if entry.effect.is_empty() { String::new() } else { format!(" ({})", entry.effect) };
        let (subject, reason) = (&entry.subject, &entry.attribution.reason);
        format!("decision {} {decision:?} {subject}{on}{effect}: {reason}", record.decision_id())
    })
}

#[cfg(test)]
mod tests {
    use bulkhead_core::combine::Attribution;
    use bulkhead_core::journal::{Entry, Journal, Outcome, Subject};
    use bulkhead_core::time::Time;

    use super::*;

    #[test]
    fn important_decisions_are_logged_in_one_line_without_a_journal_too() {
        let line_of = |decision, cluster: Option<&str>, effect: &str| {
            let entry = Entry {
                at: Time::from_millis(0),
                controller: "cluster".to_owned(),
                subject: Subject::new("Cluster", "", "member1"),
                cluster: cluster.map(str::to_owned),
                decision,
                attribution: Attribution::rule("ClusterNotReachable", "cluster is not reachable"),
                effect: effect.to_owned(),
                inputs: Vec::new(),
                explanation: None,
            };
            line(&Record { id: 7, process: "3f9a1c2e55".to_owned(), outcome: Outcome::Taken, entry })
        };
        let ready = line_of(Decision::ReadyChanged, None, "Ready is False").unwrap();
        assert!(ready.starts_with("decision 3f9a1c2e55-7 ReadyChanged Cluster member1 (Ready is False): "), "{ready}");
        assert!(ready.contains("cluster is not reachable") && !ready.contains('\n'), "{ready}");
        for decision in [Decision::Tainted, Decision::Untainted, Decision::Evicted, Decision::Released] {
            assert!(line_of(decision, Some("member1"), "").unwrap().contains(" on member1: "));
        }
        for decision in [Decision::EvictionsWait, Decision::EvictionsResumed] {
            assert!(line_of(decision, None, "").is_some());
        }
        assert_eq!(line_of(Decision::Applied, None, ""), None);
        assert!(!Journal::with_sink(0, 0, logged(None)).keeps_decision_records(), "nothing is copied for the log");
    }
}
