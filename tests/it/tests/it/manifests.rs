//! Manifests of the documents on the in-process API server, through server-side apply with strict field validation.
//!
//! The manifests are in `tests/documents`. If the documents are beside the checkout, every block of YAML in them must be
//! one of these manifests or one of [`FRAGMENTS`].

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use bulkhead_api::definition::definitions;
use bulkhead_apiserver::{Admission, ApiServer, Clock, Fidelity, Options, kinds};
use bulkhead_controllers::profile::Profile;
use bulkhead_core::time::Time;
use bulkhead_defaults::admission::InProcess;
use http::{Method, Request};
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::root;

/// Folders of `tests/documents`.
const FOLDERS: [&str; 3] = ["accepted", "refused", "refused-by-admission"];

/// Refused manifests, with part of the message, and the reason.
const REFUSED: [(&str, &str, &str); 5] = [
    (
        "refused/application-628",
        "spec.failover",
        "an alternative that the proposal rejects: a list of failover rules",
    ),
    (
        "refused/optimized-273",
        "spec.syncMode",
        "an excerpt: spec.syncMode is missing, and status: False without quotes is a boolean where the API has a text",
    ),
    (
        "refused/optimized-291",
        "unknown field \"spec.taint\"",
        "a misprint: the field is spec.taints",
    ),
    (
        "refused/optimized-386",
        "unknown field \"spec.failover.cluster.pureMode\"",
        "a misprint: the type above the example, and the API, have purgeMode",
    ),
    (
        "refused-by-admission/application-262",
        "spec.propagateDeps",
        "the text of the proposal requires propagateDeps: true beside failover.application",
    ),
];

/// Blocks that are no manifests, with the reason.
const FRAGMENTS: [(&str, &str); 13] = [
    ("overview-105", "one taint"),
    ("overview-112", "one taint"),
    ("overview-121", "one taint"),
    ("overview-128", "one taint"),
    (
        "overview-137",
        "no YAML: fields of spec have two indentations; clusterTolerations belongs below placement",
    ),
    (
        "deep-dive-55",
        "the translation has lost its indentation; overview-238 is the same manifest",
    ),
    ("deep-dive-126", "part of a binding"),
    ("deep-dive-204", "part of a binding"),
    ("deep-dive-602", "output of kubectl without spec, with the command"),
    ("application-442", "status of a binding, without its metadata"),
    ("application-461", "status of a binding, without its metadata"),
    ("application-480", "status of a binding, without its metadata"),
    ("configurable-129", "spec of a binding, without its metadata"),
];

/// Documents, by the start of their file names.
const DOCUMENTS: [(&str, &str); 5] = [
    ("000_", "overview"),
    ("001_", "deep-dive"),
    ("002_", "application"),
    ("003_", "configurable"),
    ("004_", "optimized"),
];

/// Returns the objects of a YAML text.
fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// Returns names and texts of the manifests in a folder of `tests/documents`.
fn manifests(folder: &str) -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("tests/documents").join(folder)).unwrap();
    let mut found: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (format!("{folder}/{name}"), fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// Creates a control plane with the definitions of `bulkhead crds` and, if a profile is given, its admission.
async fn control_plane(profile: Option<Profile>) -> Client {
    let server = ApiServer::new(Options {
        kinds: kinds::kubernetes().into_iter().chain([kinds::definitions()]).collect(),
        admission: profile.map(|profile| -> Arc<dyn Admission> { Arc::new(InProcess(profile.flags().admission())) }),
        fidelity: Fidelity::People,
        ..Options::new("hub", 1, Clock::new(Time::from_millis(0).timestamp()))
    });
    let client = server.client();
    for definition in definitions() {
        let mut object = serde_json::to_value(&definition).unwrap();
        object["apiVersion"] = json!("apiextensions.k8s.io/v1");
        object["kind"] = json!("CustomResourceDefinition");
        let request = Request::builder()
            .method(Method::POST)
            .header("content-type", "application/json");
        let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = request.uri(uri).body(serde_json::to_vec(&object).unwrap()).unwrap();
        client.request::<Value>(request).await.unwrap();
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    apply(&client, &namespace, ValidationDirective::Strict).await.unwrap();
    client
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    // The plural that kube guesses is wrong for these kinds only.
    if let Some(info) = bulkhead_api::kinds::REGISTERED.iter().find(|info| info.kind == kind) {
        info.plural.clone_into(&mut resource.plural);
    }
    let is_global = [
        "Namespace",
        "Cluster",
        "ClusterTaintPolicy",
        "ResourceInterpreterCustomization",
    ]
    .contains(&kind);
    if is_global {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), "default", &resource)
    }
}

/// Applies an object as `kubectl apply --server-side --validate=MODE` does, or returns the error.
async fn apply(client: &Client, object: &Value, mode: ValidationDirective) -> Result<Value, String> {
    let parameters = PatchParams {
        field_validation: Some(mode),
        ..PatchParams::apply("kubectl").force()
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let stored = api(client, object)
        .patch(name, &parameters, &Patch::Apply(object))
        .await;
    stored
        .map(|stored| serde_json::to_value(stored).unwrap())
        .map_err(|error| error.to_string())
}

/// Panics unless the stored object has every field of the given one. Admission writes purge modes in the spelling of the
/// API.
fn assert_kept(given: &Value, stored: &Value, path: &str) {
    match given {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| assert_kept(value, &stored[key], &format!("{path}.{key}"))),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| assert_kept(item, &stored[index], &format!("{path}[{index}]")));
        }
        leaf if leaf == "Graciously" => assert_eq!(stored, "Gracefully", "{path}"),
        leaf => assert_eq!(stored, leaf, "{path}"),
    }
}

#[tokio::test]
async fn a_manifest_of_a_document_is_stored_with_every_field_or_refused_with_the_reason() {
    let client = control_plane(Some(Profile::Optimized)).await;
    for (name, text) in manifests("accepted") {
        for object in objects(&text) {
            let stored = apply(&client, &object, ValidationDirective::Strict).await;
            let stored = stored.unwrap_or_else(|error| panic!("{name}: {error}"));
            // The status is a subresource.
            assert_kept(&object["spec"], &stored["spec"], &format!("{name}: spec"));
            if object["status"].is_object() {
                let resource = api(&client, &object);
                let status = Patch::Merge(json!({"status": object["status"]}));
                let strict = PatchParams {
                    field_validation: Some(ValidationDirective::Strict),
                    ..PatchParams::default()
                };
                let name = object["metadata"]["name"].as_str().unwrap();
                let stored = resource.patch_status(name, &strict, &status).await.unwrap();
                assert_kept(&object["status"], &stored.data["status"], &format!("{name}: status"));
            }
        }
    }
    let mut refused = BTreeSet::new();
    for (name, text) in [manifests("refused"), manifests("refused-by-admission")].concat() {
        let (_, message, _) = REFUSED
            .iter()
            .find(|(refused, ..)| **refused == name)
            .unwrap_or_else(|| panic!("{name}"));
        for object in objects(&text) {
            let error = apply(&client, &object, ValidationDirective::Strict).await.unwrap_err();
            assert!(error.contains(message), "{name}: {error}");
        }
        refused.insert(name);
    }
    assert_eq!(refused.len(), REFUSED.len());
}

#[tokio::test]
async fn the_schemas_alone_refuse_what_the_schemas_refuse() {
    let client = control_plane(None).await;
    for (name, text) in [manifests("accepted"), manifests("refused-by-admission")].concat() {
        for object in objects(&text) {
            apply(&client, &object, ValidationDirective::Strict)
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    for (name, text) in manifests("refused") {
        for object in objects(&text) {
            assert!(
                apply(&client, &object, ValidationDirective::Strict).await.is_err(),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn the_target_of_a_taint_policy_is_never_pruned() {
    let (_, text) = manifests("accepted")
        .into_iter()
        .find(|(name, _)| name == "accepted/optimized-248")
        .unwrap();
    let policy = objects(&text).remove(0);
    let with = |field: &str, value: Value| {
        let mut policy = policy.clone();
        let target = policy["spec"].as_object_mut().unwrap().remove("targetCluster").unwrap();
        policy["spec"][field] = if value.is_null() { target } else { value };
        policy
    };
    let modes = || {
        [
            ValidationDirective::Strict,
            ValidationDirective::Warn,
            ValidationDirective::Ignore,
        ]
    };
    let misspelt = [
        with("targetClustrs", Value::Null),
        with("targetCluster", json!({"clusterName": ["member1"]})),
        with(
            "targetClusters",
            json!({"labelSelector": {"matchLabel": {"tier": "gold"}}}),
        ),
    ];
    let (guarded, bare) = (control_plane(Some(Profile::Optimized)).await, control_plane(None).await);
    for policy in misspelt {
        for mode in modes() {
            let error = apply(&guarded, &policy, mode.clone()).await.unwrap_err();
            assert!(error.contains("unknown field"), "{error}");
            // Without a webhook the field is stored, and the controllers change no taint.
            let stored = apply(&bare, &policy, mode).await.unwrap();
            assert_kept(&policy["spec"], &stored["spec"], "spec");
            let stored: bulkhead_api::ClusterTaintPolicy = serde_json::from_value(stored).unwrap();
            assert_eq!(stored.spec.faults().len(), 1, "{:?}", stored.spec);
        }
    }
    // Windows that are absent get the defaults of the proposal.
    let mut brief = policy.clone();
    brief["spec"]["taintsToAdd"] = json!([{"key": "a", "effect": "PreferNoExecute"}]);
    let stored = apply(&bare, &brief, ValidationDirective::Strict).await.unwrap();
    let taint = &stored["spec"]["taintsToAdd"][0];
    assert_eq!(
        (&taint["addOnMatchSeconds"], &taint["removeOnMismatchSeconds"]),
        (&json!(300), &json!(180))
    );
}

#[tokio::test]
async fn the_schemas_refuse_what_cluster_failover_cannot_do() {
    let client = control_plane(None).await;
    let check = async |cluster: Value, expected: &str| {
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "p"},
            "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "failover": {"cluster": cluster},
            },
        });
        let error = apply(&client, &policy, ValidationDirective::Strict)
            .await
            .err()
            .unwrap_or_default();
        assert!(
            if expected.is_empty() {
                error.is_empty()
            } else {
                error.contains(expected)
            },
            "{cluster}: {error}"
        );
    };
    check(
        json!({"purgeMode": "Graciously", "gracePeriodSeconds": 100, "tolerationSeconds": 0}),
        "",
    )
    .await;
    check(json!({"gracePeriodSeconds": 0}), "gracePeriodSeconds").await;
    check(json!({"tolerationSeconds": -1}), "tolerationSeconds").await;
    check(
        json!({"purgeMode": "Never", "gracePeriodSeconds": 100}),
        "only takes effect when purgeMode is Gracefully",
    )
    .await;
    let (_, text) = manifests("accepted")
        .into_iter()
        .find(|(name, _)| name == "accepted/optimized-248")
        .unwrap();
    let mut policy = objects(&text).remove(0);
    policy["spec"]["matchConditions"][0]["operator"] = json!("Exists");
    let error = apply(&client, &policy, ValidationDirective::Strict).await.unwrap_err();
    assert!(error.contains("spec.matchConditions[0].operator"), "{error}");
}

/// Returns the blocks of YAML in a document, each with its line: fenced ones, and paragraphs with an `apiVersion`.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut paragraph, mut fence) = (Vec::new(), Vec::new(), None);
    for (line, text) in text.lines().chain([""]).enumerate() {
        let trimmed = text.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            match fence.take() {
                None => fence = Some((language == "yaml", line + 2, String::new())),
                Some((true, start, block)) => found.push((start, block)),
                Some(_) => {}
            }
            paragraph.clear();
        } else if let Some((_, _, block)) = &mut fence {
            block.push_str(text);
            block.push('\n');
        } else if trimmed.is_empty() {
            if paragraph
                .iter()
                .any(|text: &&str| text.trim().starts_with("apiVersion: "))
            {
                found.push((line + 1 - paragraph.len(), paragraph.join("\n")));
            }
            paragraph.clear();
        } else {
            paragraph.push(text);
        }
    }
    found
}

#[test]
fn every_block_of_the_documents_is_a_manifest_or_a_fragment() {
    let folder = root().join("../shared/reference");
    let Ok(files) = fs::read_dir(&folder) else {
        eprintln!("skipped: the documents are not at {}", folder.display());
        return;
    };
    let known: Vec<_> = FOLDERS.iter().flat_map(|folder| manifests(folder)).collect();
    let mut seen = BTreeSet::new();
    for file in files {
        let path = file.unwrap().path();
        let start = path.file_name().unwrap().to_str().unwrap();
        let Some((_, document)) = DOCUMENTS.iter().find(|(prefix, _)| start.starts_with(prefix)) else {
            continue;
        };
        for (line, block) in blocks(&fs::read_to_string(&path).unwrap()) {
            let name = format!("{document}-{line}");
            let manifest = known.iter().find(|(known, _)| known.ends_with(&format!("/{name}")));
            if let Some((_, text)) = manifest {
                assert_eq!(*text, block, "{name}");
            } else {
                assert!(
                    FRAGMENTS.iter().any(|(fragment, _)| *fragment == name),
                    "{name}: neither manifest nor fragment"
                );
                let whole = serde_saphyr::from_multiple::<Value>(&block).is_ok_and(|objects| {
                    objects
                        .iter()
                        .any(|object| object["kind"].is_string() && object["spec"].is_object())
                });
                assert!(!whole, "{name} is a manifest");
            }
            seen.insert(name);
        }
    }
    assert_eq!(seen.len(), known.len() + FRAGMENTS.len(), "{seen:?}");
}
