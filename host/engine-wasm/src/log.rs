//! Log lines of plugins, in bounds.

use std::sync::Arc;

use bulkhead_core::policy::PolicyId;
use bulkhead_plugin::plain;

/// Most lines of one call; the rest is counted.
const LINES_MAX: usize = 64;
/// Longest line, in characters; longer ones are cut.
const LINE_CHARS_MAX: usize = 512;

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the plugin.
    Debug,
    /// For the operator.
    Info,
    /// Something the operator should look at.
    Warn,
}

/// Takes the lines of a call when the call is over: who, how important, and the line without control characters.
pub type LogSink = Arc<dyn Fn(&PolicyId, Level, &str) + Send + Sync>;

/// The lines of one call.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: Vec<(Level, String)>,
    dropped: u64,
}

impl Lines {
    pub(crate) fn push(&mut self, level: Level, line: &str) {
        if self.kept.len() < LINES_MAX {
            self.kept.push((level, plain(line, LINE_CHARS_MAX)));
        } else {
            self.dropped += 1;
        }
    }

    /// Hands the lines over, and says how many there would have been.
    pub(crate) fn flush(&mut self, sink: Option<&LogSink>, id: &PolicyId) {
        let Self { kept, dropped } = std::mem::take(self);
        let Some(sink) = sink else { return };
        for (level, line) in &kept {
            sink(id, *level, line);
        }
        if dropped > 0 {
            sink(id, Level::Warn, &format!("{dropped} more lines were dropped"));
        }
    }
}
