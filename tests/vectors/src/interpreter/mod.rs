//! Files of `formatVersion` 1 with a list `cases`: recorded behaviour of Karmada's resource interpreter at every
//! level.
//!
//! Each case runs through the production code: native rules, scripts loaded as customizations, the precedence of the
//! levels, and admission. `compare` describes the comparison of outcomes, `scripts` the lookup of scripts.

mod admission;
mod case;
mod cli;
mod compare;
mod levels;
mod native;
mod outcome;
mod scripts;
mod sequence;
mod server;
mod transport;
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{FileError, Report};
use case::Case;
use outcome::Outcome;

/// Locations of scripts and programs that a case file does not contain.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder with the customizations that third-party cases were recorded with, as
    /// `<group>/<version>/<Kind>/customizations.yaml`. The folder may be `resourcecustomizations`, its parent, or the
    /// root of Karmada's repository.
    pub customizations: Option<PathBuf>,
    /// Program whose command `interpret` is run; without it, cases of the command are skipped.
    pub program: Option<PathBuf>,
    /// Bulkhead's own library, as `<group>/<version>/<Kind>/customization.yaml`. It is used if `customizations` is
    /// not set.
    pub library: Option<PathBuf>,
}

/// Result of a case.
enum Ran {
    /// The case was run and its outcome is still to be compared.
    Outcome(Outcome),
    /// The case has the expected outcome with an option that is off by default.
    With(&'static str, Outcome),
    /// The case was run and compared; the value is the actual output of a failed case.
    Judged(Option<Value>),
    /// The case cannot be run here, for the given reason.
    Skipped(String),
}

/// Runs every case of a file.
pub fn run(text: &str, options: &Options) -> Result<Report, FileError> {
    let file: Value = serde_json::from_str(text)?;
    let version = file.get("formatVersion").cloned().unwrap_or_default();
    if version != 1 {
        return Err(FileError::Format {
            found: version,
            expected: "formatVersion 1",
        });
    }
    let cases = file
        .get("cases")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let scripts = scripts::Scripts::new(options);
    let command = cli::Command::new(options.program.as_deref(), cases);
    let mut report = Report::default();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    let mut with: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for value in cases {
        let case: Case = match serde_json::from_value(value.clone()) {
            Ok(case) => case,
            Err(error) => {
                let id = value.get("id").and_then(Value::as_str).unwrap_or("a case without id");
                report.record(id, Value::Null, Err(error.to_string()));
                continue;
            }
        };
        match run_case(&case, &scripts, &command) {
            Ok(Ran::Skipped(reason)) => *skipped.entry(reason).or_default() += 1,
            Ok(Ran::Outcome(outcome)) if compare::is_expected(&case, &outcome) => report.passed += 1,
            Ok(Ran::With(option, outcome)) if compare::is_expected(&case, &outcome) => {
                report.passed += 1;
                with.entry(option).or_default().push(case.title);
            }
            Ok(Ran::Judged(None)) => report.passed += 1,
            Ok(Ran::Judged(Some(got))) => report.fail(&case.id, compare::printed(&case), got),
            Ok(Ran::Outcome(outcome) | Ran::With(_, outcome)) => {
                report.fail(&case.id, compare::printed(&case), outcome.printed());
            }
            Err(error) => report.record(&case.id, compare::printed(&case), Err(error)),
        }
    }
    report.notes.extend(
        skipped
            .into_iter()
            .map(|(reason, count)| format!("{count} cases not run: {reason}")),
    );
    report.notes.extend(scripts.notes());
    let with = with.into_iter();
    report.notes.extend(
        with.map(|(option, cases)| format!("{} cases passed with {option} only: {}", cases.len(), cases.join(", "))),
    );
    Ok(report)
}

fn run_case(case: &Case, scripts: &scripts::Scripts, command: &cli::Command) -> Result<Ran, String> {
    if case.operation == "Sequence" {
        return sequence::run(case, scripts).map(Ran::Outcome);
    }
    match case.level.as_str() {
        "native" => native::run(case).map(Ran::Outcome),
        "declarative" => scripts.declarative(case).map(Ran::Outcome),
        "thirdparty" => scripts.third_party(case),
        "luavm" => scripts.plain(case).map(Ran::Outcome),
        "framework" => levels::run(case, scripts),
        "admission" => admission::run(case),
        "webhook" => webhook::run(case),
        "cli" => command.run(case),
        other => Err(format!("unknown level {other}")),
    }
}
