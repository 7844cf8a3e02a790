//! `bulkhead plugin test`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use bulkhead_conformance::Subject;
use clap::{Args, ValueEnum};

use super::target::{Which, bounded, read_cases};

/// Run the conformance suite: the plugin's own cases, and laws that every plugin has to hold to.
///
/// Needs no cluster. Ends with exit code 0 if everything passed, 1 if something did not, and 2 if the plugin or a file
/// of cases cannot be used.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,

    /// A file or a directory of cases; the directory `cases` of the plugin if it is left out.
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,

    /// How to print the outcome.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// Also write the outcome as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// As data.
    Json,
    /// JUnit XML.
    Junit,
}

/// Returns whether everything passed.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let target = arguments.which.target()?;
    let cases = match target.cases(arguments.cases.as_deref()) {
        Some(path) => read_cases(&path)?,
        None => Vec::new(),
    };
    let loaded = target.load()?;
    let policy = bounded(&loaded);
    let again = |config: &serde_json::Value| target.load_with(config);
    let mut subject = Subject::new(&*policy, target.found.source.budget)
        .with_loader(&again)
        .with_taint_keys(&loaded.description.taint_keys);
    if let Some(schema) = &loaded.description.config_schema {
        subject = subject.with_config_schema(schema);
    }
    let report = bulkhead_conformance::run(&subject, &cases);
    if let Some(path) = &arguments.junit {
        fs::write(path, report.to_junit()).with_context(|| format!("writing {}", path.display()))?;
    }
    let text = match arguments.output {
        Output::Text => report.to_string(),
        Output::Json => report.to_json(),
        Output::Junit => report.to_junit(),
    };
    writeln!(anstream::stdout(), "{}", text.trim_end())?;
    Ok(report.passed())
}
