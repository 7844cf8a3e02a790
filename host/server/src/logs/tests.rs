use clap::Parser;
use serde_json::Value;
use tracing::{debug, error_span, info, warn};

use self::captured::Captured;
use super::limiter::{BURST_LINES_MAX, INTERVAL};
use super::*;

#[path = "../../../../tests/logs/captured.rs"]
pub(crate) mod captured;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    log: LogArguments,
}

/// Returns the subscriber of these arguments and the lines that it writes.
fn logger(arguments: &[&str]) -> (Dispatch, Captured) {
    let captured = Captured::default();
    let program = Program::try_parse_from(["program"].iter().chain(arguments)).unwrap_or_else(|error| error.exit());
    (program.log.dispatch_to(captured.clone(), false, None), captured)
}

/// Returns the lines that `emit` causes with these arguments.
fn logged(arguments: &[&str], emit: impl FnOnce()) -> Vec<String> {
    let (dispatch, captured) = logger(arguments);
    tracing::dispatcher::with_default(&dispatch, emit);
    captured.lines()
}

fn decide() {
    let reconcile = error_span!(target: "bulkhead::reconcile", "reconcile", controller = "scheduler", kind = "Work");
    let decision = error_span!(target: "bulkhead::decision", parent: &reconcile, "decision", id = "3f9a-7");
    decision.in_scope(|| info!(target: "bulkhead::decision", cluster = "member1", "Evicted \"web\""));
}

#[test]
fn a_json_line_has_the_controller_and_the_decision_in_its_spans() {
    let lines = logged(&["--log-format", "json"], decide);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: Value = serde_json::from_str(&lines[0]).unwrap();
    let of = |field: &str| line[field].as_str().unwrap();
    assert_eq!(
        (of("level"), of("target"), of("message")),
        ("INFO", "bulkhead::decision", "Evicted \"web\"")
    );
    assert_eq!(of("cluster"), "member1");
    assert_eq!(line["spans"][0]["controller"], "scheduler");
    assert_eq!(
        (&line["spans"][1]["name"], &line["spans"][1]["id"]),
        (&"decision".into(), &"3f9a-7".into())
    );
    assert!(
        of("timestamp").ends_with('Z') && of("timestamp").len() == "2026-01-01T00:00:00.000Z".len(),
        "{line}"
    );
}

#[test]
fn a_text_line_has_the_time_the_level_the_spans_and_the_fields() {
    let lines = logged(&[], decide);
    let (_, rest) = lines[0].split_once("Z  INFO ").unwrap();
    assert_eq!(
        rest,
        "reconcile{controller=\"scheduler\" kind=\"Work\"}:decision{id=\"3f9a-7\"}: bulkhead::decision: \
         Evicted \"web\" cluster=\"member1\""
    );
}

#[test]
fn the_filter_selects_targets_levels_and_spans() {
    let emit = || {
        info!(target: "bulkhead_server", "one");
        debug!(target: "bulkhead::plugin", "two");
        info!(target: "hyper", "three");
        warn!(target: "hyper", "four");
        warn!(target: "kube_client::client", "five");
        let span = |controller| error_span!(target: "bulkhead::reconcile", "reconcile", controller);
        span("scheduler").in_scope(|| debug!(target: "bulkhead::write", "six"));
        span("binding").in_scope(|| debug!(target: "bulkhead::write", "seven"));
    };
    let check = |filter: Option<&str>, expected: &[&str]| {
        let arguments: Vec<_> = filter
            .map(|filter| format!("--log-filter={filter}"))
            .into_iter()
            .collect();
        let lines = logged(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), emit);
        let messages: Vec<_> = lines.iter().filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(messages, expected, "{filter:?}");
    };
    check(None, &["one", "four"]);
    check(Some("info"), &["one", "three", "four", "five"]);
    check(Some("error,bulkhead::plugin=debug"), &["two"]);
    check(Some("debug,hyper=off"), &["one", "two", "five", "six", "seven"]);
    check(Some("error,[reconcile{controller=scheduler}]=debug"), &["six"]);
    check(Some("off"), &[]);
}

#[test]
fn an_invalid_filter_is_refused_with_its_place() {
    let error = |filter: &str| {
        Program::try_parse_from(["program", "--log-filter", filter])
            .err()
            .unwrap()
            .to_string()
    };
    assert!(error("bulkhead=loud").contains("invalid"), "{}", error("bulkhead=loud"));
    let format = Program::try_parse_from(["program", "--log-format", "xml"])
        .err()
        .unwrap()
        .to_string();
    assert!(format.contains("possible values: text, json"), "{format}");
}

#[tokio::test(start_paused = true)]
async fn repeated_failures_are_written_once_per_interval_with_their_count() {
    let emit = |text: &str| {
        for controller in ["scheduler", "binding"] {
            warn!(target: "bulkhead::reconcile", controller, "{text}");
        }
    };
    for format in ["text", "json"] {
        let (dispatch, captured) = logger(&["--log-format", format]);
        let minutes = u32::try_from(INTERVAL.as_secs() / 60).unwrap();
        for _ in 0..=minutes {
            tracing::dispatcher::with_default(&dispatch, || emit("forbidden"));
            tokio::time::advance(INTERVAL / minutes).await;
        }
        let lines = captured.lines();
        assert_eq!(lines.len(), 4, "the first and the last of each controller: {lines:#?}");
        let count = |line: &String| {
            if format == "json" {
                serde_json::from_str::<Value>(line).unwrap()["suppressed_repeats"].as_u64()
            } else {
                line.split_once(" suppressed_repeats=")
                    .map(|(_, count)| count.parse().unwrap())
            }
        };
        assert_eq!(
            lines.iter().map(count).collect::<Vec<_>>(),
            [None, None, Some(9), Some(9)],
            "{format}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_failures_is_cut_and_counted_and_other_lines_are_not() {
    let (dispatch, captured) = logger(&["--log-format", "json"]);
    let storm = || {
        for number in 0..100 {
            warn!(number, "failed");
            info!("decided");
        }
    };
    tracing::dispatcher::with_default(&dispatch, storm);
    let count = |message: &str| captured.lines().iter().filter(|line| line.contains(message)).count();
    assert_eq!((count("failed"), count("decided")), (BURST_LINES_MAX, 100));
    tokio::time::advance(INTERVAL).await;
    tracing::dispatcher::with_default(&dispatch, || warn!(number = 0, "failed"));
    let last: Value = serde_json::from_str(captured.lines().last().unwrap()).unwrap();
    assert_eq!(last["suppressed_others"], 80);
}
