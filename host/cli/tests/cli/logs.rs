//! Logs of `bulkhead run`: formats, filters and the ids in spans.

use serde_json::Value;

use crate::embedded::{Program, folder};

/// Starts an embedded control plane with one member, whose log has decisions about it.
fn start(name: &str, more: &[&str]) -> Program {
    let folder = folder(name);
    let kubeconfig = folder.join("kubeconfig").display().to_string();
    let run = [
        "run",
        "--embedded",
        "--members=1",
        "--health-probe-bind-address=127.0.0.1:0",
        "--write-kubeconfig",
    ];
    Program::spawn(&folder, &[&run[..], &[&kubeconfig], more].concat())
}

fn spans<'a>(line: &'a Value, name: &str) -> Vec<&'a Value> {
    line["spans"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|span| span["name"] == name)
        .collect()
}

#[test]
fn json_lines_of_a_run_have_the_controller_and_the_id_of_the_decision() {
    let mut program = start(
        "json-log",
        &["--log-format=json", "--log-filter=info,bulkhead::write=debug"],
    );
    let written = |log: &str| {
        log.lines()
            .any(|line| line.contains("\"update status\"") && line.contains("ReadyChanged"))
    };
    program.until("a decision is written", |program| written(&program.log()));
    let log = program.log();
    assert_eq!(program.stop(), Some(0));
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(lines.iter().all(|line| {
        ["timestamp", "level", "target", "message"]
            .iter()
            .all(|key| line[key].is_string())
    }));
    assert_eq!(
        lines[0]["message"]
            .as_str()
            .and_then(|text| text.split_once("http://")?.0.into()),
        Some("health and metrics at ")
    );
    // A conflict leaves a decision without a write, so the write leads to its decision.
    let write = lines
        .iter()
        .find(|line| line["target"] == "bulkhead::write" && !spans(line, "decision").is_empty())
        .expect("the write of a decision");
    let id = &spans(write, "decision")[0]["id"];
    let decided = lines
        .iter()
        .find(|line| line["target"] == "bulkhead::decision" && &spans(line, "decision")[0]["id"] == id)
        .expect("the decision of the write");
    assert_eq!(
        spans(decided, "reconcile")[0]["controller"],
        decided["controller"],
        "{decided}"
    );
    assert_eq!(spans(decided, "reconcile")[0]["object"], "member1", "{decided}");
    assert_eq!(
        (&write["message"], &write["kind"]),
        (&"written".into(), &"Cluster".into()),
        "{write}"
    );
}

#[test]
fn the_filter_comes_from_the_environment_and_an_invalid_one_is_refused() {
    let run = |filter: &str| {
        let mut command = super::bulkhead();
        command.args([
            "run",
            "--kubeconfig=/nowhere/a",
            "--health-probe-bind-address=127.0.0.1:0",
        ]);
        let output = command.env("BULKHEAD_LOG_FILTER", filter).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, log) = run("error");
    assert_eq!((code, log.lines().count()), (Some(2), 1), "{log}");
    assert!(
        log.contains("ERROR bulkhead_server: reading the kubeconfig /nowhere/a"),
        "{log}"
    );
    let (code, log) = run("info");
    assert!(
        code == Some(2) && log.contains("INFO bulkhead_server: health and metrics at http://"),
        "{log}"
    );
    let (code, complaint) = run("bulkhead=loud");
    assert!(
        code == Some(2) && complaint.contains("invalid value 'bulkhead=loud' for '--log-filter"),
        "{complaint}"
    );
}
