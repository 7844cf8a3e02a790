//! `bulkhead run --journal`: decisions persist, and no action is taken that cannot be recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::journal::{DecisionRecord, Journal, Record, Sink};
use bulkhead_journal::{Background, Bounds, Opened, Writer};
use bulkhead_runtime::connection::{JournalGuard, WritePermit};
use bulkhead_runtime::journal_barrier::JournalBarrier;
use clap::Args;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::help;

/// Target of the log lines of the journal.
const TARGET: &str = "bulkhead::journal";
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
    last_id: u64,
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
        let Some(directory) = &self.journal else {
            return Ok(None);
        };
        let age_max_ms = i64::try_from(self.journal_age_max.0.as_millis()).unwrap_or(i64::MAX);
        let bounds = Bounds {
            bytes_max: self.journal_bytes_max,
            age_max_ms,
            ..Bounds::default()
        };
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
        error!(target: TARGET, "the journal cannot be written, so this process sends no more writes: {error}");
        notified.notify_one();
    };
    let Opened {
        writer,
        last_id,
        records,
        cut,
    } = Writer::open(directory, bounds, on_failure)?;
    if let Some(cut) = cut {
        warn!(target: TARGET, "journal {cut}");
    }
    info!(target: TARGET, "journal {} has {records} decisions", directory.display());
    let (writer, guard) = (Arc::new(writer), JournalGuard::of(permit));
    let background = Background::start(Arc::clone(&writer), move || guard.stored());
    let background = Arc::new(background.context("starting the journal")?);
    Ok(Running {
        last_id,
        writer,
        barrier: permit.journal_barrier().clone(),
        background,
        failed,
    })
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

/// Returns the journal of the controllers' decisions, in memory and in the directory if there is one.
pub(super) fn journal(records_max: usize, kept: Option<&Running>) -> Journal {
    let Some(running) = kept else {
        return Journal::new(records_max);
    };
    let sink = Tracked {
        barrier: running.barrier.clone(),
        journal: Arc::clone(&running.background),
    };
    Journal::with_sink(records_max, running.last_id, Box::new(sink))
}

/// Sink that writes records to the journal and tracks the pending ones.
struct Tracked {
    barrier: JournalBarrier,
    journal: Arc<Background>,
}

impl Sink for Tracked {
    fn keep(&self, record: &Record, decision: Option<&Arc<DecisionRecord>>) {
        debug!(target: TARGET, decision = %record.decision_id(), "kept before its effects");
        self.barrier.add();
        self.journal.keep(record, decision);
    }

    fn abandon(&self, id: u64) {
        debug!(target: TARGET, number = id, "abandoned");
        self.barrier.add();
        self.journal.abandon(id);
    }
}
