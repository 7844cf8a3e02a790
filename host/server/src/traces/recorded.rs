//! Recorded spans and events.

use std::fmt::Debug;
use std::time::SystemTime;

use opentelemetry::Value;
use tracing::field::{Field, Visit};

/// Maximum number of events of one span; further ones are dropped.
const LINES_MAX: usize = 64;
/// Maximum length of a value, in bytes; longer ones are truncated.
const VALUE_BYTES_MAX: usize = 2048;

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
    pub(super) message: String,
    pub(super) fields: Fields,
}

/// Fields of a span or an event.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Recorded {
    /// Adds an event.
    pub(super) fn add(&mut self, line: Line) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }
}

impl Fields {
    /// Returns the value of a text field.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the value of a field with a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::I64(number) => Some(*number),
            _ => None,
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the fields in the order of their first record.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Takes the message out of the fields of an event.
    pub(super) fn take_message(&mut self) -> String {
        let at = self.0.iter().position(|(name, _)| *name == "message");
        at.map_or_else(String::new, |at| self.0.remove(at).1.as_str().into_owned())
    }

    fn set(&mut self, field: &Field, value: Value) {
        let known = self.0.iter_mut().find(|(name, _)| *name == field.name());
        match known {
            Some((_, known)) => *known = value,
            None => self.0.push((field.name(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Value::F64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::I64(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::from(bounded(value).to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Returns the start of a text, up to the maximum length of a value.
fn bounded(text: &str) -> &str {
    let end = (0..=VALUE_BYTES_MAX.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
