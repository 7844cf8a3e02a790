//! Cases of `karmadactl interpret`, run with Bulkhead's command.
//!
//! Compared are the results by name and value, the verdict of `--check` on each rule, and the cause of a failure: a
//! script or the arguments. Karmada's command exits successfully if a script fails; Bulkhead's does not. Bulkhead's
//! `--check` additionally reports unused fields, in a block without a source, and fails because of them.

use std::path::Path;
use std::process;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::Ran;
use super::case::Case;
use super::compare::same_results;

/// Texts in Karmada's errors about conflicting or missing arguments, or objects without a rule.
const ABOUT_ARGUMENTS: [&str; 3] = ["you can not specify both", "not set", "rule is not enabled"];

/// Bulkhead's command, with a folder that contains the files of the cases.
pub(super) struct Command<'a> {
    program: Option<&'a Path>,
    folder: Result<TempDir, String>,
}

/// Result of a command.
struct Ended {
    failed: bool,
    stdout: String,
    /// True if a script caused the failure.
    blames_script: bool,
}

impl<'a> Command<'a> {
    /// Creates the command for `program`. The files are inputs of a dedicated case.
    pub(super) fn new(program: Option<&'a Path>, cases: &[Value]) -> Self {
        let files = cases
            .iter()
            .find(|case| case["level"] == "cli" && case["operation"] == "files");
        let files = files
            .and_then(|case| case["inputs"].as_object())
            .cloned()
            .unwrap_or_default();
        Self {
            program,
            folder: folder(&files),
        }
    }

    /// Runs a case.
    pub(super) fn run(&self, case: &Case) -> Result<Ran, String> {
        let Some(program) = self.program else {
            return Ok(Ran::Skipped(
                "they are about the command, and no program was given".to_owned(),
            ));
        };
        let folder = self.folder.as_ref().map_err(Clone::clone)?;
        if case.operation == "files" {
            return Ok(Ran::Judged(None));
        }
        let arguments = case
            .inputs
            .get("argv")
            .and_then(Value::as_str)
            .ok_or("it has no argv")?;
        let ours = process::Command::new(program)
            .arg("interpret")
            .args(arguments.split_whitespace())
            .current_dir(folder.path())
            .stdin(process::Stdio::null())
            .output()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&ours.stdout), text(&ours.stderr));
        let got = json!({"stdout": stdout, "stderr": stderr, "code": ours.status.code()});
        let ours = Ended {
            failed: !ours.status.success(),
            blames_script: ours.status.code() == Some(1),
            stdout,
        };
        let theirs = expected(case)?;
        let same = if arguments.contains("--check") {
            same_check(&theirs, &ours)
        } else {
            same_run(case, &theirs, &ours)
        };
        Ok(Ran::Judged((!same).then_some(got)))
    }
}

fn folder(files: &Map<String, Value>) -> Result<TempDir, String> {
    let failed = |error: std::io::Error| format!("a folder for the files: {error}");
    let folder = tempfile::tempdir().map_err(failed)?;
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text.as_str().unwrap_or_default()).map_err(failed)?;
    }
    Ok(folder)
}

/// Returns the recorded result of Karmada's command.
fn expected(case: &Case) -> Result<Ended, String> {
    let expected = case.expected.as_ref().ok_or("nothing is expected")?;
    let text = |name: &str| expected.get(name).and_then(Value::as_str).unwrap_or_default();
    let stopped = expected.get("error").is_some();
    let failed = stopped || !text("stderr").is_empty();
    let blames_script = failed && !stopped && !ABOUT_ARGUMENTS.iter().any(|words| text("stderr").contains(words));
    Ok(Ended {
        failed,
        stdout: text("stdout").to_owned(),
        blames_script,
    })
}

fn same_run(case: &Case, theirs: &Ended, ours: &Ended) -> bool {
    if theirs.failed {
        return ours.failed && ours.stdout.is_empty() && ours.blames_script == theirs.blames_script;
    }
    let (Some(expected), Some(got)) = (results(&theirs.stdout), results(&ours.stdout)) else {
        return false;
    };
    let names = |results: &[(String, Value)]| results.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let by_name = |results: Vec<(String, Value)>| Value::Object(results.into_iter().collect());
    !ours.failed && names(&expected) == names(&got) && same_results(case, &by_name(expected), &by_name(got))
}

/// Parses the results in an output: documents, each with its name in a comment. Returns `None` for other outputs.
fn results(stdout: &str) -> Option<Vec<(String, Value)>> {
    let documents = stdout.strip_prefix("---\n")?.split("\n---\n");
    let result = |document: &str| {
        let (head, value) = document.split_once('\n')?;
        let (_, name) = head.strip_prefix("# [")?.split_once("] ")?;
        Some((name.strip_suffix(':')?.to_owned(), serde_saphyr::from_str(value).ok()?))
    };
    documents.map(result).collect()
}

/// Verdict of a check on one source: the state of each rule. The list is empty if the source is not a customization.
type Checked = (String, Vec<(String, String)>);

fn same_check(theirs: &Ended, ours: &Ended) -> bool {
    // Without an output the arguments were at fault, such as a missing file.
    if theirs.failed && theirs.stdout.is_empty() {
        return ours.failed && ours.stdout.is_empty() && !ours.blames_script;
    }
    let (expected, got) = (checked(&theirs.stdout), checked(&ours.stdout));
    let has_more = blocks(&ours.stdout).any(|block| !block.starts_with("SOURCE: "));
    !expected.is_empty() && expected == got && (ours.failed == theirs.failed || has_more)
}

fn blocks(stdout: &str) -> impl Iterator<Item = &str> {
    stdout
        .split("-----------------------------------\n")
        .filter(|block| !block.is_empty())
}

fn checked(stdout: &str) -> Vec<Checked> {
    let rule = |line: &str| {
        let (rule, state) = line.strip_prefix("    ")?.split_once(": ")?;
        let state = state.trim().split([':', ' ']).next()?;
        Some((rule.to_owned(), state.to_owned())).filter(|(rule, _)| rule.chars().all(char::is_alphanumeric))
    };
    let source = |block: &str| {
        let source = block.lines().next()?.strip_prefix("SOURCE: ")?.to_owned();
        Some((source, block.lines().filter_map(rule).collect()))
    };
    blocks(stdout).filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_by_name() {
        let actual =
            results("---\n# [1/2] replica:\n2\n---\n# [2/2] requires:\nresourceRequest:\n  cpu: 100m\n").unwrap();
        let request = json!({"resourceRequest": {"cpu": "100m"}});
        assert_eq!(
            actual,
            [("replica".to_owned(), json!(2)), ("requires".to_owned(), request)]
        );
        assert_eq!(results("replica: 2\n"), None);
    }

    #[test]
    fn a_check_that_does_not_start_is_compared_by_its_failure() {
        let ended = |failed: bool, stdout: &str| Ended {
            failed,
            stdout: stdout.to_owned(),
            blames_script: false,
        };
        assert!(same_check(&ended(true, ""), &ended(true, "")));
        assert!(!same_check(&ended(true, ""), &ended(false, "")));
        assert!(!same_check(&ended(true, ""), &ended(true, "SOURCE: a")));
        assert!(!same_check(
            &ended(true, ""),
            &Ended {
                blames_script: true,
                ..ended(true, "")
            }
        ));
        assert!(!same_check(&ended(false, ""), &ended(false, "")));
    }

    #[test]
    fn states_of_a_check_are_read_by_source() {
        let line = "-----------------------------------";
        let text = format!(
            "{line}\nSOURCE: a\nTARGET: v1 A  \nRULERS:\n    Retain:       PASS\n    InterpretHealth:  ERROR: x: y\n        \
             WARNING: a: b\n{line}\nERROR: field\n"
        );
        let state = |rule: &str, state: &str| (rule.to_owned(), state.to_owned());
        let expected = vec![state("Retain", "PASS"), state("InterpretHealth", "ERROR")];
        assert_eq!(checked(&text), [("a".to_owned(), expected)]);
        assert_eq!(blocks(&text).count(), 2);
    }
}
