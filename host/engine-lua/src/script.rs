//! Compiled script.

use crate::mentioned::Mentioned;

/// A compiled script.
pub(crate) struct Script {
    /// Origin of the script, for messages.
    pub(crate) origin: String,
    /// Bytecode for Luau.
    pub(crate) bytecode: Vec<u8>,
    /// Names that occur in its text.
    pub(crate) mentioned: Mentioned,
    /// The text, which explains faults.
    pub(crate) text: String,
}
