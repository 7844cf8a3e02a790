//! Guests that ask the host for everything, until a limit ends their call.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_core::call::Reply;
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::{Blame, EngineKind, Fault, Policy};
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::{CacheOptions, Options, WasmEngine};
use bulkhead_plugin::{Engine as _, Entry, Module, PluginSource};

use crate::component::{Argument, LendingCall, Times, component};
use crate::functions::{self, Function, Param};
use crate::input::Inputs;
use crate::peak::{Peak, THIS};
use crate::prepare;

/// Script that copies its whole input again and again, with a new text for each text.
const COPIES: &str = "
function Score(binding, clusters, now)
  local kept = {}
  local function copy(value)
    if type(value) == 'string' then return value .. #kept end
    if type(value) ~= 'table' then return value end
    local copied = {}
    for key, inner in pairs(value) do copied[key] = copy(inner) end
    return copied
  end
  while true do table.insert(kept, { copy(binding), copy(clusters) }) end
end
";
/// Texts that pointers select in the input: the whole object, and its longest text.
static POINTERS: [&str; 2] = ["", "/s"];
/// Length of a list of pointers.
const POINTERS_MAX: usize = 3_000;

/// Returns the default budget without the limit of steps, which would end most calls before the limit of memory.
fn budget(wall_clock_ms: u64) -> Budget {
    Budget {
        steps: u64::MAX,
        wall_clock_ms,
        ..Budget::default()
    }
}

fn mib(budget: Budget) -> usize {
    budget.memory_bytes >> 20
}

/// Runs the script. Returns the description of the measurement, and the peak in KiB.
pub(crate) fn lua() -> anyhow::Result<(String, u64)> {
    let entries = vec![Entry {
        point: EntryPoint::Score,
        object_kind: None,
    }];
    let module = Module {
        origin: "copies.lua".to_owned(),
        code: COPIES.into(),
        entries,
    };
    let budget = budget(120_000);
    let source = PluginSource {
        budget,
        ..PluginSource::new("copies", EngineKind::Lua, vec![module])
    };
    let (engine, inputs) = (LuaEngine::default(), Inputs::new());
    let policy = engine.load(&source)?.policy;
    let peak = Peak::start(THIS)?;
    let outcome = inputs.ask(&*policy, LendingCall::Score);
    let peak_kib = peak.kib()?;
    let fault = fault(outcome)?;
    Ok((
        format!(
            "a script copies its input, limit {} MiB, ended by {:?}",
            mib(budget),
            fault.kind
        ),
        peak_kib,
    ))
}

/// Returns the fault of a call that a limit ended.
fn fault(outcome: Result<Reply, Fault>) -> anyhow::Result<Fault> {
    let fault = outcome.err().context("a guest that never ends has answered")?;
    if fault.kind.blame() != Blame::Guest {
        bail!("the call did not end at a limit: {fault:?}");
    }
    Ok(fault)
}

/// Returns every function with the arguments of a call.
fn calls() -> impl Iterator<Item = (Function, Vec<Argument>)> {
    functions::ALL.into_iter().flat_map(|function| {
        let pointers = if function.params.is_empty() {
            &POINTERS[..1]
        } else {
            &POINTERS[..]
        };
        pointers.iter().map(move |pointer| {
            let argument = |param: &Param| match param {
                Param::Text => Argument::Text((*pointer).to_owned()),
                Param::Texts => Argument::Texts((*pointer).to_owned(), POINTERS_MAX),
                Param::Number => Argument::Number(0),
                Param::Level => Argument::Number(1),
            };
            (function, function.params.iter().map(argument).collect::<Vec<_>>())
        })
    })
}

fn engine(cache: &Path) -> anyhow::Result<WasmEngine> {
    Ok(WasmEngine::new(Options {
        cache: Some(CacheOptions::in_folder(cache)),
        ..Options::default()
    })?)
}

fn load(
    engine: &WasmEngine,
    function: &Function,
    arguments: &[Argument],
    budget: Budget,
) -> anyhow::Result<Arc<dyn Policy>> {
    let code = wat::parse_str(component(function, arguments, Times::Forever))?;
    let module = Module {
        origin: format!("{function}.wat"),
        code: code.into(),
        entries: Vec::new(),
    };
    let source = PluginSource {
        budget,
        ..PluginSource::new("asks", EngineKind::Wasm, vec![module])
    };
    Ok(engine.load(&source)?.policy)
}

/// Compiles every component into a cache.
pub(crate) fn compile(cache: &Path) -> anyhow::Result<()> {
    let engine = engine(cache)?;
    for (function, arguments) in calls() {
        load(&engine, &function, &arguments, Budget::default())?;
    }
    Ok(())
}

/// Runs every component. Returns the description of the largest measurement, and its peak in KiB.
pub(crate) fn wasm() -> anyhow::Result<(String, u64)> {
    let cache = tempfile::tempdir()?;
    prepare("compile", cache.path())?;
    let (engine, inputs, budget) = (engine(cache.path())?, Inputs::new(), budget(1_000));
    let (mut largest, mut ran) = ((String::new(), 0), 0);
    for (function, arguments) in calls() {
        let policy = load(&engine, &function, &arguments, budget)?;
        let peak = Peak::start(THIS)?;
        let outcome = inputs.ask(&*policy, LendingCall::about(function.interface));
        let peak_kib = peak.kib()?;
        let fault = fault(outcome).with_context(|| format!("calling {function}"))?;
        ran += 1;
        if peak_kib > largest.1 {
            largest = (format!("`{function}`, ended by {:?}", fault.kind), peak_kib);
        }
    }
    let compiled = engine.cache_report().map_or(0, |report| report.misses);
    if compiled > 0 {
        bail!("{compiled} components were compiled in the measured process");
    }
    let subject = format!(
        "{ran} components that call a function without end, limit {} MiB",
        mib(budget)
    );
    Ok((format!("{subject}; the largest: {}", largest.0), largest.1))
}
