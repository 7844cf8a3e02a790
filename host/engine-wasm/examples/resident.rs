//! Checks that memory stays constant over a million calls of a component.
//!
//! `cargo xtask guests`, then `cargo run --release -p bulkhead-engine-wasm --example resident`. Prints the resident
//! memory after increasing numbers of calls, first with a new instance for every call, then with reused instances.
//! Reads `/proc`, so it runs only on Linux.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, Reply};
use bulkhead_core::manifest::Instances;
use bulkhead_core::policy::{EngineKind, Policy};
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::{Options, WasmEngine};
use bulkhead_plugin::{Bounded, Engine, Module, PluginSource};
use serde_json::Value;

const GUEST: &str = "deployment-health";
const CALLS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn run(policy: &dyn Policy, object: &Arc<Value>, instances: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut done = 0;
    for calls in CALLS {
        while done < calls {
            match policy.call(&Call::Health(HealthCall {
                object,
                now: Time::from_millis(0),
            }))? {
                Reply::Health(_) => done += 1,
                other => return Err(format!("a {} reply", other.kind()).into()),
            }
        }
        println!("{instances}: {} KiB after {done} calls", resident_kib()?);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .ok_or("no workspace")?
        .to_path_buf();
    let code = std::fs::read(root.join("target/guests").join(format!("{GUEST}.wasm")))?;
    let object = Arc::new(serde_json::from_str(include_str!(
        "../../engine-lua/benches/deployment.json"
    ))?);
    let engine = WasmEngine::new(Options::default())?;
    for (instances, label) in [(Instances::Fresh, "fresh"), (Instances::Reused, "reused")] {
        let module = Module {
            origin: GUEST.to_owned(),
            code: code.as_slice().into(),
            entries: Vec::new(),
        };
        let source = PluginSource {
            instances,
            ..PluginSource::new(GUEST, EngineKind::Wasm, vec![module])
        };
        run(&Bounded::new(engine.load(&source)?.policy), &object, label)?;
    }
    Ok(())
}
