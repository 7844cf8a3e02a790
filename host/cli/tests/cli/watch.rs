//! `bulkhead plugin test --watch`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::{bulkhead, folder};

/// Longest time between two lines, on a machine under load.
const PATIENCE: Duration = Duration::from_mins(2);

/// Process that ends with the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the lines of a stream in the background.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// Returns the next line with a part.
#[track_caller]
fn next(lines: &Receiver<String>, part: &str) -> String {
    let mut seen = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(part) => return line,
            Ok(line) => seen.push(line),
            Err(error) => panic!("no line with {part:?}: {error}\n{}", seen.join("\n")),
        }
    }
}

#[test]
fn a_plugin_is_tested_again_after_each_change() {
    let folder = folder("watch");
    let new = ["plugin", "new", "mine", "--kind", "eviction-check", "--lang", "lua"];
    assert!(
        bulkhead()
            .args(new)
            .current_dir(&folder)
            .output()
            .unwrap()
            .status
            .success()
    );
    let script = folder.join("mine/mine.lua");
    let good = fs::read_to_string(&script).unwrap();
    let mut process = Watching(
        bulkhead()
            .args(["plugin", "test", "mine", "--watch"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let output = lines(process.0.stdout.take().unwrap());
    let errors = lines(process.0.stderr.take().unwrap());

    let first = next(&output, " passed, ");
    assert!(first.contains(", 0 failed"), "{first}");

    fs::write(&script, "function EvictionCheck() return \"abstain\" end\n").unwrap();
    let changed = next(&output, " passed, ");
    assert!(!changed.contains(", 0 failed"), "{changed}");

    // A plugin that does not load does not end the watch.
    fs::write(&script, "function EvictionCheck(\n").unwrap();
    let error = next(&errors, "error: ");
    assert!(error.contains("mine.lua"), "{error}");

    fs::write(&script, good).unwrap();
    let repaired = next(&output, " passed, ");
    assert!(repaired.contains(", 0 failed"), "{repaired}");
}

#[test]
fn results_as_xml_are_those_of_one_run() {
    let output = bulkhead()
        .args(["plugin", "test", "--watch", "--junit", "results.xml"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("--junit") && message.contains("--watch"), "{message}");
}
