//! The program as a plugin of kubectl: `kubectl bulkhead top` starts `kubectl-bulkhead top`.

use std::ffi::OsStr;
use std::path::Path;

use clap::Command;

/// Name of the executable that kubectl looks for in the path.
const EXECUTABLE: &str = "kubectl-bulkhead";
/// Name of the program in help texts, as a user of the plugin writes it.
const NAME: &str = "kubectl bulkhead";

/// Returns the command with the name that the program was started by. `executable` is the first word of the command
/// line.
pub(crate) fn named(command: Command, executable: Option<&OsStr>) -> Command {
    let is_plugin = executable
        .map(Path::new)
        .and_then(Path::file_name)
        .is_some_and(|name| name == EXECUTABLE);
    if is_plugin {
        with_examples(command.bin_name(NAME))
    } else {
        command
    }
}

/// Writes the examples of a command and of all commands below it with the name of the plugin.
fn with_examples(command: Command) -> Command {
    let examples = command.get_after_help().map(|text| {
        let text = text.to_string();
        text.replace("\n  bulkhead ", &format!("\n  {NAME} "))
    });
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    command.mut_subcommands(with_examples)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Arguments;

    fn help(executable: &str, path: &[&str]) -> String {
        let mut command = named(Arguments::command(), Some(OsStr::new(executable)));
        command.build();
        let mut here = &mut command;
        for name in path {
            here = here.find_subcommand_mut(name).unwrap();
        }
        here.render_long_help().to_string()
    }

    #[test]
    fn help_of_the_plugin_has_the_name_that_its_user_writes() {
        for path in [&[][..], &["top"], &["plugin", "test"]] {
            let text = help("/home/me/.krew/bin/kubectl-bulkhead", path);
            let usage = [&["Usage: kubectl bulkhead"][..], path].concat().join(" ");
            assert!(text.contains(&usage), "{text}");
            assert!(!text.contains("\n  bulkhead "), "{text}");
            assert!(text.contains("\n  kubectl bulkhead "), "{text}");
        }
    }

    #[test]
    fn any_other_name_of_the_executable_changes_nothing() {
        for name in [
            "bulkhead",
            "/usr/local/bin/bulkhead",
            "bulkhead-0.1.0",
            "kubectl-bulkhead-old",
        ] {
            let text = help(name, &["top"]);
            assert!(
                text.contains("Usage: bulkhead top") && !text.contains("kubectl bulkhead"),
                "{name}: {text}"
            );
        }
    }
}
