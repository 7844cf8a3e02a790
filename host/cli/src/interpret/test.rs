//! Test cases stored beside customizations.
//!
//! | customization file | test cases |
//! | --- | --- |
//! | `customization.yaml` or `customizations.yaml` | `*_test.yaml` in the same directory, and every file in its `testdata` directory, as in Karmada |

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_conformance::{Case, Check, Outcome, Report, Subject, read_cases_with};
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy;
use bulkhead_engine_lua::EmptyItems;

use super::interpreter::{Loader, files_of, is_test};
use crate::output::Format;

/// File names of customizations.
const CUSTOMIZATIONS: [&str; 2] = ["customization.yaml", "customizations.yaml"];

/// Runs all cases and prints their results. Returns true if all passed.
pub(super) fn run(
    loader: &Loader<'_>,
    folders: &[PathBuf],
    format: Format,
    junit: Option<&Path>,
) -> anyhow::Result<bool> {
    let mut checks = Vec::new();
    for folder in folders {
        walk(loader, folder, &mut checks)?;
    }
    let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    if checks.is_empty() {
        bail!(
            "there are no cases in {}: no directory has a customization.yaml with a *_test.yaml",
            names.join(", ")
        );
    }
    let report = Report {
        plugin: names.join(", "),
        checks,
        // Several customizations, each with its own kind.
        coverage: Vec::new(),
    };
    if let Some(path) = junit {
        std::fs::write(path, report.to_junit()).with_context(|| format!("writing {}", path.display()))?;
    }
    let data: serde_json::Value = serde_json::from_str(&report.to_json())?;
    format.print(|| format!("{}\n", report.to_string().trim_end()), &data)?;
    Ok(report.passed())
}

fn walk(loader: &Loader<'_>, folder: &Path, checks: &mut Vec<Check>) -> anyhow::Result<()> {
    let files = files_of(folder)?;
    let named = |name: &str| files.iter().find(|file| file.ends_with(name));
    if let Some(customization) = CUSTOMIZATIONS.iter().find_map(|name| named(name)) {
        let cases = cases(&files, checks)?;
        match check(loader, customization, &cases) {
            Ok(more) => checks.extend(more),
            Err(error) => checks.push(unusable(customization, &format!("{error:#}"))),
        }
    }
    for below in files.iter().filter(|file| file.is_dir() && !file.ends_with("testdata")) {
        walk(loader, below, checks)?;
    }
    Ok(())
}

/// Returns a failed check for a file that cannot be used, so that the other files are run.
fn unusable(file: &Path, why: &str) -> Check {
    Check {
        name: format!("{} can be used", file.display()),
        kind: None,
        outcome: Outcome::failed(why),
        steps: 0,
    }
}

/// Reads the cases beside a customization. A file that cannot be read becomes a failed check.
fn cases(files: &[PathBuf], checks: &mut Vec<Check>) -> anyhow::Result<Vec<Case>> {
    let (mut cases, mut warnings) = (Vec::new(), Vec::new());
    for file in files {
        let testdata = if file.ends_with("testdata") {
            files_of(file)?
        } else {
            Vec::new()
        };
        let own = is_test(file).then(|| file.clone());
        for file in testdata.into_iter().chain(own) {
            match read_cases_with(&file, &mut warnings) {
                Ok(read) => cases.extend(read),
                Err(errors) => checks.push(unusable(&file, &errors.to_string())),
            }
        }
    }
    for warning in warnings {
        // A closed standard error is no reason to fail.
        let _ = writeln!(anstream::stderr(), "warning: {warning}");
    }
    Ok(cases)
}

/// Runs the cases against the customization. The name of each check starts with the kind of the tested object.
fn check(loader: &Loader<'_>, customization: &Path, cases: &[Case]) -> anyhow::Result<Vec<Check>> {
    let files = [customization.to_path_buf()];
    let usual = loader.load(&files)?;
    let with_lists = if cases.iter().any(|case| case.has_empty_list) {
        loader.load_with(&files, EmptyItems::EmptyTable)?
    } else {
        Vec::new()
    };
    let mut checks = Vec::new();
    for case in cases {
        let interpreters = if case.has_empty_list { &with_lists } else { &usual };
        let kind = case.call.with_call(|call| {
            let kind = call
                .object()
                .and_then(|object| object.get("kind"))
                .and_then(serde_json::Value::as_str);
            kind.unwrap_or("?").to_owned()
        });
        let asked = interpreters
            .iter()
            .find(|interpreter| case.call.with_call(|call| policy::answers(call)(&*interpreter.policy)));
        let name = format!("{kind}: {}", case.name);
        checks.push(match asked {
            None => {
                let outcome = Outcome::failed(format!("{}: there is no rule for it", case.origin));
                Check {
                    name,
                    kind: Some(case.call.kind()),
                    outcome,
                    steps: 0,
                }
            }
            Some(interpreter) => {
                let subject = Subject::new(&*interpreter.policy, Budget::default());
                let mut check = bulkhead_conformance::cases::one(&subject, case);
                if let Outcome::Failed { why } = check.outcome {
                    check.outcome = Outcome::failed(interpreter.located(&why));
                }
                Check { name, ..check }
            }
        });
    }
    Ok(checks)
}
