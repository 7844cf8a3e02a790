//! Commands about the program: `version`, `completion` and `man`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn succeeds(words: &[&str]) -> String {
    let output = super::bulkhead().args(words).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_version_is_the_same_in_every_form() {
    let json: Value = serde_json::from_str(&succeeds(&["version", "-o", "json"])).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        serde_saphyr::from_str::<Value>(&succeeds(&["version", "-o", "yaml"])).unwrap(),
        json
    );
    let (line, text) = (succeeds(&["--version"]), succeeds(&["version"]));
    assert!(
        line.starts_with(concat!("bulkhead ", env!("CARGO_PKG_VERSION"))),
        "{line}"
    );
    let commit = json["commit"].as_str();
    assert!(
        text.contains(&format!("commit: {}\n", commit.unwrap_or("unknown"))),
        "{text}"
    );
    assert_eq!(line.contains('('), commit.is_some(), "{line}");
}

#[test]
fn each_shell_completes_every_command() {
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef bulkhead"),
        ("fish", "complete -c bulkhead"),
    ] {
        let script = succeeds(&["completion", shell]);
        for part in [mark, "simulate", "inspect", "cluster-kubeconfig", "completion"] {
            assert!(script.contains(part), "{shell}: no {part:?}");
        }
    }
    let output = super::bulkhead().args(["completion", "tcsh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_command_has_a_man_page_with_its_flags() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = fs::remove_dir_all(&folder);
    let path = folder.display().to_string();
    assert_eq!(succeeds(&["man", &path]), "");
    for (page, part) in [
        ("bulkhead", "simulate"),
        ("bulkhead-run", "mode"),
        ("bulkhead-plugin-test", "junit"),
    ] {
        let text = fs::read_to_string(folder.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".TH") && text.contains(part), "{page}: {text}");
    }
    // The path of a file is no directory.
    let file = folder.join("bulkhead.1").display().to_string();
    let output = super::bulkhead().args(["man", &file]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_program_is_a_plugin_of_kubectl_under_the_name_that_kubectl_looks_for() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kubectl-plugin");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("kubectl-bulkhead");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bulkhead"), &plugin).unwrap();
    let output = |command: &mut Command, words: &[&str]| {
        let output = command.args(words).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let (code, help) = output(&mut Command::new(&plugin), &["top", "--help"]);
    assert!(
        code == Some(0) && help.contains("Usage: kubectl bulkhead top"),
        "{help}"
    );
    let (code, mistake) = output(&mut Command::new(&plugin), &["drain"]);
    assert!(
        code == Some(2) && mistake.contains("Usage: kubectl bulkhead drain"),
        "{mistake}"
    );
    let version = output(&mut Command::new(&plugin), &["version"]);
    assert_eq!(version, (Some(0), succeeds(&["version"])));
    if Command::new("kubectl").arg("version").arg("--client").output().is_err() {
        eprintln!("skipped: no kubectl");
        return;
    }
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&others))).unwrap();
    let through_kubectl = output(Command::new("kubectl").env("PATH", path), &["bulkhead", "version"]);
    assert_eq!(through_kubectl, version);
}
