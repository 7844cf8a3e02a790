//! Readers of everything that a person, a client or a damaged disk hands over. Each reads the files of
//! `tests/it/corpus` and valid files of the repository, as they are and with arbitrary edits. No reader panics or
//! hangs, and the memory of each is bounded. `PROPTEST_CASES` sets the number of edits, by default 64 per reader.
//!
//! A separate test binary, because the measured memory is that of the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../edits/edit.rs"]
mod edit;
mod readers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::edit::{edits, with_edits};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Number of edited inputs of a reader.
const CASES: u32 = 64;
/// Maximum length of an input in bytes.
const LENGTH_MAX: usize = 256 * 1024;

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

/// Reads a file of the repository.
fn file(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the inputs of the corpus with their names: those of every reader, and those of one.
fn corpus(reader: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs = Vec::new();
    for folder in ["any", reader] {
        let folder = root().join("tests/it/corpus").join(folder);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            inputs.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    inputs.sort();
    assert!(!inputs.is_empty(), "the corpus has inputs for every reader");
    inputs
}

/// Waits for the other tests of the process, whose memory is measured with this one.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes something that a test needs while no other test measures memory.
fn alone<T>(make: impl FnOnce() -> T) -> T {
    let _turn = turn();
    make()
}

/// Reads an input and asserts that at most `limit` bytes are allocated at any moment beside those before.
fn within(limit: usize, name: &str, input: &[u8], read: &impl Fn(&[u8])) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    read(input);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    assert!(
        peak <= limit,
        "{name}: {peak} bytes for an input of {} bytes, limit {limit}",
        input.len()
    );
}

/// Passes the corpus, and `inputs` with and without edits, to `read`, which may take `limit` bytes of memory.
fn reads(reader: &str, inputs: &[Vec<u8>], limit: usize, read: impl Fn(&[u8])) {
    let _turn = turn();
    // Constants and caches of the process are made by the first input.
    for input in inputs {
        read(input);
    }
    for (name, input) in corpus(reader) {
        within(limit, &name, &input, &read);
    }
    let mut all: Vec<_> = corpus(reader).into_iter().map(|(_, input)| input).collect();
    all.extend_from_slice(inputs);
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(CASES);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let edited = (0..all.len(), edits());
    let ended = TestRunner::new(config).run(&edited, |(which, edits)| {
        let input = with_edits(&all[which], &edits, LENGTH_MAX);
        within(limit, reader, &input, &read);
        Ok(())
    });
    ended.unwrap_or_else(|error| panic!("{reader}: {error}"));
}
