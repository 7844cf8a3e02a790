//! Output of `bulkhead explain`, compared with golden files. `UPDATE_GOLDENS=1` rewrites the files.

use std::fs;

use bulkhead_core::journal::Decision;
use bulkhead_core::time::Time;
use bulkhead_simulator::recorded::explain::explain;

use crate::replay::recorded;
use crate::support::root;

/// Start of virtual time, so that transcripts show times relative to the start.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// Masks ids, versions and digests: they change with every write, model field and plugin build, and carry no
/// information for a reader.
fn without_digests(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with('#') {
            return format!("#… {}\n", line.split_once(' ').map_or("", |(_, rest)| rest));
        }
        if let Some((before, _)) = line.split_once("snapshot ") {
            let before = before
                .split_once('@')
                .map_or(before.to_owned(), |(object, _)| format!("{object}@…, "));
            return format!("{before}snapshot …\n");
        }
        match line.split_once(", version ") {
            Some((before, after)) => {
                let rest = after.split_once(':').map_or("", |(_, rest)| rest);
                format!("{before}, version …:{rest}\n")
            }
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Checks the explanation of the last decision of this kind with this reason code. An empty `code` matches any
/// reason.
fn check(golden: &str, example: &str, decision: Decision, code: &str) {
    let contents = recorded(example, 1);
    let wanted = |stored: &&bulkhead_journal::Stored| {
        let entry = &stored.record.entry;
        entry.decision == decision && (code.is_empty() || entry.attribution.reason.code == code)
    };
    // The last match, because earlier decisions belong to the set-up.
    let Some(found) = contents.records.iter().rev().find(wanted) else {
        let codes: Vec<_> = contents
            .records
            .iter()
            .filter(|stored| stored.record.entry.decision == decision)
            .map(|stored| stored.record.entry.attribution.reason.code.as_str())
            .collect();
        panic!("{golden}: {example} has no {decision:?} because of {code}; there are {codes:?}");
    };
    let text = without_digests(&explain(found).text(Some(Time::from_millis(EPOCH_MS))));
    let path = root().join("tests/it/goldens/explain").join(format!("{golden}.txt"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{} is\n{expected}\nand the program says\n{text}",
        path.display()
    );
}

#[test]
fn a_cluster_is_tainted_by_its_condition() {
    check("tainted", "nginx-divided", Decision::Tainted, "AddOnConditions");
}

#[test]
fn a_cluster_is_tainted_when_the_window_of_its_policy_is_over() {
    check("window", "optimized", Decision::Tainted, "MatchConditions");
}

#[test]
fn a_cluster_that_is_back_loses_its_taint() {
    check("untainted", "nginx-divided", Decision::Untainted, "");
}

#[test]
fn a_binding_leaves_because_of_a_taint() {
    check("evicted", "nginx-divided", Decision::Evicted, "TaintUntolerated");
}

#[test]
fn a_binding_leaves_because_of_a_taint_that_only_its_policy_cares_for() {
    check("preferred", "optimized", Decision::Evicted, "TaintUntolerated");
}

#[test]
fn an_old_copy_is_held() {
    check("held", "nginx-divided", Decision::Held, "");
}

#[test]
fn an_old_copy_may_go() {
    check("released", "nginx-divided", Decision::Released, "");
}

#[test]
fn a_workload_is_placed() {
    check("scheduled", "nginx-divided", Decision::Scheduled, "Success");
}

#[test]
fn a_script_returns_the_health() {
    check("health", "nginx-divided", Decision::HealthChanged, "ScriptHealthy");
}

#[test]
fn an_application_is_unhealthy_and_tolerated_for_a_time() {
    check(
        "tolerated",
        "application-failover",
        Decision::Tolerated,
        "ApplicationUnhealthy",
    );
}

#[test]
fn an_application_that_failed_leaves() {
    check(
        "application-failed",
        "application-failover",
        Decision::Evicted,
        "ApplicationFailure",
    );
}

#[test]
fn a_grace_period_ends_without_a_healthy_replacement() {
    check(
        "grace-period",
        "never-healthy",
        Decision::Released,
        "GracePeriodExceeded",
    );
}

#[test]
fn a_person_paused_evictions() {
    check("paused", "drain", Decision::EvictionsWait, "EvictionPaused");
}

#[test]
fn an_eviction_is_called_off_when_the_cluster_is_back() {
    check("called-off", "no-other-place", Decision::CalledOff, "SourceRecovered");
}

#[test]
fn a_drained_cluster_is_left() {
    check("drained", "drain", Decision::Evicted, "ClusterDrained");
}

#[test]
fn plugins_decide_where_a_workload_runs() {
    check("own-scheduler", "own-scheduler", Decision::Scheduled, "Success");
}
