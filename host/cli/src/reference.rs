//! Reference page of the commands, generated from their arguments.

#[path = "../../../tests/reference/golden.rs"]
mod golden;

mod environment;
mod files;

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory as _};

/// Command with the arguments that several commands take.
const RUN: &str = "bulkhead run";
/// Number of arguments in common with `run` from which on a section lists only their names.
const SHARED_MIN: usize = 10;

/// Returns the visible commands below a command, with their full names, in order.
fn below(command: &Command, name: &str) -> Vec<(String, Command)> {
    let visible = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let mut found = Vec::new();
    for command in command.get_subcommands().filter(visible) {
        let name = format!("{name} {}", command.get_name());
        found.push((name.clone(), command.clone()));
        found.extend(below(command, &name));
    }
    found
}

/// Returns the visible arguments of a command but `--help` and `--version`, those without a name first.
fn arguments(command: &Command) -> Vec<&Arg> {
    let all = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let all = all.filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()));
    let (mut positional, named): (Vec<_>, Vec<_>) = all.partition(|argument| argument.is_positional());
    positional.extend(named);
    positional
}

fn help(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    help.map(ToString::to_string).unwrap_or_default()
}

fn value(value: &PossibleValue) -> String {
    match value.get_help() {
        Some(help) => format!("`{}`: {help}", value.get_name()),
        None => format!("`{}`", value.get_name()),
    }
}

/// Returns the row of an argument: its name, its default and its meaning.
fn row(argument: &Arg) -> Vec<String> {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
    let has_value = argument.get_action().takes_values();
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    let default = if argument.is_required_set() {
        "required".to_owned()
    } else if has_value && !argument.is_hide_default_value_set() && !defaults.concat().is_empty() {
        format!("`{}`", defaults.join(","))
    } else {
        "–".to_owned()
    };
    let mut meaning = help(argument).trim_end_matches('.').to_owned();
    let visible = |value: &PossibleValue| has_value && !argument.is_hide_possible_values_set() && !value.is_hide_set();
    let values: Vec<_> = argument
        .get_possible_values()
        .into_iter()
        .filter(visible)
        .map(|one| value(&one))
        .collect();
    if !values.is_empty() {
        meaning = format!("{meaning}. Values: {}", values.join("; "));
    }
    vec![
        golden::prose(&format!("`{short}{argument}`")),
        golden::prose(&default),
        golden::prose(&meaning),
    ]
}

/// Returns true if a command has this argument, with the same help.
fn has(command: &Command, argument: &Arg) -> bool {
    arguments(command)
        .iter()
        .any(|other| other.get_id() == argument.get_id() && help(other) == help(argument))
}

/// Returns the section of a command. `run` is the command whose arguments need no repetition.
fn section(name: &str, command: &Command, run: &Command) -> String {
    let about = command
        .get_long_about()
        .or_else(|| command.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    let about: Vec<_> = about.split("\n\n").map(golden::prose).collect();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage: ").trim();
    let mut parts = vec![format!(
        "## {name}\n\n{}\n\n```text\n{usage}\n```\n",
        about.join("\n\n")
    )];
    let mut own = arguments(command);
    let shared: Vec<_> = own
        .iter()
        .copied()
        .filter(|argument| name != RUN && has(run, argument))
        .collect();
    if shared.len() >= SHARED_MIN {
        own.retain(|argument| !has(run, argument));
        let names: Vec<_> = shared.iter().filter_map(|argument| argument.get_long()).collect();
        let names = names.join("`, `--");
        parts.push(format!(
            "\nArguments of [{RUN}](#bulkhead-run) that it also takes: `--{names}`.\n"
        ));
    }
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in &own {
        if !headings.contains(&argument.get_help_heading()) {
            headings.push(argument.get_help_heading());
        }
    }
    for heading in headings {
        let rows = own.iter().filter(|argument| argument.get_help_heading() == heading);
        let rows: Vec<_> = rows.map(|argument| row(argument)).collect();
        if let Some(heading) = heading {
            parts.push(format!("\n**{heading}**\n"));
        }
        parts.push(format!(
            "\n{}",
            golden::table(&["argument", "default", "meaning"], &rows)
        ));
    }
    let after = command
        .get_after_long_help()
        .or_else(|| command.get_after_help())
        .map(ToString::to_string);
    if let Some(after) = after.filter(|after| !after.trim().is_empty()) {
        parts.push(format!("\n```text\n{}\n```\n", after.trim()));
    }
    parts.concat()
}

#[test]
fn the_page_of_commands_is_generated_from_the_arguments() {
    let mut root = crate::Arguments::command();
    root.build();
    let commands = below(&root, "bulkhead");
    let (_, run) = commands.iter().find(|(name, _)| name == RUN).unwrap();
    assert!(
        arguments(run).len() > 50,
        "{RUN} has its own arguments and the settings of the controllers"
    );
    let line = |(name, command): &(String, Command)| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        vec![format!("[{name}](#{})", name.replace(' ', "-")), golden::prose(&about)]
    };
    let list: Vec<_> = commands.iter().map(line).collect();
    let sections: Vec<_> = commands
        .iter()
        .map(|(name, command)| section(name, command, run))
        .collect();
    let list = golden::table(&["command", "purpose"], &list);
    golden::check("commands.md", &[("list", list), ("commands", sections.join("\n"))]);
}
