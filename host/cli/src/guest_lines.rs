//! Lines that plugins write, for their authors.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bulkhead_core::policy::PolicyId;
use bulkhead_plugin::{Level, LogSink};

/// Maximum number of printed lines: the laws of conformance call a plugin thousands of times.
const LINES_MAX: usize = 200;

/// Returns a receiver that prints lines to standard error, each with the name of the plugin and the level.
pub(crate) fn guest_lines() -> LogSink {
    let printed = AtomicUsize::new(0);
    Arc::new(move |plugin: &PolicyId, level: Level, line: &str| {
        let name = &plugin.name;
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
        };
        // A closed standard error is no reason to fail.
        let _ = match printed.fetch_add(1, Ordering::Relaxed) {
            LINES_MAX => writeln!(anstream::stderr(), "{name}: further lines are not shown"),
            number if number > LINES_MAX => Ok(()),
            _ => writeln!(anstream::stderr(), "{name} [{level}] {line}"),
        };
    })
}
