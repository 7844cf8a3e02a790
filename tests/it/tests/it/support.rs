//! Helpers that run scenarios and report failed expectations.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::Engine;
use bulkhead_simulator::report::Report;
use bulkhead_simulator::scenario::{self, Loaded};
use bulkhead_simulator::simulation::{self, Detail, RunOptions};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

/// Loads an example. `cargo xtask test` builds its Wasm plugins.
pub(crate) fn example(name: &str) -> Loaded {
    scenario::load(&root().join("examples").join(name).join("scenario.yaml")).unwrap()
}

/// A scenario in a folder of its own.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with these files.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = root().join("target/it").join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
        Self(folder)
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Loads `scenario.yaml`, or returns the error text.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        scenario::load(&self.0.join("scenario.yaml")).map_err(|error| error.to_string())
    }
}

/// A ClusterTaintPolicy that evicts workloads from clusters that are not ready.
pub(crate) const TAINT_POLICY: &str = include_str!("../../../../examples/nginx-divided/taint-policy.yaml");

/// Returns all plugin engines.
pub(crate) fn engines() -> Vec<Arc<dyn Engine>> {
    vec![
        Arc::new(LuaEngine::default()),
        Arc::new(WasmEngine::new(Default::default()).unwrap()),
    ]
}

/// Runs a scenario, or returns the error text.
pub(crate) fn try_run(scenario: &Loaded, seed: Option<u64>) -> Result<Report, String> {
    let options = RunOptions {
        seed,
        engines: engines(),
        detail: Detail::Everything,
        explain: None,
        sink: None,
        progress: None,
        is_last: false,
    };
    simulation::run(scenario, options)
        .map(|finished| finished.report)
        .map_err(|error| format!("{error:#}"))
}

/// Runs a scenario and panics if it cannot run.
pub(crate) fn run(scenario: &Loaded, seed: Option<u64>) -> Report {
    try_run(scenario, seed).unwrap()
}

/// Panics with every expectation that did not hold.
pub(crate) fn assert_held(report: &Report) {
    let failed: Vec<_> = report
        .expectations
        .iter()
        .filter(|row| !row.held)
        .map(|row| {
            format!(
                "seed {}: line {}: {} {}; seen: {}",
                report.seed, row.line, row.when, row.expected, row.seen
            )
        })
        .collect();
    assert!(!report.expectations.is_empty(), "nothing is expected");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns Deployments with this many replicas, and their policies with this `placement`.
pub(crate) fn apps(replicas: u32, placement: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: 'app-{{n}}', namespace: default}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{matchLabels: {{app: 'app-{{n}}'}}}}\n  template:\n    \
         metadata: {{labels: {{app: 'app-{{n}}'}}}}\n    spec: {{containers: [{{name: app, image: app}}]}}\n---\n\
         apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
         metadata: {{name: 'app-{{n}}', namespace: default}}\nspec:\n  \
         resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: 'app-{{n}}'}}]\n  \
         placement:\n{placement}"
    )
}
