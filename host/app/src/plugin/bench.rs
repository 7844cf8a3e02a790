//! `bulkhead plugin bench`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bulkhead_conformance::{Case, Question};
use bulkhead_core::policy::Policy;
use clap::Args;

use super::target::{Which, bounded, read_cases};

/// Number of rounds of a measurement; the result is their median.
const ROUNDS: usize = 15;
/// Approximate duration of one round.
const ROUND: Duration = Duration::from_millis(20);

/// Measure the cost of a plugin's calls: steps, memory and time, compared with a built-in policy for the same call.
///
/// Times are medians on this machine, in this build; steps are the same everywhere.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,

    /// File or directory of cases to run; defaults to the directory `cases` of the plugin.
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let target = arguments.which.target()?;
    let path = target.cases(arguments.cases.as_deref()).context("name cases with --cases")?;
    let cases = read_cases(&path)?;
    if cases.is_empty() {
        bail!("there are no cases in {}", path.display());
    }
    let loaded = target.load()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "{:<44} {:>12} {:>12} {:>12} {:>10}", "case", "steps", "memory", "time", "native")?;
    for case in &cases {
        let policy = match &case.config {
            Some(config) => target.load_with(config)?,
            None => bounded(&loaded),
        };
        let row = Row::measure(case, &*policy);
        writeln!(out, "{row}")?;
    }
    Ok(())
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
        let question = &case.question;
        let before = policy.usage().steps;
        ask(policy, question);
        let usage = policy.usage();
        let native = bulkhead_plugins_builtin::all();
        let native = native.iter().find(|native| {
            question.with_call(|call| native.capabilities().iter().any(|capability| capability.answers(call)))
        });
        Self {
            name: case.name.chars().take(44).collect(),
            steps: usage.steps.saturating_sub(before),
            memory_bytes: usage.memory_bytes_max,
            time: time(policy, question),
            native: native.map(|native| time(&**native, question)),
        }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let native = self.native.map_or_else(|| "–".to_owned(), shown);
        let (memory, time) = (format!("{} KiB", self.memory_bytes / 1024), shown(self.time));
        write!(f, "{:<44} {:>12} {memory:>12} {time:>12} {native:>10}", self.name, self.steps)
    }
}

fn shown(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

fn ask(policy: &dyn Policy, question: &Question) {
    let _ = std::hint::black_box(question.with_call(|call| policy.call(call)));
}

/// Measures the median time of a call, over rounds long enough for the timer's resolution.
fn time(policy: &dyn Policy, question: &Question) -> Duration {
    question.with_call(|call| {
        let round = |calls: u32| {
            let start = Instant::now();
            for _ in 0..calls {
                let _ = std::hint::black_box(policy.call(call));
            }
            start.elapsed() / calls.max(1)
        };
        let once = round(3).max(Duration::from_nanos(1));
        let calls = u32::try_from(ROUND.as_nanos() / once.as_nanos()).unwrap_or(u32::MAX).clamp(1, 100_000);
        let mut times: Vec<_> = (0..ROUNDS).map(|_| round(calls)).collect();
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    })
}
