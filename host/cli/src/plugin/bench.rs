//! `bulkhead plugin bench`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bulkhead_conformance::{Case, OwnedCall};
use bulkhead_core::policy::Policy;
use bulkhead_simulator::table::{Column, Table};
use clap::Args;
use serde_json::{Value, json};

use super::target::{Which, bounded, read_cases};
use crate::output::Format;

/// Number of rounds of a measurement; the result is their median.
const ROUNDS: usize = 15;
/// Width of the names of cases in the table.
const NAME_COLUMNS: usize = 44;
/// Approximate duration of one round.
const ROUND: Duration = Duration::from_millis(20);

/// Measure the cost of a plugin's calls: steps, memory and time, compared with a built-in policy for the same call.
///
/// Times are medians on this machine, in this build; steps are the same everywhere.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin bench
  bulkhead plugin bench game-health --cases game-health/cases -o json")]
pub(crate) struct Arguments {
    /// File or directory of cases to run; defaults to the directory `cases` of the plugin.
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    which: Which,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let target = arguments.which.target()?;
    let path = target
        .cases(arguments.cases.as_deref())
        .context("name cases with --cases")?;
    let cases = read_cases(&path)?;
    if cases.is_empty() {
        bail!("there are no cases in {}", path.display());
    }
    let loaded = target.load()?;
    let mut rows = Vec::new();
    for case in &cases {
        let policy = match &case.config {
            Some(config) => target.load_with(config)?,
            None => bounded(&loaded),
        };
        rows.push(Row::measure(case, &*policy));
    }
    let data: Vec<_> = rows.iter().map(Row::data).collect();
    arguments.output.print(|| table(&rows), &data)
}

fn table(rows: &[Row]) -> String {
    let [name, number, native] = [Column::Left(NAME_COLUMNS), Column::Right(12), Column::Right(10)];
    let mut table = Table::new(1, &[name, number, number, number, native]);
    table.row(["case", "steps", "memory", "time", "native"]);
    for row in rows {
        table.row(row.cells());
    }
    table.to_string()
}

/// Cost of one case.
struct Row {
    name: String,
    steps: u64,
    memory_bytes: u64,
    time: Duration,
    native: Option<Duration>,
}

impl Row {
    fn measure(case: &Case, policy: &dyn Policy) -> Self {
        let call = &case.call;
        let before = policy.usage().steps;
        ask(policy, call);
        let usage = policy.usage();
        let native = bulkhead_plugins_builtin::all();
        let native = native.iter().find(|native| {
            call.with_call(|call| native.capabilities().iter().any(|capability| capability.answers(call)))
        });
        Self {
            name: case.name.clone(),
            steps: usage.steps.saturating_sub(before),
            memory_bytes: usage.memory_bytes_max,
            time: time(policy, call),
            native: native.map(|native| time(&**native, call)),
        }
    }
}

impl Row {
    fn data(&self) -> Value {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        json!({
            "case": self.name,
            "steps": self.steps,
            "memoryBytes": self.memory_bytes,
            "timeNs": nanoseconds(self.time),
            "nativeTimeNs": self.native.map(nanoseconds),
        })
    }

    fn cells(&self) -> [String; 5] {
        let native = self.native.map_or_else(|| "–".to_owned(), shown);
        let (memory, time) = (format!("{} KiB", self.memory_bytes / 1024), shown(self.time));
        [
            self.name.chars().take(NAME_COLUMNS).collect(),
            self.steps.to_string(),
            memory,
            time,
            native,
        ]
    }
}

fn shown(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

fn ask(policy: &dyn Policy, call: &OwnedCall) {
    let _ = std::hint::black_box(call.with_call(|call| policy.call(call)));
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
