//! `bulkhead plugin test`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use bulkhead_conformance::{Case, Check, Outcome as Came, Report, Subject};
use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Capability, EngineKind, Fault, Policy, PolicyId, Usage};
use clap::Args;

use super::target::{Which, bounded, read_cases};
use super::watch;
use crate::output::Format;

/// Run the conformance suite: the plugin's own cases, and the laws that apply to every plugin.
///
/// Needs no cluster. Exits with code 0 if all checks passed, 1 if one failed, and 2 if the plugin or a file of cases
/// cannot be used.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin test
  bulkhead plugin test customization.yaml --junit junit.xml
  bulkhead plugin test game-health --watch")]
pub(crate) struct Arguments {
    /// File or directory of cases; defaults to the directory `cases` of the plugin.
    #[arg(long, value_name = "PATH")]
    cases: Option<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Build and test again after each change of the plugin, its cases or its configuration, until interrupted.
    #[arg(long, conflicts_with = "junit")]
    watch: bool,

    #[command(flatten)]
    which: Which,
}

/// Policy restricted to health calls.
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

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.policy.usage_of(kind)
    }
}

/// Runs the suite on a customization. The laws apply to health only: for other operations Karmada reports a script
/// that fails on an unusual object as an error, and existing scripts rely on that. A failing health script would go
/// unnoticed.
fn of_customization(subject: &Subject<'_>, cases: Vec<Case>) -> Report {
    let coverage = bulkhead_conformance::coverage(subject.policy(), &cases);
    let (health, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.call.kind() == CallKind::Health);
    let policy = subject.policy();
    let capabilities = policy
        .capabilities()
        .iter()
        .filter(|capability| capability.kind == CallKind::Health);
    let only = HealthOnly {
        policy,
        capabilities: capabilities.cloned().collect(),
    };
    let checks = others
        .iter()
        .map(|case| bulkhead_conformance::cases::one(subject, case))
        .collect();
    if only.capabilities.is_empty() {
        return Report {
            plugin: policy.id().to_string(),
            checks,
            coverage,
        };
    }
    let mut report = bulkhead_conformance::run(&Subject::new(&only, subject.budget()), &health);
    report.checks.extend(checks);
    Report { coverage, ..report }
}

/// Reports constructs that Karmada's Lua VM rejects. A customization is a Karmada object, so the check fails; a
/// standalone script may be written for this program only, so the check is skipped.
fn portability(remarks: &[String], is_customization: bool) -> Option<Check> {
    let why = remarks.join("\n");
    let outcome = match (remarks.is_empty(), is_customization) {
        (true, false) => return None,
        (true, true) => Came::Passed,
        (false, true) => Came::failed(why),
        (false, false) => Came::skipped(why),
    };
    Some(Check {
        name: "Karmada's Lua engine accepts its scripts".to_owned(),
        kind: None,
        outcome,
        steps: 0,
    })
}

/// Runs the suite, once or after each change. Returns true if all checks passed.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.watch {
        return watch::run(&arguments.which, arguments.cases.as_deref(), || once(arguments));
    }
    once(arguments)
}

fn once(arguments: &Arguments) -> anyhow::Result<bool> {
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
    report
        .checks
        .extend(portability(&loaded.description.remarks, target.is_customization));
    if let Some(path) = &arguments.junit {
        fs::write(path, report.to_junit()).with_context(|| format!("writing {}", path.display()))?;
    }
    let mut data: serde_json::Value = serde_json::from_str(&report.to_json())?;
    // A script has no contract of its own: the functions of this program have tested it.
    let contract = match target.source.engine {
        EngineKind::Lua => bulkhead_engine_wasm::package(),
        _ => loaded.description.contract.clone(),
    };
    data["contract"] = contract.into();
    data["sha256"] = target.source.digest().to_string().into();
    arguments
        .output
        .print(|| format!("{}\n", report.to_string().trim_end()), &data)?;
    Ok(report.passed())
}
