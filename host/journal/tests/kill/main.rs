//! A process that writes a journal is killed repeatedly. The test needs its own process, so it has no harness.
//!
//! The child prints the id of each record once it may act on it. Every printed id must be in the journal afterwards,
//! and the next child continues from there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../journal/records.rs"]
mod records;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, Writer, read};

const KILLS: u64 = 200;
const BOUNDS: Bounds = Bounds {
    bytes_max: 200_000,
    age_max_ms: i64::MAX,
    segment_bytes: 20_000,
};

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("child") => child(Path::new(&arguments[2])),
        // A harness would list its tests here.
        Some("--list") => {}
        _ => parent(),
    }
}

/// Writes records until it is killed.
fn child(directory: &Path) {
    let opened = Writer::open(directory, BOUNDS, |error| panic!("{error}")).unwrap();
    let mut out = std::io::stdout().lock();
    for id in opened.last_id + 1.. {
        let decision = records::decision("member1", if id % 3 == 0 { "True" } else { "False" });
        opened
            .writer
            .keep(&records::record(id, i64::try_from(id).unwrap()), Some(&decision));
        writeln!(out, "{id}").unwrap();
    }
}

fn parent() {
    let directory = tempfile::tempdir().unwrap();
    let (mut accepted, mut torn) = (0_u64, 0_u64);
    for kill in 0..KILLS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command
            .arg("child")
            .arg(directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        // The kill comes at a different moment each time, without a clock: after a varying number of records.
        for _ in 0..=(kill * 7919) % 61 {
            accepted = output.next().unwrap().unwrap().parse().unwrap();
        }
        child.kill().unwrap();
        // Lines printed before the kill count too; the last one may be cut.
        let left: Vec<_> = output.map_while(Result::ok).collect();
        for line in &left {
            accepted = line.parse().map_or(accepted, |id: u64| id.max(accepted));
        }
        child.wait().unwrap();
        let contents = read(directory.path()).unwrap();
        torn += u64::try_from(contents.problems.len()).unwrap();
        assert!(
            contents.problems.iter().all(bulkhead_journal::Problem::is_harmless),
            "{:?}",
            contents.problems
        );
        let ids: Vec<_> = contents.records.iter().map(|stored| stored.record.id).collect();
        assert!(
            ids.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "kill {kill}: {ids:?}"
        );
        assert!(
            contents.records.iter().all(|stored| stored.decision.is_some()),
            "kill {kill}"
        );
        let last = ids.last().copied().unwrap_or(0);
        assert!(
            last >= accepted,
            "kill {kill}: {accepted} was accepted and {last} is the last one kept"
        );
    }
    println!("{KILLS} kills, {accepted} records accepted, none lost; {torn} times the end was torn");
}
