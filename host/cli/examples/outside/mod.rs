//! The built program in a process of its own, and the API servers that it works on, for examples that measure it from
//! outside.
//!
//! The servers run in the measuring process, so it sees each request of the program. They speak plain HTTP on
//! loopback: encryption costs nothing that the examples measure.

pub(crate) mod federation;
pub(crate) mod program;
