//! Log lines reach the host within their bounds.

use std::sync::{Arc, Mutex};

use bulkhead_core::manifest::Budget;
use bulkhead_plugin::Level;

use super::guest::{ask, load, with};
use crate::Options;

type Lines = Vec<(String, Level, String)>;

/// Returns the lines that a call logs, without those logged during loading.
fn logged(text: &str) -> Lines {
    let lines = Arc::new(Mutex::new(Lines::new()));
    let sink = Arc::clone(&lines);
    let log = move |id: &bulkhead_core::policy::PolicyId, level, line: &str| {
        sink.lock().unwrap().push((id.name.clone(), level, line.to_owned()));
    };
    let policy = load(
        Options {
            log: Some(Arc::new(log)),
            ..Options::default()
        },
        text,
        Budget::default(),
    )
    .unwrap();
    lines.lock().unwrap().clear();
    drop(ask(&*policy));
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn lines_are_stripped_and_carry_name_and_level() {
    // "test" preceded by an escape character.
    let code = "(i32.store8 (i32.const 127) (i32.const 27)) (call $write (i32.const 2) (i32.const 127) (i32.const 5))";
    let expected = ("guest".to_owned(), Level::Warn, "test".to_owned());
    assert_eq!(logged(&with(";; <check>", code)), [expected]);
}

#[test]
fn lines_are_kept_when_the_call_fails() {
    let code = "(call $write (i32.const 0) (i32.const 128) (i32.const 4)) unreachable";
    assert_eq!(
        logged(&with(";; <check>", code)),
        [("guest".to_owned(), Level::Debug, "test".to_owned())]
    );
}

#[test]
fn too_many_lines_are_counted() {
    let code = "(local.set $task (i32.const 0))
                (loop (call $write (i32.const 1) (i32.const 128) (i32.const 4))
                  (local.set $task (i32.add (local.get $task) (i32.const 1)))
                  (br_if 0 (i32.lt_s (local.get $task) (i32.const 1000))))";
    let lines = logged(&with(";; <check>", code));
    assert_eq!(lines.len(), 65);
    assert_eq!(
        lines.last().map(|(_, level, line)| (*level, line.as_str())),
        Some((Level::Warn, "936 more lines were dropped"))
    );
}
