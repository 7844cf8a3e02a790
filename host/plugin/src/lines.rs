//! Bounded log lines of plugins.

use std::sync::Arc;

use bulkhead_core::policy::PolicyId;

use crate::text::one_line;

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

/// Lines of one call, with bounds on their number and length.
#[derive(Debug, Default)]
pub struct Lines {
    kept: Vec<(Level, String)>,
    dropped: u64,
}

impl Lines {
    /// Adds a line. It is cut after 512 characters, and after 64 lines only counted.
    pub fn push(&mut self, level: Level, line: &[u8]) {
        if self.kept.len() < LINES_MAX {
            // A character has at most four bytes.
            let start = line.get(..4 * LINE_CHARS_MAX).unwrap_or(line);
            self.kept
                .push((level, one_line(&String::from_utf8_lossy(start), LINE_CHARS_MAX)));
        } else {
            self.dropped += 1;
        }
    }

    /// Sends the lines to the sink, and reports the number of dropped ones.
    pub fn flush(&mut self, sink: Option<&LogSink>, id: &PolicyId) {
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
