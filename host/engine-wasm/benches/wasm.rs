//! Cost of a component's calls with all limits on, compared with the same rule compiled into the host, and cost of
//! loading a component.
//!
//! `cargo xtask guests`, then `cargo bench -p bulkhead-engine-wasm`; the figures are in BENCHMARKS.md.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, HealthCall, Reply, ScoreCall};
use bulkhead_core::manifest::Instances;
use bulkhead_core::model::{Binding, Cluster, Health};
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::{CacheOptions, Options, WasmEngine};
use bulkhead_plugin::{Bounded, Engine, Module, PluginSource};
use bulkhead_plugins_builtin::NativeHealth;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

/// A Deployment as a member cluster reports it: 5.7 KB without white space. The benchmark of scripts uses the same
/// one.
const DEPLOYMENT: &str = include_str!("../../engine-lua/benches/deployment.json");
/// Number of clusters that are scored in one call.
const CLUSTERS: usize = 1_000;
/// Maximum size of a guest in bytes, to ensure a realistic size.
const GUEST_BYTES_MAX: usize = 100 << 10;

/// Returns a guest built by `cargo xtask guests`.
fn source(name: &str, instances: Instances) -> PluginSource {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the workspace")
        .to_path_buf();
    let file = root.join("target/guests").join(format!("{name}.wasm"));
    let code = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; cargo xtask guests", file.display()));
    assert!(code.len() <= GUEST_BYTES_MAX, "{name} has {} bytes", code.len());
    let module = Module {
        origin: file.display().to_string(),
        code: code.into(),
        entries: Vec::new(),
    };
    PluginSource {
        instances,
        ..PluginSource::new(name, EngineKind::Wasm, vec![module])
    }
}

fn component(engine: &WasmEngine, name: &str, instances: Instances) -> Box<dyn Policy> {
    let loaded = engine.load(&source(name, instances)).expect("the guest loads");
    Box::new(Bounded::new(loaded.policy))
}

fn verdict(policy: &dyn Policy, object: &Arc<Value>) -> Health {
    match policy.call(&Call::Health(HealthCall {
        object,
        now: Time::from_millis(0),
    })) {
        Ok(Reply::Health(verdict)) => verdict.health,
        other => panic!("{other:?}"),
    }
}

fn health(criterion: &mut Criterion) {
    let engine = WasmEngine::new(Options::default()).expect("the engine starts");
    let object: Value = serde_json::from_str(DEPLOYMENT).expect("the Deployment is JSON");
    let object = Arc::new(object);
    let policies: [(&str, Box<dyn Policy>); 3] = [
        ("native rule", Box::new(NativeHealth::default())),
        (
            "wasm: fresh instance",
            component(&engine, "deployment-health", Instances::Fresh),
        ),
        (
            "wasm: reused instance",
            component(&engine, "deployment-health", Instances::Reused),
        ),
    ];
    let mut group = criterion.benchmark_group("health of a 5.7 KB Deployment");
    for (name, policy) in &policies {
        assert_eq!(verdict(policy.as_ref(), &object), Health::Healthy, "{name}");
        group.bench_function(*name, |bencher| {
            bencher.iter(|| verdict(policy.as_ref(), black_box(&object)));
        });
    }
    group.finish();
}

/// The rule of `examples/plugins/most-free`, compiled into the host.
struct MostFree(PolicyId, [Capability; 1]);

impl Policy for MostFree {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Call::Score(call) = call else {
            return Err(Fault::new(FaultKind::HostBug, "only scores"));
        };
        let cpu = call
            .clusters
            .snapshot()
            .capacity()
            .resource("cpu")
            .expect("the clusters have processors");
        let share = |row: &u32| {
            let (free, all) = (cpu.amounts[*row as usize], cpu.allocatable[*row as usize]);
            if all > 0.0 {
                (free / all * 100.0).clamp(0.0, 100.0) as i64
            } else {
                0
            }
        };
        Ok(Reply::Score(call.clusters.rows().iter().map(share).collect()))
    }
}

fn cluster(number: usize) -> Arc<Cluster> {
    let cluster = json!({
        "name": format!("member-{number:04}"),
        "labels": {"region": format!("region-{}", number % 20), "tier": "gold", "environment": "production"},
        "spec": {"syncMode": "Push", "region": format!("region-{}", number % 20), "provider": "cloud"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {
                "allocatable": {"cpu": "640", "memory": "2560Gi", "pods": "1100", "ephemeral-storage": "20Ti"},
                "allocated": {"cpu": format!("{}250m", number % 600), "memory": "800Gi", "pods": "310"},
                "allocating": {"cpu": "2", "memory": "4Gi", "pods": "1"},
            },
        },
    });
    Arc::new(serde_json::from_value(cluster).expect("it is a cluster"))
}

fn binding() -> Binding {
    let binding = json!({
        "namespace": "default",
        "name": "nginx-deployment",
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            "replicas": 50,
            "clusters": [{"name": "member-0001", "replicas": 30}, {"name": "member-0002", "replicas": 20}],
        },
    });
    serde_json::from_value(binding).expect("it is a binding")
}

fn scores(policy: &dyn Policy, binding: &Binding, snapshot: &ClusterSnapshot) -> Vec<i64> {
    let call = ScoreCall {
        binding,
        clusters: snapshot.present(),
        now: Time::from_millis(0),
    };
    match policy.call(&Call::Score(call)) {
        Ok(Reply::Score(scores)) => scores,
        other => panic!("{other:?}"),
    }
}

fn score(criterion: &mut Criterion) {
    let engine = WasmEngine::new(Options::default()).expect("the engine starts");
    let (binding, snapshot) = (binding(), ClusterSnapshot::new((0..CLUSTERS).map(cluster)));
    let native = MostFree(PolicyId::builtin("most-free"), [Capability::any(CallKind::Score)]);
    let policies: [(&str, Box<dyn Policy>); 3] = [
        ("native rule", Box::new(Bounded::new(Arc::new(native)))),
        (
            "wasm: fresh instance",
            component(&engine, "most-free", Instances::Fresh),
        ),
        (
            "wasm: reused instance",
            component(&engine, "most-free", Instances::Reused),
        ),
    ];
    let expected = scores(policies[0].1.as_ref(), &binding, &snapshot);
    let mut group = criterion.benchmark_group("score of 1,000 clusters");
    for (name, policy) in &policies {
        assert_eq!(scores(policy.as_ref(), &binding, &snapshot), expected, "{name}");
        group.bench_function(*name, |bencher| {
            bencher.iter(|| scores(policy.as_ref(), black_box(&binding), black_box(&snapshot)));
        });
    }
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let folder = tempfile::TempDir::new().expect("a folder for the cache");
    let cached = Options {
        cache: Some(CacheOptions::in_folder(folder.path())),
        ..Options::default()
    };
    let start = |options: &Options| WasmEngine::new(options.clone()).expect("the engine starts");
    let source = source("most-free", Instances::Fresh);
    let load = |engine: &WasmEngine| engine.load(black_box(&source)).expect("the guest loads");
    let mut group = criterion.benchmark_group("load a guest of 60 KiB");
    group.sample_size(20);
    let compiles = start(&Options::default());
    group.bench_function("compiled", |bencher| bencher.iter(|| load(&compiles)));
    let reads = start(&cached);
    drop(load(&reads));
    group.bench_function("from the cache", |bencher| bencher.iter(|| load(&reads)));
    let report = reads.cache_report().expect("there is a cache");
    assert!(report.misses == 1 && report.hits > 0, "{report:?}");
    group.bench_function("from the cache, by an engine that starts", |bencher| {
        bencher.iter(|| load(&start(&cached)));
    });
    group.finish();
}

criterion_group!(benches, health, score, load);
criterion_main!(benches);
