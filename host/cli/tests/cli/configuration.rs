//! Exit codes and output of `bulkhead config print` and `bulkhead doctor`.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

fn file(name: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("configuration");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn bulkhead(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = super::bulkhead().args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

const HEAD: &str = "apiVersion: bulkhead.dev/v1alpha1\nkind: BulkheadConfiguration\n";

#[test]
fn a_configuration_is_printed_with_its_origins() {
    let path = file("good.yaml", &format!("{HEAD}mode: finish\n"));
    let (code, message, _) = bulkhead(&[
        "config",
        "print",
        "--config",
        &path,
        "--leader-elect=false",
        "-o",
        "json",
    ]);
    assert_eq!(code, Some(0), "{message}");
    let data: serde_json::Value = serde_json::from_str(&message).unwrap();
    let value = |name: &str| {
        data["values"]
            .as_array()
            .unwrap()
            .iter()
            .find(|value| value["name"] == name)
            .unwrap()
            .clone()
    };
    let mode = value("mode");
    assert_eq!(
        (&mode["value"][0], &mode["from"]["line"]),
        (&"finish".into(), &3.into())
    );
    assert_eq!(value("leader-elect")["from"]["kind"], "flag");
    assert_eq!(value("kube-api-qps")["from"]["kind"], "default");
}

#[test]
fn values_with_which_run_would_end_are_reported() {
    let file = file("plain", "");
    let path = format!("{file}/journal");
    let words = [
        "config",
        "print",
        "--kubeconfig",
        "/nonexistent/kubeconfig",
        "--journal",
        &path,
    ];
    let (code, message, error) = bulkhead(&words);
    assert_eq!(code, Some(0), "{error}");
    let missing = "cannot read /nonexistent/kubeconfig: No such file or directory";
    assert!(error.contains(&format!("warning: kubeconfig: {missing}")), "{error}");
    assert!(
        error.contains(&format!(
            "warning: journal: cannot write to {path}: {file}: not a directory"
        )),
        "{error}"
    );
    assert!(message.contains(&format!("#   {missing}")), "{message}");
    let output = super::bulkhead()
        .args(["config", "print"])
        .env("KUBECONFIG", "/nonexistent/kubeconfig")
        .output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(error.contains(&format!("warning: kubeconfig: {missing}")), "{error}");
    let (_, _, error) = bulkhead(&["config", "print", "--kubeconfig", &file]);
    assert!(!error.contains("warning"), "{error}");
}

#[test]
fn the_environment_wins_over_the_file_and_the_command_line_over_both() {
    let path = file(
        "environment.yaml",
        &format!("{HEAD}mode: finish\njournal: of-the-file\n"),
    );
    let values = |words: &[&str]| {
        let mut command = super::bulkhead();
        command.args(["config", "print", "-o", "json"]).args(words);
        command
            .env("BULKHEAD_CONFIG", &path)
            .env("BULKHEAD_MODE", "evict,interpret");
        let output = command.env("BULKHEAD_JOURNAL", "of-the-environment").output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let data: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let values = data["values"].as_array().unwrap().clone();
        move |name: &str| values.iter().find(|value| value["name"] == name).unwrap().clone()
    };
    let webhook = "--webhook-bind-address=127.0.0.1:0";
    let given = values(&[webhook]);
    assert_eq!(given("mode")["value"], serde_json::json!(["evict", "interpret"]));
    assert_eq!(
        given("mode")["from"],
        serde_json::json!({"kind": "environment", "variable": "BULKHEAD_MODE"})
    );
    assert_eq!(given("journal")["value"], "of-the-environment");
    let given = values(&["--mode=finish", "--journal=of-the-line"]);
    assert_eq!(
        (
            given("mode")["from"]["kind"].as_str(),
            given("journal")["value"].as_str()
        ),
        (Some("flag"), Some("of-the-line"))
    );
}

#[test]
fn a_wrong_field_ends_every_command_that_reads_it_with_2() {
    let path = file("wrong.yaml", &format!("{HEAD}mode: finish\nleader-elct: true\n"));
    for command in [&["run"][..], &["config", "print"], &["doctor"]] {
        let words: Vec<_> = command.iter().copied().chain(["--config", &path]).collect();
        let (code, message, complaint) = bulkhead(&words);
        assert_eq!((code, message.as_str()), (Some(2), ""), "{command:?}: {complaint}");
        assert!(
            complaint.contains("wrong.yaml:4:1: leader-elct: unknown field, did you mean leader-elect?"),
            "{complaint}"
        );
    }
    // Each value is valid, but the combination is not.
    let path = file("together.yaml", &format!("{HEAD}mode: [report, evict]\n"));
    let (code, _, complaint) = bulkhead(&["config", "print", "--config", &path]);
    assert!(code == Some(2) && complaint.contains("report,evict"), "{complaint}");
    for command in [&["run"][..], &["config", "print"], &["doctor"]] {
        let words: Vec<_> = command.iter().copied().chain(["--config", &path]).collect();
        let (code, message, complaint) = bulkhead(&words);
        assert_eq!((code, message.as_str()), (Some(2), ""), "{command:?}: {complaint}");
        assert!(
            complaint.contains("together.yaml:3:1: mode: report,evict: "),
            "{complaint}"
        );
    }
}

#[test]
fn a_missing_kubeconfig_is_reported_once() {
    let commands = [
        &[
            "run",
            "--kubeconfig=/nowhere/a",
            "--health-probe-bind-address=127.0.0.1:0",
        ][..],
        &["unjoin", "m1", "--kubeconfig=/nowhere/a"],
        &[
            "agent",
            "--cluster-name=m1",
            "--kubeconfig=/nowhere/a",
            "--health-probe-bind-address=127.0.0.1:0",
        ],
    ];
    for command in commands {
        let (code, _, complaint) = bulkhead(command);
        assert_eq!(
            (code, complaint.matches("os error 2").count()),
            (Some(2), 1),
            "{command:?}: {complaint}"
        );
        assert!(
            complaint.contains("reading the kubeconfig /nowhere/a"),
            "{command:?}: {complaint}"
        );
    }
    let (code, message, _) = bulkhead(&["doctor", "--mode=finish", "--kubeconfig=/nowhere/a"]);
    assert_eq!((code, message.matches("os error 2").count()), (Some(1), 1), "{message}");
    assert!(message.contains("skipped: there is no usable kubeconfig"), "{message}");
}

#[test]
fn a_rehearsed_mode_replaces_the_mode_and_cannot_be_report() {
    let (code, _, complaint) = bulkhead(&["doctor", "--for=report", "--kubeconfig=/nowhere/a"]);
    assert!(
        code == Some(2) && complaint.contains("mode report changes nothing; choose interpret, finish, evict or all"),
        "{complaint}"
    );
    let words = [
        "doctor",
        "--mode=report",
        "--for=evict,finish",
        "--kubeconfig=/nowhere/a",
    ];
    let (code, message, _) = bulkhead(&words);
    assert!(
        code == Some(1) && message.contains(" in mode evict,finish on "),
        "{message}"
    );
    assert!(!message.contains("rehearsal"), "nothing was read: {message}");
}

#[test]
fn what_the_values_come_to_is_printed_beside_them() {
    let words = ["config", "print", "--mode=finish"];
    let Output { stdout, .. } = super::bulkhead()
        .args(words)
        .env("KUBECONFIG", "/a/b")
        .output()
        .unwrap();
    let message = String::from_utf8(stdout).unwrap();
    assert!(message.contains("#   $KUBECONFIG is /a/b\n"), "{message}");
    assert!(
        message.contains("#   in this mode: gracefulEviction, failoverRecord, pluginStatus\n"),
        "{message}"
    );
}

#[test]
fn a_member_whose_name_cannot_be_one_is_refused_before_anything_is_asked() {
    let (code, _, complaint) = bulkhead(&["join", "M_1", "--member-kubeconfig=/nowhere/a"]);
    assert!(
        code == Some(2) && complaint.contains("lower-case letters, digits and hyphens"),
        "{complaint}"
    );
}

#[test]
fn a_control_plane_that_is_not_there_is_reported_and_has_a_code_of_its_own() {
    let kubeconfig = file(
        "nowhere.kubeconfig",
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         users: [{name: a, user: {token: a}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n",
    );
    let (code, message, complaint) = bulkhead(&["doctor", "--mode=finish", "--kubeconfig", &kubeconfig]);
    assert_eq!((code, complaint.as_str()), (Some(2), ""), "{message}");
    assert!(
        message.contains("http://127.0.0.1:1/ does not answer")
            && message.ends_with("not sound: 1 error, 0 warnings, 0 notes\n"),
        "{message}"
    );
    assert!(!message.contains('\u{1b}'), "{message}");
    let (code, _, complaint) = bulkhead(&["what-if", "--down=m1", "--kubeconfig", &kubeconfig]);
    assert!(
        code == Some(2) && complaint.contains("http://127.0.0.1:1/ does not answer"),
        "{complaint}"
    );
}
