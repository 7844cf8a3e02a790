//! Files of `formatVersion` 1 with a list `cases`: what Karmada's resource interpreter did, at every level.
//!
//! Each case is run through what runs in production: native rules, scripts loaded as customizations, the order of the
//! levels, admission. How outcomes are compared is told in `compare`, how scripts are found in `scripts`.

mod admission;
mod case;
mod compare;
mod levels;
mod native;
mod outcome;
mod scripts;
mod sequence;
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{FileError, Report};
use case::Case;
use outcome::Outcome;

/// Where scripts are that a file of cases does not contain.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder with the customizations that third-party cases were made with, as
    /// `<group>/<version>/<Kind>/customizations.yaml`, at any depth that the paths in the cases have in common with it.
    pub customizations: Option<PathBuf>,
    /// Our own library, as `<group>/<version>/<Kind>/customization.yaml`, which answers where there is no such folder.
    pub library: Option<PathBuf>,
}

/// What a case came to.
enum Ran {
    /// It was run.
    Outcome(Outcome),
    /// It cannot be run here, for a reason that is counted.
    Skipped(String),
}

/// Runs every case of a file.
pub fn run(text: &str, options: &Options) -> Result<Report, FileError> {
    let file: Value = serde_json::from_str(text)?;
    let version = file.get("formatVersion").cloned().unwrap_or_default();
    if version != 1 {
        return Err(FileError::Format { found: version, expected: "formatVersion 1" });
    }
    let scripts = scripts::Scripts::new(options);
    let mut report = Report::default();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for value in file.get("cases").and_then(Value::as_array).into_iter().flatten() {
        let case: Case = match serde_json::from_value(value.clone()) {
            Ok(case) => case,
            Err(error) => {
                let id = value.get("id").and_then(Value::as_str).unwrap_or("a case without id");
                report.record(id, Value::Null, Err(error.to_string()));
                continue;
            }
        };
        match run_case(&case, &scripts) {
            Ok(Ran::Skipped(reason)) => *skipped.entry(reason).or_default() += 1,
            Ok(Ran::Outcome(outcome)) if compare::is_expected(&case, &outcome) => report.passed += 1,
            Ok(Ran::Outcome(outcome)) => report.fail(&case.id, compare::printed(&case), outcome.printed()),
            Err(error) => report.record(&case.id, compare::printed(&case), Err(error)),
        }
    }
    report.notes.extend(skipped.into_iter().map(|(reason, count)| format!("{count} cases not run: {reason}")));
    report.notes.extend(scripts.notes());
    Ok(report)
}

fn run_case(case: &Case, scripts: &scripts::Scripts) -> Result<Ran, String> {
    if case.operation == "Sequence" {
        return sequence::run(case, scripts).map(Ran::Outcome);
    }
    if case.level != "webhook" && case.beyond_bindings() {
        return Ok(Ran::Skipped("they write in more replicas than the 32 bits of a binding hold".to_owned()));
    }
    match case.level.as_str() {
        "native" => native::run(case).map(Ran::Outcome),
        "declarative" => scripts.declarative(case).map(Ran::Outcome),
        "thirdparty" => scripts.third_party(case),
        "luavm" => scripts.plain(case).map(Ran::Outcome),
        "framework" => levels::run(case, scripts),
        "admission" => admission::run(case),
        "webhook" => webhook::run(case),
        "cli" => Ok(Ran::Skipped("the output of karmadactl interpret is not ours".to_owned())),
        other => Err(format!("unknown level {other}")),
    }
}
