//! Transcript of typical kubectl usage (`transcript.txt`): parsing, execution, and comparison of two runs.
//!
//! Two crates include this module: the tests of the program, which run the transcript against the embedded control
//! plane, and the end-to-end tests, which also run it against a real API server.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One command with its expectations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// Shell command.
    pub(crate) command: String,
    /// True if the command must succeed.
    pub(crate) succeeds: bool,
    /// True if all servers must give the same output. False if versions or wording differ.
    #[allow(dead_code, reason = "only one of the two crates compares")]
    pub(crate) is_compared: bool,
    /// Texts that the output must contain.
    pub(crate) contains: Vec<String>,
}

/// Result of a command.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The command.
    pub(crate) command: String,
    /// Exit code; `None` if the command did not start or was killed.
    pub(crate) code: Option<i32>,
    /// Combined output of both streams.
    pub(crate) output: String,
    /// Deviations from the expectations.
    pub(crate) problems: Vec<String>,
}

/// Returns the folder of this file, given the root of the workspace.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("tests/kubectl")
}

/// Returns the steps of the transcript.
pub(crate) fn steps(root: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(folder(root).join("transcript.txt")).unwrap_or_default();
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let (sort, rest) = line.split_at(line.len().min(2));
        match (sort, steps.last_mut()) {
            ("$ " | "! " | "% " | "? ", _) => {
                let (succeeds, is_compared) = (matches!(sort, "$ " | "% "), matches!(sort, "$ " | "! "));
                steps.push(Step {
                    command: rest.to_owned(),
                    succeeds,
                    is_compared,
                    contains: Vec::new(),
                });
            }
            ("> ", Some(step)) => step.contains.push(rest.to_owned()),
            _ => {}
        }
    }
    steps
}

/// Runs the steps in order. `cache` is the folder for kubectl's discovery cache.
pub(crate) fn run(root: &Path, steps: &[Step], kubeconfig: &Path, cache: &Path) -> Vec<Outcome> {
    let run = |step: &Step| {
        let output = Command::new("sh")
            .args(["-c", &format!("({}) 2>&1", step.command)])
            .current_dir(folder(root))
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", cache)
            .output();
        let (code, output) = match output {
            Ok(output) => (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout).into_owned(),
            ),
            Err(error) => (None, error.to_string()),
        };
        let mut problems = Vec::new();
        if (code == Some(0)) != step.succeeds {
            problems.push(format!("it ended with {code:?}"));
        }
        // Column widths depend on the longest cell, such as an age.
        let squeezed = squeeze(&output);
        for text in &step.contains {
            if !squeezed.contains(&squeeze(text)) {
                problems.push(format!("its output does not contain {text:?}"));
            }
        }
        Outcome {
            command: step.command.clone(),
            code,
            output,
            problems,
        }
    };
    steps.iter().map(run).collect()
}

/// Replaces each run of spaces with a single one.
fn squeeze(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Masks the differences between two runs on the same server: times, ages, UIDs, object versions, the server version
/// and `diff` headers, which contain names of temporary files.
#[allow(dead_code, reason = "only one of the two crates compares")]
pub(crate) fn normalised(output: &str) -> String {
    let is_header = |line: &&str| {
        ["diff ", "--- ", "+++ ", "Server Version", "exit status"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let lines = output.lines().filter(|line| !is_header(line));
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| matches!(c, '"' | ',' | '(' | ')'));
        if is_uid(bare) {
            "UID".to_owned()
        } else if is_time(bare) {
            "TIME".to_owned()
        } else if is_age(bare) {
            "AGE".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(word).collect();
        let is_version = |label: &String| matches!(label.as_str(), "resourceVersion:" | "+" | "-");
        if words.iter().any(|word| word == "resourceVersion:") {
            words.retain(is_version);
        }
        // `describe` prints times in a long form.
        if words.first().is_some_and(|label| label == "CreationTimestamp:") {
            words.truncate(1);
        }
        words.join(" ")
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

fn is_uid(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn is_time(word: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        word.get(range)
            .is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()))
    };
    word.len() >= 20 && digits(0..4) && digits(5..7) && word.contains('T') && word.ends_with('Z')
}

/// True for ages such as `5s`, `2m30s` or `1d`.
fn is_age(word: &str) -> bool {
    let units = word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    matches!(units.as_str(), "s" | "m" | "ms" | "h" | "hm" | "d" | "dh")
        && word.starts_with(|c: char| c.is_ascii_digit())
}
