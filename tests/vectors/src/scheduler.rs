//! Files of format `karmada-scheduler-cases/1`.
//!
//! `cases` and `randomCases` are end-to-end cases: the input is clusters, options and a binding; the output is
//! result, condition, events and requeue decision. The lists named `unit.<table>` contain calls of one function each.
//! A file may contain any subset.

use crate::{FileError, Report, admission, recorded};

/// Format that this module runs.
pub const FORMAT: &str = "karmada-scheduler-cases/1";

/// Runs every case of a file.
pub fn run(text: &str) -> Result<Report, FileError> {
    recorded::run(&serde_json::from_str(text)?, FORMAT, admission::table)
}
