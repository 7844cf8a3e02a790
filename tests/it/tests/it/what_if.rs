//! Effects of lost clusters, computed from exported objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_defaults::registry;
use bulkhead_simulator::what_if::{Answer, Question, load, play};
use serde_json::json;

use crate::support::{Folder, TAINT_POLICY, engines};

/// Returns a list of clusters, as `kubectl get clusters -o yaml` prints it.
fn clusters(count: usize) -> String {
    let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
    for n in 1..=count {
        let _ = write!(
            text,
            "- apiVersion: cluster.karmada.io/v1alpha1\n  kind: Cluster\n  metadata: {{name: member{n}}}\n  \
             spec: {{syncMode: Push}}\n  status:\n    \
             apiEnablements: [{{groupVersion: apps/v1, resources: [{{kind: Deployment, name: deployments}}]}}]\n    \
             conditions: [{{type: Ready, status: 'True', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}}]\n    \
             resourceSummary: {{allocatable: {{cpu: '100', memory: 100Gi, pods: '1000'}}}}\n"
        );
    }
    text
}

/// Returns bindings on member1 that may run on the named clusters.
fn bindings(count: usize, names: &[&str]) -> String {
    let placement = json!({
        "clusterAffinity": {"clusterNames": names},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    });
    let one = |n: usize| {
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {
                "name": format!("app-{n:05}-deployment"), "namespace": "default", "generation": 1,
                "labels": {"propagationpolicy.karmada.io/permanent-id": "id"},
                "annotations": {"policy.karmada.io/applied-placement": placement.to_string()},
            },
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": format!("app-{n:05}")},
                "replicas": 1, "clusters": [{"name": "member1", "replicas": 1}], "placement": placement,
            },
        })
    };
    json!({"apiVersion": "v1", "kind": "List", "items": (0..count).map(one).collect::<Vec<_>>()}).to_string()
}

fn ask(name: &str, files: &[(&str, &str)], change: impl FnOnce(&mut Question)) -> Result<Answer, String> {
    let flags: Flags = serde_json::from_value(json!({
        "feature-gates": {"Failover": true}, "enable-no-execute-taint-eviction": true,
        "allow-no-execute-taint-policy": true,
    }))
    .unwrap();
    let mut question = Question {
        down: vec!["member1".to_owned()],
        lasts: None,
        horizon: GoDuration::from_secs(24 * 3600),
        flags,
    };
    change(&mut question);
    let folder = Folder::new(&format!("what-if-{name}"), files);
    let export = load(folder.path()).map_err(|error| format!("{error:#}"))?;
    let registry = registry::build(&question.flags, engines());
    play(export, Arc::new(registry), &question).map_err(|error| format!("{error:#}"))
}

#[test]
fn workloads_leave_at_the_rate_and_go_where_they_may() {
    let all = ["member1", "member2", "member3"];
    let files = [
        ("clusters.yaml", clusters(3)),
        ("bindings.json", bindings(10, &all)),
        ("policy.yaml", TAINT_POLICY.to_owned()),
    ];
    let answer = ask(
        "rate",
        &files.each_ref().map(|(name, text)| (*name, text.as_str())),
        |_| {},
    )
    .unwrap();
    assert_eq!(answer.moves.len(), 10, "{answer:?}");
    // The failure threshold is 30 s; the eviction rate is 0.5 per second.
    let times: Vec<_> = answer.moves.iter().map(|moved| moved.at_ms).collect();
    assert_eq!(times, (0..10).map(|n| 30_000 + 2_000 * n).collect::<Vec<_>>());
    assert!(
        answer
            .moves
            .iter()
            .all(|moved| moved.from == "member1" && !moved.to.contains_key("member1")),
        "{answer:?}"
    );
    let load: BTreeMap<_, _> = answer
        .load
        .iter()
        .map(|load| (load.cluster.as_str(), (load.before, load.after)))
        .collect();
    assert_eq!(load["member1"], (10, 0));
    assert_eq!(load.values().map(|(_, after)| after).sum::<i64>(), 10, "{load:?}");
    assert!(
        answer.stays.is_empty() && answer.nowhere.is_empty() && answer.waiting == 0,
        "{answer:?}"
    );
}

#[test]
fn a_move_names_the_replicas_that_other_clusters_lose() {
    let mut list: serde_json::Value =
        serde_json::from_str(&bindings(1, &["member1", "member2", "member3", "member4"])).unwrap();
    let spec = &mut list["items"][0]["spec"];
    spec["replicas"] = json!(12);
    spec["clusters"] = json!([{"name": "member1", "replicas": 6}, {"name": "member2", "replicas": 6}]);
    let files = [
        ("a.yaml", clusters(4)),
        ("b.json", list.to_string()),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let answer = ask(
        "shrunk",
        &files.each_ref().map(|(name, text)| (*name, text.as_str())),
        |_| {},
    )
    .unwrap();
    assert_eq!(answer.moves.len(), 1, "{answer:?}");
    let moved = &answer.moves[0];
    assert_eq!(moved.shrunk, BTreeMap::from([("member2".to_owned(), 2)]), "{answer:?}");
    for load in &answer.load {
        let gained = moved.to.get(&load.cluster).copied().unwrap_or(0);
        let left = if load.cluster == moved.from { moved.leaving } else { 0 };
        let lost = left + moved.shrunk.get(&load.cluster).copied().unwrap_or(0);
        assert_eq!(load.before + i64::from(gained - lost), load.after, "{}", load.cluster);
    }
}

#[test]
fn what_cannot_go_anywhere_stays_and_the_gate_is_named() {
    let files = [
        ("a.yaml", clusters(2)),
        ("b.json", bindings(3, &["member1"])),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let answer = ask(
        "stays",
        &files.each_ref().map(|(name, text)| (*name, text.as_str())),
        |_| {},
    )
    .unwrap();
    assert!(answer.moves.is_empty(), "{answer:?}");
    let gates: Vec<_> = answer
        .stays
        .iter()
        .map(|stay| (stay.cluster.as_str(), stay.gate.as_str()))
        .collect();
    assert_eq!(gates, [("member1", "NoTargetCluster"); 3]);
}

#[test]
fn a_workload_that_tolerates_the_loss_stays_and_the_gate_is_named() {
    let mut list: serde_json::Value = serde_json::from_str(&bindings(2, &["member1", "member2"])).unwrap();
    let placement = json!({
        "clusterAffinity": {"clusterNames": ["member1", "member2"]}, "clusterTolerations": [{"operator": "Exists"}],
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    });
    let tolerant = &mut list["items"][0];
    tolerant["metadata"]["annotations"]["policy.karmada.io/applied-placement"] = json!(placement.to_string());
    tolerant["spec"]["placement"] = placement;
    let files = [
        ("a.yaml", clusters(2)),
        ("b.json", list.to_string()),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let stays = |answer: &Answer| -> Vec<(String, String)> {
        answer
            .stays
            .iter()
            .map(|stay| (stay.binding.clone(), stay.gate.clone()))
            .collect()
    };
    let answer = ask("tolerant", &files, |_| {}).unwrap();
    let kept = (
        "default/app-00000-deployment".to_owned(),
        "ToleratedWithoutEnd".to_owned(),
    );
    assert_eq!(
        (stays(&answer), answer.moves.len(), answer.waiting),
        (vec![kept], 1, 0),
        "{answer:?}"
    );
    let answer = ask("gate-off", &files, |question| question.flags.feature_gates.clear()).unwrap();
    assert_eq!((answer.stays.len(), answer.moves.len()), (2, 0), "{answer:?}");
    assert!(
        stays(&answer).iter().all(|(_, gate)| gate == "EvictionOff"),
        "{answer:?}"
    );
}

#[test]
fn a_moved_workload_takes_up_room_that_the_next_one_does_not_get() {
    let mut list: serde_json::Value = serde_json::from_str(&bindings(3, &["member1", "member2", "member3"])).unwrap();
    for binding in list["items"].as_array_mut().unwrap() {
        let placement = &mut binding["spec"]["placement"];
        placement["replicaScheduling"]["weightPreference"] = json!({"dynamicWeight": "AvailableReplicas"});
        let applied = placement.to_string();
        binding["metadata"]["annotations"]["policy.karmada.io/applied-placement"] = json!(applied);
        binding["spec"]["replicaRequirements"] = json!({"resourceRequest": {"cpu": "60"}});
    }
    let files = [
        ("a.yaml", clusters(3)),
        ("b.json", list.to_string()),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let answer = ask("room", &files, |_| {}).unwrap();
    let to: BTreeSet<_> = answer.moves.iter().flat_map(|moved| moved.to.keys().cloned()).collect();
    assert_eq!((answer.moves.len(), to.len()), (3, 2), "{answer:?}");
    let nowhere: Vec<_> = answer.nowhere.iter().map(|left| left.binding.as_str()).collect();
    assert_eq!(nowhere, ["default/app-00002-deployment"], "{answer:?}");
}

#[test]
fn a_binding_without_a_policy_gets_no_placement_and_a_note_says_so() {
    let mut list: serde_json::Value = serde_json::from_str(&bindings(2, &["member1", "member2"])).unwrap();
    list["items"][0]["metadata"]["labels"] = json!({});
    let files = [
        ("a.yaml", clusters(2)),
        ("b.json", list.to_string()),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let notes = load(Folder::new("what-if-unmanaged-notes", &files).path())
        .unwrap()
        .notes;
    assert_eq!(
        notes,
        ["bindings that belong to no policy: 1; no scheduler gives them another placement"]
    );
    let answer = ask("unmanaged", &files, |_| {}).unwrap();
    let to: Vec<_> = answer.moves.iter().map(|moved| moved.to.len()).collect();
    assert_eq!(to, [0, 1], "{answer:?}");
    let nowhere: Vec<_> = answer.nowhere.iter().map(|left| left.binding.as_str()).collect();
    assert_eq!(nowhere, ["default/app-00000-deployment"], "{answer:?}");
}

#[test]
fn nothing_moves_from_one_lost_cluster_to_another() {
    let mut list: serde_json::Value = serde_json::from_str(&bindings(1, &["member1", "member2", "member3"])).unwrap();
    let spec = &mut list["items"][0]["spec"];
    spec["replicas"] = json!(6);
    spec["clusters"] = json!([{"name": "member1", "replicas": 3}, {"name": "member2", "replicas": 3}]);
    let files = [
        ("a.yaml", clusters(3)),
        ("b.json", list.to_string()),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let lose = |question: &mut Question| question.down = vec!["member1".to_owned(), "member2".to_owned()];
    let answer = ask(
        "two-lost",
        &files.each_ref().map(|(name, text)| (*name, text.as_str())),
        lose,
    )
    .unwrap();
    let to: Vec<_> = answer.moves.iter().map(|moved| moved.to.clone()).collect();
    let three = BTreeMap::from([("member3".to_owned(), 3)]);
    assert_eq!(to, [three.clone(), three], "{answer:?}");
    assert!(answer.moves.iter().all(|moved| moved.shrunk.is_empty()), "{answer:?}");
}

#[test]
fn nothing_can_move_when_no_ready_cluster_is_left() {
    let names = ["member1", "member2"];
    let not_ready = clusters(2)
        .replacen("status: 'True'", "status: 'False'", 2)
        .replacen("'False'", "'True'", 1);
    for (name, all, down) in [
        ("every", clusters(2), &names[..]),
        ("the-only-ready", not_ready, &names[..1]),
    ] {
        let files = [
            ("a.yaml", all),
            ("b.json", bindings(3, &names)),
            ("c.yaml", TAINT_POLICY.to_owned()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let lose = |question: &mut Question| question.down = down.iter().map(|&name| name.to_owned()).collect();
        let answer = ask(&format!("no-cluster-left-{name}"), &files, lose).unwrap();
        assert!(answer.no_cluster_left && answer.moves.is_empty(), "{name}: {answer:?}");
        let answer = ask(
            &format!("one-left-{name}"),
            &[files[1], files[2], ("a.yaml", &clusters(3))],
            lose,
        )
        .unwrap();
        assert!(!answer.no_cluster_left, "{name}: {answer:?}");
    }
}

#[test]
fn a_cluster_that_is_back_in_time_keeps_the_rest() {
    let files = [
        ("a.yaml", clusters(2)),
        ("b.json", bindings(40, &["member1", "member2"])),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let answer = ask("back", &files, |question| {
        question.lasts = Some(GoDuration::from_secs(60));
    })
    .unwrap();
    // The cluster counts as lost after 30 s and as recovered 30 s after the minute: one minute of evictions, one
    // every 2 s.
    assert!((25..=31).contains(&answer.moves.len()), "{} moved", answer.moves.len());
    let changes: Vec<_> = answer.taints.iter().map(|taint| taint.change.as_str()).collect();
    assert!(
        changes.contains(&"-cluster.karmada.io/not-ready:NoExecute"),
        "{changes:?}"
    );
    assert_eq!(answer.waiting, 0);
}

#[test]
fn a_large_federation_is_answered_whole() {
    let names: Vec<_> = (1..=100).map(|n| format!("member{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    // One file has millions of YAML nodes, more than the limit elsewhere.
    let files = [
        ("a.yaml", clusters(100)),
        ("b.yaml", bindings(10_000, &names)),
        ("c.yaml", TAINT_POLICY.to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let answer = ask("large", &files, |question| {
        question.flags.resource_eviction_rate = 100.0;
    })
    .unwrap();
    let moved: BTreeSet<_> = answer.moves.iter().map(|moved| moved.binding.as_str()).collect();
    assert_eq!(
        (answer.moves.len(), moved.len(), answer.nowhere.len(), answer.waiting),
        (10_000, 10_000, 0, 0)
    );
}

#[test]
fn a_bad_export_says_what_is_missing() {
    let check = |name: &str, files: &[(&str, &str)], part: &str| {
        let actual = ask(name, files, |_| {}).err().unwrap();
        assert!(actual.contains(part), "{actual}");
    };
    let (all, some) = (clusters(2), bindings(1, &["member1"]));
    check("no-clusters", &[("b.json", &some)], "there is no Cluster here");
    check("no-bindings", &[("a.yaml", &all)], "there is no binding here");
    check(
        "bad-kind",
        &[
            ("a.yaml", &all),
            ("b.yaml", "kind: ResourceBinding\nmetadata: {name: x}\nspec: 7\n"),
        ],
        "b.yaml:3:7: ResourceBinding x: spec",
    );
    check("bad-yaml", &[("a.yaml", "a: [")], "a.yaml");
    let missing = ask("missing", &[("a.yaml", &all), ("b.json", &some)], |question| {
        question.down = vec!["mars".to_owned()];
    });
    assert!(
        missing
            .err()
            .unwrap()
            .contains("--down mars: there is no such cluster in the export; there are member1, member2")
    );
}
