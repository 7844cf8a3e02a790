//! API servers that accept connections and do not answer, entirely or for all APIs but one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Output;

const VERSION: &str = r#"{"major":"1","minor":"30","gitVersion":"v1.30.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;

/// Starts a server that answers only requests of one path. Returns its URL and a kubeconfig.
fn server(name: &str, answered: &'static str) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        // Open connections are kept until the test ends.
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(&stream.unwrap(), answered));
        }
    });
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.kubeconfig"));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"{url}\"}}}}]\n\
         users: [{{name: a, user: {{token: a}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    fs::write(&path, text).unwrap();
    (url, path.display().to_string())
}

fn serve(stream: &TcpStream, answered: &str) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        if first.split(' ').nth(1) != Some(answered) {
            loop {
                std::thread::park();
            }
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
        let mut stream = stream;
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{VERSION}", VERSION.len()).unwrap();
    }
}

/// Runs a command with a time limit of 200 ms for each request. Returns its exit code, output and errors.
fn run(command: &[&str], kubeconfig: &str) -> (Option<i32>, String, String) {
    let limits = ["--request-timeout=200ms", "--kubeconfig", kubeconfig];
    let Output { status, stdout, stderr } = super::bulkhead().args(command).args(limits).output().unwrap();
    (
        status.code(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

const DOCTOR: &[&str] = &["doctor", "--mode=finish", "-o", "json"];
const TOP: &[&str] = &["top", "--once"];

#[test]
fn a_control_plane_that_does_not_answer_ends_doctor_and_top_with_its_name() {
    let (url, kubeconfig) = server("silent", "/nothing");
    let expected = format!("{url}/ does not answer: ");
    for (command, is_printed) in [(DOCTOR, true), (TOP, false)] {
        let (code, message, complaint) = run(command, &kubeconfig);
        let text = if is_printed { &message } else { &complaint };
        assert_eq!(code, Some(2), "{command:?}: {message}{complaint}");
        for part in [expected.as_str(), "GET /version: no answer within 200ms"] {
            assert!(text.contains(part), "{command:?}: {part}: {message}{complaint}");
        }
    }
}

#[test]
fn apis_that_do_not_answer_are_named_by_their_paths() {
    let (url, kubeconfig) = server("half-silent", "/version");
    let (code, message, complaint) = run(DOCTOR, &kubeconfig);
    assert_eq!((code, complaint.as_str()), (Some(1), ""), "{message}");
    for path in [
        "/apis",
        "/apis/policy.karmada.io/v1alpha1/propagationpolicies",
        "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases",
        "/apis/cluster.karmada.io/v1alpha1/clusters",
    ] {
        assert!(
            message.contains(&format!("GET {path}: no answer within 200ms")),
            "{path}: {message}"
        );
    }
    let (code, message, complaint) = run(TOP, &kubeconfig);
    assert_eq!((code, message.as_str()), (Some(2), ""), "{complaint}");
    for part in [
        format!("error: {url}/: reading clusters: "),
        "GET /apis/cluster.karmada.io/v1alpha1/clusters: no answer within 200ms".to_owned(),
        "GET /apis/work.karmada.io/v1alpha2/resourcebindings: no answer within 200ms".to_owned(),
    ] {
        assert!(complaint.contains(&part), "{part}: {complaint}");
    }
}

#[test]
fn a_request_without_a_time_limit_is_refused() {
    let Output { status, stderr, .. } = super::bulkhead().args(["top", "--request-timeout=0"]).output().unwrap();
    let complaint = String::from_utf8(stderr).unwrap();
    assert!(
        status.code() == Some(2) && complaint.contains("must be greater than 0"),
        "{complaint}"
    );
}
