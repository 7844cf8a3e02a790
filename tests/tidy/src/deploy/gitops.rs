//! Example for GitOps: paths, versions and values are those of the repository.

use serde_json::Value;

use super::{at, files, one_yaml, path, yaml};

const FOLDER: &str = "examples/gitops";
/// Values of the chart with any content.
const OPEN: [&str; 2] = ["settings", "configuration"];

fn objects() -> Vec<(String, Value)> {
    let manifests = files(FOLDER)
        .into_iter()
        .filter(|file| file.rsplit_once('.').is_some_and(|(_, ending)| ending == "yaml"));
    let of_file = |file: String| yaml(&file).into_iter().map(move |object| (file.clone(), object));
    manifests.flat_map(of_file).collect()
}

/// Checks that each value is one of the chart.
fn check_values(file: &str, name: &str, given: &Value, known: &Value) {
    let Some(given) = given.as_object() else { return };
    for (key, value) in given {
        let name = format!("{name}.{key}");
        let known = known
            .get(key)
            .unwrap_or_else(|| panic!("{file}: the chart has no value {name}"));
        if !OPEN.contains(&key.as_str()) {
            check_values(file, &name, value, known);
        }
    }
}

#[test]
fn every_object_has_a_kind_and_a_name() {
    let objects = objects();
    for (file, object) in &objects {
        for field in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
            assert!(!at(object, field).is_empty(), "{file}: an object without {field}");
        }
    }
    let kinds: Vec<_> = objects.iter().map(|(_, object)| at(object, "/kind")).collect();
    for kind in [
        "Application",
        "GitRepository",
        "HelmRelease",
        "Kustomization",
        "OCIRepository",
    ] {
        assert!(kinds.contains(&kind), "no {kind}");
    }
}

#[test]
fn values_are_those_of_the_chart_and_versions_those_of_this_version() {
    let (chart, known) = (
        one_yaml("host/deploy/chart/Chart.yaml"),
        one_yaml("host/deploy/chart/values.yaml"),
    );
    let version = at(&chart, "/version");
    let mut seen = 0;
    for (file, object) in objects() {
        for values in ["/spec/values", "/spec/source/helm/valuesObject"] {
            if let Some(values) = object.pointer(values) {
                check_values(&file, "", values, &known);
                seen += 1;
            }
        }
        for revision in [
            "/spec/source/targetRevision",
            "/spec/ref/tag",
            "/spec/sources/0/targetRevision",
        ] {
            let found = at(&object, revision);
            let is_current = found.is_empty() || found.trim_start_matches('v') == version;
            assert!(
                is_current,
                "{file}: {revision} is {found}, and the version is {version}"
            );
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn paths_lead_to_the_definitions_and_to_the_role_of_the_mode() {
    let mut seen = Vec::new();
    for (file, object) in objects() {
        let sources = object
            .pointer("/spec/sources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for source in sources.chain(object.pointer("/spec")) {
            let named = at(source, "/path");
            if !named.is_empty() {
                assert!(path(named).is_dir(), "{file}: {named} is no folder");
                seen.push(named.to_owned());
            }
        }
    }
    seen.sort();
    let (definitions, role) = ("host/deploy/crds", "host/deploy/chart/rbac/report");
    assert_eq!(seen, [role, role, definitions, definitions]);
}

#[test]
#[should_panic(expected = "the chart has no value .journal.size")]
fn a_value_that_the_chart_does_not_have_is_found() {
    let known = one_yaml("host/deploy/chart/values.yaml");
    check_values("f", "", &serde_json::json!({"journal": {"size": "1Gi"}}), &known);
}
