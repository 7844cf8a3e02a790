//! What went wrong in a script, and where.

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::one_line;
use mlua::Lua;

use crate::library::LIBRARY_NAME;
use crate::meter::Meter;

/// Deepest frame that is looked at for a position.
const FRAMES_MAX: usize = 16;

/// Longest message, in bytes; scripts choose how long theirs are.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Raised when a script asks for something that it may not have.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Denied(pub(crate) String);

/// `origin:line: ` of the innermost script function that is running, empty when there is none.
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

/// The fault that an error amounts to. A stopped meter explains every error, since stopping makes errors; the
/// rest is told by the type of the error, never by its text, which scripts can choose.
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
        mlua::Error::MemoryError(_) => "used up its memory".to_owned(),
        other => cut(&other.to_string()).to_owned(),
    };
    Fault::new(kind, one_line(&message, MESSAGE_BYTES_MAX))
}

/// As much of a message as is kept.
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

/// The message without its stack trace. One that a library function of ours was blamed for is blamed on the
/// script function that called it, which is the first one in the trace that is not ours.
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
