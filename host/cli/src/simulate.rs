//! `bulkhead simulate`.

mod trials;

use std::cell::Cell;
use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_server::engines::EngineArguments;
use bulkhead_simulator::recorded::Recording;
use bulkhead_simulator::render;
use bulkhead_simulator::report::Report;
use bulkhead_simulator::scenario::{self, Loaded};
use bulkhead_simulator::simulation::{self, Detail, Finished, RunOptions};
use clap::Args;

use self::trials::TrialArguments;
use crate::exit;
use crate::output::{self, Format};

/// Output width, in columns.
const WIDTH_DEFAULT: usize = 120;
/// Interval between progress lines without a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// Run a scenario: a whole federation in one process on virtual time.
///
/// Exits with code 0 if every expectation of the scenario held, with 1 if one did not, and with 2 if the scenario is
/// invalid. The same scenario and seed give the same output, byte for byte.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead simulate examples/nginx-duplicated/scenario.yaml
  bulkhead simulate examples/nginx-duplicated/scenario.yaml --explain default/nginx-deployment
  bulkhead simulate examples/nginx-duplicated/scenario.yaml --seeds 20 --faults all")]
pub(crate) struct Arguments {
    /// Scenario file.
    #[arg(value_name = "SCENARIO", required_unless_present = "random")]
    scenario: Option<PathBuf>,

    /// Random seed, overriding the scenario's; with --seeds, the first seed.
    #[arg(long)]
    seed: Option<u64>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Also write a self-contained HTML page with a timeline for each cluster.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Also record every decision in this directory, for `bulkhead history`, `explain`, `replay` and `diff`. The
    /// directory must not contain a journal.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,

    /// Also explain the decisions about one binding, for example default/nginx-deployment.
    #[arg(long, value_name = "BINDING")]
    explain: Option<String>,

    /// Show every decision, built-in policies, retries and totals.
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    trials: TrialArguments,

    #[command(flatten)]
    engines: EngineArguments,
}

/// Runs the command. Exits with 1 if an expectation did not hold, and with 2 on an invalid scenario, manifest or
/// plugin.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    exit::code(try_run(arguments))
}

/// Returns true if every expectation held.
fn try_run(arguments: &Arguments) -> anyhow::Result<bool> {
    let scenario = arguments.scenario.as_deref().map(scenario::load).transpose()?;
    for warning in scenario.iter().flat_map(|scenario| &scenario.warnings) {
        writeln!(anstream::stderr(), "warning: {warning}")?;
    }
    let own = scenario.as_ref().map(|scenario| scenario.seed);
    let detail = scenario
        .as_ref()
        .map(|scenario| scenario.flags.pod_detail())
        .unwrap_or_default();
    let engines = || arguments.engines.start(detail);
    if let Some(trial) = arguments
        .trials
        .trial(arguments.scenario.as_deref(), arguments.seed.or(own), engines)?
    {
        return trials::run(&trial, arguments.output);
    }
    let Some(scenario) = scenario else { return Ok(true) };
    let recording = arguments.journal.as_deref().map(Recording::start).transpose()?;
    let mut options = options(arguments, &scenario)?;
    options.sink = recording.as_ref().map(Recording::sink);
    let finished = simulation::run(&scenario, options)?;
    if let Some(recording) = recording {
        recording.end()?;
    }
    clear_progress(arguments);
    if let Some(path) = &arguments.report {
        fs::write(path, render::html(&finished.report)).with_context(|| format!("writing {}", path.display()))?;
    }
    print(arguments, &finished)?;
    check_explained(arguments, &finished)?;
    Ok(finished.report.held())
}

fn options(arguments: &Arguments, scenario: &Loaded) -> anyhow::Result<RunOptions> {
    let show = |text| {
        let _ = write!(anstream::stderr(), "{text}");
    };
    let progress = progress(
        scenario.name.clone(),
        shows_progress(arguments),
        PROGRESS_INTERVAL,
        show,
    );
    let all = arguments.verbose || arguments.output != Format::Text;
    Ok(RunOptions {
        seed: arguments.seed,
        engines: arguments.engines.start(scenario.flags.pod_detail())?,
        detail: if all { Detail::Everything } else { Detail::Highlights },
        explain: arguments.explain.clone(),
        sink: None,
        progress: Some(progress),
        is_last: true,
    })
}

/// Returns the function that shows the virtual time of a run: as a line that is written over on a terminal, and
/// otherwise as a line per interval, which only long runs reach.
fn progress(
    name: String,
    on_terminal: bool,
    interval: Duration,
    show: impl Fn(String) + 'static,
) -> Box<dyn Fn(GoDuration, GoDuration)> {
    let shown = Cell::new(Instant::now());
    Box::new(move |at, end| {
        if on_terminal {
            if at.as_secs() % 10 == 0 {
                show(format!("\r{name}: {at} of {end}\x1b[K"));
            }
        } else if shown.get().elapsed() >= interval {
            shown.set(Instant::now());
            show(format!("{name}: simulated {at} of {end}\n"));
        }
    })
}

/// Returns true if progress can be shown: standard error is a terminal and the output format is text.
fn shows_progress(arguments: &Arguments) -> bool {
    std::io::stderr().is_terminal() && arguments.output == Format::Text
}

fn clear_progress(arguments: &Arguments) {
    if shows_progress(arguments) {
        let _ = write!(anstream::stderr(), "\r\x1b[K");
    }
}

fn print(arguments: &Arguments, finished: &Finished) -> anyhow::Result<()> {
    let rendered: String = match (arguments.output, &finished.explanation_data) {
        (Format::Text, _) => {
            let explanation = finished
                .explanation
                .as_ref()
                .map(|explanation| format!("\n{explanation}"));
            text(arguments, &finished.report)? + &explanation.unwrap_or_default()
        }
        (format, None) => format.render(String::new, &finished.report)?,
        (format, Some(explanation)) => {
            let both = serde_json::json!({ "report": finished.report, "explanation": explanation });
            format.render(String::new, &both)?
        }
    };
    output::print(&rendered)
}

/// Checks that there is a decision about the binding of `--explain`.
fn check_explained(arguments: &Arguments, finished: &Finished) -> anyhow::Result<()> {
    let decisions = finished
        .explanation_data
        .as_ref()
        .and_then(|data| data["decisions"].as_array());
    let (Some(binding), true) = (&arguments.explain, decisions.is_some_and(Vec::is_empty)) else {
        return Ok(());
    };
    let known = finished.report.placements.iter().map(|row| row.binding.as_str());
    let example = bulkhead_plugin::nearest(binding, known).unwrap_or("default/nginx-deployment");
    bail!(
        "--explain {binding}: there is no decision about this binding; a binding is named namespace/name-kind, such as \
         {example}"
    )
}

fn text(arguments: &Arguments, report: &Report) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = render::TextOptions {
        width: WIDTH_DEFAULT,
        verbose: arguments.verbose,
    };
    render::text(report, &mut text, options)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    fn shown(on_terminal: bool, interval: Duration) -> Vec<String> {
        let lines: Rc<RefCell<Vec<String>>> = Rc::default();
        let kept = Rc::clone(&lines);
        let show = progress("fleet".to_owned(), on_terminal, interval, move |line| {
            kept.borrow_mut().push(line);
        });
        let at = |seconds| GoDuration(Duration::from_secs(seconds));
        for seconds in [9, 10] {
            show(at(seconds), at(600));
        }
        lines.take()
    }

    #[test]
    fn a_long_run_shows_its_progress_with_and_without_a_terminal() {
        let each = ["fleet: simulated 9s of 10m\n", "fleet: simulated 10s of 10m\n"];
        assert_eq!(shown(false, Duration::ZERO), each);
        assert!(
            shown(false, Duration::from_hours(1)).is_empty(),
            "a short run shows nothing"
        );
        assert_eq!(shown(true, Duration::from_hours(1)), ["\rfleet: 10s of 10m\x1b[K"]);
    }
}
