//! `bulkhead schema`: the schemas of `docs/schemas` are those of the program, accept every file of the repository, and
//! reject typos. `UPDATE_GOLDENS=1` rewrites the schemas.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;

const KINDS: [&str; 5] = ["scenario", "plugins", "cases", "configuration", "trust"];
/// Beginning of the line that names a schema for editors.
const LINE: &str = "# yaml-language-server: $schema=";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn schema(kind: &str) -> String {
    let output = super::bulkhead().args(["schema", kind]).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{kind}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// People who have no program yet install these kinds with kubectl.
#[test]
fn the_definitions_of_the_deployment_are_those_of_the_program() {
    let output = super::bulkhead()
        .args(["crds", "--group", "bulkhead.dev"])
        .output()
        .unwrap();
    let definitions = String::from_utf8(output.stdout).unwrap();
    let path = root().join("host/deploy/crds/bulkhead.yaml");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &definitions).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap();
    assert!(
        stored == definitions,
        "{} is not the output of `bulkhead crds --group bulkhead.dev`; UPDATE_GOLDENS=1 writes it anew",
        path.display()
    );
}

fn validators() -> BTreeMap<&'static str, Validator> {
    let validator = |kind| {
        let schema: Value = serde_json::from_str(&schema(kind)).unwrap();
        (kind, jsonschema::options().build(&schema).unwrap())
    };
    KINDS.into_iter().map(validator).collect()
}

/// Returns the problems of a file with one or more YAML documents.
fn problems(validator: &Validator, text: &str) -> Vec<String> {
    let documents: Vec<Option<Value>> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let of_document = |document: &Value| {
        let errors = validator.iter_errors(document);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect::<Vec<_>>()
    };
    documents.iter().flatten().flat_map(of_document).collect()
}

/// Returns the format of a file, if it has a schema.
fn kind_of(text: &str) -> Option<&'static str> {
    let has = |start: &str| text.lines().any(|line| line.starts_with(start));
    if has("kind: PluginList") {
        Some("plugins")
    } else if has("kind: PluginTrust") && !has("spec:") {
        Some("trust")
    } else if has("kind: BulkheadConfiguration") {
        Some("configuration")
    } else if has("cases:") || has("operation:") {
        Some("cases")
    } else {
        (has("duration:") && has("clusters:")).then_some("scenario")
    }
}

/// Returns all files below a folder with one of the extensions.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the YAML of a document: blocks of the language `yaml`, and files that shell blocks write.
fn blocks(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in document.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap_or_default();
        if language == "yaml" {
            found.push(text.to_owned());
        }
        let written = text
            .split("<<END\n")
            .skip(1)
            .filter_map(|rest| rest.split_once("\nEND"));
        found.extend(written.map(|(file, _)| file.to_owned()));
    }
    found
}

#[test]
fn the_schemas_of_the_documents_are_those_of_the_program() {
    for kind in KINDS {
        let (path, printed) = (root().join("docs/schemas").join(format!("{kind}.json")), schema(kind));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&path, &printed).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let differs = printed
            .lines()
            .zip(kept.lines())
            .position(|(printed, kept)| printed != kept);
        let at = differs.map(|index| (index + 1, printed.lines().nth(index)));
        assert!(
            printed == kept,
            "{} is old at {at:?}; UPDATE_GOLDENS=1 rewrites it",
            path.display()
        );
    }
}

#[test]
fn examples_name_their_schema_and_satisfy_it() {
    let (root, validators, mut seen) = (root(), validators(), BTreeMap::<_, usize>::new());
    for path in files(&root.join("examples"), "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        let Some(kind) = kind_of(&text) else { continue };
        let named = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(LINE))
            .unwrap_or_default();
        let named = path.with_file_name("").join(named).canonicalize().ok();
        let expected = root.join("docs/schemas").join(format!("{kind}.json"));
        assert_eq!(
            named,
            Some(expected),
            "the first line of {} must name its schema",
            path.display()
        );
        assert_eq!(problems(&validators[kind], &text), [""; 0], "{}", path.display());
        *seen.entry(kind).or_default() += 1;
    }
    assert!(seen["scenario"] >= 15 && seen["cases"] >= 1, "{seen:?}");
}

#[test]
fn documented_files_and_the_cases_of_the_library_satisfy_their_schema() {
    let (root, validators, mut seen) = (root(), validators(), BTreeMap::<_, usize>::new());
    let documents = files(&root.join("docs/src"), "md");
    let documents = documents.into_iter().chain([root.join("README.md")]);
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    for path in documents {
        let document = fs::read_to_string(&path).unwrap();
        texts.extend(blocks(&document).into_iter().map(|block| (path.clone(), block)));
    }
    for folder in ["plugins", "host/cli/src/plugin/templates"] {
        for path in files(&root.join(folder), "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            texts.push((path, text));
        }
    }
    for (path, text) in texts {
        let Some(kind) = kind_of(&text) else { continue };
        assert_eq!(
            problems(&validators[kind], &text),
            [""; 0],
            "{}\n{text}",
            path.display()
        );
        *seen.entry(kind).or_default() += 1;
    }
    let least = [
        ("scenario", 6),
        ("plugins", 2),
        ("cases", 30),
        ("configuration", 2),
        ("trust", 1),
    ];
    assert!(
        least
            .iter()
            .all(|(kind, least)| seen.get(kind).is_some_and(|count| count >= least)),
        "{seen:?}"
    );
}

const SCENARIO: &str = "
name: typos
duration: 10m
profile: classic
flags: {feature-gates: {Failover: true}, resource-eviction-rate: 2}
clusters: [{name: member1, replicaReadyAfter: 15s, failureModes: [{mode: crash-loop}]}]
manifests: [{file: app.yaml, count: 3}]
events:
- {at: 60s, cluster: member1, state: unreachable}
- {at: 2m, fault: {kind: late-watches, for: 5s}}
expect:
- {binding: default/nginx, clusters: {member1: 1}}
- {decision: {decision: Evicted, reason: Tainted}}
";
const PLUGINS: &str = "
apiVersion: bulkhead.dev/v1alpha1
kind: PluginList
composition: {eviction-check: any-hold-wins}
plugins:
- {name: freeze, wasm: freeze.wasm, mode: shadow, fallback: abstain, breaker: {faults: 5}}
- {name: first, lua: first.lua, answers: [score], weight: 2, budget: {steps: 1000}}
";
const TRUST: &str = "
apiVersion: bulkhead.dev/v1alpha1
kind: PluginTrust
rules:
- {images: registry.example.com/plugins, keys: [{name: team, file: team.pub}], kinds: [health]}
- {images: registry.example.com/tests, unsigned: true, requireDigest: true}
";
const CASES: &str = "
cases:
- name: a game without servers
  kind: health
  input: {object: {kind: Game}, now: 2026-01-01T00:00:00Z}
  expect: {health: Unhealthy, reason: ServersDown}
- name: a cluster without the label
  kind: filter
  input: {binding: {name: b}, clusters: [{name: m1}]}
  expect: {clusters: {m1: unfit}}
";
const KARMADA_CASES: &str = "
name: a game without servers
operation: InterpretHealth
observedObj: {kind: Game}
output: {healthy: false}
";
const CONFIGURATION: &str = "
apiVersion: bulkhead.dev/v1alpha1
kind: BulkheadConfiguration
mode: [finish, interpret]
leader-elect: true
journal-bytes-max: 1000000
feature-gates: {Failover: true}
cluster-failure-threshold: 10s
";

/// Name of the typo, kind and text of the file, correct part, typo.
type Typo = (&'static str, &'static str, &'static str, &'static str, &'static str);

const TYPOS: [Typo; 35] = [
    (
        "a field of a scenario is misspelt",
        "scenario",
        SCENARIO,
        "duration:",
        "duraton:",
    ),
    ("a duration has no unit", "scenario", SCENARIO, "10m", "\"10\""),
    ("a duration is a number", "scenario", SCENARIO, "10m", "10"),
    ("a profile is unknown", "scenario", SCENARIO, "classic", "clasic"),
    (
        "a flag is misspelt",
        "scenario",
        SCENARIO,
        "resource-eviction-rate",
        "resource-evicton-rate",
    ),
    (
        "a flag has the wrong type",
        "scenario",
        SCENARIO,
        "rate: 2",
        "rate: fast",
    ),
    (
        "a feature gate is misspelt",
        "scenario",
        SCENARIO,
        "Failover",
        "Failver",
    ),
    (
        "a cluster has an unknown field",
        "scenario",
        SCENARIO,
        "replicaReadyAfter",
        "replicasReadyAfter",
    ),
    (
        "a failure mode is unknown",
        "scenario",
        SCENARIO,
        "crash-loop",
        "crashloop",
    ),
    (
        "the count of a manifest is a text",
        "scenario",
        SCENARIO,
        "count: 3",
        "count: three",
    ),
    ("a state is unknown", "scenario", SCENARIO, "unreachable", "unreachabel"),
    ("an event has no time", "scenario", SCENARIO, "at: 60s, ", ""),
    ("a fault is unknown", "scenario", SCENARIO, "late-watches", "late-watch"),
    (
        "an expectation is misspelt",
        "scenario",
        SCENARIO,
        "binding:",
        "bindng:",
    ),
    (
        "replicas are a text",
        "scenario",
        SCENARIO,
        "member1: 1",
        "member1: one",
    ),
    ("a decision is unknown", "scenario", SCENARIO, "Evicted", "evicted"),
    (
        "the kind of a list is wrong",
        "plugins",
        PLUGINS,
        "PluginList",
        "PluginsList",
    ),
    (
        "a composition rule is unknown",
        "plugins",
        PLUGINS,
        "any-hold-wins",
        "any-hold",
    ),
    ("a plugin has no code", "plugins", PLUGINS, "wasm: freeze.wasm, ", ""),
    (
        "a plugin has code twice",
        "plugins",
        PLUGINS,
        "mode: shadow",
        "lua: freeze.lua",
    ),
    ("a fallback is unknown", "plugins", PLUGINS, "abstain", "abstains"),
    ("a kind of call is unknown", "trust", TRUST, "[health]", "[healthy]"),
    (
        "a requirement is misspelt",
        "trust",
        TRUST,
        "requireDigest",
        "requiresDigest",
    ),
    (
        "a key has no file but a path",
        "trust",
        TRUST,
        "file: team.pub",
        "path: team.pub",
    ),
    (
        "a limit of a breaker is misspelt",
        "plugins",
        PLUGINS,
        "faults: 5",
        "fault: 5",
    ),
    ("a function is unknown", "plugins", PLUGINS, "[score]", "[scores]"),
    ("a weight is negative", "plugins", PLUGINS, "weight: 2", "weight: -2"),
    (
        "a kind of call is misspelt",
        "cases",
        CASES,
        "kind: health",
        "kind: heatlh",
    ),
    ("an input is misspelt", "cases", CASES, "binding:", "bindings:"),
    ("a verdict is unknown", "cases", CASES, "unfit", "unfitting"),
    (
        "an operation is unknown",
        "cases",
        KARMADA_CASES,
        "InterpretHealth",
        "InterpretHelth",
    ),
    ("a result is unknown", "cases", KARMADA_CASES, "healthy:", "helthy:"),
    (
        "a mode is unknown",
        "configuration",
        CONFIGURATION,
        "interpret]",
        "interprets]",
    ),
    (
        "an argument is misspelt",
        "configuration",
        CONFIGURATION,
        "leader-elect:",
        "leader-elct:",
    ),
    ("a size has a unit", "configuration", CONFIGURATION, "1000000", "1GB"),
];

#[test]
fn typos_are_rejected() {
    let validators = validators();
    for (name, kind, text, right, wrong) in TYPOS {
        assert_eq!(
            problems(&validators[kind], text),
            [""; 0],
            "{name}: the file without the typo"
        );
        assert_eq!(
            text.matches(right).count(),
            1,
            "{name}: {right:?} must be in the file once"
        );
        assert_ne!(
            problems(&validators[kind], &text.replace(right, wrong)),
            [""; 0],
            "{name}"
        );
    }
}

#[test]
fn an_unknown_kind_is_an_error_that_lists_the_kinds() {
    let output = super::bulkhead().args(["schema", "scenarios"]).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{complaint}");
    assert!(complaint.contains("scenarios"), "{complaint}");
    for kind in KINDS {
        assert!(complaint.contains(kind), "{kind}: {complaint}");
    }
}
