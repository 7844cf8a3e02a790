//! `bulkhead console`, and the console of `bulkhead run --embedded`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::embedded::Program;
use crate::{bulkhead, folder};

/// Returns the page at a path, once the program serves the console.
fn page(program: &Program, path: &str) -> Option<String> {
    let log = program.log();
    let address = log.lines().find_map(|line| line.split("console at http://").nth(1))?;
    let mut stream = TcpStream::connect(address.trim().trim_end_matches('/')).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.starts_with("HTTP/1.1 200").then_some(text)
}

#[test]
fn a_journal_is_served_in_a_browser() {
    let folder = folder("console");
    let journal = folder.join("journal").display().to_string();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-regions/scenario.yaml");
    let simulated = bulkhead()
        .args(["simulate", example, "--journal", &journal])
        .output()
        .unwrap();
    assert!(simulated.status.success(), "{simulated:?}");
    let arguments = ["console", "--journal", &journal, "--bind-address", "127.0.0.1:0"];
    let mut program = Program::spawn(&folder, &arguments);
    program.until("it serves", |program| page(program, "/").is_some());
    let timeline = page(&program, "/timeline?decision=Evicted").unwrap();
    assert!(
        timeline.contains("content-security-policy: default-src 'none'"),
        "{timeline}"
    );
    assert!(
        timeline.contains("default/") && timeline.contains("Evicted"),
        "{timeline}"
    );
}

#[test]
fn an_embedded_control_plane_shows_its_decisions() {
    let folder = folder("console-embedded");
    let path = |name: &str| folder.join(name).display().to_string();
    let (kubeconfig, journal) = (path("kubeconfig"), path("journal"));
    let arguments = [
        "run",
        "--embedded",
        "--members=2",
        "--health-probe-bind-address=127.0.0.1:0",
        "--write-kubeconfig",
        &kubeconfig,
        "--journal",
        &journal,
        "--console-bind-address=127.0.0.1:0",
    ];
    let mut program = Program::spawn(&folder, &arguments);
    let is_ready = |page: &String| page.contains("✓ ready") && page.contains("member2");
    program.until("the map shows the members", |program| {
        page(program, "/").is_some_and(|page| is_ready(&page))
    });
}

#[test]
fn a_console_without_a_journal_or_with_an_open_address_is_2() {
    let folder = folder("console-mistakes").display().to_string();
    let check = |arguments: &[&str], expected: &str| {
        let output = bulkhead().arg("console").args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    check(&["--journal", &folder], "there is no journal in this directory");
    check(
        &["--journal", &folder, "--bind-address", "0.0.0.0:0"],
        "is not a loopback address",
    );
}
