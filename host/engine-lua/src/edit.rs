//! Findings in a script, and edits of its text.

/// Construct in a script that another interpreter treats differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// The construct and its replacement.
    pub message: String,
}

/// Replacement of a part of the text, by offsets in bytes.
pub(crate) struct Edit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
}
