//! All committed vectors pass.

#[test]
fn the_scheduler_decides_as_karmada_did() {
    let report = bulkhead_vectors::scheduler::run(include_str!("../scheduler.json")).unwrap();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.passed > 500, "{report}");
}

/// Third-party scripts are not part of this repository, so the cases that need them are expected to fail.
#[test]
fn resources_are_interpreted_as_karmada_did() {
    let options = bulkhead_vectors::interpreter::Options::default();
    let report = bulkhead_vectors::interpreter::run(include_str!("../interpreter.json"), &options).unwrap();
    let needs_library =
        |case: &str| case.starts_with("framework/cloneset/") || case.starts_with("framework/raycluster/");
    let (missing, failed): (Vec<_>, Vec<_>) = report.failures.iter().partition(|failure| needs_library(&failure.case));
    assert!(failed.is_empty(), "{report}");
    assert!(missing.len() <= 3 && report.passed > 580, "{report}");
    // The tests of the program run the cases of the command.
    let not_run: Vec<_> = report.notes.iter().filter(|note| note.contains("not run")).collect();
    assert_eq!(
        not_run,
        ["18 cases not run: they are about the command, and no program was given"],
        "{report}"
    );
}

#[test]
fn a_case_that_comes_out_differently_is_named_with_both_sides() {
    let text = r#"{"format": "karmada-scheduler-cases/1", "unit.backoffSeconds": [
        {"attempts": 3, "expected": 4}, {"attempts": 3, "expected": 5}]}"#;
    let report = bulkhead_vectors::scheduler::run(text).unwrap();
    assert_eq!(
        report.to_string(),
        "unit.backoffSeconds[1]\n  expected 5\n  got      4\n1 passed, 1 failed"
    );
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = bulkhead_vectors::scheduler::run(text).map_err(|error| error.to_string());
        assert_eq!(error, Err(expected.to_owned()), "{text}");
    };
    check("[", "not JSON");
    check("{}", "the format is null, expected \"karmada-scheduler-cases/1\"");
    check(
        r#"{"format": "karmada-scheduler-cases/1", "unit.more": []}"#,
        "unknown list \"unit.more\"",
    );
}
