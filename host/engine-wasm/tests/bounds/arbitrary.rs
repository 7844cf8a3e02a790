//! Calls arbitrary host functions with arbitrary arguments. `PROPTEST_CASES` sets the number of cases, by default 256.

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::Blame;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::component::{Argument, Times};
use crate::functions::{self, Param};
use crate::{Lab, OVERHEAD_BYTES, one_at_a_time};

/// Parts of an argument of any type.
#[derive(Clone, Debug)]
struct Parts {
    form: u8,
    text: String,
    count: usize,
    number: u32,
}

impl Parts {
    fn argument(&self, param: Param) -> Argument {
        match (param, self.form) {
            (Param::Number, _) => Argument::Number(self.number),
            (Param::Level, _) => Argument::Number(self.number % 4),
            (Param::Text | Param::Texts, 0) => Argument::Garbled(self.count % 100),
            (Param::Text | Param::Texts, 1) => Argument::Outside,
            (Param::Text, _) => Argument::Text(self.text.clone()),
            (Param::Texts, _) => Argument::Texts(self.text.clone(), self.count),
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "(/[a-z0-9~]{0,6}){0,6}",
        1 => ".{0,40}",
        1 => (0..40_000_usize).prop_map(|times| "/a".repeat(times)),
        1 => (0..80_000_usize).prop_map(|times| "~".repeat(times)),
        2 => prop::sample::select(vec!["", "/s", "/l", "/m", "/q", "/l/3/s", "/metadata/name", "/status", "tier", "cpu"])
            .prop_map(str::to_owned),
    ]
}

fn parts() -> impl Strategy<Value = Parts> {
    (0..8_u8, text(), 0..6_000_usize, any::<u32>()).prop_map(|(form, text, count, number)| Parts {
        form,
        text,
        count,
        number,
    })
}

#[test]
fn any_function_with_any_arguments_stays_within_the_budget_and_is_not_noticed() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let calls = (
        0..functions::ALL.len(),
        parts(),
        parts(),
        any::<bool>(),
        400_000..3_000_000_u64,
    );
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let ended = TestRunner::new(config).run(&calls, |(function, one, other, is_endless, steps)| {
        let function = functions::ALL[function];
        let arguments: Vec<_> = function
            .params
            .iter()
            .zip([one, other])
            .map(|(param, parts)| parts.argument(*param))
            .collect();
        let budget = Budget {
            steps,
            memory_bytes: 40 << 20,
            wall_clock_ms: 120_000,
            ..Budget::default()
        };
        let times = if is_endless { Times::Forever } else { Times::Once };
        let ended = lab.run(&function, &arguments, times, budget);
        prop_assert!(!is_endless || ended.outcome.is_err(), "{} answers", function);
        if let Err(fault) = &ended.outcome {
            prop_assert_eq!(fault.kind.blame(), Blame::Guest, "{}: {:?}", function, fault);
        }
        prop_assert!(ended.steps <= steps, "{}: {} of {} steps", function, ended.steps, steps);
        prop_assert!(
            ended.host_bytes <= budget.memory_bytes + OVERHEAD_BYTES,
            "{}: {} bytes",
            function,
            ended.host_bytes
        );
        Ok(())
    });
    if let Err(error) = ended {
        panic!("{error}");
    }
}
