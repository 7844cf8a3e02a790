//! Recorded spans and events.

use std::fmt::{Debug, Write as _};
use std::time::SystemTime;

use opentelemetry::Value;
use tracing::field::{Field, Visit};

/// Maximum number of events of one span; further ones are dropped.
const LINES_MAX: usize = 64;
/// Maximum length of a value, in bytes; longer ones are truncated.
const VALUE_BYTES_MAX: usize = 2048;
/// Name of the field that has the message of an event.
const MESSAGE: &str = "message";

/// Recorded span.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Number of the span in its tree.
    pub(super) number: usize,
    /// Number of the span around it.
    pub(super) parent: Option<usize>,
    pub(super) name: &'static str,
    pub(super) start: SystemTime,
    /// Time when it was left for the last time. It may be closed later, because an event that waits keeps it.
    pub(super) end: SystemTime,
    pub(super) fields: Fields,
    pub(super) lines: Vec<Line>,
}

/// Recorded event of `tracing`.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: SystemTime,
    pub(super) target: &'static str,
    /// True for warnings and errors.
    pub(super) is_problem: bool,
    pub(super) fields: Fields,
}

/// Fields of a span or an event. Most are dropped with their reconcile, so their texts share one buffer, and values of
/// OpenTelemetry are only made for the export.
#[derive(Debug, Default)]
pub(super) struct Fields {
    texts: String,
    entries: Vec<(&'static str, Entry)>,
}

/// Value of a field.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// Part of the texts, from its start to its end in bytes.
    Text(usize, usize),
    I64(i64),
    F64(f64),
    Bool(bool),
}

impl Recorded {
    /// Adds an event.
    pub(super) fn add(&mut self, line: Line) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }
}

impl Fields {
    /// Reads the fields of an event or the attributes of a new span with `record`, which calls the visitor.
    pub(super) fn read(record: impl FnOnce(&mut Self)) -> Self {
        let mut fields = Self {
            texts: String::with_capacity(192),
            entries: Vec::with_capacity(8),
        };
        record(&mut fields);
        fields
    }

    /// Returns the value of a text field.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Entry::Text(start, end) => self.texts.get(start..end),
            _ => None,
        }
    }

    /// Returns the value of a field with a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Entry::I64(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the message of an event.
    pub(super) fn message(&self) -> &str {
        self.text(MESSAGE).unwrap_or_default()
    }

    /// Returns the values of the fields but the message, in the order of their first record.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let entries = self.entries.iter().filter(|(name, _)| *name != MESSAGE);
        entries.map(|(name, entry)| {
            let value = match *entry {
                Entry::Text(start, end) => Value::from(self.texts.get(start..end).unwrap_or_default().to_owned()),
                Entry::I64(number) => Value::I64(number),
                Entry::F64(number) => Value::F64(number),
                Entry::Bool(value) => Value::Bool(value),
            };
            (*name, value)
        })
    }

    fn get(&self, name: &str) -> Option<Entry> {
        let mut entries = self.entries.iter();
        entries.find(|(known, _)| *known == name).map(|(_, entry)| *entry)
    }

    fn set(&mut self, field: &Field, entry: Entry) {
        let known = self.entries.iter_mut().find(|(name, _)| *name == field.name());
        match known {
            Some((_, known)) => *known = entry,
            None => self.entries.push((field.name(), entry)),
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Entry::F64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Entry::I64(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Entry::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let start = self.texts.len();
        self.texts.push_str(bounded(value));
        self.set(field, Entry::Text(start, self.texts.len()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let start = self.texts.len();
        // Writing to a string fails only if the value itself reports an error: what it wrote before is kept.
        let _ = write!(self.texts, "{value:?}");
        let length = self.texts.get(start..).map_or(0, |text| bounded(text).len());
        self.texts.truncate(start + length);
        self.set(field, Entry::Text(start, self.texts.len()));
    }
}

/// Returns the start of a text, up to the maximum length of a value.
fn bounded(text: &str) -> &str {
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    &text[..end]
}
