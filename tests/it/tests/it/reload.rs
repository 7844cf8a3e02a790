//! A plugin file is replaced under load: every call is answered.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bulkhead_core::call::HealthCall;
use bulkhead_core::combine;
use bulkhead_core::model::Health;
use bulkhead_core::policy::PolicySet;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_plugin::{Directory, Engine, LoadStage, Loading, Plugins, Registry, Watch};
use serde_json::{Value, json};

use crate::support::root;

/// Returns a Deployment that is healthy according to one version only.
fn deployment() -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "nginx", "generation": 1},
        "spec": {"replicas": 3},
        "status": {"observedGeneration": 1, "updatedReplicas": 3, "availableReplicas": 3},
    }))
}

fn ask(policies: &PolicySet, object: &Arc<Value>) -> combine::HealthOutcome {
    combine::health(
        policies,
        HealthCall {
            object,
            now: Time::from_millis(0),
        },
    )
}

/// Replaces a file atomically, through a rename.
fn replace(file: &Path, content: &[u8]) {
    let next = file.with_extension("next");
    fs::write(&next, content).unwrap();
    fs::rename(&next, file).unwrap();
}

/// Waits until `so` returns true and prints the elapsed time. The watch observes real files in real time, so only
/// this test waits. The maximum number of polls per change is tested next to the plugin code.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::yield_now();
    }
    println!("{what}: after {:?}", start.elapsed());
}

#[test]
fn a_plugin_is_replaced_under_load_without_a_failed_decision() {
    let folder = tempfile::tempdir().unwrap();
    let component = fs::read(root().join("target/guests/deployment-health.wasm")).unwrap();
    let script = |healthy: bool| format!("function InterpretHealth(obj) return {healthy} end").into_bytes();
    fs::write(folder.path().join("a.wasm"), &component).unwrap();
    fs::write(folder.path().join("b.lua"), script(true)).unwrap();
    let engines: Vec<Arc<dyn Engine>> = vec![
        Arc::new(LuaEngine::default()),
        Arc::new(WasmEngine::new(Default::default()).unwrap()),
    ];
    let registry = Arc::new(Registry::new(engines));
    let smoke = Box::new(|policy: &dyn bulkhead_core::policy::Policy| bulkhead_conformance::smoke(policy));
    let options = Loading {
        smoke_test: Some(smoke),
        ..Loading::default()
    };
    let plugins = Plugins::new(Arc::clone(&registry), Box::new(Directory::new(folder.path())), options);
    let plugins = Arc::new(plugins);
    plugins.refresh();
    assert!(
        plugins.status().iter().all(|status| status.stage == LoadStage::Active),
        "{:#?}",
        plugins.status()
    );
    let _watch = Watch::start(Arc::clone(&plugins), Watch::INTERVAL, |_| {}).unwrap();

    let (stop, asked, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let object = deployment();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let outcome = ask(&registry.policies(), &object);
                    asked.fetch_add(1, Ordering::Relaxed);
                    failed.fetch_add(outcome.diagnostics.faults.len() as u64, Ordering::Relaxed);
                }
            });
        }
        let says = |health| ask(&registry.policies(), &object).health == health;
        assert!(says(Health::Healthy));
        // The component is removed and the script behind it answers; then the script changes its answer; then it is
        // garbage.
        fs::remove_file(folder.path().join("a.wasm")).unwrap();
        replace(&folder.path().join("b.lua"), &script(false));
        until("the new script", || says(Health::Unhealthy));
        replace(&folder.path().join("b.lua"), b"function InterpretHealth(obj) return");
        until("the refusal", || {
            plugins.status().iter().any(|status| status.refused.is_some())
        });
        assert!(says(Health::Unhealthy), "the old one goes on");
        replace(&folder.path().join("a.wasm"), &component);
        until("the component", || says(Health::Healthy));
        replace(&folder.path().join("a.wasm"), &component[..component.len() / 2]);
        until("the second refusal", || {
            plugins
                .status()
                .iter()
                .filter(|status| status.refused.is_some())
                .count()
                == 2
        });
        assert!(says(Health::Healthy), "the old component goes on");
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked.load(Ordering::Relaxed) > 0);
    assert_eq!(
        failed.load(Ordering::Relaxed),
        0,
        "of {} decisions",
        asked.load(Ordering::Relaxed)
    );
    let refused: Vec<_> = plugins
        .status()
        .into_iter()
        .filter_map(|status| Some((status.name, status.refused?)))
        .collect();
    assert_eq!(refused[0].0, "a");
    assert_eq!((refused[1].0.as_str(), refused[1].1.stage), ("b", LoadStage::Compiled));
    assert!(refused[1].1.message.contains("b.lua:1:"), "{refused:?}");
}
