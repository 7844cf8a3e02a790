//! Records that the leader returns.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bulkhead_console::source::{Place, Source};
use bulkhead_controllers::QueuedEviction;
use bulkhead_core::journal::DecisionId;
use bulkhead_journal::{DecisionOutline, News, Stored};
use bulkhead_server::queries::client::{LeaderArguments, Leaders, Query, Records};
use tokio::runtime::Handle;

/// Pause between two questions. The leader reads its journal for each.
const PAUSE: Duration = Duration::from_secs(5);
/// Period that two questions have in common, in milliseconds: clocks of several leaders differ.
const OVERLAP_MS: i64 = 60_000;

/// Leader, and leaders before it.
pub(super) struct Leader {
    arguments: LeaderArguments,
    handle: Handle,
    seen: Mutex<Seen>,
}

/// Result of the questions so far.
#[derive(Default)]
struct Seen {
    /// Time of the newest record, in milliseconds since the Unix epoch.
    newest_ms: Option<i64>,
    /// Problems with the records of the first answer.
    problems: Vec<String>,
}

impl Leader {
    /// Returns the leader that the arguments name. Its methods wait on the runtime of `handle`, so that they must not
    /// be called by a task of it.
    pub(super) fn new(arguments: LeaderArguments, handle: Handle) -> Self {
        Self {
            arguments,
            handle,
            seen: Mutex::default(),
        }
    }

    /// Returns the records of each process that answers, and the errors of the others.
    fn ask(&self, query: &Query) -> anyhow::Result<(Vec<Records>, Vec<String>)> {
        self.handle
            .block_on(async { Leaders::find(&self.arguments).await?.records(query).await })
    }
}

impl Source for Leader {
    fn name(&self) -> String {
        "decisions of the leader".to_owned()
    }

    fn pause(&self) -> Duration {
        PAUSE
    }

    fn read_new(&self, take: &mut dyn FnMut(Option<Place>, News<DecisionOutline>)) -> anyhow::Result<Vec<String>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let query = Query {
            since_ms: seen.newest_ms.map(|newest_ms| newest_ms.saturating_sub(OVERLAP_MS)),
            ..Query::default()
        };
        let (answers, errors) = self.ask(&query)?;
        for answer in answers {
            for problem in answer.problems {
                if !seen.problems.contains(&problem) {
                    seen.problems.push(problem);
                }
            }
            for stored in answer.records {
                seen.newest_ms = seen.newest_ms.max(Some(stored.record.entry.at.as_millis()));
                take(None, News::Record(stored.into_outline()));
            }
        }
        let errors = errors
            .iter()
            .map(|error| format!("an earlier leader does not answer: {error}"));
        Ok(seen.problems.iter().cloned().chain(errors).collect())
    }

    fn find(&self, about: &str, wanted: &[(DecisionId, Option<Place>)]) -> anyhow::Result<Vec<Stored>> {
        let query = Query {
            about: Some(about.to_owned()),
            ..Query::default()
        };
        let (answers, _) = self.ask(&query)?;
        let records = answers.into_iter().flat_map(|answer| answer.records);
        let is_wanted = |stored: &Stored| {
            let found = stored.record.decision_id();
            wanted.iter().any(|(id, _)| *id == found)
        };
        Ok(records.filter(is_wanted).collect())
    }

    fn queued(&self) -> Option<Vec<QueuedEviction>> {
        let asked = async { Leaders::find(&self.arguments).await?.evictions().await };
        self.handle.block_on(asked).ok()
    }
}
