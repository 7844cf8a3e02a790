//! Watches: a cursor into the event log of one kind, woken when the log grows.
//!
//! A watch has no queue of its own, so a slow reader costs nothing as long as the bounded history covers it. After
//! that it gets the same 410 as a client that resumes too late.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::kind::KindId;
use crate::kubectl::form::Form;
use crate::link::ConnectionError;
use crate::object::{Change, ChangeType};
use crate::request::Query;
use crate::selector::Selector;
use crate::shared::Shared;
use crate::state::State;
use crate::status_error::StatusError;

/// Open watch of a kind.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    kind: KindId,
    namespace: Option<String>,
    selector: Selector,
    form: Form,
    /// Version up to which all changes have been processed.
    cursor: u64,
    lines: VecDeque<Bytes>,
    deadline: Option<Instant>,
    sends_bookmarks: bool,
    changed: Arc<Notify>,
    epoch: u64,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The watch reports changes.
    Following,
    /// The watch sends its queued events and then ends the stream normally.
    Ending,
    /// The watch sends its queued events and then ends the stream with a connection error.
    Breaking,
    /// The stream has ended.
    Ended,
}

/// Start of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Existing objects as additions, followed by changes.
    Present,
    /// Changes from now on.
    Now,
    /// Changes after a version.
    After(u64),
}

impl Watch {
    /// Opens a watch.
    ///
    /// # Errors
    ///
    /// 400 for invalid parameters, 410 for a version older than the history, 504 for a version newer than the current
    /// one.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        kind: KindId,
        namespace: Option<&str>,
        name: Option<&str>,
        query: &Query,
        form: Form,
    ) -> Result<Self, StatusError> {
        let described = shared.lock_state().kind(kind);
        let mut selector = Selector::of(&described, query.get("labelSelector"), query.get("fieldSelector"))?;
        if let Some(name) = name {
            selector = selector.and_name(name);
        }
        // As in Kubernetes, 0 stands for no timeout.
        let timeout = query
            .number("timeoutSeconds")?
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let initial_events = query.is_true("sendInitialEvents");
        let start = match query.number("resourceVersion")? {
            _ if initial_events => Start::Present,
            None | Some(0) if query.get("sendInitialEvents") == "false" => Start::Now,
            None | Some(0) => Start::Present,
            Some(version) => Start::After(version),
        };
        let state = shared.lock_state();
        let table = state.table(kind);
        let cursor = match start {
            Start::Present | Start::Now => state.version,
            Start::After(version) if version > state.version => {
                return Err(StatusError::version_too_large(version, state.version));
            }
            Start::After(version) if version < table.history.dropped() => {
                return Err(too_old(version, table.history.dropped()));
            }
            Start::After(version) => version,
        };
        let mut watch = Self {
            shared: Arc::clone(shared),
            kind,
            namespace: namespace.map(str::to_owned),
            selector,
            form,
            cursor,
            lines: VecDeque::new(),
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            sends_bookmarks: query.is_true("allowWatchBookmarks"),
            changed: Arc::clone(&table.changed),
            epoch: table.watch_epoch,
            phase: Phase::Following,
        };
        if start == Start::Present {
            watch.queue_present(&state);
        }
        if initial_events {
            watch.queue_bookmark(&state, json!({"k8s.io/initial-events-end": "true"}));
        }
        Ok(watch)
    }

    fn queue_present(&mut self, state: &State) {
        let lines = state
            .table(self.kind)
            .scan(self.namespace.as_deref(), None)
            .filter(|object| self.selector.matches(object.content()))
            .map(|object| self.form.event(ChangeType::Added, object));
        let lines: Vec<Bytes> = lines.collect();
        self.lines.extend(lines);
    }

    fn queue_bookmark(&mut self, state: &State, annotations: serde_json::Value) {
        let kind = &state.table(self.kind).kind;
        let mut object = json!({
            "kind": kind.kind,
            "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()},
        });
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations;
        }
        let event = json!({"type": "BOOKMARK", "object": self.form.bookmark(object)});
        self.lines.push_back(Bytes::from(format!("{event}\n")));
    }

    /// Queues the changes since the last call.
    fn catch_up(&mut self) {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock_state();
        let table = state.table(self.kind);
        if table.watch_epoch != self.epoch {
            self.phase = Phase::Breaking;
            return;
        }
        if self.cursor < table.history.dropped() {
            let error = too_old(self.cursor, table.history.dropped()).to_value();
            let event = json!({"type": "ERROR", "object": error});
            self.lines.push_back(Bytes::from(format!("{event}\n")));
            self.phase = Phase::Ending;
            return;
        }
        let times = if table.repeat_until.is_some_and(|until| until > Instant::now()) {
            2
        } else {
            1
        };
        for change in table.history.after(self.cursor) {
            self.lines.extend(
                self.line(&change)
                    .into_iter()
                    .flat_map(|line| std::iter::repeat_n(line, times)),
            );
        }
        self.cursor = state.version;
    }

    /// Returns the event of a change for this watch. An object that starts or stops matching is reported as added or
    /// deleted.
    fn line(&self, change: &Change) -> Option<Bytes> {
        if self
            .namespace
            .as_ref()
            .is_some_and(|only| *only != change.key.namespace)
        {
            return None;
        }
        if self.selector.is_empty() {
            return Some(self.form.event(change.change_type(), &change.object));
        }
        let matches_now = change.change_type() != ChangeType::Deleted && self.selector.matches(change.object.content());
        let matched_before = change
            .previous
            .as_ref()
            .is_some_and(|previous| self.selector.matches(previous.content()));
        let event = match (matched_before, matches_now) {
            (false, false) => return None,
            (false, true) => ChangeType::Added,
            (true, true) => ChangeType::Modified,
            (true, false) => ChangeType::Deleted,
        };
        Some(self.form.event(event, &change.object))
    }

    async fn next(&mut self) -> Option<Result<Bytes, ConnectionError>> {
        let changed = Arc::clone(&self.changed);
        loop {
            // Registers for notifications before reading the log; otherwise a change in between would be missed.
            let mut notified = pin!(changed.notified());
            notified.as_mut().enable();
            if self.phase == Phase::Following && self.lines.is_empty() {
                let quiet_until = self.shared.lock_state().table(self.kind).quiet_until;
                if let Some(until) = quiet_until.filter(|until| *until > Instant::now()) {
                    sleep_until(self.deadline.map_or(until, |deadline| deadline.min(until))).await;
                }
                // A client that reads events as fast as they occur never waits below.
                if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    self.time_out();
                } else {
                    self.catch_up();
                }
            }
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            match self.phase {
                Phase::Following => {}
                Phase::Breaking => {
                    self.phase = Phase::Ended;
                    let server = self.shared.name.clone();
                    return Some(Err(ConnectionError::Reset { server }));
                }
                Phase::Ending | Phase::Ended => return None,
            }
            let deadline = self.deadline;
            let timeout = async move {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = notified => {}
                () = timeout => self.time_out(),
            }
        }
    }

    /// Ends the watch normally, with a bookmark from which the client can resume.
    fn time_out(&mut self) {
        self.phase = Phase::Ending;
        if self.sends_bookmarks {
            let shared = Arc::clone(&self.shared);
            self.queue_bookmark(&shared.lock_state(), serde_json::Value::Null);
        }
    }

    /// Returns the events as lines of JSON.
    pub(crate) fn into_lines(self) -> impl Stream<Item = Result<Bytes, ConnectionError>> + Send + 'static {
        stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((line, watch))
        })
    }
}

fn too_old(version: u64, oldest: u64) -> StatusError {
    StatusError::expired(format!("too old resource version: {version} ({oldest})"))
}
