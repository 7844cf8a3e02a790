//! `bulkhead plugin bench`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bulkhead_conformance::{Case, OwnedCall};
use bulkhead_core::policy::{self, Fault, Policy};
use bulkhead_plugin::Loaded;
use bulkhead_simulator::table::{Column, Table};
use clap::Args;
use serde_json::{Value, json};

use super::target::{Target, Which, bounded, read_cases};
use crate::output::Format;

/// Number of rounds of a measurement; the result is their median.
const ROUNDS: usize = 15;
/// Width of the names of cases in the table.
const NAME_COLUMNS: usize = 44;
/// Approximate duration of one round.
const ROUND: Duration = Duration::from_millis(20);

/// Measure the cost of a plugin's calls: steps, memory and time, compared with a built-in policy for the same call.
///
/// Times are medians on this machine, in this build; steps are the same everywhere. Memory is the peak of a call up to
/// this case. Exits with 1 if a call fails, because a failure has no cost that could be compared.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin bench
  bulkhead plugin bench game-health --cases game-health/cases -o json
  bulkhead plugin bench game-health --against game-health-v1.wasm")]
pub(crate) struct Arguments {
    /// File or directory of cases to run; defaults to the directory `cases` of the plugin.
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,

    /// Other version of the plugin to compare with, on the same cases.
    #[arg(long, value_name = "PLUGIN")]
    against: Option<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    which: Which,
}

/// Measures all cases. Returns true if no call failed.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let target = arguments.which.target()?;
    let path = target
        .cases(arguments.cases.as_deref())
        .context("name cases with --cases")?;
    let cases = read_cases(&path)?;
    if cases.is_empty() {
        bail!("there are no cases in {}", path.display());
    }
    let plugin = Plugin::load(target)?;
    let other = arguments
        .against
        .as_deref()
        .map(|path| Plugin::load(arguments.which.other(path).target()?))
        .transpose()?;
    let mut rows = Vec::new();
    for case in &cases {
        let cost = Cost::measure(case, &*plugin.for_case(case)?);
        let against = match &other {
            Some(other) => Some(Cost::measure(case, &*other.for_case(case)?)),
            None => None,
        };
        rows.push(Row {
            name: case.name.clone(),
            cost,
            native: native_time(&case.call),
            against,
        });
    }
    let data: Vec<_> = rows.iter().map(Row::data).collect();
    arguments.output.print(|| table(&rows, other.is_some()), &data)?;
    Ok(rows.iter().all(|row| row.faults().next().is_none()))
}

/// A plugin, loaded with its own configuration, and anew with that of a case.
struct Plugin {
    target: Target,
    loaded: Loaded,
}

impl Plugin {
    fn load(target: Target) -> anyhow::Result<Self> {
        let loaded = target.load()?;
        Ok(Self { target, loaded })
    }

    fn for_case(&self, case: &Case) -> anyhow::Result<Arc<dyn Policy>> {
        Ok(match &case.config {
            Some(config) => self.target.load_with(config)?,
            None => bounded(&self.loaded),
        })
    }
}

fn table(rows: &[Row], compares: bool) -> String {
    let (number, time) = (Column::Right(12), Column::Right(10));
    let mut columns = vec![Column::Left(NAME_COLUMNS), number, number, time, time];
    let mut head = vec!["case", "steps", "memory", "time", "native"];
    if compares {
        columns.extend([number, number, time, Column::Right(7)]);
        head.extend(["steps before", "memory", "time", "ratio"]);
    }
    let mut table = Table::new(1, &columns);
    table.row(head);
    for row in rows {
        table.row(row.cells());
    }
    let faults = rows
        .iter()
        .flat_map(|row| row.faults().map(|fault| format!("{}: {fault}\n", row.name)));
    table.to_string() + &faults.collect::<String>()
}

/// Cost of one call.
struct Cost {
    steps: u64,
    memory_bytes: u64,
    time: Duration,
}

impl Cost {
    fn measure(case: &Case, policy: &dyn Policy) -> Result<Self, Fault> {
        let before = policy.usage().steps;
        case.call.with_call(|call| policy.call(call))?;
        let usage = policy.usage();
        Ok(Self {
            steps: usage.steps.saturating_sub(before),
            memory_bytes: usage.memory_bytes_max,
            time: time(policy, &case.call),
        })
    }

    fn data(cost: &Result<Self, Fault>) -> Value {
        match cost {
            Ok(cost) => json!({
                "steps": cost.steps,
                "memoryBytes": cost.memory_bytes,
                "timeNs": nanoseconds(cost.time),
            }),
            Err(fault) => json!({ "fault": {"kind": fault.kind, "message": fault.message} }),
        }
    }

    fn cells(cost: &Result<Self, Fault>) -> [String; 3] {
        match cost {
            Ok(cost) => [
                cost.steps.to_string(),
                format!("{} KiB", cost.memory_bytes / 1024),
                shown(cost.time),
            ],
            Err(_) => ["–".to_owned(), "–".to_owned(), "fault".to_owned()],
        }
    }
}

/// One case.
struct Row {
    name: String,
    cost: Result<Cost, Fault>,
    native: Option<Duration>,
    against: Option<Result<Cost, Fault>>,
}

impl Row {
    fn faults(&self) -> impl Iterator<Item = &Fault> {
        [Some(&self.cost), self.against.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|cost| cost.as_ref().err())
    }

    fn data(&self) -> Value {
        let mut data = Cost::data(&self.cost);
        data["case"] = json!(self.name);
        data["nativeTimeNs"] = json!(self.native.map(nanoseconds));
        if let Some(against) = &self.against {
            data["against"] = Cost::data(against);
        }
        data
    }

    fn cells(&self) -> Vec<String> {
        let native = self.native.map_or_else(|| "–".to_owned(), shown);
        let mut cells = vec![self.name.chars().take(NAME_COLUMNS).collect()];
        cells.extend(Cost::cells(&self.cost));
        cells.push(native);
        if let Some(against) = &self.against {
            cells.extend(Cost::cells(against));
            cells.push(match (&self.cost, against) {
                (Ok(now), Ok(before)) => format!("{:.2}", now.time.as_secs_f64() / before.time.as_secs_f64()),
                _ => "–".to_owned(),
            });
        }
        cells
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn shown(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

/// Measures the first built-in policy that answers the call; `None` if none does.
fn native_time(call: &OwnedCall) -> Option<Duration> {
    let native = bulkhead_plugins_builtin::all();
    let native = native
        .iter()
        .find(|native| call.with_call(|call| policy::answers(call)(&***native)))?;
    Some(time(&**native, call))
}

/// Measures the median time of a call, over rounds long enough for the timer's resolution.
fn time(policy: &dyn Policy, call: &OwnedCall) -> Duration {
    call.with_call(|call| {
        let round = |calls: u32| {
            let start = Instant::now();
            for _ in 0..calls {
                let _ = std::hint::black_box(policy.call(call));
            }
            start.elapsed() / calls.max(1)
        };
        let once = round(3).max(Duration::from_nanos(1));
        let calls = u32::try_from(ROUND.as_nanos() / once.as_nanos())
            .unwrap_or(u32::MAX)
            .clamp(1, 100_000);
        let mut times: Vec<_> = (0..ROUNDS).map(|_| round(calls)).collect();
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    })
}
