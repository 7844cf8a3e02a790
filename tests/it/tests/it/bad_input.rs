//! Errors for bad input name the file, the line, the field and valid alternatives.

use crate::support::{Folder, try_run};

const CLUSTERS: &str = "clusters: [{name: member1}]\n";

/// Asserts that a scenario with these additional lines is rejected with all of these words.
fn refused(name: &str, lines: &str, words: &[&str]) {
    let scenario = format!("name: bad\nduration: 1m\n{CLUSTERS}{lines}");
    let error = Folder::new(name, &[("scenario.yaml", &scenario)]).load().err().unwrap_or_default();
    for word in words.iter().chain(&["scenario.yaml"]) {
        assert!(error.contains(word), "{name}: no {word:?} in: {error}");
    }
}

#[test]
fn mistakes_in_a_scenario_are_named_with_their_line() {
    refused("unknown-field", "colour: red\n", &["colour", "4"]);
    refused("wrong-type", "seed: many\n", &["4"]);
    refused("unknown-flag", "flags: {graceful-timeout: 10m}\n", &["graceful-timeout"]);
    refused("bad-duration", "flags: {graceful-eviction-timeout: 10}\n", &["10", "1m30s"]);
    refused(
        "unknown-cluster",
        "events:\n- {at: 10s, cluster: member9, state: recover}\n",
        &[":5: events[0].cluster", "member9", "member1"],
    );
    refused(
        "late-event",
        "events:\n- {at: 10m, cluster: member1, state: recover}\n",
        &["events[0].at", "after the end"],
    );
    refused("two-things", "events:\n- {at: 1s, apply: a.yaml, kill-controller: scheduler}\n", &["exactly one of"]);
    refused("no-controller", "events:\n- {at: 1s, kill-controller: sheduler}\n", &["sheduler", "scheduler"]);
    refused("no-file", "manifests: [missing.yaml]\n", &[":4: manifests[0]", "missing.yaml"]);
    refused("no-plugin-file", "plugins: [{name: p, wasm: missing.wasm}]\n", &["plugin p", "fetch", "missing.wasm"]);
    refused("no-subject", "expect: [{at: 10s, clusters: {member1: 1}}]\n", &["expect[0]", "exactly one subject"]);
}

#[test]
fn the_number_of_clusters_is_bounded_in_total() {
    let load = |name: &str, count: usize| {
        let clusters = format!("clusters: [{{name: a, count: 600}}, {{name: b, count: {count}}}]\n");
        let scenario = format!("name: large\nduration: 1m\n{clusters}");
        Folder::new(name, &[("scenario.yaml", &scenario)]).load()
    };
    assert!(load("full-federation", 400).is_ok());
    let error = load("overfull-federation", 401).err().unwrap_or_default();
    assert!(error.contains(":3: clusters[1].count: must be at least 1, and at most 1000 in total"), "{error}");
}

#[test]
fn a_manifest_of_an_unknown_kind_is_refused_unless_it_may_be_skipped() {
    let manifest = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: a}\n";
    let scenario = |extra: &str| format!("name: kinds\nduration: 1m\n{CLUSTERS}manifests: [thing.yaml]\n{extra}");
    let refused = Folder::new("unknown-kind", &[("scenario.yaml", &scenario("")), ("thing.yaml", manifest)]).load();
    let error = refused.err().unwrap_or_default();
    assert!(error.contains("example.io/v1 Thing") && error.contains("unknownKinds: skip"), "{error}");
    let skipped = scenario("unknownKinds: skip\n");
    let skipped = Folder::new("skipped-kind", &[("scenario.yaml", &skipped), ("thing.yaml", manifest)]).load().unwrap();
    assert_eq!(skipped.warnings.len(), 1, "{:?}", skipped.warnings);
}

/// A Plugin object is rejected, because it would be active from a different moment than the scenario specifies.
#[test]
fn a_plugin_object_in_a_scenario_is_refused_with_the_right_field() {
    let plugin = "apiVersion: bulkhead.dev/v1alpha1\nkind: Plugin\nmetadata: {name: vital}\nspec: {lua: x}\n";
    let scenario = format!("name: object\nduration: 1m\n{CLUSTERS}manifests: [plugin.yaml]\n");
    let folder = Folder::new("plugin-object", &[("scenario.yaml", &scenario), ("plugin.yaml", plugin)]);
    let error = folder.load().err().unwrap_or_default();
    assert!(error.contains("plugin.yaml") && error.contains("Plugin vital: a scenario names its plugins"), "{error}");
}

#[test]
fn a_plugin_that_does_not_load_is_refused_with_its_stage() {
    let scenario = format!("name: plugin\nduration: 1m\n{CLUSTERS}plugins: [{{name: broken, wasm: broken.wasm}}]\n");
    let folder = Folder::new("broken-plugin", &[("scenario.yaml", &scenario), ("broken.wasm", "no component")]);
    let error = try_run(&folder.load().unwrap(), None).err().unwrap_or_default();
    assert!(error.contains("plugin broken") && error.contains("failed to inspect"), "{error}");
}

#[test]
fn a_policy_that_admission_denies_is_named_with_file_and_field() {
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\n\
                  spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement:\n    \
                  spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]\n";
    let scenario = format!("name: denied\nduration: 1m\n{CLUSTERS}manifests: [policy.yaml]\n");
    let folder = Folder::new("denied", &[("scenario.yaml", &scenario), ("policy.yaml", policy)]);
    let error = try_run(&folder.load().unwrap(), None).err().unwrap_or_default();
    assert!(error.contains("policy.yaml") && error.contains("maxGroups lower than minGroups"), "{error}");
}
