//! The committed vectors pass, all of them.

#[test]
fn the_scheduler_decides_as_karmada_did() {
    let report = bulkhead_vectors::scheduler::run(include_str!("../scheduler.json")).unwrap();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.passed > 500, "{report}");
}

#[test]
fn a_case_that_comes_out_differently_is_named_with_both_sides() {
    let text = r#"{"format": "karmada-scheduler-cases/1", "unit.backoffSeconds": [
        {"attempts": 3, "expected": 4}, {"attempts": 3, "expected": 5}]}"#;
    let report = bulkhead_vectors::scheduler::run(text).unwrap();
    assert_eq!(report.to_string(), "unit.backoffSeconds[1]\n  expected 5\n  got      4\n1 passed, 1 failed");
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = bulkhead_vectors::scheduler::run(text).map_err(|error| error.to_string());
        assert_eq!(error, Err(expected.to_owned()), "{text}");
    };
    check("[", "not JSON");
    check("{}", "the format is null, expected \"karmada-scheduler-cases/1\"");
    check(r#"{"format": "karmada-scheduler-cases/1", "unit.more": []}"#, "unknown list \"unit.more\"");
}
