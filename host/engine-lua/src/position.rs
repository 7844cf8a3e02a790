//! Position of a running script, and errors that carry it.

use mlua::Lua;

/// Name of our own chunk in positions.
pub(crate) const LIBRARY_NAME: &str = "bulkhead";
/// Number of stack frames searched for a position.
const FRAMES_MAX: usize = 16;

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
