//! `bulkhead interpret`: what Karmada's interpreter operations make of objects, without a cluster.
//!
//! Start reading at [`Arguments`]; there is a file for each thing that can be done, `interpreter` is what is asked.

mod check;
mod customization;
mod execute;
mod input;
mod interpreter;
mod place;
mod test;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bulkhead_plugin::{Dialect, PluginSource};
use clap::{Args, ValueEnum};

use self::interpreter::{Found, Loader};
use crate::engines::EngineArguments;
use crate::exit;

/// Run an interpreter operation on an object, or check and test interpreters. Needs no cluster.
///
/// An interpreter is a ResourceInterpreterCustomization in YAML, a Lua script or a Wasm component. Without --filename the
/// interpreters that come with the program are asked.
///
/// Ends with exit code 0 if all went well, 1 if a script failed, a check found something or a case did not come out as
/// expected, and 2 if a file or an argument cannot be used.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead interpret --operation InterpretHealth --observed-file deployment.yaml
  bulkhead interpret -f customization.yaml --check
  bulkhead interpret -f customization.yaml --operation ReviseReplica --desired-file game.yaml --desired-replica 3
  bulkhead interpret -f health.lua --dialect argo --operation InterpretHealth --observed-file - < certificate.yaml
  bulkhead interpret --test plugins/lua/kinds")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["check", "operation", "test", "show"]))]
pub(crate) struct Arguments {
    /// Interpreters: customizations (.yaml), scripts (.lua), components (.wasm), a directory of them, or - for a
    /// customization on standard input.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<PathBuf>,

    /// Go through the directories of --filename with all that are in them.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// The conventions that scripts are written in.
    #[arg(long, value_enum, default_value_t = DialectName::Karmada)]
    dialect: DialectName,

    /// Look for mistakes: syntax, names, missing and surplus functions, wrong results, scripts that change what they
    /// are given.
    #[arg(long)]
    check: bool,

    /// The operation to run.
    #[arg(long, value_enum, ignore_case = true, value_name = "OPERATION")]
    operation: Option<OperationName>,

    /// Run the cases that lie beside customizations in this directory and those below it: `*_test.yaml`, and the
    /// directory `testdata` of Karmada's own.
    #[arg(long, value_name = "DIR")]
    test: Vec<PathBuf>,

    /// Print the customization that comes with the program for a kind, such as apps.kruise.io/v1alpha1/CloneSet; all
    /// names for `list`.
    #[arg(long, value_name = "KIND")]
    show: Option<String>,

    #[command(flatten)]
    objects: input::Files,

    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Documents)]
    output: Output,

    #[command(flatten)]
    engines: EngineArguments,

    /// Also write the outcome of --test as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "test")]
    junit: Option<PathBuf>,
}

/// Karmada's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum OperationName {
    /// How is the object?
    InterpretHealth,
    /// How many replicas does it want, and what does one need?
    InterpretReplica,
    /// The same for an object with several pod templates.
    InterpretComponent,
    /// What does it look like with another number of replicas?
    ReviseReplica,
    /// What does the desired object keep of the observed one?
    Retain,
    /// Which part of its status is worth collecting?
    InterpretStatus,
    /// What does it look like with these reports of member clusters?
    AggregateStatus,
    /// What does it need beside it?
    InterpretDependency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DialectName {
    /// Functions with Karmada's names.
    Karmada,
    /// A health.lua of Argo CD: global obj, returns status and message.
    Argo,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Karmada => Self::Karmada,
            DialectName::Argo => Self::Argo,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A YAML document for each result, as `karmadactl interpret` prints them.
    Documents,
    /// All results by name.
    Yaml,
    /// The same as JSON.
    Json,
}

/// Runs the command: no is a script that fails, a finding of the check or a case that comes out otherwise, an error what
/// cannot be used at all.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    exit::code(try_run(arguments))
}

/// Returns whether all went well.
fn try_run(arguments: &Arguments) -> anyhow::Result<bool> {
    let loader = Loader::new(arguments.dialect.into(), arguments.recursive, &arguments.engines);
    if let Some(kind) = &arguments.show {
        return show(kind).map(|()| true);
    }
    if !arguments.test.is_empty() {
        return test::run(&loader, &arguments.test, arguments.output == Output::Json, arguments.junit.as_deref());
    }
    if arguments.check {
        if arguments.filename.is_empty() {
            bail!("--check needs --filename: what is to be checked");
        }
        return check::run(&loader, &arguments.filename);
    }
    let operation = arguments.operation.context("one of --operation, --check, --test and --show says what to do")?;
    let request = arguments.objects.request(operation)?;
    execute::run(&loader, &arguments.filename, &request, arguments.objects.now()?, arguments.output)
}

/// The scripts of the one customization that a file holds.
pub(crate) fn customization_source(file: &Path) -> anyhow::Result<PluginSource> {
    let mut found = interpreter::find_in(file)?;
    match (found.pop(), found.is_empty()) {
        (Some(Found::Customization(customization)), true) if !customization.scripts.is_empty() => {
            Ok(customization.source())
        }
        (Some(Found::Customization(_)), true) => bail!("the customization in {} has no script", file.display()),
        _ => bail!("{} has to hold one customization", file.display()),
    }
}

fn show(kind: &str) -> anyhow::Result<()> {
    let name = |kind: &bulkhead_plugins_lua::Kind| format!("{}/{}", kind.api_version, kind.kind);
    let mut out = anstream::stdout().lock();
    if kind == "list" {
        for kind in bulkhead_plugins_lua::KINDS {
            writeln!(out, "{}", name(kind))?;
        }
        return Ok(());
    }
    let found = bulkhead_plugins_lua::KINDS.iter().find(|known| name(known).eq_ignore_ascii_case(kind));
    let found = found.with_context(|| format!("there is no customization for {kind}; `--show list` names all"))?;
    write!(out, "{}", found.text)?;
    Ok(())
}
