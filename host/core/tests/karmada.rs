//! The scheduler decides as Karmada did, in cases that were recorded by executing Karmada's own code.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "public in the crate that runs files of cases")]
#[path = "../../../tests/vectors/src/recorded/mod.rs"]
mod recorded;

use serde_json::Value;

#[test]
fn the_scheduler_decides_as_karmada_did() {
    let mut file: Value = serde_json::from_str(include_str!("../../../tests/vectors/scheduler.json")).unwrap();
    // The validation of placements is part of another crate, whose tests run these cases.
    file.as_object_mut().unwrap().remove("unit.placementValidation");
    let report = recorded::run(&file, "karmada-scheduler-cases/1", |_| None).unwrap();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.passed > 550, "{report}");
}
