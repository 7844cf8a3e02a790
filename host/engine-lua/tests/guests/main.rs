//! Runs every hostile script of `tests/guests/hostile/lua` and checks its outcome and its effect on other plugins.
//!
//! This test binary has a single test, because it measures the memory of the whole process.

mod expectation;
mod fixed_call;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{CallKind, Reply};
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{EngineKind, Fault, Policy};
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Engine, Entry, LoadStage, Module, PluginSource};
use peak_alloc::PeakAlloc;
use serde_json::json;

use expectation::{Expectation, Outcome};
use fixed_call::ask;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Minimum number of scripts, to detect a wrong directory.
const SCRIPTS_MIN: usize = 270;
/// Calls of each script: changes to its state must not help a later call.
const CALLS: usize = 3;
/// Maximum length of a fault's message, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Returns a budget that is exhausted quickly. The wall clock stops only scripts with unlimited steps.
fn budget(expectation: &Expectation) -> Budget {
    let budget = Budget {
        steps: 200_000,
        wall_clock_ms: 60_000,
        memory_bytes: 8 << 20,
        reply_bytes: 64 << 10,
    };
    match expectation.wall_clock_ms {
        Some(wall_clock_ms) => Budget {
            steps: u64::MAX,
            wall_clock_ms,
            ..budget
        },
        None => budget,
    }
}

/// Returns values that a hostile script could corrupt: strings, `kube`, libraries, globals, its arguments.
const NEIGHBOUR: &str = "
    local kube = require('kube')
    calls = (calls or 0) + 1
    function ReflectStatus(object)
        local names = {}
        for name in pairs(object) do table.insert(names, name) end
        table.sort(names)
        return {
            calls = calls, names = table.concat(names, ','), upper = ('x'):upper(), random = math.random(1000),
            sum = kube.resourceAdd('1', '1500m'), replicas = object.spec.replicas, limit = config and config.limit,
            globals = tostring(leak) .. type(_G.kept) .. type(keep), text = string.format('%s %d', {}, 1),
        }
    end";

fn module(origin: &str, code: &[u8], point: EntryPoint, kind: &str) -> Module {
    // The other calls are not about an object.
    let about_object = matches!(point.call_kind(), CallKind::Health | CallKind::Interpret);
    let object_kind = about_object.then(|| ("example.io/v1".to_owned(), kind.to_owned()));
    let entries = vec![Entry { point, object_kind }];
    Module {
        origin: origin.to_owned(),
        code: code.into(),
        entries,
    }
}

fn source(modules: Vec<Module>, budget: Budget) -> PluginSource {
    let taint_keys = vec!["a".to_owned()];
    PluginSource {
        config: json!({"limit": 3}),
        taint_keys,
        budget,
        ..PluginSource::new("guest", EngineKind::Lua, modules)
    }
}

/// Returns the answer of the neighbour, called through `policy`.
fn neighbour(policy: &dyn Policy) -> Result<Reply, Fault> {
    ask(policy, EntryPoint::ReflectStatus, "Neighbour")
}

/// Returns the neighbour with exactly the steps that it needs alone. It would fail if a concurrent plugin cost it one
/// more step.
fn neighbour_with_exact_budget(engine: &LuaEngine, module: &Module) -> Arc<dyn Policy> {
    let with_steps = |steps: u64| {
        let budget = Budget {
            steps,
            ..Budget::default()
        };
        engine
            .load(&source(vec![module.clone()], budget))
            .ok()
            .map(|loaded| loaded.policy)
    };
    let answers = |steps: u64| with_steps(steps).is_some_and(|policy| neighbour(policy.as_ref()).is_ok());
    let (mut too_few, mut enough) = (0, 100_000);
    assert!(answers(enough));
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if answers(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    with_steps(enough).expect("it loaded before")
}

/// Collected problems of one script.
struct Trial<'a> {
    engine: &'a LuaEngine,
    /// Another plugin in the same engine, and its earlier answer.
    other: (&'a dyn Policy, &'a Result<Reply, Fault>),
    problems: Vec<String>,
}

impl Trial<'_> {
    fn run(&mut self, name: &str, script: &[u8], expectation: &Expectation) {
        let budget = budget(expectation);
        let hostile = module(name, script, expectation.point, "Hostile");
        let sibling = module(
            "sibling.lua",
            NEIGHBOUR.as_bytes(),
            EntryPoint::ReflectStatus,
            "Neighbour",
        );
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        match (
            self.engine.load(&source(vec![sibling, hostile], budget)),
            expectation.at_load,
        ) {
            (Err(error), true) => {
                let is_refused = matches!(error.stage, LoadStage::Inspected | LoadStage::Compiled);
                self.check(is_refused, || format!("it failed to {}", error.stage));
                self.check_message(&error.message, expectation);
            }
            (Err(error), false) => self.problems.push(format!("it does not load: {}", error.message)),
            (Ok(_), true) => self.problems.push("it loads".to_owned()),
            (Ok(loaded), false) => {
                let policy = loaded.policy;
                for _ in 0..CALLS {
                    self.outcome(&ask(policy.as_ref(), expectation.point, "Hostile"), expectation);
                    let sibling = neighbour(policy.as_ref());
                    let (_, other) = self.other;
                    self.check(&sibling == other, || format!("its sibling answers {sibling:?}"));
                }
            }
        }
        let used = MEMORY.peak_usage().saturating_sub(before);
        self.check(used <= 2 * budget.memory_bytes, || {
            format!("it took {used} bytes, it may use {}", budget.memory_bytes)
        });
        let (other, expected) = self.other;
        let now = neighbour(other);
        self.check(&now == expected, || format!("a plugin beside it answers {now:?}"));
    }

    fn outcome(&mut self, result: &Result<Reply, Fault>, expectation: &Expectation) {
        match (result, &expectation.outcome) {
            (Err(fault), Outcome::Fault(kind)) => {
                self.check(fault.kind == *kind, || {
                    format!("it ended in {:?}: {}", fault.kind, fault.message)
                });
                self.check_message(&fault.message, expectation);
            }
            (Ok(Reply::Health(verdict)), Outcome::Healthy) => {
                self.check(verdict.health == Health::Healthy, || {
                    format!("it says {:?}", verdict.health)
                });
            }
            (result, outcome) => self.problems.push(format!("it gave {result:?}, not {outcome:?}")),
        }
    }

    fn check_message(&mut self, message: &str, expectation: &Expectation) {
        let says = expectation.says.as_deref().unwrap_or("");
        self.check(message.contains(says), || format!("it says {message:?}"));
        let size = message.len();
        self.check(size <= MESSAGE_BYTES_MAX, || format!("its message has {size} bytes"));
    }

    fn check(&mut self, fine: bool, problem: impl FnOnce() -> String) {
        if !fine {
            self.problems.push(problem());
        }
    }
}

/// Returns the scripts in order of name.
fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/hostile/lua");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

#[test]
fn hostile_scripts_end_in_a_named_fault_within_their_limits_and_alone() {
    let engine = LuaEngine::default();
    let innocent = module(
        "neighbour.lua",
        NEIGHBOUR.as_bytes(),
        EntryPoint::ReflectStatus,
        "Neighbour",
    );
    let other = neighbour_with_exact_budget(&engine, &innocent);
    let answer = neighbour(other.as_ref());
    assert!(answer.is_ok(), "{answer:?}");
    let (mut failures, mut ran) = (Vec::new(), 0);
    for path in scripts() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let script = fs::read_to_string(&path).unwrap();
        match Expectation::read(&script) {
            Ok(expectation) => {
                let mut trial = Trial {
                    engine: &engine,
                    other: (other.as_ref(), &answer),
                    problems: Vec::new(),
                };
                trial.run(&name, script.as_bytes(), &expectation);
                trial.problems.dedup();
                failures.extend(trial.problems.into_iter().map(|problem| format!("{name}: {problem}")));
            }
            Err(problem) => failures.push(format!("{name}: {problem}")),
        }
        ran += 1;
    }
    assert!(
        failures.is_empty(),
        "{} of {ran}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(ran >= SCRIPTS_MIN, "only {ran} scripts were found");
}
