//! Behaviour that scripts depend on: exit codes, streams, and no colours outside of a terminal.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod about;
mod action;
mod argo;
mod configuration;
mod console;
mod documents;
mod embedded;
mod formats;
mod images;
mod interpret;
mod journal;
mod languages;
mod logs;
mod metrics;
mod mistakes;
mod plugin;
mod quarantine;
#[path = "../../../../tests/registry/mod.rs"]
#[allow(dead_code, reason = "other crates use other parts")]
mod registry;
mod schema;
mod silence;
#[path = "../../../../tests/kubectl/transcript.rs"]
mod transcript;
mod vectors;
mod watch;
mod what_if;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Creates the folder of a test, empty. `name` is a path.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn simulate(name: &str, scenario: &str, arguments: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("scenario.yaml");
    fs::write(&file, scenario).unwrap();
    bulkhead().arg("simulate").arg(file).args(arguments).output().unwrap()
}

/// Returns the program, with the caches of the tests instead of those of the user.
fn bulkhead() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulkhead"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    command
        .env("XDG_CACHE_HOME", folder.join("caches"))
        .env("XDG_STATE_HOME", folder.join("state"));
    for name in [
        "CONFIG",
        "IMAGE_CACHE",
        "JOURNAL",
        "MODE",
        "PLUGINS",
        "PLUGIN_CACHE",
        "PLUGIN_STATE_DIRECTORY",
        "PLUGIN_TRUST",
    ] {
        command.env_remove(format!("BULKHEAD_{name}"));
    }
    command
}

const HEAD: &str = "name: cli\nduration: 30s\nclusters: [{name: member1}]\n";

#[test]
fn success_is_0_and_data_is_json() {
    let scenario = format!("{HEAD}expect: [{{cluster: member1, ready: \"True\"}}]\n");
    let output = simulate("success", &scenario, &["-o", "json"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["expectations"][0]["held"], true);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-regions/scenario.yaml");
    let example = example.display().to_string();
    for words in [
        &["crds"][..],
        &["schema", "scenario"],
        &["simulate", &example],
        &["interpret", "--show", "list"],
    ] {
        let mut child = bulkhead()
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        assert_eq!(
            (status.code(), String::from_utf8_lossy(&stderr).as_ref()),
            (Some(0), ""),
            "{words:?}"
        );
    }
}

#[test]
fn a_failed_expectation_is_1_and_says_what_was_seen() {
    let scenario = format!("{HEAD}expect:\n- {{cluster: member1, ready: \"False\"}}\n");
    let output = simulate("failure", &scenario, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("seen: Ready is True") && text.contains("scenario line 5"),
        "{text}"
    );
    assert!(
        text.contains("1 of 1 expectations failed") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn a_bad_scenario_is_2_and_only_stderr_speaks() {
    let output = simulate("bad", &format!("{HEAD}colour: red\n"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("colour"));
}

#[test]
fn the_report_is_written_and_the_chain_of_reasons_is_printed() {
    let report = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    let arguments = [
        "--report",
        &report.display().to_string(),
        "--explain",
        "default/nothing",
    ]
    .map(str::to_owned);
    let output = simulate(
        "report",
        HEAD,
        &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    assert_eq!(output.status.code(), Some(2));
    let page = fs::read_to_string(report).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    assert!(
        page.contains("<th scope=\"row\">scenario file</th><td>sha256:"),
        "{page}"
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("--explain default/nothing: there is no decision about this binding"),
        "{error}"
    );
}
