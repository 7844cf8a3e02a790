//! Reference of the environment variables, generated from the arguments.

use std::collections::BTreeMap;

use clap::CommandFactory as _;

use super::{arguments, below, golden};

#[test]
fn the_page_of_the_command_line_has_every_environment_variable_of_the_arguments() {
    let mut root = crate::Arguments::command();
    root.build();
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (name, command) in below(&root, "bulkhead") {
        for argument in arguments(&command) {
            let Some(variable) = argument.get_env() else { continue };
            let flag = format!("`--{}`", argument.get_long().unwrap_or_default());
            let commands = found
                .entry((variable.to_string_lossy().into_owned(), flag))
                .or_default();
            commands.push(format!("`{}`", name.trim_start_matches("bulkhead ")));
        }
    }
    assert!(found.len() >= 5, "{found:?}");
    let row = |((variable, flag), commands): ((String, String), Vec<String>)| {
        vec![format!("`{variable}`"), flag, commands.join(", ")]
    };
    let rows: Vec<_> = found.into_iter().map(row).collect();
    golden::check(
        "command-line.md",
        &[("environment", golden::table(&["variable", "flag", "commands"], &rows))],
    );
}
