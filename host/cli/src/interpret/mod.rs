//! `bulkhead interpret`: runs Karmada's interpreter operations on objects, without a cluster.
//!
//! Start reading at [`Arguments`]; each mode has its own file, and `interpreter` loads the interpreters.

mod check;
mod customization;
mod execute;
mod input;
mod interpreter;
mod place;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bulkhead_core::manifest::Dialect;
use bulkhead_plugin::PluginSource;
use bulkhead_server::engines::EngineArguments;
use clap::{Args, ValueEnum};
use serde_json::Value;

use self::interpreter::{Found, Loader};
use crate::exit;
use crate::output::{self, Format};

/// Heading of the interpreters in the help.
const INTERPRETERS: &str = "Interpreters";

/// Run an interpreter operation on an object, or check and test interpreters.
///
/// Needs no cluster. An interpreter is a ResourceInterpreterCustomization in YAML, a Lua script or a Wasm component.
/// Without --filename, the interpreters shipped with the program are used.
///
/// Exits with code 0 on success, 1 if a script failed, a check reported an error or a test case failed, and 2 if a
/// file or an argument cannot be used.
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
    /// Operation to run.
    #[arg(long, value_enum, ignore_case = true, value_name = "OPERATION")]
    operation: Option<OperationName>,

    /// Check for mistakes: syntax errors, unknown names, missing or surplus functions, wrong results, and scripts
    /// that modify their input.
    #[arg(long)]
    check: bool,

    /// Run the test cases beside the customizations in this directory and its subdirectories: `*_test.yaml`, and the
    /// directory `testdata` of Karmada's own customizations.
    #[arg(long, value_name = "DIR")]
    test: Vec<PathBuf>,

    /// Print the customization shipped with the program for a kind, such as apps.kruise.io/v1alpha1/CloneSet; `list`
    /// prints all names.
    #[arg(long, value_name = "KIND")]
    show: Option<String>,

    /// Output format. Text has the form of `karmadactl interpret`: a YAML document for each result of an operation.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Also write the results of --test as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "test")]
    junit: Option<PathBuf>,

    /// Interpreters: customizations (.yaml), scripts (.lua), components (.wasm), a directory of them, or - for a
    /// customization on standard input.
    #[arg(short, long, value_name = "FILE", help_heading = INTERPRETERS)]
    filename: Vec<PathBuf>,

    /// Search the directories of --filename recursively.
    #[arg(short = 'R', long, help_heading = INTERPRETERS)]
    recursive: bool,

    /// Conventions that scripts follow.
    #[arg(long, value_enum, default_value_t = DialectName::Karmada, help_heading = INTERPRETERS)]
    dialect: DialectName,

    #[command(flatten)]
    objects: input::Files,

    #[command(flatten)]
    engines: EngineArguments,
}

/// Interpreter operation, by Karmada's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum OperationName {
    /// Report the health of the object.
    InterpretHealth,
    /// Report the desired replicas and the resource requirements of one replica.
    InterpretReplica,
    /// Report replicas and requirements of each component, for an object with several pod templates.
    InterpretComponent,
    /// Return the object with a different number of replicas.
    ReviseReplica,
    /// Return the desired object with the fields retained from the observed one.
    Retain,
    /// Return the part of the status that is collected from member clusters.
    InterpretStatus,
    /// Return the object with the status aggregated from member clusters.
    AggregateStatus,
    /// Return the objects that the object depends on.
    InterpretDependency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DialectName {
    /// Functions with Karmada's names.
    Karmada,
    /// health.lua of Argo CD: reads the global obj, returns status and message.
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

/// Runs the command. Exits with 1 if a script fails, a check reports an error or a test case fails, and with 2 if an
/// argument or file cannot be used.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    exit::code(try_run(arguments))
}

/// Returns true if the operation, check or tests succeeded.
fn try_run(arguments: &Arguments) -> anyhow::Result<bool> {
    let loader = Loader::new(arguments.dialect.into(), arguments.recursive, &arguments.engines);
    if let Some(kind) = &arguments.show {
        return show(kind, arguments.output).map(|()| true);
    }
    if !arguments.test.is_empty() {
        return test::run(&loader, &arguments.test, arguments.output, arguments.junit.as_deref());
    }
    if arguments.check {
        if arguments.filename.is_empty() {
            bail!("--check needs --filename, the file to check");
        }
        return check::run(&loader, &arguments.filename, arguments.output);
    }
    let operation = arguments
        .operation
        .context("one of --operation, --check, --test and --show is required")?;
    let request = arguments.objects.request(operation)?;
    let clock = execute::Clock {
        now: arguments.objects.now()?,
        is_default: arguments.objects.has_default_now(),
    };
    execute::run(&loader, &arguments.filename, &request, clock, arguments.output)
}

/// Places of a customization's scripts in its file.
#[derive(Default)]
pub(crate) struct Places(Vec<place::Place>);

impl Places {
    /// Replaces the scripts' line numbers in an engine message with those of the file.
    pub(crate) fn located(&self, message: &str) -> String {
        self.0
            .iter()
            .fold(message.to_owned(), |message, place| place.located(&message))
    }
}

/// Returns the scripts of a file that contains exactly one customization, with their places in the file.
pub(crate) fn customization_source(file: &Path) -> anyhow::Result<(PluginSource, Places)> {
    let mut found = interpreter::find_in(file)?;
    match (found.pop(), found.is_empty()) {
        (Some(Found::Customization(customization)), true) if !customization.scripts.is_empty() => {
            let places = customization
                .scripts
                .iter()
                .map(|script| script.place.clone())
                .collect();
            Ok((customization.source(), Places(places)))
        }
        (Some(Found::Customization(_)), true) => bail!("the customization in {} has no script", file.display()),
        _ => bail!("{} must contain one customization", file.display()),
    }
}

fn customization_data(text: &str) -> anyhow::Result<Value> {
    serde_saphyr::from_str(text).map_err(|error| anyhow::anyhow!("reading the customization: {error}"))
}

fn show(kind: &str, format: Format) -> anyhow::Result<()> {
    let name = |kind: &bulkhead_plugins_lua::Kind| format!("{}/{}", kind.api_version, kind.kind);
    if kind == "list" {
        let names: Vec<_> = bulkhead_plugins_lua::KINDS.iter().map(name).collect();
        return format.print(|| names.join("\n") + "\n", &names);
    }
    let found = bulkhead_plugins_lua::KINDS
        .iter()
        .find(|known| name(known).eq_ignore_ascii_case(kind));
    let found = found.with_context(|| format!("there is no customization for {kind}; `--show list` names all"))?;
    match format {
        // The file as it is, with its comments.
        Format::Text | Format::Yaml => output::print(found.text),
        Format::Json => format.print(String::new, &customization_data(found.text)?),
    }
}
