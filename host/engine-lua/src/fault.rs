//! Faults of scripts and their position.

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::one_line;
use mlua::Lua;

use crate::library::LIBRARY_NAME;
use crate::meter::Meter;

/// Number of stack frames searched for a position.
const FRAMES_MAX: usize = 16;

/// Maximum length of a message in bytes; scripts control the length of theirs.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Error raised when a script uses a forbidden function.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Denied(pub(crate) String);

/// Returns `origin:line: ` of the innermost running script function; empty if there is none.
pub(crate) fn position(lua: &Lua) -> String {
    let frame = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source().short_src.map(|source| source.into_owned());
            source.filter(|source| source != LIBRARY_NAME).zip(frame.current_line())
        })
    };
    let found = (0..FRAMES_MAX).map_while(frame).flatten().next();
    found.map_or_else(String::new, |(source, line)| format!("{source}:{line}: "))
}

/// Converts an error to a fault. A stopped meter takes precedence, because stopping a script raises errors. Otherwise
/// the type of the error decides, never its text, which scripts control.
pub(crate) fn fault(error: &mlua::Error, meter: &Meter) -> Fault {
    if let Some(fault) = meter.stopped() {
        return fault.clone();
    }
    let cause = root(error);
    let kind = match cause {
        mlua::Error::MemoryError(_) => FaultKind::Memory,
        mlua::Error::ExternalError(external) if external.is::<Denied>() => FaultKind::Denied,
        _ => FaultKind::Trap,
    };
    let message = match cause {
        mlua::Error::RuntimeError(message) => located(message),
        mlua::Error::MemoryError(_) => meter.out_of_memory(),
        other => cut(&other.to_string()).to_owned(),
    };
    Fault::new(kind, one_line(&message, MESSAGE_BYTES_MAX))
}

/// Truncates a message.
fn cut(message: &str) -> &str {
    message.get(..message.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or(message)
}

fn root(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. }
        | mlua::Error::BadArgument { cause, .. }
        | mlua::Error::WithContext { cause, .. } => root(cause),
        other => other,
    }
}

/// Returns the message without its stack trace. An error positioned in our library is attributed to the calling
/// script function: the first frame in the trace that is not ours.
fn located(message: &str) -> String {
    let (text, trace) = message.rsplit_once("\nstack traceback:\n").unwrap_or((message, ""));
    let ours = format!("{LIBRARY_NAME}:");
    let Some(rest) = text.strip_prefix(&ours) else { return cut(text).to_owned() };
    let text = rest.split_once(": ").map_or(rest, |(_, text)| text);
    let mut frames = trace.lines().map(str::trim_start);
    let frame = frames.find(|frame| !frame.starts_with(&ours) && !frame.starts_with('['));
    match frame.and_then(|frame| frame.rsplit_once(": in ")) {
        Some((place, _)) => format!("{place}: {}", cut(text)),
        None => cut(text).to_owned(),
    }
}
