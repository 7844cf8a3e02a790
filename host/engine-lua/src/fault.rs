//! Faults of scripts.

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::one_line;

use crate::meter::Meter;
use crate::position::{Denied, LIBRARY_NAME};

/// Maximum length of a message in bytes; scripts control the length of theirs.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

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
        other => located(&other.to_string()),
    };
    Fault::new(kind, one_line(&message, MESSAGE_BYTES_MAX))
}

/// Truncates a message.
fn cut(message: &str) -> &str {
    message
        .get(..message.floor_char_boundary(MESSAGE_BYTES_MAX))
        .unwrap_or(message)
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
    if let Some(kind) = kind_of_value(text) {
        return format!("the script raised a {kind} as its error, not a string");
    }
    let Some(rest) = text.strip_prefix(&ours) else {
        return cut(text).to_owned();
    };
    let text = rest.split_once(": ").map_or(rest, |(_, text)| text);
    let mut frames = trace.lines().map(str::trim_start);
    let frame = frames.find(|frame| !frame.starts_with(&ours) && !frame.starts_with('['));
    match frame.and_then(|frame| frame.rsplit_once(": in ")) {
        Some((place, _)) => format!("{place}: {}", cut(text)),
        None => cut(text).to_owned(),
    }
}

/// Returns the kind of an error value that is no string. Luau shows such a value with its address, which differs in each
/// process and must not leave it.
fn kind_of_value(text: &str) -> Option<&str> {
    let (kind, digits) = text.split_once(": 0x")?;
    let is_name = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(kind)
}
