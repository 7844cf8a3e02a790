//! Files of format `karmada-scheduler-cases/1`.
//!
//! `cases` and `randomCases` are end-to-end cases: the input is clusters, options and a binding; the output is
//! result, condition, events and requeue decision. The lists named `unit.<table>` contain calls of one function each.
//! A file may contain any subset.

use serde_json::Value;

use crate::{FileError, Report, cases, units};

/// Format that this module runs.
pub const FORMAT: &str = "karmada-scheduler-cases/1";

/// Runs every case of a file.
pub fn run(text: &str) -> Result<Report, FileError> {
    let file: Value = serde_json::from_str(text)?;
    let format = file.get("format").cloned().unwrap_or_default();
    if format != FORMAT {
        return Err(FileError::Format {
            found: format,
            expected: FORMAT,
        });
    }
    let mut report = Report::default();
    for (name, list) in file.as_object().into_iter().flatten() {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        match name.as_str() {
            "format" | "source" | "doc" => {}
            "cases" | "randomCases" => list.iter().for_each(|case| cases::run(case, &mut report)),
            _ => match name.strip_prefix("unit.").and_then(units::table) {
                Some(run) => list.iter().enumerate().for_each(|(index, case)| {
                    let label = case.get("name").and_then(Value::as_str);
                    let label = label.map_or_else(|| format!("{name}[{index}]"), |label| format!("{name}/{label}"));
                    report.record(label, case.get("expected").cloned().unwrap_or_default(), run(case));
                }),
                None => return Err(FileError::UnknownList(name.clone())),
            },
        }
    }
    Ok(report)
}
