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
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let target = dependency.name.as_str();
            if members.contains(target) && !allowed.contains(&target) {
                problems.push(format!("{name} must not depend on {target}"));
            }
            if forbidden.get(name).is_some_and(|forbidden| forbidden.contains(&target)) {
                problems.push(format!("{name} must not know {target}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Crates that log. The others return what happened, and their callers log it.
const LOGGING: [&str; 5] = [
    "bulkhead-plugin",
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

#[test]
fn the_table_names_no_crate_that_is_gone() {
    let manifest = super::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let members: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    for (name, _) in WORKSPACE_EDGES.iter().chain(FORBIDDEN) {
        assert!(members.contains(*name), "{name}");
    }
}
