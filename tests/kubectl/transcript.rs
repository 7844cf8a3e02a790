//! The transcript of what people do with kubectl (`transcript.txt`): reading it, running it, comparing two runs.
//!
//! It is a part of two crates: the tests of the program, which run it against the embedded control plane, and the
//! end-to-end tests, which run it against a real API server too.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One command with what is expected of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// For a shell.
    pub(crate) command: String,
    /// Whether it is to end well.
    pub(crate) succeeds: bool,
    /// Whether all servers say the same; otherwise they differ in their version, or in their words.
    #[allow(dead_code, reason = "only one of the two crates compares")]
    pub(crate) is_compared: bool,
    /// What its output must contain.
    pub(crate) contains: Vec<String>,
}

/// What a command came to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The command.
    pub(crate) command: String,
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// What it printed, to either stream.
    pub(crate) output: String,
    /// What is not as expected.
    pub(crate) problems: Vec<String>,
}

/// The folder of this file, given that of the workspace.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("tests/kubectl")
}

/// The steps of the transcript.
pub(crate) fn steps(root: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(folder(root).join("transcript.txt")).unwrap_or_default();
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let (sort, rest) = line.split_at(line.len().min(2));
        match (sort, steps.last_mut()) {
            ("$ " | "! " | "% " | "? ", _) => {
                let (succeeds, is_compared) = (matches!(sort, "$ " | "% "), matches!(sort, "$ " | "! "));
                steps.push(Step { command: rest.to_owned(), succeeds, is_compared, contains: Vec::new() });
            }
            ("> ", Some(step)) => step.contains.push(rest.to_owned()),
            _ => {}
        }
    }
    steps
}

/// Runs the steps one after the other. `cache` is where kubectl keeps what it discovers.
pub(crate) fn run(root: &Path, steps: &[Step], kubeconfig: &Path, cache: &Path) -> Vec<Outcome> {
    let run = |step: &Step| {
        let output = Command::new("sh")
            .args(["-c", &format!("({}) 2>&1", step.command)])
            .current_dir(folder(root))
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", cache)
            .output();
        let (code, output) = match output {
            Ok(output) => (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(error) => (None, error.to_string()),
        };
        let mut problems = Vec::new();
        if (code == Some(0)) != step.succeeds {
            problems.push(format!("it ended with {code:?}"));
        }
        // Columns are as wide as their longest cell, such as an age.
        let squeezed = squeeze(&output);
        for text in &step.contains {
            if !squeezed.contains(&squeeze(text)) {
                problems.push(format!("its output does not contain {text:?}"));
            }
        }
        Outcome { command: step.command.clone(), code, output, problems }
    };
    steps.iter().map(run).collect()
}

/// One space in place of several.
fn squeeze(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// An output without what differs between two runs on the same server: times, ages, uids and versions of objects, names
/// of temporary files, the version of the server, the order of lines of `diff` headers.
#[allow(dead_code, reason = "only one of the two crates compares")]
pub(crate) fn normalised(output: &str) -> String {
    let is_header = |line: &&str| {
        ["diff ", "--- ", "+++ ", "Server Version", "exit status"].iter().any(|start| line.starts_with(start))
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
        // `describe` writes times out.
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
    let digits =
        |range: std::ops::Range<usize>| word.get(range).is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    word.len() >= 20 && digits(0..4) && digits(5..7) && word.contains('T') && word.ends_with('Z')
}

/// `5s`, `2m30s`, `1d`.
fn is_age(word: &str) -> bool {
    let units = word.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    matches!(units.as_str(), "s" | "m" | "ms" | "h" | "hm" | "d" | "dh")
        && word.starts_with(|c: char| c.is_ascii_digit())
}
