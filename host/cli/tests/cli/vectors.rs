//! `bulkhead interpret` against recorded cases of `karmadactl interpret`.

use std::path::{Path, PathBuf};

use bulkhead_vectors::interpreter::{Options, run};
use serde_json::Value;

#[test]
fn the_command_answers_as_karmadas_does() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/interpreter.json");
    let mut cases: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    cases["cases"]
        .as_array_mut()
        .unwrap()
        .retain(|case| case["level"] == "cli");
    let options = Options {
        program: Some(PathBuf::from(env!("CARGO_BIN_EXE_bulkhead"))),
        ..Options::default()
    };
    let report = run(&cases.to_string(), &options).unwrap();
    assert!(
        report.failures.is_empty() && report.notes.is_empty() && report.passed >= 18,
        "{report}"
    );
}
