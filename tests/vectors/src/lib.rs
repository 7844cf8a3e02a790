//! Runner for case files that were recorded by executing Karmada's own code. It reports every difference.
//!
//! The heads of [`scheduler`] and [`interpreter`] describe the formats. A case consists of an input and the expected
//! output; this crate contains no rules of its own. `cargo xtask vectors` runs a file from the command line,
//! `tests/vectors.rs` runs the files committed in this crate.

mod admission;
pub mod interpreter;
mod recorded;
pub mod scheduler;

pub use recorded::{Failure, FileError, Report};
