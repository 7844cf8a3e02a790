use serde_json::json;

use super::*;

#[test]
fn reports_are_found_in_whatever_order() {
    let check = |reported: &[&str], asked: &[&str]| {
        let item = |name: &&str| AggregatedStatusItem {
            cluster_name: (*name).to_owned(),
            ..Default::default()
        };
        let items: Vec<_> = reported.iter().map(item).collect();
        let mut reports = Reports::new(&items);
        for cluster in asked {
            let found = reports.of(cluster).map(|item| item.cluster_name.as_str());
            assert_eq!(
                found,
                reported.contains(cluster).then_some(*cluster),
                "{asked:?} of {reported:?}"
            );
        }
    };
    check(&["a", "b", "c"], &["a", "b", "c"]);
    check(&["a", "b", "c"], &["c", "x", "a", "a", "b", "c", "d"]);
    check(&["c", "a", "b"], &["a", "b", "x", "c"]);
    check(&[], &["a"]);
}

#[test]
fn tasks_of_other_programs_come_back_as_they_came() {
    let check = |wire: serde_json::Value, purge_mode, foreign: Option<&str>| {
        let task: GracefulEvictionTask = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(task.purge_mode, purge_mode, "{wire}");
        assert_eq!(
            task.foreign_purge_mode().and_then(serde_json::Value::as_str),
            foreign,
            "{wire}"
        );
        let written = serde_json::to_value(&task).unwrap();
        for (field, value) in wire.as_object().unwrap() {
            if field != "purgeMode" || foreign.is_some() {
                assert_eq!(written.get(field), Some(value), "{field} of {wire}");
            }
        }
    };
    check(json!({}), None, None);
    check(
        json!({"fromCluster": "m1", "purgeMode": "Immediately"}),
        Some(PurgeMode::Directly),
        None,
    );
    check(
        json!({"fromCluster": "m1", "purgeMode": "Graciously"}),
        Some(PurgeMode::Gracefully),
        None,
    );
    check(
        json!({"fromCluster": "m1", "purgeMode": "Eventually", "ticket": 7}),
        None,
        Some("Eventually"),
    );
}
