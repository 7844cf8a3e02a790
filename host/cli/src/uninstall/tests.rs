//! The command on an in-process control plane.

use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind, kinds};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use super::*;

const RENEWED: &str = "2026-01-01T00:00:00.000000Z";

fn at(seconds: i64) -> Time {
    Time::new("2026-01-01T00:00:00Z".parse().unwrap()).plus_seconds(seconds)
}

/// Creates an object of any kind.
async fn create(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Returns a webhook configuration with one hook.
fn registration(api_version: &str, kind: &str, name: &str, hook: &str) -> Value {
    let hook = json!({"name": hook, "clientConfig": {"url": "https://bulkhead"}, "rules": [],
        "interpreterContextVersions": ["v1alpha1"], "admissionReviewVersions": ["v1"], "sideEffects": "None"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "webhooks": [hook]})
}

fn lease(name: &str, modes: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "karmada-system", "annotations": {MODES: modes}},
        "spec": {"holderIdentity": "bulkhead-0", "renewTime": RENEWED, "leaseDurationSeconds": 15},
    })
}

/// Creates a control plane with an installation that ran in `modes`.
async fn control_plane(modes: &str) -> Client {
    let kind = |info: &bulkhead_api::KindInfo| {
        let make = if info.namespaced {
            ResourceKind::namespaced
        } else {
            ResourceKind::cluster_scoped
        };
        make(info.group, info.version, info.kind, info.plural)
    };
    let all = kinds::kubernetes()
        .into_iter()
        .chain(kinds::stored())
        .chain(bulkhead_api::kinds::REGISTERED.iter().map(kind))
        .collect();
    let options = Options::new("hub", 1, Clock::new(at(0).timestamp()));
    let client = ApiServer::new(Options {
        kinds: all,
        auto_create_namespaces: true,
        ..options
    })
    .client();
    create(&client, lease("bulkhead", modes)).await;
    let (admission, interpreter) = ("admissionregistration.k8s.io/v1", "config.karmada.io/v1alpha1");
    let (mutating, interpreting) = (
        "MutatingWebhookConfiguration",
        "ResourceInterpreterWebhookConfiguration",
    );
    create(
        &client,
        registration(admission, mutating, "bulkhead", "admit.bulkhead.dev"),
    )
    .await;
    create(
        &client,
        registration(interpreter, interpreting, "bulkhead", "interpret.bulkhead.dev"),
    )
    .await;
    create(
        &client,
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": WEBHOOK_SECRET,
            "namespace": "karmada-system", "annotations": {"bulkhead.dev/host": "bulkhead"}}}),
    )
    .await;
    let annotations = json!({"bulkhead.dev/taint-owners": "{}", "example.com/kept": "yes"});
    let taint = json!({"key": "bulkhead.dev/drain", "effect": "NoSchedule"});
    create(
        &client,
        json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "member1", "annotations": annotations},
            "spec": {"syncMode": "Push", "taints": [taint]}}),
    )
    .await;
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    create(
        &client,
        json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "web-deployment", "namespace": "default",
                "annotations": {"bulkhead.dev/decision": "1", "failover.bulkhead.dev/home": "{}"}},
            "spec": {"resource": resource}}),
    )
    .await;
    client
}

fn installation<'a>(client: &'a Client, modes: &'a [Mode], dry_run: bool) -> Installation<'a> {
    Installation {
        client,
        namespace: "karmada-system",
        name: "bulkhead",
        modes,
        dry_run,
    }
}

async fn removed(installation: &Installation<'_>, force: bool, now: Time) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    installation.remove(force, now, &mut lines).await.map(|()| lines)
}

const ALL: [&str; 7] = [
    "removed ResourceInterpreterWebhookConfiguration bulkhead",
    "removed MutatingWebhookConfiguration bulkhead",
    "changed Cluster member1: removed bulkhead.dev/taint-owners",
    "changed ResourceBinding default/web-deployment: removed failover.bulkhead.dev/home, bulkhead.dev/decision",
    "kept the taint bulkhead.dev/drain of Cluster member1, which keeps workloads away from it; remove it from \
     spec.taints to end the drain",
    "removed Secret karmada-system/bulkhead-webhook",
    "removed Lease karmada-system/bulkhead",
];

#[tokio::test]
async fn a_stopped_installation_is_removed_and_a_repetition_finds_nothing_to_change() {
    let client = control_plane("evict,interpret").await;
    let modes = [Mode::Evict, Mode::Interpret];
    let lines = removed(&installation(&client, &modes, false), false, at(60))
        .await
        .unwrap();
    assert_eq!(lines, ALL);
    let cluster = Api::<bulkhead_api::Cluster>::all(client.clone())
        .get("member1")
        .await
        .unwrap();
    assert_eq!(cluster.annotations().keys().collect::<Vec<_>>(), ["example.com/kept"]);
    let again = removed(&installation(&client, &modes, false), false, at(60))
        .await
        .unwrap();
    assert!(
        matches!(again.as_slice(), [line] if line.starts_with("kept the taint")),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_dry_run_names_the_same_objects_and_changes_none() {
    let client = control_plane("evict,interpret").await;
    let modes = [Mode::Evict, Mode::Interpret];
    let lines = removed(&installation(&client, &modes, true), false, at(60))
        .await
        .unwrap();
    let expected = ALL.map(|line| {
        if line.starts_with("kept") {
            line.to_owned()
        } else {
            format!("{line} (dry run)")
        }
    });
    assert_eq!(lines, expected);
    assert_eq!(
        removed(&installation(&client, &modes, false), false, at(60))
            .await
            .unwrap(),
        ALL
    );
}

#[tokio::test]
async fn a_running_process_is_refused_unless_it_is_forced_or_in_another_mode() {
    let client = control_plane("evict").await;
    let refused = removed(&installation(&client, &[Mode::Evict], false), false, at(14))
        .await
        .unwrap_err()
        .to_string();
    let expected = "bulkhead-0 renews Lease karmada-system/bulkhead in mode evict; nothing was removed";
    assert!(
        refused.starts_with(expected) && refused.contains("--force"),
        "{refused}"
    );
    let other = removed(&installation(&client, &[Mode::Report], false), false, at(14))
        .await
        .unwrap();
    assert!(
        matches!(other.as_slice(), [line] if line.ends_with("the installation has mode evict too")),
        "{other:?}"
    );
    let forced = removed(&installation(&client, &[Mode::Evict], false), true, at(14))
        .await
        .unwrap();
    assert!(
        forced.contains(&"removed Lease karmada-system/bulkhead".to_owned()),
        "{forced:?}"
    );
}

#[tokio::test]
async fn modes_that_remain_keep_what_they_share() {
    let client = control_plane("evict,interpret").await;
    let lines = removed(&installation(&client, &[Mode::Interpret], false), false, at(60))
        .await
        .unwrap();
    let kept = "kept Lease karmada-system/bulkhead, its admission webhook, certificate and annotations: the \
                installation has mode evict too";
    assert_eq!(
        lines,
        ["removed ResourceInterpreterWebhookConfiguration bulkhead", kept]
    );
}

#[tokio::test]
async fn objects_of_another_installation_are_kept() {
    let client = control_plane("evict").await;
    create(&client, lease("second", "finish")).await;
    let lines = removed(&installation(&client, &[Mode::Evict], false), false, at(60))
        .await
        .unwrap();
    let kept = "kept the annotations and the certificate: Lease karmada-system/second is of another installation";
    let expected = [
        "removed MutatingWebhookConfiguration bulkhead",
        kept,
        "removed Lease karmada-system/bulkhead",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_registration_of_another_program_is_kept() {
    let client = control_plane("interpret").await;
    let (version, kind) = ("config.karmada.io/v1alpha1", "ResourceInterpreterWebhookConfiguration");
    create(&client, registration(version, kind, "other", "interpret.example.com")).await;
    let other = Installation {
        name: "other",
        ..installation(&client, &[Mode::Interpret], true)
    };
    let lines = removed(&other, false, at(60)).await.unwrap();
    assert_eq!(
        lines.first().map(String::as_str),
        Some(format!("kept {kind} other: another program made it").as_str())
    );
    for (name, expected) in [
        ("interpret.bulkhead.dev", true),
        ("notbulkhead.dev", false),
        ("bulkhead.dev.com", false),
    ] {
        assert_eq!(is_our_hook(name), expected, "{name}");
    }
}
