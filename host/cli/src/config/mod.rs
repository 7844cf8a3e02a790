//! Configuration files: the arguments of `bulkhead run` or `bulkhead agent` in a file.
//!
//! There is no list of options here. A field is an argument by its name, and that argument's own parser reads the
//! value. Fields are inserted before the arguments of the command line, so a file can hold everything that the
//! command accepts. The command line takes precedence over environment variables, and both over the file. Start
//! reading at [`parse`].

mod file;
mod print;
mod schema;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;

use bulkhead_plugin::{alternative, nearest};
use bulkhead_server::RunArguments;
use bulkhead_server::config_file::ConfigFile;
use bulkhead_server::settings::{LIST, MAP, Settings};
use bulkhead_server::usage_error::UsageError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use serde_json::Value;

use self::file::{Field, Place};
pub(crate) use self::print::{Command as ConfigCommand, run};
pub(crate) use self::schema::schema;
use crate::exit;

/// Name of the argument that names a configuration file.
const CONFIG: &str = "config";
/// Argument that identifies commands with the arguments of `bulkhead run`.
const OF_RUN: &str = "webhook_url";
/// Argument that identifies commands with the settings of the controllers.
const OF_SETTINGS: &str = "resource-eviction-rate";

/// Parsed arguments, with the positions of those that come from a file.
pub(crate) struct Given {
    /// Arguments of the command line and of the file, merged.
    pub(crate) matches: ArgMatches,
    /// Positions of the values that were taken from the file, by argument name.
    places: BTreeMap<String, Place>,
}

impl Given {
    /// Returns the arguments of the innermost subcommand that was chosen.
    fn innermost(&self) -> &ArgMatches {
        innermost(&self.matches).1
    }
}

/// Reads a command line, and the configuration file if it names one.
///
/// # Errors
///
/// Clap's error about the command line. For a file: its name, the line, the field and the expected value.
pub(crate) fn parse(command: &Command, line: &[OsString]) -> Result<Given, clap::Error> {
    // Errors are ignored here, because the file may hold an argument that another one requires.
    let lenient = command.clone().ignore_errors(true).try_get_matches_from(line);
    let Some((depth, matches, path)) = lenient.as_ref().ok().and_then(with_file) else {
        let matches = command.clone().try_get_matches_from(line).map_err(advised)?;
        let given = Given {
            matches,
            places: BTreeMap::new(),
        };
        check(command, &given)?;
        return Ok(given);
    };
    let chosen = lenient.as_ref().map_or(command, |lenient| chosen(command, lenient));
    let arguments: Vec<_> = chosen
        .get_arguments()
        .filter(|argument| is_field(argument))
        .cloned()
        .collect();
    let (mut words, mut places) = (Vec::new(), BTreeMap::new());
    for mut field in file::read(&path.0).map_err(|error| wrong(&error))? {
        // A field may have the name of an alias.
        if let Some(name) = arguments
            .iter()
            .find(|known| is_named(known, &field.name))
            .and_then(Arg::get_long)
        {
            name.clone_into(&mut field.name);
        }
        let word = word(&field, &arguments).map_err(|why| wrong(&format!("{}: {}: {why}", field.place, field.name)))?;
        let id = arguments
            .iter()
            .find(|argument| argument.get_long() == Some(&field.name))
            .map(Arg::get_id);
        let source = id.and_then(|id| matches.value_source(id.as_str()));
        if !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            words.push(OsString::from(word));
            places.insert(field.name, field.place);
        }
    }
    let at = (depth + 1).min(line.len());
    let whole = line[..at]
        .iter()
        .cloned()
        .chain(words)
        .chain(line[at..].iter().cloned());
    let matches = command.clone().try_get_matches_from(whole).map_err(advised)?;
    let given = Given { matches, places };
    check(command, &given)?;
    Ok(given)
}

/// True for an argument that a file can contain. Arguments of the embedded control plane are for trials on one machine
/// and have no fields.
fn is_field(argument: &Arg) -> bool {
    let is_embedded = argument.get_help_heading() == Some(bulkhead_server::EMBEDDED);
    argument.get_long().is_some_and(|name| name != CONFIG) && !is_embedded
}

fn is_named(argument: &Arg, name: &str) -> bool {
    argument.get_long() == Some(name)
        || argument
            .get_all_aliases()
            .is_some_and(|aliases| aliases.contains(&name))
}

/// Adds the alternative of a flag that only a document of Karmada names.
fn advised(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    match alternative(flag).filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        Some(alternative) => wrong(&format!("unexpected argument '{flag}'; {alternative}")),
        None => error,
    }
}

fn wrong(text: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("{text}\n"))
}

/// Checks combinations of arguments that are valid separately.
fn check(command: &Command, given: &Given) -> Result<(), clap::Error> {
    let (chosen, matches) = (chosen(command, &given.matches), given.innermost());
    let has = |id: &str| chosen.get_arguments().any(|argument| argument.get_id() == id);
    let checked = if has(OF_RUN) {
        RunArguments::from_arg_matches(matches)?.check().map(drop)
    } else if has(OF_SETTINGS) {
        Settings::from_arg_matches(matches)?.flags().map(drop)
    } else {
        Ok(())
    };
    checked.map_err(|error| {
        let place = error
            .downcast_ref::<UsageError>()
            .map(|error| given.places.get(&error.argument));
        wrong(&match place {
            Some(Some(place)) => format!("{place}: {error}"),
            Some(None) => format!("--{error}"),
            None => exit::error_text(&error),
        })
    })
}

fn innermost(matches: &ArgMatches) -> (usize, &ArgMatches) {
    match matches.subcommand() {
        None => (0, matches),
        Some((_, inner)) => {
            let (depth, innermost) = innermost(inner);
            (depth + 1, innermost)
        }
    }
}

/// Returns depth and arguments of the chosen command, if it takes a configuration file and one is named.
fn with_file(matches: &ArgMatches) -> Option<(usize, &ArgMatches, &ConfigFile)> {
    let (depth, inner) = innermost(matches);
    let file = inner.try_get_one::<ConfigFile>(CONFIG).ok().flatten()?;
    Some((depth, inner, file))
}

/// Returns the innermost subcommand that was chosen.
fn chosen<'a>(command: &'a Command, matches: &ArgMatches) -> &'a Command {
    match matches.subcommand() {
        Some((name, inner)) => command
            .find_subcommand(name)
            .map_or(command, |found| chosen(found, inner)),
        None => command,
    }
}

/// Converts a field to a word of a command line.
fn word(field: &Field, arguments: &[Arg]) -> Result<String, String> {
    let known = arguments
        .iter()
        .find(|argument| argument.get_long() == Some(&field.name));
    let known = known.filter(|argument| !argument.is_global_set());
    let argument = known.ok_or_else(|| unknown(&field.name, arguments))?;
    let word = format!("--{}={}", field.name, text(&field.value, argument)?);
    let alone = Command::new("file")
        .no_binary_name(true)
        .disable_help_flag(true)
        .arg(independent(argument));
    alone.try_get_matches_from([&word]).map_err(|error| reason(&error))?;
    Ok(word)
}

/// Copies an argument without its requirements on other arguments.
fn independent(argument: &Arg) -> Arg {
    let mut alone = Arg::new(argument.get_id().clone())
        .action(argument.get_action().clone())
        .value_parser(argument.get_value_parser().clone())
        .allow_hyphen_values(argument.is_allow_hyphen_values_set());
    if let Some(long) = argument.get_long() {
        alone = alone.long(long.to_owned());
    }
    match argument.get_value_delimiter() {
        Some(delimiter) => alone.value_delimiter(delimiter),
        None => alone,
    }
}

fn unknown(name: &str, arguments: &[Arg]) -> String {
    if let Some(alternative) = alternative(name) {
        return format!("unknown field; {alternative}");
    }
    let names = arguments
        .iter()
        .filter_map(Arg::get_long)
        .filter(|name| *name != "help");
    match nearest(name, names) {
        Some(nearest) => format!("unknown field, did you mean {nearest}?"),
        None => "unknown field; the fields are the flags that `--help` lists, without the hyphens".to_owned(),
    }
}

/// Formats a value as on a command line.
fn text(value: &Value, argument: &Arg) -> Result<String, String> {
    let called = |name: &str| {
        argument
            .get_value_names()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    match value {
        Value::Null => Err("there is no value; leave the field out for the default".to_owned()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(items) if argument.get_value_delimiter().is_some() || called(LIST) => {
            Ok(items.iter().map(scalar).collect::<Result<Vec<_>, _>>()?.join(","))
        }
        Value::Object(members) if called(MAP) => {
            let pair = |(key, value): (&String, &Value)| Ok(format!("{key}={}", scalar(value)?));
            Ok(members.iter().map(pair).collect::<Result<Vec<_>, String>>()?.join(","))
        }
        Value::Array(_) => Err("must be one value, not a list".to_owned()),
        Value::Object(_) => Err("must be one value, not a map".to_owned()),
    }
}

fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::String(text) if !text.contains(',') => Ok(text.clone()),
        Value::String(text) => Err(format!("{text:?}: an item must not contain a comma")),
        Value::Null | Value::Array(_) | Value::Object(_) => Err("its items must be plain values".to_owned()),
    }
}

/// Returns the message of a value parser, without the text that clap adds for a command line.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let context = |kind| match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (value, valid) = (context(ContextKind::InvalidValue), context(ContextKind::ValidValue));
    if valid.is_empty() {
        format!("{value:?} cannot be read")
    } else {
        format!("{value:?} must be one of {valid}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;

    const HEAD: &str = "apiVersion: bulkhead.dev/v1alpha1\nkind: BulkheadConfiguration\n";

    fn given(folder: &Path, text: &str, line: &[&str]) -> Result<Given, String> {
        let file = folder.join("bulkhead.yaml");
        fs::write(&file, format!("{HEAD}{text}")).unwrap();
        let words = ["bulkhead", "run", "--config"].iter().map(|&word| OsString::from(word));
        let words: Vec<_> = words
            .chain([file.into_os_string()])
            .chain(line.iter().map(OsString::from))
            .collect();
        parse(&crate::Arguments::command(), &words).map_err(|error| error.to_string())
    }

    fn raw(given: &Given, name: &str) -> Vec<String> {
        let values = given.innermost().get_raw(name).into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_file_wins_over_defaults_and_the_command_line_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = "mode: [finish, interpret]\nleader-elect: false\nresource-eviction-rate: 2.5\n\
            feature-gates: {Failover: true, WorkloadAffinity: false}\ncontrollers: \"-scheduler\"\n";
        let given = given(
            folder.path(),
            text,
            &[
                "--resource-eviction-rate=4",
                "--journal-age-max=3h",
                "--journal=j",
                "--webhook-bind-address=127.0.0.1:0",
            ],
        );
        let given = given.unwrap();
        assert_eq!(raw(&given, "mode"), ["finish", "interpret"]);
        assert_eq!(raw(&given, "leader_elect"), ["false"]);
        assert_eq!(raw(&given, "leader_elect_renew_deadline"), ["10s"]);
        assert_eq!(raw(&given, "controllers"), ["-scheduler"]);
        let flags = Settings::from_arg_matches(given.innermost()).unwrap().flags().unwrap();
        assert!((flags.resource_eviction_rate - 4.0).abs() < f64::EPSILON);
        assert!(flags.gate(bulkhead_controllers::flags::FeatureGate::Failover));
        assert_eq!(given.places["mode"].line, 3);
        assert!(!given.places.contains_key("resource-eviction-rate"));
    }

    #[test]
    fn an_agent_takes_a_file_with_what_it_accepts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.yaml");
        let parsed = |text: &str| {
            fs::write(&file, format!("{HEAD}{text}")).unwrap();
            let words = ["bulkhead", "agent", "--config"].map(OsString::from);
            let words: Vec<_> = words.into_iter().chain([file.clone().into_os_string()]).collect();
            parse(&crate::Arguments::command(), &words).map_err(|error| error.to_string())
        };
        let given = parsed("cluster-name: member1\ncluster-status-update-frequency: 5s\n").unwrap();
        assert_eq!(raw(&given, "cluster_name"), ["member1"]);
        let given = parsed("cluster-name: member1\nmember-kubeconfig: of-an-alias\n").unwrap();
        assert_eq!(raw(&given, "cluster_kubeconfig"), ["of-an-alias"]);
        assert_eq!(given.places["cluster-kubeconfig"].line, 4);
        let error = parsed("cluster-name: member1\nmode: evict\n").map(drop).unwrap_err();
        assert!(error.contains("agent.yaml:4:1: mode: unknown field"), "{error}");
    }

    #[test]
    fn what_one_field_requires_may_stand_in_either_place() {
        let folder = tempfile::tempdir().unwrap();
        given(folder.path(), "journal: j\n", &["--journal-bytes-max=1000000"]).unwrap();
        let error = given(folder.path(), "journal-bytes-max: 1000000\n", &[])
            .map(drop)
            .unwrap_err();
        assert!(error.contains("--journal <DIR>"), "{error}");
    }

    #[test]
    fn an_invalid_field_is_reported_with_place_and_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let check = |text: &str, expected: &str| {
            let error = given(folder.path(), text, &[]).map(drop).unwrap_err();
            assert!(
                error.contains(&format!("bulkhead.yaml:{expected}")),
                "{text:?} says: {error}"
            );
        };
        check("mod: evict\n", "3:1: mod: unknown field, did you mean mode?");
        check(
            "\nresource-evicton-rate: 1\n",
            "4:1: resource-evicton-rate: unknown field, did you mean resource-eviction-rate?",
        );
        check("colour: red\n", "3:1: colour: unknown field; the fields are the flags");
        check(
            "mode: everything\n",
            "3:1: mode: there is no mode everything; there are all, evict",
        );
        check(
            "resource-eviction-rate: fast\n",
            "3:1: resource-eviction-rate: must be a number",
        );
        check(
            "resource-eviction-rate: -1\n",
            "3:1: resource-eviction-rate: must be 0 (stop)",
        );
        check(
            "cluster-failure-threshold: 10\n",
            "3:1: cluster-failure-threshold: \"10\" is not a duration",
        );
        check(
            "feature-gates: {Failver: true}\n",
            "3:1: feature-gates: unknown variant `Failver`, expected one of `Failover`",
        );
        check(
            "leader-elect: perhaps\n",
            "3:1: leader-elect: \"perhaps\" must be one of true, false",
        );
        check("kubeconfig: [a]\n", "3:1: kubeconfig: must be one value, not a list");
        check("kubeconfig:\n", "3:1: kubeconfig: there is no value");
        check(
            "controllers: [\"a,b\"]\n",
            "3:1: controllers: \"a,b\": an item must not contain a comma",
        );
        check("config: other.yaml\n", "3:1: config: unknown field");
    }

    #[test]
    fn conflicting_fields_are_reported_with_line_or_flag() {
        let folder = tempfile::tempdir().unwrap();
        let parse_error = |text: &str, more: &[&str]| given(folder.path(), text, more).map(drop).unwrap_err();
        let check = |text: &str, expected: &str| {
            let error = parse_error(text, &[]);
            assert!(
                error.contains(&format!("bulkhead.yaml:{expected}")),
                "{text:?} says: {error}"
            );
        };
        check(
            "\ncontrollers: [-taintManagr]\n",
            "4:1: controllers: there is no controller taintManagr; there are ",
        );
        check(
            "mode: report,all\n",
            "3:1: mode: report,all: a process that only reports writes nothing",
        );
        check(
            "mode: interpret\n",
            "3:1: mode: interpret answers Karmada over HTTPS and needs webhook-bind-address",
        );
        check(
            "mode: report\nwebhook-bind-address: \":8443\"\n",
            "4:1: webhook-bind-address: leave it out",
        );
        check(
            "webhook-bind-address: \":8443\"\nwebhook-url: bulkhead:8443\n",
            "4:1: webhook-url: bulkhead:8443 must begin",
        );
        check(
            "leader-elect-lease-duration: 5s\n",
            "3:1: leader-elect-lease-duration: must be longer than",
        );
        let error = parse_error("mode: finish\n", &["--resource-eviction-rate=-1"]);
        assert!(
            error.starts_with("error: --resource-eviction-rate: must be 0 (stop)"),
            "{error}"
        );
        let error = parse_error("mode: finish\n", &["--leader-elect-renew-deadline=1s"]);
        assert!(
            error.contains("--leader-elect-renew-deadline: must be longer than leader-elect-retry-period"),
            "{error}"
        );
    }

    #[test]
    fn conflicting_arguments_are_reported_without_a_file_too() {
        let outcome = |words: &[&str]| {
            let words: Vec<_> = ["bulkhead"].iter().chain(words).map(OsString::from).collect();
            parse(&crate::Arguments::command(), &words)
                .map(drop)
                .map_err(|error| (error.exit_code(), error.to_string()))
        };
        for command in [&["run"][..], &["config", "print"], &["doctor"]] {
            let (code, text) = outcome(&[command, &["--controllers=taintManagr"]].concat()).unwrap_err();
            assert!(
                code == 2 && text.contains("--controllers: there is no controller taintManagr"),
                "{text}"
            );
        }
        for command in [&["run"][..], &["agent", "--cluster-name=m1"], &["what-if", "--down=m1"]] {
            let (code, text) = outcome(&[command, &["--resource-eviction-rate=-1"]].concat()).unwrap_err();
            assert!(
                code == 2 && text.contains("--resource-eviction-rate: must be 0"),
                "{text}"
            );
        }
        assert_eq!(outcome(&["run", "--health-probe-bind-address", ":10370"]), Ok(()));
        assert_eq!(outcome(&["crds"]), Ok(()));
    }
}
