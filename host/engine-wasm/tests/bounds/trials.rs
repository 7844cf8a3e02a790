//! Every line of `tests/guests/hostile/wasm-calls.txt` has its expected outcome.
//!
//! A line is `function | arguments | times | budget | end`. The arguments are separated by spaces, each a number,
//! `"text"`, `"text"*N` for the text N times in a row, or `["text"*N]` for a list of N of them. The budget is JSON
//! that overrides parts of the default one, or `-`. The end is a kind of fault, or `answers`.

use std::path::Path;

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::FaultKind;
use serde_json::{Map, Value, json};

use crate::component::{Argument, Times};
use crate::{Lab, OVERHEAD_BYTES, functions, kind, one_at_a_time};

/// Minimum number of trials, to detect an incomplete file.
const TRIALS_MIN: usize = 120;

/// One line.
struct Trial {
    function: functions::Function,
    arguments: Vec<Argument>,
    times: Times,
    budget: Budget,
    end: Option<FaultKind>,
}

fn quoted(text: &str) -> (String, Option<usize>) {
    let (text, count) = text
        .rsplit_once("\"*")
        .map_or((text, None), |(text, count)| (text, Some(count)));
    let text = text.trim_matches('"').to_owned();
    (text, count.map(|count| count.parse().unwrap()))
}

fn argument(text: &str) -> Argument {
    if let Some(list) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let (text, count) = quoted(list);
        return Argument::Texts(text, count.unwrap_or(1));
    }
    if text.starts_with('"') {
        let (text, count) = quoted(text);
        return Argument::Text(text.repeat(count.unwrap_or(1)));
    }
    Argument::Number(text.parse().unwrap_or_else(|_| panic!("{text} is no argument")))
}

fn trial(line: &str) -> Trial {
    let columns: Vec<_> = line.split(" | ").map(str::trim).collect();
    let [function, arguments, times, budget, end] = columns.as_slice() else {
        panic!("{line}: not five columns")
    };
    let arguments = if *arguments == "-" {
        Vec::new()
    } else {
        arguments.split(' ').map(argument).collect()
    };
    let times = match *times {
        "once" => Times::Once,
        "forever" => Times::Forever,
        other => panic!("{line}: {other} is neither once nor forever"),
    };
    let mut changes: Map<_, _> = if *budget == "-" {
        Map::new()
    } else {
        serde_json::from_str(budget).unwrap()
    };
    // The time limit is generous, so that a busy machine affects only trials about time.
    changes.entry("wallClockMs").or_insert(json!(120_000));
    let budget = serde_json::from_value(Value::Object(changes)).unwrap();
    let end = (*end != "answers").then(|| serde_json::from_value(json!(end)).unwrap());
    Trial {
        function: functions::named(function),
        arguments,
        times,
        budget,
        end,
    }
}

#[test]
fn every_call_of_the_host_comes_to_its_end() {
    let _turn = one_at_a_time();
    let lab = Lab::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/hostile/wasm-calls.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(lines.len() >= TRIALS_MIN, "only {} trials", lines.len());
    let mut problems = Vec::new();
    for line in lines {
        let Trial {
            function,
            arguments,
            times,
            budget,
            end,
        } = trial(line);
        let ended = lab.run(&function, &arguments, times, budget);
        if kind(&ended.outcome) != end {
            problems.push(format!("{line}: {:?}", ended.outcome));
        }
        if ended.steps > budget.steps {
            problems.push(format!("{line}: {} steps", ended.steps));
        }
        if ended.host_bytes > budget.memory_bytes + OVERHEAD_BYTES {
            problems.push(format!("{line}: {} bytes of the host", ended.host_bytes));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
