//! Private keys and tokens in tracked files.

use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

/// Forms of secrets: a name, and the pattern of a value that is long enough to be real.
const FORMS: &[(&str, &str)] = &[
    ("private key", r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----"),
    ("key of a kubeconfig", r"client-key-data: *[A-Za-z0-9+/=]{60}"),
    ("token of a kubeconfig", r"(?m)^ *token: +[A-Za-z0-9._~+/=-]{32,}"),
    (
        "signed web token",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}",
    ),
    ("access key of AWS", r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "token of GitHub",
        r"\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})",
    ),
    ("token of GitLab", r"\bglpat-[A-Za-z0-9_-]{20}"),
    ("token of Slack", r"\bxox[abprs]-[A-Za-z0-9-]{20}"),
    ("key of Google", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("token of npm", r"\bnpm_[A-Za-z0-9]{36}"),
    ("token of a Python index", r"\bpypi-AgEI[A-Za-z0-9_-]{40}"),
    (
        "password in a URL",
        r"[a-z]+://[A-Za-z0-9._-]+:[A-Za-z0-9._~%-]{12,}@[a-z0-9.-]+",
    ),
];

/// Places where a test needs such a form: file, name of the form, number of places, reason.
const ALLOWED: &[(&str, &str, usize, &str)] = &[];

/// Returns the name of each form that a text contains, with its line.
fn found(text: &str) -> Vec<(&'static str, usize)> {
    static PATTERNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compile = |(name, pattern): &(&'static str, &str)| (*name, Regex::new(pattern).unwrap());
        FORMS.iter().map(compile).collect()
    });
    let mut found = Vec::new();
    for (name, pattern) in &*PATTERNS {
        let lines = pattern
            .find_iter(text)
            .map(|place| text[..place.start()].matches('\n').count() + 1);
        found.extend(lines.map(|line| (*name, line)));
    }
    found
}

/// Returns the tracked files, or `None` outside of a git checkout.
pub(crate) fn tracked() -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(super::root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    Some(
        text.split('\0')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn no_tracked_file_has_a_secret() {
    let Some(files) = tracked() else {
        eprintln!("skipped: no git checkout");
        return;
    };
    assert!(files.len() > 500, "only {} files", files.len());
    let mut problems = Vec::new();
    for file in files {
        // A file that is deleted and not committed yet is tracked, too. Other bytes than text have no such forms.
        let Some(text) = fs::read(super::root().join(&file))
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            continue;
        };
        let places = found(&text);
        for (form, _) in FORMS {
            let lines: Vec<_> = places
                .iter()
                .filter(|(name, _)| name == form)
                .map(|(_, line)| *line)
                .collect();
            let allowed = ALLOWED.iter().find(|(name, of, ..)| *name == file && of == form);
            if lines.len() != allowed.map_or(0, |(_, _, count, _)| *count) {
                problems.push(format!("{file}: {form} in lines {lines:?}"));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "remove and revoke the secret, or make the value shorter in a test:\n{}",
        problems.join("\n")
    );
}

#[test]
fn every_form_is_found_in_its_line() {
    // The parts are joined here, so that this file has none of the forms.
    let key = ["-----BEGIN EC PRIVATE", "KEY-----"].join(" ");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let kubeconfig = format!(
        "users:\n- name: me\n  user:\n    client-key-data: {}",
        "LS0t".repeat(15)
    );
    let web = ["eyJhbGciOiJSUzI1", "eyJzdWIiOiJhZG1p", &"c2ln".repeat(6)].join(".");
    let url = format!("postgres://admin:{}@db.example.com", "hunter22".repeat(2));
    for (text, expected) in [
        (format!("first\n{key}\n"), ("private key", 2)),
        (format!("let token = \"{token}\";"), ("token of GitHub", 1)),
        (kubeconfig, ("key of a kubeconfig", 4)),
        (format!("\n\nAuthorization: Bearer {web}"), ("signed web token", 3)),
        (format!("AKIA{}", "ABCD".repeat(4)), ("access key of AWS", 1)),
        (url, ("password in a URL", 1)),
    ] {
        assert_eq!(found(&text), [expected], "{text}");
    }
    for text in [
        "token: short",
        "-----BEGIN CERTIFICATE-----",
        "https://user@example.com",
        "AKIA",
    ] {
        assert!(found(text).is_empty(), "{text}");
    }
}
