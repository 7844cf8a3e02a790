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

#[test]
fn the_field_of_workload_groups_exists_with_a_group_only() {
    let check = |affinity: Option<&str>, anti_affinity: Option<&str>, expected: Option<serde_json::Value>| {
        let mut spec = BindingSpec::default();
        let before = json!({"affinityGroup": "app=old", "antiAffinityGroup": "tier=old"});
        spec.rest.insert(WORKLOAD_AFFINITY_GROUPS.to_owned(), before);
        spec.set_workload_groups(WorkloadAffinityGroups {
            affinity_group: affinity.map(str::to_owned),
            anti_affinity_group: anti_affinity.map(str::to_owned),
        });
        assert_eq!(spec.rest.get(WORKLOAD_AFFINITY_GROUPS), expected.as_ref());
        assert_eq!(spec.affinity_group(), affinity.unwrap_or_default());
        assert_eq!(spec.anti_affinity_group(), anti_affinity.unwrap_or_default());
    };
    check(None, None, None);
    check(Some("app=shop"), None, Some(json!({"affinityGroup": "app=shop"})));
    check(
        Some("app=shop"),
        Some("tier=db"),
        Some(json!({"affinityGroup": "app=shop", "antiAffinityGroup": "tier=db"})),
    );
}
