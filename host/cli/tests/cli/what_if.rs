//! `bulkhead what-if`: arguments, output and exit codes.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

/// Writes an export of two clusters with a workload on the first. Returns its directory.
fn export(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("what-if").join(name);
    fs::create_dir_all(&folder).unwrap();
    let cluster = |name: &str| {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"syncMode": "Push"},
            "status": {
                "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}],
                "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "resourceSummary": {"allocatable": {"cpu": "100", "memory": "100Gi", "pods": "1000"}},
            },
        })
    };
    let placement = json!({"clusterAffinity": {"clusterNames": ["m1", "m2"]}});
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "a-deployment", "namespace": "default", "generation": 1,
            "labels": {"propagationpolicy.karmada.io/permanent-id": "id"},
            "annotations": {"policy.karmada.io/applied-placement": placement.to_string()}},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "a"},
            "replicas": 1, "clusters": [{"name": "m1", "replicas": 1}], "placement": placement,
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [cluster("m1"), cluster("m2"), binding]});
    fs::write(folder.join("all.json"), list.to_string()).unwrap();
    folder.display().to_string()
}

fn what_if(words: &[&str]) -> (Option<i32>, String, String) {
    let output = super::bulkhead().arg("what-if").args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_directory_may_stand_after_the_clusters() {
    let folder = export("order");
    for words in [
        &["--down", "m1", &folder][..],
        &[&folder, "--down", "m1"],
        &["--down=m1", &folder],
        &["--down", "m1,m1", &folder],
    ] {
        let (code, message, complaint) = what_if(words);
        assert!(
            code == Some(0) && message.contains("REPLICAS"),
            "{words:?}: {message}{complaint}"
        );
    }
}

#[test]
fn several_clusters_are_separated_by_commas_or_named_one_by_one() {
    let folder = export("several");
    for words in [
        &["--down", "m1,m2", &folder, "-o", "json"][..],
        &["--down=m1", "--down", "m2", &folder, "-o", "json"],
    ] {
        let (code, message, complaint) = what_if(words);
        let answer: Value = serde_json::from_str(&message).unwrap_or_else(|_| panic!("{words:?}: {complaint}"));
        assert_eq!(
            (code, &answer["load"][0]["down"], &answer["load"][1]["down"]),
            (Some(1), &true.into(), &true.into())
        );
    }
    let (code, message, complaint) = what_if(&["--down", "m1", "m2"]);
    assert_eq!((code, message.as_str()), (Some(2), ""), "{complaint}");
    let expected = "cannot read the export m2: no such directory; to lose the cluster m2 too, write --down m1,m2";
    assert!(complaint.contains(expected), "{complaint}");
}

#[test]
fn every_cluster_lost_is_1_and_says_so() {
    let folder = export("every");
    let (code, message, complaint) = what_if(&["--down", "m1,m2", &folder]);
    assert_eq!(code, Some(1), "{complaint}");
    assert!(
        message.starts_with("EVERY CLUSTER IS LOST OR NOT READY: no workload can move\n"),
        "{message}"
    );
}
