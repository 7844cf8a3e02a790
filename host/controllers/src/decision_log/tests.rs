use bulkhead_runtime::events::{self, EventType};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::Status;
use serde_json::json;
use tracing_subscriber::filter::LevelFilter;

use super::*;
use crate::testing::captured::{self, Captured};
use crate::testing::hub_of_everything;

/// Creates a log with a journal in memory, of the process `3f9a`.
fn log() -> DecisionLog {
    let clock = Clock::new(|| bulkhead_core::time::Time::from_millis(0).timestamp());
    let (events, _) = events::events(hub_of_everything(1).client(), clock.clone());
    let journal = Arc::new(Journal::new(10).of_process("3f9a"));
    DecisionLog {
        journal,
        clock,
        registry: Arc::new(Registry::new(Vec::new())),
        events,
        failovers: Arc::default(),
    }
}

fn record(decision: Decision) -> Record {
    Record {
        controller: "taint-manager",
        subject: Subject::new("ResourceBinding", "default", "web"),
        cluster: Some("m1".to_owned()),
        decision,
        attribution: Attribution::rule("TaintUntolerated", "m1 is tainted"),
        effect: String::new(),
        inputs: Vec::new(),
    }
}

/// Returns the ids of the decisions in the spans of each line, with its message.
fn with_decisions(lines: &Captured) -> Vec<(String, String)> {
    let id = |line: &Value| {
        let spans = line["spans"].as_array().into_iter().flatten();
        let ids = spans
            .filter(|span| span["name"] == "decision")
            .filter_map(|span| span["id"].as_str());
        ids.collect::<Vec<_>>().join(" ")
    };
    lines
        .json()
        .iter()
        .map(|line| (id(line), line["message"].as_str().unwrap().to_owned()))
        .collect()
}

#[tokio::test]
async fn the_lines_of_a_write_and_of_its_events_have_the_id_of_the_decision() {
    let (dispatch, captured) = captured::subscriber(LevelFilter::DEBUG);
    let _subscribed = tracing::dispatcher::set_default(&dispatch);
    let log = log();
    let records = [
        log.record(record(Decision::Scheduled)),
        log.record(record(Decision::Evicted)),
    ];
    let write = async {
        tokio::task::yield_now().await;
        debug!("patched");
        Ok(())
    };
    log.apply(&records, write).await.unwrap();
    let about = ObjectReference::default();
    log.events_of(&records).emit(
        "taint-manager",
        about,
        EventType::Normal,
        "Evicted",
        "Evict from cluster m1.",
    );
    debug!("later");
    let line = |id: &str, message: &str| (id.to_owned(), message.to_owned());
    assert_eq!(
        with_decisions(&captured),
        [
            line("3f9a-1", "Scheduled ResourceBinding default/web: m1 is tainted"),
            line("3f9a-2", "Evicted ResourceBinding default/web: m1 is tainted"),
            line("3f9a-2", "patched"),
            line("3f9a-2", "applied"),
            line("3f9a-2", "Evict from cluster m1."),
            line("", "later"),
        ]
    );
}

#[tokio::test]
async fn a_refused_decision_is_abandoned_with_its_reason() {
    let (dispatch, captured) = captured::subscriber(LevelFilter::DEBUG);
    let _subscribed = tracing::dispatcher::set_default(&dispatch);
    let log = log();
    let records = [log.record(record(Decision::Evicted))];
    let refused = Status::failure("the object has been modified", "Conflict").with_code(409);
    let refused = Error::api("evicting web")(kube::Error::Api(Box::new(refused)));
    assert!(log.apply(&records, async { Err::<(), _>(refused) }).await.is_err());
    let line = captured.json().pop().unwrap();
    assert_eq!(line["message"], "abandoned");
    assert_eq!(line["error"], "evicting web: the object has been modified");
    assert_eq!(
        log.journal.records()[0].outcome,
        bulkhead_core::journal::Outcome::Abandoned
    );
}

#[tokio::test]
async fn decisions_about_the_place_of_workloads_are_logged_with_level_info() {
    let (dispatch, captured) = captured::subscriber(LevelFilter::TRACE);
    tracing::dispatcher::with_default(&dispatch, || {
        let log = log();
        for decision in Decision::ALL {
            log.record(record(decision));
        }
    });
    for (decision, line) in Decision::ALL.into_iter().zip(captured.json()) {
        let is_info =
            decision.is_about_place() || [Decision::ReadyChanged, Decision::PluginsChanged].contains(&decision);
        let expected = match decision {
            Decision::PluginFault => "WARN",
            _ if is_info => "INFO",
            _ => "DEBUG",
        };
        assert_eq!(line["level"], expected, "{decision:?}");
        assert_eq!(line["spans"][0]["kind"], format!("{decision:?}"));
        let expected = json!(["taint-manager", "m1", "TaintUntolerated", null]);
        assert_eq!(
            json!([line["controller"], line["cluster"], line["reason"], line["effect"]]),
            expected
        );
    }
}

#[tokio::test]
async fn a_decision_is_recorded_without_a_subscriber_and_with_one_that_shows_nothing() {
    let (dispatch, captured) = captured::subscriber(LevelFilter::OFF);
    let log = log();
    log.record(record(Decision::Evicted));
    tracing::dispatcher::with_default(&dispatch, || log.record(record(Decision::Evicted)));
    assert_eq!((log.journal.recorded(), captured.lines().len()), (2, 0));
}
