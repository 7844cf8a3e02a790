//! Format of log lines that leaves out repeated warnings and errors, and counts them.

use std::fmt::{self, Debug, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::LogFormat;
use super::limiter::{Limiter, Suppressed};

/// Format of lines without repetitions: the same fields of the same target count as the same failure, whichever spans
/// they are in.
pub(super) struct WithoutRepeats<F> {
    lines: F,
    format: LogFormat,
    limiter: Limiter,
}

impl<F> WithoutRepeats<F> {
    /// Wraps a text format.
    pub(super) fn text(lines: F) -> Self {
        Self {
            lines,
            format: LogFormat::Text,
            limiter: Limiter::default(),
        }
    }

    /// Wraps a JSON format.
    pub(super) fn json(lines: F) -> Self {
        Self {
            lines,
            format: LogFormat::Json,
            limiter: Limiter::default(),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithoutRepeats<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        // A level is greater if it is more verbose.
        if *event.metadata().level() > Level::WARN {
            return self.lines.format_event(context, writer, event);
        }
        let Some(suppressed) = self.limiter.admit(key(event), Instant::now()) else {
            return Ok(());
        };
        if suppressed == Suppressed::default() {
            return self.lines.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.lines.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&with_counts(&line, self.format, suppressed))
    }
}

/// Appends the counts to a line.
fn with_counts(line: &str, format: LogFormat, suppressed: Suppressed) -> String {
    let line = line.trim_end_matches('\n');
    let counts = [
        ("suppressed_repeats", suppressed.repeats),
        ("suppressed_others", suppressed.others),
    ];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    match format {
        LogFormat::Text => {
            let counts: Vec<_> = counts.map(|(name, count)| format!(" {name}={count}")).collect();
            format!("{line}{}\n", counts.concat())
        }
        LogFormat::Json => {
            let counts: Vec<_> = counts.map(|(name, count)| format!(",\"{name}\":{count}")).collect();
            format!("{}{}}}\n", line.strip_suffix('}').unwrap_or(line), counts.concat())
        }
    }
}

/// Returns the hash of target, message and fields of an event.
fn key(event: &Event<'_>) -> u64 {
    let mut fields = FieldHasher(DefaultHasher::new());
    event.metadata().target().hash(&mut fields.0);
    event.record(&mut fields);
    fields.0.finish()
}

struct FieldHasher(DefaultHasher);

impl Visit for FieldHasher {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        field.name().hash(&mut self.0);
        // Writing to a hasher does not fail.
        let _ = write!(self, "{value:?}");
        self.0.write_u8(0);
    }
}

impl fmt::Write for FieldHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
