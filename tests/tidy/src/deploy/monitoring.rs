//! Checks that alerts and dashboard use only exported metrics, and that every alert has a section in the runbook.

use std::collections::BTreeSet;

use serde_json::Value;

use super::series::{Series, exported};
use super::{at, one_yaml, promql, text};

const ALERTS: &str = "host/deploy/chart/monitoring/alerts.yaml";
const ALERTS_TEST: &str = "host/deploy/chart/monitoring/alerts_test.yaml";
const DASHBOARD: &str = "host/deploy/chart/monitoring/dashboard.json";
const RUNBOOK: &str = "docs/src/runbook.md";

/// Labels that every scrape adds.
const OF_THE_SCRAPE: &[&str] = &["job", "instance", "namespace", "pod"];

/// Returns the alerting rules.
fn alerts() -> Vec<Value> {
    let rules = one_yaml(ALERTS);
    let groups = rules["groups"].as_array().cloned().unwrap_or_default();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
    rules.filter(|rule| rule.get("alert").is_some()).collect()
}

/// Collects every text under a key, at any depth.
fn all_under(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == key => found.push(text.clone()),
                    member => all_under(member, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_under(item, key, found)),
        _ => {}
    }
}

/// Returns the problems with the names in an expression.
fn objections(expression: &str, exported: &Series) -> Vec<String> {
    let names = promql::names(expression);
    let unknown = names
        .series
        .iter()
        .filter(|name| *name != "up" && !exported.contains_key(*name));
    let mut objections: Vec<_> = unknown.map(|name| format!("nobody exports {name}")).collect();
    let known: BTreeSet<&str> = names
        .series
        .iter()
        .filter_map(|name| exported.get(name))
        .flatten()
        .map(String::as_str)
        .collect();
    let strange = names
        .labels
        .iter()
        .filter(|label| !known.contains(label.as_str()) && !OF_THE_SCRAPE.contains(&label.as_str()));
    objections.extend(strange.map(|label| format!("none of its series has a label {label}")));
    if names.series.is_empty() {
        objections.push("it names no series".to_owned());
    }
    objections
        .iter()
        .map(|objection| format!("{expression}: {objection}"))
        .collect()
}

#[test]
fn alerts_and_dashboard_ask_for_what_is_exported() {
    let exported = exported();
    assert!(exported.len() > 15, "{exported:?}");
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let (mut in_alerts, mut in_dashboard) = (Vec::new(), Vec::new());
    all_under(&one_yaml(ALERTS), "expr", &mut in_alerts);
    all_under(&dashboard, "expr", &mut in_dashboard);
    all_under(&dashboard["templating"], "query", &mut in_dashboard);
    in_dashboard.retain(|expression| expression != "prometheus");
    assert!(
        in_alerts.len() > 8 && in_dashboard.len() > 8,
        "{} and {}",
        in_alerts.len(),
        in_dashboard.len()
    );
    let problems: Vec<_> = in_alerts
        .iter()
        .chain(&in_dashboard)
        .flat_map(|expression| objections(expression, &exported))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // Karmada exports some of the same metric names, so each expression must select Bulkhead's job.
    let anybodys: Vec<_> = in_alerts
        .iter()
        .filter(|expression| !expression.contains("job=\"bulkhead\""))
        .collect();
    assert!(anybodys.is_empty(), "{anybodys:?}");
}

#[test]
fn every_metric_is_in_the_dashboard() {
    let dashboard = text(DASHBOARD);
    let missing = |name: &&String| {
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        !dashboard.contains(family)
    };
    let exported = exported();
    let missing: Vec<_> = exported.keys().filter(missing).collect();
    assert!(missing.is_empty(), "{DASHBOARD} does not show {missing:?}");
}

#[test]
fn every_alert_has_a_section_in_the_runbook_and_the_reverse() {
    let alerts: BTreeSet<_> = alerts().iter().map(|alert| at(alert, "/alert").to_owned()).collect();
    let runbook = text(RUNBOOK);
    let sections: BTreeSet<_> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## Bulkhead"))
        .map(|name| format!("Bulkhead{name}"))
        .collect();
    assert_eq!(alerts, sections);
    for section in runbook.split("\n## Bulkhead").skip(1) {
        for part in ["**Symptom:**", "**Meaning:**", "**Look at:**", "**Do:**"] {
            assert!(
                section.contains(part),
                "{} has no {part}",
                section.lines().next().unwrap_or_default()
            );
        }
    }
}

#[test]
fn every_alert_says_how_bad_it_is_what_it_is_and_where_its_section_is() {
    for alert in alerts() {
        let name = at(&alert, "/alert");
        assert!(
            ["info", "warning", "critical"].contains(&at(&alert, "/labels/severity")),
            "{name}"
        );
        assert!(
            !at(&alert, "/annotations/summary").is_empty() && !at(&alert, "/annotations/description").is_empty(),
            "{name}"
        );
        assert_eq!(
            at(&alert, "/annotations/runbook"),
            format!("{RUNBOOK}#{}", name.to_lowercase()),
            "{name}"
        );
    }
}

#[test]
fn every_alert_has_a_unit_test_in_which_it_fires() {
    let test = one_yaml(ALERTS_TEST);
    let cases = test["tests"].as_array().cloned().unwrap_or_default();
    let cases: Vec<_> = cases
        .iter()
        .flat_map(|case| case["alert_rule_test"].as_array().cloned().unwrap_or_default())
        .collect();
    for alert in alerts() {
        let name = at(&alert, "/alert");
        let of_it = || cases.iter().filter(|case| at(case, "/alertname") == name);
        let fires = |case: &Value| case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
        assert!(of_it().any(fires), "{name} fires in no test");
        assert!(of_it().any(|case| !fires(case)), "{name} is silent in no test");
    }
}
