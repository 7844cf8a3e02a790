//! `bulkhead config print` and `bulkhead doctor`, as scripts see them.

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
    let (code, told, _) = bulkhead(&["config", "print", "--config", &path, "--leader-elect=false", "-o", "json"]);
    assert_eq!(code, Some(0), "{told}");
    let data: serde_json::Value = serde_json::from_str(&told).unwrap();
    let value =
        |name: &str| data["values"].as_array().unwrap().iter().find(|value| value["name"] == name).unwrap().clone();
    let mode = value("mode");
    assert_eq!((&mode["value"][0], &mode["from"]["line"]), (&"finish".into(), &3.into()));
    assert_eq!(value("leader-elect")["from"]["kind"], "flag");
    assert_eq!(value("kube-api-qps")["from"]["kind"], "default");
}

#[test]
fn a_wrong_field_ends_every_command_that_reads_it_with_2() {
    let path = file("wrong.yaml", &format!("{HEAD}mode: finish\nleader-elct: true\n"));
    for command in [&["run"][..], &["config", "print"], &["doctor"]] {
        let words: Vec<_> = command.iter().copied().chain(["--config", &path]).collect();
        let (code, told, complaint) = bulkhead(&words);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{command:?}: {complaint}");
        assert!(
            complaint.contains("wrong.yaml:4: leader-elct: there is no such field; is leader-elect meant?"),
            "{complaint}"
        );
    }
    // What each field may be is right, and both together are not.
    let path = file("together.yaml", &format!("{HEAD}mode: [report, evict]\n"));
    let (code, _, complaint) = bulkhead(&["config", "print", "--config", &path]);
    assert!(code == Some(2) && complaint.contains("report,evict"), "{complaint}");
}

#[test]
fn a_control_plane_that_is_not_there_is_an_error_of_the_installation() {
    let kubeconfig = file(
        "nowhere.kubeconfig",
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         users: [{name: a, user: {token: a}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n",
    );
    let (code, told, complaint) = bulkhead(&["doctor", "--mode=finish", "--kubeconfig", &kubeconfig]);
    assert_eq!((code, complaint.as_str()), (Some(1), ""), "{told}");
    assert!(
        told.contains("http://127.0.0.1:1/ does not answer")
            && told.ends_with("not sound: 1 error, 0 warnings, 0 notes\n"),
        "{told}"
    );
    assert!(!told.contains('\u{1b}'), "{told}");
}
