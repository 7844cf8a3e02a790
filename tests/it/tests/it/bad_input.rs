//! Errors for bad input name the file, the line, the field and valid alternatives.

use crate::support::{Folder, try_run};

const CLUSTERS: &str = "clusters: [{name: member1}]\n";

/// Asserts that a scenario with these additional lines is rejected with all of these words.
fn refused(name: &str, lines: &str, words: &[&str]) {
    let scenario = format!("name: bad\nduration: 1m\n{CLUSTERS}{lines}");
    let error = Folder::new(name, &[("scenario.yaml", &scenario)])
        .load()
        .err()
        .unwrap_or_default();
    for word in words.iter().chain(&["scenario.yaml"]) {
        assert!(error.contains(word), "{name}: no {word:?} in: {error}");
    }
}

#[test]
fn mistakes_in_a_scenario_are_named_with_their_line() {
    refused("unknown-field", "colour: red\n", &["colour", "4"]);
    refused("wrong-type", "seed: many\n", &["4"]);
    refused(
        "unknown-flag",
        "flags: {graceful-timeout: 10m}\n",
        &["graceful-timeout"],
    );
    refused(
        "bad-duration",
        "flags: {graceful-eviction-timeout: 10}\n",
        &["10", "1m30s"],
    );
    refused(
        "unknown-cluster",
        "events:\n- {at: 10s, cluster: member9, state: recover}\n",
        &[":5:22: events[0].cluster", "member9", "member1"],
    );
    refused(
        "late-event",
        "events:\n- {at: 10m, cluster: member1, state: recover}\n",
        &["events[0].at", "after the end"],
    );
    refused(
        "two-things",
        "events:\n- {at: 1s, apply: a.yaml, kill-controller: scheduler}\n",
        &["exactly one of"],
    );
    refused(
        "no-controller",
        "events:\n- {at: 1s, kill-controller: sheduler}\n",
        &["sheduler", "scheduler"],
    );
    refused(
        "no-file",
        "manifests: [missing.yaml]\n",
        &[":4:13: manifests[0]", "missing.yaml"],
    );
    refused(
        "no-plugin-file",
        "plugins: [{name: p, wasm: missing.wasm}]\n",
        &["plugin p", "fetch", "missing.wasm"],
    );
    let capacity = "duration: 1m\nclusters: [{name: a, capacity: {cpu: much}}]\n";
    let folder = Folder::new("bad-capacity", &[("scenario.yaml", &format!("name: bad\n{capacity}"))]);
    let error = folder.load().err().unwrap_or_default();
    assert!(error.contains(":3:38: clusters[0].capacity.cpu: \"much\""), "{error}");
    refused(
        "no-subject",
        "expect: [{at: 10s, clusters: {member1: 1}}]\n",
        &["expect[0]", "exactly one subject"],
    );
}

#[test]
fn a_scenario_whose_members_are_probed_millions_of_times_has_a_warning() {
    let load = |name: &str, frequency: &str| {
        let flags = format!("flags: {{cluster-status-update-frequency: {frequency}}}\n");
        let scenario = format!("name: many\nduration: 2h\n{CLUSTERS}{flags}");
        Folder::new(name, &[("scenario.yaml", &scenario)])
            .load()
            .unwrap()
            .warnings
    };
    let warnings = load("many-probes", "1ms");
    assert!(
        warnings.len() == 1 && warnings[0].contains("members are probed 7200000 times"),
        "{warnings:?}"
    );
    assert!(load("few-probes", "1s").is_empty());
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
    assert!(
        error.contains(":3:52: clusters[1].count: must be at least 1, and at most 1000 in total"),
        "{error}"
    );
}

#[test]
fn a_manifest_of_an_unknown_kind_is_refused_unless_it_may_be_skipped() {
    let manifest = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: a}\n";
    let scenario = |extra: &str| format!("name: kinds\nduration: 1m\n{CLUSTERS}manifests: [thing.yaml]\n{extra}");
    let refused = Folder::new(
        "unknown-kind",
        &[("scenario.yaml", &scenario("")), ("thing.yaml", manifest)],
    )
    .load();
    let error = refused.err().unwrap_or_default();
    assert!(
        error.contains("example.io/v1 Thing") && error.contains("unknownKinds: skip"),
        "{error}"
    );
    let skipped = scenario("unknownKinds: skip\n");
    let skipped = Folder::new("skipped-kind", &[("scenario.yaml", &skipped), ("thing.yaml", manifest)])
        .load()
        .unwrap();
    assert_eq!(skipped.warnings.len(), 1, "{:?}", skipped.warnings);
}

/// Returns a Deployment with these lines in its spec.
fn deployment(spec: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: default}}\nspec:\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: \
         a, image: a}}]}}}}\n{spec}"
    )
}

/// Loads a scenario with one manifest.
fn loaded(name: &str, manifest: &str) -> Result<bulkhead_simulator::scenario::Loaded, String> {
    let scenario = format!("name: a\nduration: 1m\n{CLUSTERS}manifests: [web.yaml]\n");
    Folder::new(name, &[("scenario.yaml", &scenario), ("web.yaml", manifest)]).load()
}

#[test]
fn an_invalid_object_of_kubernetes_is_refused_with_its_field() {
    for (name, spec, word) in [
        ("text-replicas", "  replicas: three\n", "must be of type integer"),
        ("negative-replicas", "  replicas: -3\n", "greater than or equal to 0"),
        (
            "many-replicas",
            "  replicas: 3000000000\n",
            "is 3000000000; a workload has at most 2147483647",
        ),
    ] {
        let error = loaded(name, &deployment(spec)).err().unwrap_or_default();
        for word in ["web.yaml:7:13: Deployment web: spec.replicas: ", word] {
            assert!(error.contains(word), "{name}: no {word:?} in: {error}");
        }
    }
    let loaded = loaded("unknown-field-of-a-workload", &deployment("  replica: 3\n")).unwrap();
    assert!(
        loaded
            .warnings
            .iter()
            .any(|warning| warning.ends_with("web.yaml:7:3: Deployment web: spec.replica: unknown field")),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn an_object_of_an_event_is_checked_as_merged_into_the_one_that_it_changes() {
    let load = |name: &str, applied: &str| {
        let scenario = format!(
            "name: applied\nduration: 1m\n{CLUSTERS}manifests: [web.yaml]\nevents:\n\
             - {{at: 10s, apply: {{objects: [{applied}]}}}}\n"
        );
        let web = deployment("  replicas: 3\n");
        let files = [("scenario.yaml", scenario.as_str()), ("web.yaml", web.as_str())];
        Folder::new(&format!("applied-{name}"), &files).load()
    };
    let web = |name: &str, spec: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, namespace: default}}, spec: {spec}}}"
        )
    };
    assert_eq!(load("partial", &web("web", "{replicas: 5}")).err(), None);
    for (name, object, place, words) in [
        ("text", web("web", "{replicas: three}"), "6:131", "spec.replicas"),
        (
            "negative",
            web("web", "{replicas: -3}"),
            "6:131",
            "greater than or equal to 0",
        ),
        (
            "many",
            web("web", "{replicas: 3000000000}"),
            "6:131",
            "at most 2147483647",
        ),
        ("not-whole", web("other", "{replicas: 5}"), "6:122", "spec.selector"),
    ] {
        let error = load(name, &object).err().unwrap_or_default();
        let place = format!("scenario.yaml:{place}: events[0].apply.objects[0]: Deployment ");
        assert!(error.contains(words) && error.contains(&place), "{name}: {error}");
    }
}

#[test]
fn a_workload_without_replicas_has_one_as_on_an_api_server() {
    let web = loaded("default-replicas", &deployment("")).unwrap();
    assert_eq!(web.manifests[0].value["spec"]["replicas"], 1);
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web, namespace: default}\nspec:\n  template: {spec: \
               {restartPolicy: Never, containers: [{name: a, image: a}]}}\n";
    let job = loaded("default-parallelism", job).unwrap();
    assert_eq!(job.manifests[0].value["spec"]["parallelism"], 1);
    assert_eq!(job.manifests[0].value["spec"]["completions"], 1);
}

#[test]
fn a_policy_that_asks_for_preemption_has_a_warning() {
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: \
                  default}\nspec: {preemption: Always, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}\n";
    let loaded = loaded("preemption", policy).unwrap();
    let warning = loaded
        .warnings
        .iter()
        .find(|warning| warning.contains("spec.preemption: Always has no effect"));
    assert!(warning.is_some(), "{:?}", loaded.warnings);
}

#[test]
fn a_file_of_thousands_of_documents_is_read_and_one_without_any_is_reported() {
    let document =
        |number| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}, namespace: default}}\n");
    let documents = (0..3_000).map(document).collect::<Vec<_>>().concat();
    assert_eq!(loaded("many-documents", &documents).unwrap().manifests.len(), 3_000);
    let loaded = loaded("no-documents", "# nothing\n").unwrap();
    assert!(
        loaded.warnings[0].ends_with("web.yaml: there is no object in this file"),
        "{:?}",
        loaded.warnings
    );
}

/// A Plugin object is rejected, because it would be active from a different moment than the scenario specifies.
#[test]
fn a_plugin_object_in_a_scenario_is_refused_with_the_right_field() {
    let plugin = "apiVersion: bulkhead.dev/v1alpha1\nkind: Plugin\nmetadata: {name: vital}\nspec: {lua: x}\n";
    let scenario = format!("name: object\nduration: 1m\n{CLUSTERS}manifests: [plugin.yaml]\n");
    let folder = Folder::new(
        "plugin-object",
        &[("scenario.yaml", &scenario), ("plugin.yaml", plugin)],
    );
    let error = folder.load().err().unwrap_or_default();
    assert!(
        error.contains("plugin.yaml") && error.contains("Plugin vital: a scenario names its plugins"),
        "{error}"
    );
}

#[test]
fn a_plugin_that_does_not_load_is_refused_with_its_stage() {
    let scenario = format!("name: plugin\nduration: 1m\n{CLUSTERS}plugins: [{{name: broken, wasm: broken.wasm}}]\n");
    let folder = Folder::new(
        "broken-plugin",
        &[("scenario.yaml", &scenario), ("broken.wasm", "no component")],
    );
    let error = try_run(&folder.load().unwrap(), None).err().unwrap_or_default();
    assert!(
        error.contains("plugin broken") && error.contains("failed to inspect"),
        "{error}"
    );
}

#[test]
fn a_policy_that_admission_denies_is_named_with_file_and_field() {
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\n\
                  spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement:\n    \
                  spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]\n";
    let scenario = format!("name: denied\nduration: 1m\n{CLUSTERS}manifests: [policy.yaml]\n");
    let folder = Folder::new("denied", &[("scenario.yaml", &scenario), ("policy.yaml", policy)]);
    let error = try_run(&folder.load().unwrap(), None).err().unwrap_or_default();
    assert!(
        error.contains("policy.yaml:7:25: PropagationPolicy p: spec.placement.spreadConstraints[0]: ")
            && error.ends_with("maxGroups lower than minGroups is not allowed"),
        "{error}"
    );
}

/// Returns the error of a scenario with this manifest, without its folder.
fn refusal(name: &str, file: &str, manifest: &str) -> String {
    let scenario = format!("name: a\nduration: 1m\n{CLUSTERS}manifests: [{file}]\n");
    let folder = Folder::new(name, &[("scenario.yaml", &scenario), (file, manifest)]);
    let error = folder.load().err().unwrap_or_default();
    let names: Vec<_> = error
        .lines()
        .filter_map(|line| line.find(file).map(|at| &line[at..]))
        .collect();
    names.join("\n")
}

#[test]
fn a_wrong_value_of_a_manifest_has_its_line_and_column() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n---\n# the second one\n---\n";
    let error = refusal(
        "several-documents",
        "web.yaml",
        &format!("{head}{}", deployment("  replicas: three\n")),
    );
    assert!(
        error.starts_with("web.yaml:13:13: Deployment web: spec.replicas: Invalid value: "),
        "{error}"
    );
    let json = "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": \"web\"},\n\t\"spec\": \
                {\"selector\": {\"matchLabels\": {\"a\": \"b\"}}, \"template\": {\"metadata\": {\"labels\": {\"a\": \"b\"}},\n\t\
                \"spec\": {\"containers\": [{\"name\": \"a\", \"image\": 7}]}}}}\n";
    let error = refusal("json", "web.json", json);
    let field = "spec.template.spec.containers[0].image";
    assert!(
        error.starts_with(&format!("web.json:3:49: Deployment web: {field}: Invalid value: ")),
        "{error}"
    );
    let missing = deployment("  replicas: 1\n").replace("name: a, ", "");
    let error = refusal("missing-name", "web.yaml", &missing);
    assert!(
        error.starts_with("web.yaml:6:66: Deployment web: spec.template.spec.containers[0].name: Required value"),
        "{error}"
    );
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\nspec:\n  \
                  resourceSelectors: []\n  placement:\n    clusterTolerations:\n    - {key: a, tolerationSeconds: soon}\n";
    let error = refusal("typed", "policy.yaml", policy);
    let field = "spec.placement.clusterTolerations[0].tolerationSeconds";
    assert!(
        error.starts_with(&format!("policy.yaml:8:35: PropagationPolicy p: {field}: ")),
        "{error}"
    );
    let error = refusal("no-kind", "web.yaml", "apiVersion: v1\nmetadata: {name: a}\n");
    assert_eq!(error, "web.yaml:1:1: a: kind: is missing");
}

#[test]
fn every_wrong_value_of_a_manifest_is_reported() {
    let error = refusal(
        "several-values",
        "web.yaml",
        &deployment("  replicas: -3\n  minReadySeconds: -1\n"),
    );
    let places: Vec<_> = error
        .lines()
        .map(|line| line.split(": Invalid value").next().unwrap_or_default())
        .collect();
    assert_eq!(
        places,
        [
            "web.yaml:7:13: Deployment web: spec.replicas",
            "web.yaml:8:20: Deployment web: spec.minReadySeconds",
        ]
    );
}

#[test]
fn a_wrong_value_of_a_generated_object_and_of_one_in_a_scenario_has_its_line_and_column() {
    let check = |name: &str, manifests: &str, expected: &str| {
        let scenario = format!("name: a\nduration: 1m\n{CLUSTERS}manifests:\n{manifests}");
        let web = deployment("  replicas: r{n}\n");
        let folder = Folder::new(name, &[("scenario.yaml", &scenario), ("web.yaml", &web)]);
        let error = folder.load().err().unwrap_or_default();
        assert!(error.contains(expected), "{name}: {error}");
    };
    check(
        "copies",
        "- {file: web.yaml, count: 3}\n",
        "web.yaml:7:13: Deployment web: spec.replicas: ",
    );
    check(
        "inline",
        "- objects:\n  - apiVersion: v1\n    kind: Service\n    metadata: {name: a}\n    spec:\n      ports:\n      - port: many\n",
        "scenario.yaml:11:15: manifests[0].objects[0]: Service a: spec.ports[0].port: ",
    );
}
