//! Measures the processor time of loads of a component from the cache of compiled code.
//!
//! `cargo build --workspace --examples`, then `target/debug/examples/load COMPONENT FOLDER`. The first load fills the
//! cache in the folder. Prints the medians of the digest, which identifies the code, and of the rest of the load.

use std::path::PathBuf;

use bulkhead_core::policy::EngineKind;
use bulkhead_engine_wasm::{CacheOptions, Options, WasmEngine};
use bulkhead_plugin::{Engine, Module, ModuleCode, PluginSource};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Number of measured loads.
const LOADS: usize = 21;

/// Returns the processor time of this process in milliseconds.
fn processor_ms() -> nix::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let ms = |time: TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    Ok(ms(usage.user_time()) + ms(usage.system_time()))
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [component, folder] = arguments.as_slice() else {
        return Err("usage: load COMPONENT FOLDER".into());
    };
    let bytes = std::fs::read(component)?;
    let engine = WasmEngine::new(Options {
        cache: Some(CacheOptions::in_folder(folder)),
        ..Options::default()
    })?;
    let (mut digests, mut loads) = (Vec::new(), Vec::new());
    for number in 0..=LOADS {
        // Clones would share the digest.
        let code = ModuleCode::from(bytes.as_slice());
        let start = processor_ms()?;
        code.digest();
        let identified = processor_ms()?;
        let module = Module {
            origin: component.display().to_string(),
            code,
            entries: Vec::new(),
        };
        let loaded = engine.load(&PluginSource::new("load", EngineKind::Wasm, vec![module]))?;
        let end = processor_ms()?;
        drop(loaded);
        if number > 0 {
            digests.push(identified - start);
            loads.push(end - identified);
        }
    }
    let hits = engine.cache_report().map_or(0, |report| report.hits);
    if hits < u64::try_from(LOADS)? {
        return Err(format!("{hits} of {LOADS} loads came from the cache").into());
    }
    let (digest, load) = (median(digests), median(loads));
    println!(
        "digest {:.1} ms, load {:.1} ms",
        digest.unwrap_or_default(),
        load.unwrap_or_default()
    );
    Ok(())
}
