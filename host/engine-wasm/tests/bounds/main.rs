//! Calls every host function with long, many and deep arguments, and checks the steps and the memory of the call.
//!
//! This is a separate test binary whose tests run one after the other, because it measures the memory of the whole
//! process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arbitrary;
mod component;
mod functions;
mod input;
mod trials;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_core::call::Reply;
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Blame, EngineKind, Fault, FaultKind, Policy};
use bulkhead_engine_wasm::{Options, WasmEngine};
use bulkhead_plugin::{Engine, Module, PluginSource};
use peak_alloc::PeakAlloc;

use component::{Argument, LendingCall, Times, component};
use functions::{Function, Param};
use input::Inputs;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory of the host other than copies for the guest: instances, the call's own copy of its input, messages.
const OVERHEAD_BYTES: usize = 8 << 20;

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn load(engine: &WasmEngine, text: &str, budget: Budget) -> Arc<dyn Policy> {
    let code = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let module = Module {
        origin: "calls.wat".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    let source = PluginSource {
        budget,
        ..PluginSource::new("calls", EngineKind::Wasm, vec![module])
    };
    engine.load(&source).unwrap_or_else(|error| panic!("{error}")).policy
}

/// An engine and the inputs of its plugins.
struct Lab {
    engine: WasmEngine,
    inputs: Inputs,
    /// Another plugin of the engine, and the answer and cost of its first call.
    neighbour: Arc<dyn Policy>,
    first: Cost,
}

/// Answer of a call, its steps, and the maximum memory of all calls of the plugin.
type Cost = (Result<Reply, Fault>, u64, u64);

/// Result of a call, and its maximum memory use in the host.
struct Ended {
    outcome: Result<Reply, Fault>,
    host_bytes: usize,
    steps: u64,
}

impl Lab {
    fn new() -> Self {
        let (engine, inputs) = (WasmEngine::new(Options::default()).unwrap(), Inputs::new());
        let reads = component(
            &functions::named("object.json"),
            &[Argument::Text("/kind".to_owned())],
            Times::Once,
        );
        let neighbour = load(&engine, &reads, Budget::default());
        let first = cost(&inputs, &*neighbour);
        assert!(first.0.is_ok(), "{first:?}");
        Self {
            engine,
            inputs,
            neighbour,
            first,
        }
    }

    /// Runs a component that calls a function. Its neighbour must not notice.
    fn run(&self, function: &Function, arguments: &[Argument], times: Times, budget: Budget) -> Ended {
        let policy = load(&self.engine, &component(function, arguments, times), budget);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let outcome = self.inputs.ask(&*policy, LendingCall::about(function.interface));
        let host_bytes = MEMORY.peak_usage().saturating_sub(before);
        assert_eq!(
            cost(&self.inputs, &*self.neighbour),
            self.first,
            "the neighbour after {function}"
        );
        Ended {
            outcome,
            host_bytes,
            steps: policy.usage().steps,
        }
    }
}

fn cost(inputs: &Inputs, policy: &dyn Policy) -> Cost {
    let before = policy.usage().steps;
    let answer = inputs.ask(policy, LendingCall::Health);
    let usage = policy.usage();
    (answer, usage.steps - before, usage.memory_bytes_max)
}

/// Returns the kind of fault of a call, if it ended in one.
fn kind(outcome: &Result<Reply, Fault>) -> Option<FaultKind> {
    outcome.as_ref().err().map(|fault| fault.kind)
}

#[test]
fn many_copies_of_one_text_are_charged_before_they_are_made() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let get_many = functions::named("object.get-many");
    let bomb = |count, budget| {
        lab.run(
            &get_many,
            &[Argument::Texts("/s".to_owned(), count)],
            Times::Once,
            budget,
        )
    };
    let ended = bomb(20_000, Budget::default());
    assert_eq!(kind(&ended.outcome), Some(FaultKind::Denied), "{:?}", ended.outcome);
    assert!(ended.host_bytes < OVERHEAD_BYTES, "{} bytes", ended.host_bytes);
    let ended = bomb(4_000, Budget::default());
    assert_eq!(kind(&ended.outcome), Some(FaultKind::OutOfFuel), "{:?}", ended.outcome);
    assert!(
        ended.host_bytes < (10 << 20) + OVERHEAD_BYTES,
        "{} bytes",
        ended.host_bytes
    );
    // With unlimited steps, the memory limit ends it.
    let ended = bomb(
        4_000,
        Budget {
            steps: u64::MAX,
            ..Budget::default()
        },
    );
    assert_eq!(kind(&ended.outcome), Some(FaultKind::Memory), "{:?}", ended.outcome);
    assert!(
        ended.host_bytes < Budget::default().memory_bytes + OVERHEAD_BYTES,
        "{} bytes",
        ended.host_bytes
    );
}

#[test]
fn a_copy_costs_a_step_for_each_of_its_bytes() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let steps = |name: &str, text: &str| {
        let arguments = [Argument::Text(text.to_owned())];
        let ended = lab.run(&functions::named(name), &arguments, Times::Once, Budget::default());
        assert_eq!(kind(&ended.outcome), None, "{name} {text}: {:?}", ended.outcome);
        ended.steps
    };
    for name in ["object.get", "object.get-string", "object.json"] {
        let (small, large) = (steps(name, "/kind"), steps(name, "/s"));
        assert!(
            (120_000..130_000).contains(&(large - small)),
            "{name}: {small} and {large} steps"
        );
    }
}

/// Returns arguments of different shapes for text parameters.
fn shapes() -> Vec<String> {
    let long = |bytes: usize| format!("/{}", "x".repeat(bytes));
    vec![
        String::new(),
        "/s".to_owned(),
        "/l".to_owned(),
        "/spec/zones/0".to_owned(),
        "/status/apiEnablements/0/groupVersion".to_owned(),
        long(60_000),
        long(100_000),
        "/a".repeat(30_000),
        "/a".repeat(100_000),
        "/~1".repeat(20_000),
        "~".repeat(60_000),
        "/l/18446744073709551616".to_owned(),
    ]
}

fn argument(param: Param, shape: &str) -> Argument {
    match param {
        Param::Text => Argument::Text(shape.to_owned()),
        Param::Texts => Argument::Texts(shape.to_owned(), 3_000),
        Param::Number => Argument::Number(shape.len() as u32),
        Param::Level => Argument::Number(1),
    }
}

#[test]
fn every_host_function_in_an_endless_loop_ends_within_the_budget() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let budget = Budget {
        steps: 3_000_000,
        memory_bytes: 40 << 20,
        wall_clock_ms: 120_000,
        ..Budget::default()
    };
    for function in functions::ALL {
        let shapes = if function.params.is_empty() {
            vec![String::new()]
        } else {
            shapes()
        };
        for shape in shapes {
            let arguments: Vec<_> = function.params.iter().map(|param| argument(*param, &shape)).collect();
            let ended = lab.run(&function, &arguments, Times::Forever, budget);
            let what = format!("{function} with {:.20}… of {} bytes", shape, shape.len());
            let kind = kind(&ended.outcome).unwrap_or_else(|| panic!("{what} answers"));
            let expected = [FaultKind::OutOfFuel, FaultKind::Denied, FaultKind::BadReply];
            assert!(expected.contains(&kind), "{what}: {:?}", ended.outcome);
            assert!(ended.steps <= budget.steps, "{what}: {} steps", ended.steps);
            assert!(
                ended.host_bytes <= budget.memory_bytes,
                "{what}: {} bytes",
                ended.host_bytes
            );
        }
    }
}

#[test]
fn every_function_refuses_arguments_that_are_no_text_or_outside_of_the_memory() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let mut tried = 0;
    for function in functions::ALL {
        let sound: Vec<_> = function.params.iter().map(|param| argument(*param, "/kind")).collect();
        let texts = function
            .params
            .iter()
            .enumerate()
            .filter(|(_, param)| matches!(param, Param::Text | Param::Texts));
        for (at, _) in texts {
            for broken in [Argument::Garbled(16), Argument::Outside] {
                let mut arguments = sound.clone();
                arguments[at] = broken;
                let ended = lab.run(&function, &arguments, Times::Once, Budget::default());
                let what = format!("{function} with {:?} at {at}", arguments[at]);
                let Err(fault) = &ended.outcome else {
                    panic!("{what} answers")
                };
                assert!(
                    matches!(fault.kind, FaultKind::BadReply | FaultKind::Trap),
                    "{what}: {fault:?}"
                );
                assert_eq!(fault.kind.blame(), Blame::Guest);
                assert!(ended.host_bytes < OVERHEAD_BYTES, "{what}: {} bytes", ended.host_bytes);
                tried += 1;
            }
        }
    }
    assert!(tried >= 40, "only {tried} calls");
}

#[test]
fn handles_of_one_document_share_it() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    for name in ["binding.document", "eviction-task.document", "cluster.document"] {
        let ended = lab.run(&functions::named(name), &[], Times::Forever, Budget::default());
        let fault = ended.outcome.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Denied, "{name}: {fault:?}");
        assert!(fault.message.contains("1024 handles"), "{name}: {fault:?}");
        assert!(ended.host_bytes < OVERHEAD_BYTES, "{name}: {} bytes", ended.host_bytes);
    }
}
