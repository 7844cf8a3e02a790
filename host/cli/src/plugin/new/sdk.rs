//! Copies of the SDKs and of the WIT contract, so that a new plugin builds without a checkout of this repository.

/// Files of a folder of the repository, as pairs of a path and the text.
macro_rules! texts {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../../../", $folder, "/", $file)))),+]
    };
}

/// Files by path, relative to the folder of the copy.
pub(super) type Texts = &'static [(&'static str, &'static str)];

pub(super) const RUST: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../templates/sdk.toml")),
    (
        "src/bindings.rs",
        include_str!("../../../../../plugins/sdk/src/bindings.rs"),
    ),
    (
        "src/export.rs",
        include_str!("../../../../../plugins/sdk/src/export.rs"),
    ),
    ("src/kinds.rs", include_str!("../../../../../plugins/sdk/src/kinds.rs")),
    ("src/lib.rs", include_str!("../../../../../plugins/sdk/src/lib.rs")),
    (
        "src/verdict.rs",
        include_str!("../../../../../plugins/sdk/src/verdict.rs"),
    ),
];

pub(super) const PYTHON: Texts = texts!("plugins/sdk/python/bulkhead":
    "__init__.py", "component.py", "convert.py", "inputs.py", "py.typed", "registry.py", "testing.py", "types.py");

pub(super) const JAVASCRIPT: Texts = texts!("plugins/sdk/javascript":
    "component.js", "convert.js", "index.d.ts", "index.js", "testing.d.ts", "testing.js");

pub(super) const C: Texts = texts!("plugins/sdk/c":
    "bulkhead.c", "bulkhead.h", "bulkhead_abi.h", "bulkhead_component.c", "bulkhead_export.c", "bulkhead_json.c", "bulkhead_json.h", "bulkhead_memory.h",
    "bulkhead_test.c", "bulkhead_test.h");

pub(super) const GO: Texts = texts!("plugins/sdk/go":
    "abi_wasip1.go", "binding_wasip1.go", "bulkhead.go", "bulkheadtest/clusters.go", "bulkheadtest/objects.go",
    "cluster_wasip1.go", "clusters_wasip1.go", "errors.go", "export_eviction_wasip1.go", "export_filter_wasip1.go",
    "export_health_wasip1.go", "export_interpreter_wasip1.go", "export_plugin_wasip1.go", "export_score_wasip1.go",
    "export_taints_wasip1.go", "imports_wasip1.go", "inputs.go", "object_wasip1.go", "observations_wasip1.go");

pub(super) const WIT: Texts = texts!("wit":
    "binding.wit", "cluster.wit", "context.wit", "eviction.wit", "health.wit", "interpreter.wit", "object.wit",
    "scheduling.wit", "taints.wit", "types.wit", "worlds.wit");
