//! Checks the dependencies between crates.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Allowed normal dependencies between crates of this workspace.
const WORKSPACE_EDGES: &[(&str, &[&str])] = &[
    ("bulkhead-core", &[]),
    ("bulkhead-plugin", &["bulkhead-core"]),
    ("bulkhead-journal", &["bulkhead-core"]),
    ("bulkhead-oci", &["bulkhead-core", "bulkhead-plugin"]),
    ("bulkhead-engine-wasm", &["bulkhead-core", "bulkhead-plugin"]),
    ("bulkhead-engine-lua", &["bulkhead-core", "bulkhead-plugin"]),
    ("bulkhead-plugins-builtin", &["bulkhead-core"]),
    (
        "bulkhead-plugins-lua",
        &["bulkhead-api", "bulkhead-core", "bulkhead-plugin"],
    ),
    ("bulkhead-api", &["bulkhead-core"]),
    ("bulkhead-conformance", &["bulkhead-core", "bulkhead-plugin"]),
    ("bulkhead-apiserver", &["bulkhead-core"]),
    ("bulkhead-emulator", &["bulkhead-apiserver", "bulkhead-core"]),
    ("bulkhead-estimator", &["bulkhead-core"]),
    ("bulkhead-runtime", &[]),
    (
        "bulkhead-controllers",
        &[
            "bulkhead-api",
            "bulkhead-core",
            "bulkhead-estimator",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
            "bulkhead-runtime",
        ],
    ),
    (
        "bulkhead-defaults",
        &[
            "bulkhead-api",
            "bulkhead-apiserver",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-engine-lua",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
            "bulkhead-plugins-lua",
        ],
    ),
    (
        "bulkhead-simulator",
        &[
            "bulkhead-api",
            "bulkhead-apiserver",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-defaults",
            "bulkhead-emulator",
            "bulkhead-journal",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
            "bulkhead-runtime",
        ],
    ),
    (
        "bulkhead-console",
        &[
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-journal",
            "bulkhead-plugin",
            "bulkhead-simulator",
        ],
    ),
    (
        "bulkhead-server",
        &[
            "bulkhead-api",
            "bulkhead-apiserver",
            "bulkhead-conformance",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-defaults",
            "bulkhead-emulator",
            "bulkhead-engine-lua",
            "bulkhead-engine-wasm",
            "bulkhead-journal",
            "bulkhead-oci",
            "bulkhead-plugin",
            "bulkhead-runtime",
        ],
    ),
    (
        "bulkhead",
        &[
            "bulkhead-api",
            "bulkhead-conformance",
            "bulkhead-console",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-defaults",
            "bulkhead-engine-lua",
            "bulkhead-engine-wasm",
            "bulkhead-journal",
            "bulkhead-oci",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
            "bulkhead-plugins-lua",
            "bulkhead-runtime",
            "bulkhead-server",
            "bulkhead-simulator",
        ],
    ),
    ("bulkhead-sdk", &[]),
    ("bulkhead-e2e", &["bulkhead-api", "bulkhead-core"]),
    (
        "bulkhead-fuzz",
        &[
            "bulkhead-api",
            "bulkhead-core",
            "bulkhead-engine-lua",
            "bulkhead-journal",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
        ],
    ),
    ("bulkhead-it", &[]),
    ("bulkhead-tidy", &[]),
    // The interpreter cases run scripts, call webhooks, and use the registry for the order of precedence.
    (
        "bulkhead-vectors",
        &[
            "bulkhead-api",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-engine-lua",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
        ],
    ),
    ("xtask", &[]),
];

/// Allowed dependencies of tests on crates of this workspace, besides those above. `bulkhead-it` has tests only, and
/// may use every crate but the program and its servers.
const TEST_EDGES: &[(&str, &[&str])] = &[
    (
        "bulkhead",
        &["bulkhead-apiserver", "bulkhead-emulator", "bulkhead-vectors"],
    ),
    ("bulkhead-controllers", &["bulkhead-apiserver"]),
    // Decisions are tested with the built-in policies.
    ("bulkhead-core", &["bulkhead-plugins-builtin"]),
    ("bulkhead-engine-lua", &["bulkhead-plugins-builtin"]),
    ("bulkhead-engine-wasm", &["bulkhead-plugins-builtin"]),
    (
        "bulkhead-it",
        &[
            "bulkhead-api",
            "bulkhead-apiserver",
            "bulkhead-conformance",
            "bulkhead-controllers",
            "bulkhead-core",
            "bulkhead-defaults",
            "bulkhead-engine-lua",
            "bulkhead-engine-wasm",
            "bulkhead-fuzz",
            "bulkhead-journal",
            "bulkhead-oci",
            "bulkhead-plugin",
            "bulkhead-plugins-builtin",
            "bulkhead-plugins-lua",
            "bulkhead-simulator",
        ],
    ),
    ("bulkhead-plugins-lua", &["bulkhead-conformance", "bulkhead-engine-lua"]),
    ("bulkhead-runtime", &["bulkhead-apiserver"]),
];

/// External crates that a crate must not depend on directly.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "bulkhead-core",
        &["tokio", "kube", "k8s-openapi", "wasmtime", "mlua", "tracing", "rand"],
    ),
    (
        "bulkhead-journal",
        &["tokio", "kube", "k8s-openapi", "wasmtime", "mlua"],
    ),
    ("bulkhead-oci", &["kube", "k8s-openapi", "wasmtime", "mlua"]),
    ("bulkhead-plugin", &["tokio", "kube", "k8s-openapi", "wasmtime", "mlua"]),
    ("bulkhead-engine-wasm", &["tokio", "kube", "k8s-openapi", "mlua"]),
    ("bulkhead-engine-lua", &["tokio", "kube", "k8s-openapi", "wasmtime"]),
    (
        "bulkhead-plugins-builtin",
        &["tokio", "kube", "k8s-openapi", "wasmtime", "mlua"],
    ),
    ("bulkhead-plugins-lua", &["tokio", "wasmtime", "mlua"]),
    ("bulkhead-api", &["tokio", "wasmtime", "mlua", "jsonschema"]),
    (
        "bulkhead-conformance",
        &["tokio", "kube", "k8s-openapi", "wasmtime", "mlua"],
    ),
    ("bulkhead-apiserver", &["wasmtime", "mlua"]),
    ("bulkhead-emulator", &["wasmtime", "mlua"]),
    ("bulkhead-controllers", &["wasmtime", "mlua"]),
    ("bulkhead-defaults", &["tokio", "wasmtime", "mlua"]),
    ("bulkhead-simulator", &["clap", "wasmtime", "mlua"]),
    (
        "bulkhead-console",
        &["clap", "kube", "k8s-openapi", "tokio", "wasmtime", "mlua"],
    ),
    ("bulkhead-server", &["wasmtime", "mlua"]),
    ("bulkhead-runtime", &["wasmtime", "mlua", "prometheus-client"]),
    ("bulkhead-estimator", &["kube", "k8s-openapi", "wasmtime", "mlua"]),
];

#[test]
fn crates_know_only_what_the_architecture_allows() {
    let manifest = super::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let allowed: BTreeMap<_, _> = WORKSPACE_EDGES.iter().copied().collect();
    let in_tests: BTreeMap<_, _> = TEST_EDGES.iter().copied().collect();
    let forbidden: BTreeMap<_, _> = FORBIDDEN.iter().copied().collect();
    let members: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(allowed) = allowed.get(name) else {
            problems.push(format!("{name} is not in the table of crates"));
            continue;
        };
        let in_tests = in_tests.get(name).copied().unwrap_or_default();
        for dependency in &package.dependencies {
            let target = dependency.name.as_str();
            let is_test = dependency.kind == DependencyKind::Development;
            if members.contains(target) && !allowed.contains(&target) && !(is_test && in_tests.contains(&target)) {
                let who = if is_test { "tests of " } else { "" };
                problems.push(format!("{who}{name} must not depend on {target}"));
            }
            if is_test {
                continue;
            }
            if forbidden.get(name).is_some_and(|forbidden| forbidden.contains(&target)) {
                problems.push(format!("{name} must not know {target}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Crates that log. The others return what happened, and their callers log it.
const LOGGING: [&str; 6] = [
    "bulkhead-plugin",
    "bulkhead-oci",
    "bulkhead-runtime",
    "bulkhead-controllers",
    "bulkhead-server",
    "bulkhead",
];
/// Crates that format log lines. Each other crate works with any subscriber, or with none.
const FORMATTING: [&str; 1] = ["bulkhead-server"];

#[test]
fn only_the_shell_logs_and_only_the_program_installs_a_subscriber() {
    let root = super::root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let users = |library: &str| -> BTreeSet<_> {
        let uses = |package: &&cargo_metadata::Package| {
            package
                .dependencies
                .iter()
                .any(|d| d.kind == DependencyKind::Normal && d.name == library)
        };
        metadata
            .packages
            .iter()
            .filter(uses)
            .map(|package| package.name.to_string())
            .collect()
    };
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(users("tracing"), set(&LOGGING));
    assert_eq!(users("tracing-subscriber"), set(&FORMATTING));
    let installers = super::size::sources(&root.join("host")).into_iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        ["set_global_default", "try_init()"]
            .iter()
            .any(|call| text.contains(call))
    });
    assert_eq!(installers.collect::<Vec<_>>(), [root.join("host/cli/src/log.rs")]);
}

/// Returns the crates of the map in ARCHITECTURE.md, each with the path in its row.
fn mapped(architecture: &str) -> BTreeMap<String, String> {
    let (_, section) = architecture.split_once("\n## Map\n").unwrap();
    let rows = section.split("\n## ").next().unwrap().lines();
    let mut crates = BTreeMap::new();
    for row in rows.filter(|row| row.starts_with("| `")) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (names, path) = (cells.next().unwrap(), cells.next().unwrap().trim_matches('`'));
        let names = names.split('`').skip(1).step_by(2);
        crates.extend(names.map(|name| (name.to_owned(), path.to_owned())));
    }
    crates
}

#[test]
fn the_map_of_the_architecture_has_every_crate_with_its_path() {
    let root = super::root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let mut mapped = mapped(&std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    for package in &metadata.packages {
        let name = package.name.as_str();
        let row = mapped.remove(name);
        let path = row.unwrap_or_else(|| panic!("the map has no row of {name}"));
        let folder = package.manifest_path.parent().unwrap().as_std_path();
        let is_it = match path.strip_suffix("/*") {
            Some(parent) => folder.parent() == Some(root.join(parent).as_path()),
            None => folder == root.join(&path),
        };
        assert!(is_it, "{name} is in {}, not in {path}", folder.display());
    }
    assert!(mapped.is_empty(), "the map has crates that do not exist: {mapped:?}");
}

#[test]
fn the_table_names_no_crate_that_is_gone() {
    let members = super::members();
    for (name, _) in WORKSPACE_EDGES.iter().chain(TEST_EDGES).chain(FORBIDDEN) {
        assert!(members.contains(*name), "{name}");
    }
}
