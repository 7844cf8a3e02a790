//! `bulkhead plugin test`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use bulkhead_conformance::{Case, Check, Outcome as Came, Report, Subject};
use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId, Usage};
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

/// A policy that is asked about health only.
struct HealthOnly<'a> {
    policy: &'a dyn Policy,
    capabilities: Vec<Capability>,
}

impl Policy for HealthOnly<'_> {
    fn id(&self) -> &PolicyId {
        self.policy.id()
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.policy.call(call)
    }

    fn usage(&self) -> Usage {
        self.policy.usage()
    }
}

/// Karmada makes an error of a script that fails on an odd object, and people write them for that: only health, where
/// that would go unnoticed, has to hold to the laws.
fn of_customization(subject: &Subject<'_>, cases: Vec<Case>) -> Report {
    let (health, others): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| case.question.kind() == CallKind::Health);
    let policy = subject.policy();
    let capabilities = policy.capabilities().iter().filter(|capability| capability.kind == CallKind::Health);
    let only = HealthOnly { policy, capabilities: capabilities.cloned().collect() };
    let checks = others.iter().map(|case| bulkhead_conformance::cases::one(subject, case)).collect();
    if only.capabilities.is_empty() {
        return Report { plugin: policy.id().to_string(), checks };
    }
    let mut report = bulkhead_conformance::run(&Subject::new(&only, subject.budget()), &health);
    report.checks.extend(checks);
    report
}

/// What was found in a script that Karmada's machine refuses. A customization is Karmada's own object, so it fails; a
/// script by itself may be for this program alone.
fn portability(remarks: &[String], is_customization: bool) -> Option<Check> {
    let why = remarks.join("\n");
    let outcome = match (remarks.is_empty(), is_customization) {
        (true, false) => return None,
        (true, true) => Came::Passed,
        (false, true) => Came::failed(why),
        (false, false) => Came::skipped(why),
    };
    Some(Check { name: "Karmada's machine takes its scripts too".to_owned(), kind: None, outcome, steps: 0 })
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
    let mut subject = Subject::new(&*policy, target.source.budget)
        .with_loader(&again)
        .with_taint_keys(&loaded.description.taint_keys);
    if let Some(schema) = &loaded.description.config_schema {
        subject = subject.with_config_schema(schema);
    }
    let mut report = if target.is_customization {
        of_customization(&subject, cases)
    } else {
        bulkhead_conformance::run(&subject, &cases)
    };
    report.checks.extend(portability(&loaded.description.remarks, target.is_customization));
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
