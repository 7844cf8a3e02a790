//! Log lines of a test, as JSON.
//!
//! Several crates include this module in their tests. A subscriber applies to one thread, so tests do not share lines.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::Dispatch;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of a log.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Captured {
    /// Returns the lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Returns the lines so far, parsed.
    #[allow(dead_code, reason = "not every crate writes JSON lines")]
    pub(crate) fn json(&self) -> Vec<Value> {
        self.lines()
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Returns a subscriber that writes JSON lines up to a level, with the fields of events at the top.
#[allow(dead_code, reason = "the server has a subscriber of its own")]
pub(crate) fn subscriber(level: LevelFilter) -> (Dispatch, Captured) {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false);
    let subscriber = subscriber.with_max_level(level).with_writer(captured.clone()).finish();
    (Dispatch::new(subscriber), captured)
}
