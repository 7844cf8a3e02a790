//! Bounded log lines of plugins.

use std::sync::Arc;

use bulkhead_core::policy::PolicyId;
use bulkhead_plugin::plain;

/// Maximum number of lines of one call; further ones are only counted.
const LINES_MAX: usize = 64;
/// Maximum length of a line, in characters; longer ones are truncated.
const LINE_CHARS_MAX: usize = 512;

/// Severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for the author of the plugin.
    Debug,
    /// Information for the operator.
    Info,
    /// A problem that the operator should investigate.
    Warn,
}

/// Receiver of the lines at the end of a call: plugin, severity, and the line without control characters.
pub type LogSink = Arc<dyn Fn(&PolicyId, Level, &str) + Send + Sync>;

/// Lines of one call.
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

    /// Sends the lines to the sink, and reports the number of dropped ones.
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
