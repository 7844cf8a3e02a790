//! `bulkhead config print`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_server::RunArguments;
use bulkhead_server::settings::{BOOLEAN, Settings};
use bulkhead_simulator::table::{Column, Table};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, FromArgMatches, Subcommand};
use serde_json::{Value, json};

use super::file::{API_VERSION, KIND, Place};
use super::{Given, is_field};
use crate::output::{self, Format};

/// Column of the origins, for values that are short enough.
const ORIGIN_COLUMN: usize = 56;
/// Width of the values in a table, for those that are short enough.
const VALUE_COLUMNS: usize = 24;

/// Inspect the configuration.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  bulkhead config print --config bulkhead.yaml
  bulkhead config print --mode evict")]
pub(crate) enum Command {
    Print(Box<PrintArguments>),
}

/// Print the effective values of `bulkhead run` with the same arguments, and the origin of each.
///
/// The YAML output is a configuration file itself.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead config print --config bulkhead.yaml
  bulkhead config print --mode evict --feature-gates Failover=true -o text")]
pub(crate) struct PrintArguments {
    /// Output format. YAML is a configuration file, with the origins as comments; JSON is a list of values with their
    /// origins; text is a table of them.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,

    #[command(flatten)]
    run: RunArguments,
}

/// Effective value of an argument.
struct Effective {
    name: String,
    value: Value,
    origin: Origin,
    /// Resolved meaning, if the value does not show it.
    note: Option<String>,
}

/// Origin of a value.
enum Origin {
    Default,
    File(Place),
    Environment(String),
    Flag,
}

/// Runs the command.
pub(crate) fn run(command: &Command, given: &Given) -> ExitCode {
    let Command::Print(arguments) = command;
    crate::exit::code(print(arguments, given).map(|()| true))
}

fn print(arguments: &PrintArguments, given: &Given) -> anyhow::Result<()> {
    let effective = noted(effective(given)?, arguments)?;
    for Effective { name, value, .. } in &effective {
        if let Some(reason) = unusable(name, value.as_str()) {
            writeln!(anstream::stderr(), "warning: {name}: {reason}")?;
        }
    }
    match arguments.output {
        Format::Yaml => output::print(&yaml(&effective)?),
        other => other.print(|| table(&effective), &data(&effective)),
    }
}

/// Adds notes to values that do not show what they resolve to.
fn noted(mut effective: Vec<Effective>, arguments: &PrintArguments) -> anyhow::Result<Vec<Effective>> {
    let checked = arguments.run.check()?;
    for one in &mut effective {
        one.note = match (one.name.as_str(), one.value.as_str()) {
            ("kubeconfig", None) => std::env::var("KUBECONFIG")
                .ok()
                .map(|paths| format!("$KUBECONFIG is {paths}")),
            ("controllers", _) => Some(format!("in this mode: {}", bulkhead_server::named(&checked.wanted))),
            (name, value) => unusable(name, value),
        };
    }
    Ok(effective)
}

/// Returns the reason for which `bulkhead run` on this machine would end with a value, if there is one.
fn unusable(name: &str, value: Option<&str>) -> Option<String> {
    match (name, value) {
        ("kubeconfig", Some(path)) => unreadable(Path::new(path)),
        ("kubeconfig", None) => {
            let paths = std::env::var_os("KUBECONFIG")?;
            let listed = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
            // Absent files of a list are left out, as by kubectl.
            let reasons: Option<Vec<_>> = listed.map(|path| unreadable(&path)).collect();
            reasons?.into_iter().next()
        }
        ("journal", Some(path)) => no_journal(Path::new(path)),
        _ => None,
    }
}

/// Returns the error of reading a file, if there is one.
fn unreadable(path: &Path) -> Option<String> {
    let error = std::fs::File::open(path).err()?;
    Some(format!("cannot read {}: {error}", path.display()))
}

/// Returns the reason for which a directory cannot be that of a journal, if there is one. An absent directory is made by
/// `bulkhead run`.
fn no_journal(path: &Path) -> Option<String> {
    let existing = path
        .ancestors()
        .find(|ancestor| !ancestor.as_os_str().is_empty() && ancestor.exists())?;
    let reason = match std::fs::metadata(existing) {
        Ok(metadata) if !metadata.is_dir() => "not a directory".to_owned(),
        Ok(metadata) if metadata.permissions().readonly() => "not writable".to_owned(),
        Ok(_) => return None,
        Err(error) => error.to_string(),
    };
    Some(format!(
        "cannot write to {}: {}: {reason}",
        path.display(),
        existing.display()
    ))
}

fn effective(given: &Given) -> anyhow::Result<Vec<Effective>> {
    let matches = given.innermost();
    let flags = serde_json::to_value(Settings::from_arg_matches(matches)?.flags()?)?;
    let command = <RunArguments as Args>::augment_args(clap::Command::new("run"));
    let mut found = Vec::new();
    for argument in command.get_arguments().filter(|argument| is_field(argument)) {
        let name = argument.get_long().context("an argument without a name")?.to_owned();
        let value = match flags.get(&name) {
            Some(setting) => setting.clone(),
            None => raw(argument, matches),
        };
        let origin = match (
            given.places.get(&name),
            matches.value_source(argument.get_id().as_str()),
        ) {
            (Some(place), _) => Origin::File(place.clone()),
            (None, Some(ValueSource::CommandLine)) => Origin::Flag,
            (None, Some(ValueSource::EnvVariable)) => {
                let variable = argument.get_env().unwrap_or_default();
                Origin::Environment(variable.to_string_lossy().into_owned())
            }
            (None, _) => Origin::Default,
        };
        found.push(Effective {
            name,
            value,
            origin,
            note: None,
        });
    }
    Ok(found)
}

/// Returns the value of an argument as written, in the type that it has in a file.
fn raw(argument: &Arg, matches: &ArgMatches) -> Value {
    let Some(values) = matches.get_raw(argument.get_id().as_str()) else {
        return Value::Null;
    };
    let mut texts: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
    if argument.get_value_delimiter().is_some() {
        return json!(texts);
    }
    let Some(text) = texts.pop() else { return Value::Null };
    let is_boolean = argument
        .get_value_names()
        .is_some_and(|names| names.iter().any(|name| name == BOOLEAN));
    match (text.parse::<bool>(), text.parse::<u64>()) {
        (Ok(truth), _) if is_boolean => Value::from(truth),
        (_, Ok(number)) => Value::from(number),
        _ => Value::from(text),
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => place.fmt(f),
            Self::Environment(variable) => write!(f, "${variable}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

fn yaml(effective: &[Effective]) -> anyhow::Result<String> {
    let mut text = format!("apiVersion: {API_VERSION}\nkind: {KIND}\n");
    for Effective {
        name,
        value,
        origin,
        note,
    } in effective
    {
        let line = match value {
            Value::Null => format!("# {name}: unset"),
            // JSON is valid YAML for a list or a map on one line.
            Value::Array(_) | Value::Object(_) => format!("{name}: {value}"),
            _ => format!("{name}: {}", serde_saphyr::to_string(value)?.trim_end()),
        };
        // Defaults are comments, because some conflict with given values: a bound of the journal without a journal.
        let is_comment = matches!(origin, Origin::Default) && !value.is_null();
        let line = if is_comment { format!("# {line}") } else { line };
        writeln!(text, "{line:<ORIGIN_COLUMN$} # {origin}")?;
        if let Some(note) = note {
            writeln!(text, "#   {note}")?;
        }
    }
    Ok(text)
}

fn table(effective: &[Effective]) -> String {
    let mut table = Table::new(2, &[Column::Fit, Column::Left(VALUE_COLUMNS)]);
    table.row(["NAME", "VALUE", "FROM"]);
    for Effective {
        name, value, origin, ..
    } in effective
    {
        let value = match value {
            Value::Null => "unset".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.row([name.clone(), value, origin.to_string()]);
    }
    table.to_string()
}

fn data(effective: &[Effective]) -> Value {
    let one = |Effective {
                   name, value, origin, ..
               }: &Effective| {
        let from = match origin {
            Origin::Default => json!({"kind": "default"}),
            Origin::File(place) => json!({"kind": "file", "file": place.file, "line": place.line}),
            Origin::Environment(variable) => json!({"kind": "environment", "variable": variable}),
            Origin::Flag => json!({"kind": "flag"}),
        };
        json!({"name": name, "value": value, "from": from})
    };
    let values: Vec<_> = effective.iter().map(one).collect();
    json!({"apiVersion": API_VERSION, "kind": KIND, "values": values})
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use clap::CommandFactory;

    use super::*;

    fn printed(words: &[&str]) -> String {
        let words: Vec<_> = ["bulkhead", "run"].iter().chain(words).map(OsString::from).collect();
        let given = super::super::parse(&crate::Arguments::command(), &words).unwrap();
        yaml(&effective(&given).unwrap()).unwrap()
    }

    #[test]
    fn what_is_printed_is_a_file_that_means_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bulkhead.yaml");
        let first = printed(&[
            "--mode=evict,interpret",
            "--webhook-bind-address=:8443",
            "--feature-gates=Failover=true",
            "--leader-elect=false",
        ]);
        assert!(
            first.contains("mode: [\"evict\",\"interpret\"]") && first.contains("# journal: unset"),
            "{first}"
        );
        fs::write(&file, &first).unwrap();
        let again = printed(&["--config", &file.display().to_string(), "--kube-api-qps=41"]);
        let values = |text: &str| {
            text.lines()
                .map(|line| line.split(" # ").next().unwrap_or_default().trim().to_owned())
                .collect::<Vec<_>>()
        };
        let (before, after) = (values(&first), values(&again));
        let differ: Vec<_> = before
            .iter()
            .zip(&after)
            .filter(|(before, after)| before != after)
            .collect();
        assert_eq!(differ.len(), 1, "{differ:?}");
        let line = |name: &str| {
            again
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default()
                .to_owned()
        };
        let at = first.lines().position(|line| line.starts_with("mode:")).unwrap() + 1;
        assert!(
            line("mode:").ends_with(&format!("# {}:{at}:1", file.display())),
            "{again}"
        );
        assert!(
            line("kube-api-qps:").ends_with("# flag") && line("# journal:").ends_with("# default"),
            "{again}"
        );
    }
}
